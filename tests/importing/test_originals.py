"""States, dates, names and texts of other tools, in the form of a memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.importing import originals
from memtool.memory import schema, timestamps


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Accepted", "confirmed"),
        ("accepted (PR #12)", "confirmed"),
        ("**Final**", "confirmed"),
        ("Superseded by [3](3.md)", "confirmed"),
        ("April Fool!", "deprecated"),
        ("in-progress", "confirmed"),
        ("Draft.", "candidate"),
        ("implemented # provisional|implemented", "confirmed"),
        ("{proposed | accepted}", ""),
        ("", ""),
        ("purple", ""),
        ("Akzeptiert seit Mai", "confirmed"),
        ("\u043d\u0435 \u043f\u0440\u0438\u043d\u044f\u0442\u043e", "deprecated"),
        ("\u627f\u8a8d\u6e08\u307f\u3067\u3059", "confirmed"),
        ("* [x] Accepted", "confirmed"),
        ("[x] Draft | Accepted | Rejected", "candidate"),
        ("* [ ] Accepted", ""),
        ("Proposed | Accepted", ""),
        ("Accepted | 12 May", "confirmed"),
        ("proposed, accepted, rejected", ""),
        ("Not accepted", "deprecated"),
        ("Not yet accepted", ""),
    ],
)
def test_states_of_records_have_a_status(text, expected):
    """Known states map to a status whatever follows them; placeholders and unknown ones do not."""
    assert originals.find_state(text) == expected


def test_every_state_maps_to_a_status_that_memories_have():
    """The table of states holds nothing that the schema would refuse."""
    from memtool.memory.fields import STATUSES

    assert {state.status for state in originals.STATES.values()} <= set(STATUSES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2016-02-12", "2016-02-12T00:00:00Z"),
        ("2016/2/12", "2016-02-12T00:00:00Z"),
        ("05-Jul-2001", "2001-07-05T00:00:00Z"),
        ("5 July 2001", "2001-07-05T00:00:00Z"),
        ("July 5th, 2001", "2001-07-05T00:00:00Z"),
        ("2020-01-02T03:04:05", "2020-01-02T03:04:05Z"),
        ("2020-01-02T03:04:05.678-08:00", "2020-01-02T03:04:05.678-08:00"),
        ("accepted on 2020-01-02", "2020-01-02T00:00:00Z"),
        ("6. Mai 2024", "2024-05-06T00:00:00Z"),
        ("3 de mar\u00e7o de 2024", "2024-03-03T00:00:00Z"),
        ("1er mars 2024", "2024-03-01T00:00:00Z"),
        ("5 lipca 2023", "2023-07-05T00:00:00Z"),
        ("12 \u043c\u0430\u044f 2020 \u0433.", "2020-05-12T00:00:00Z"),
        ("2024\u5e745\u67086\u65e5", "2024-05-06T00:00:00Z"),
        ("03.04.2024", "2024-04-03T00:00:00Z"),
        ("23/04/2024", "2024-04-23T00:00:00Z"),
        ("04/23/2024", "2024-04-23T00:00:00Z"),
        ("0000-01-01", ""),
        ("v1.2.2024.3", ""),
        ("30.02.2020", ""),
        ("2020-13-40", ""),
        ("03/04/2024", ""),
        ("soon", ""),
    ],
)
def test_days_in_usual_spellings_become_moments(text, expected):
    """A day is read in any common spelling that has one meaning, and never guessed."""
    assert originals.parse_moment(text) == expected


def test_a_date_of_two_meanings_needs_to_know_the_order():
    """The day comes first if the caller knows so, or if all dates of the texts must be so."""
    assert originals.parse_moment("03/04/2024", is_day_first=True) == "2024-04-03T00:00:00Z"
    assert originals.has_day_first(["03/04/2024", "23/04/2024"])
    assert not originals.has_day_first(["03/04/2024"])
    assert not originals.has_day_first(["23/04/2024", "04/23/2024"])


@given(st.text(max_size=60))
def test_a_moment_is_always_one_that_memories_may_hold(text):
    """Whatever the text, the answer parses or is empty."""
    moment = originals.parse_moment(text)
    assert not moment or isinstance(timestamps.parse(moment), int)


@given(st.text(max_size=200))
def test_any_name_becomes_an_id(text):
    """Every name gives a valid id, the same one each time."""
    made = originals.to_id(text, "dec")
    assert schema.is_id(made)
    assert made == originals.to_id(text, "dec")
    assert schema.is_id(originals.with_suffix(made, text))


@given(st.text(max_size=700))
def test_any_text_becomes_a_visible_line(text):
    """A cleaned line has no hidden characters and respects its length."""
    cleaned = originals.to_line(text, 200)
    assert schema.is_line(cleaned)
    assert len(cleaned) <= 200


@given(st.text(alphabet="ab \n\u00e9\U0001f600", max_size=2000), st.integers(150, 400))
def test_a_cut_body_fits(text, limit):
    """A body is cut to the bytes that are allowed, and says where the rest is."""
    cut = originals.cut_body(text, limit, "file:a.md")
    assert len(cut.encode()) <= max(limit, 0)
    assert cut == text or cut.endswith("is in file:a.md]\n")


def test_a_body_is_cut_after_a_paragraph():
    """Where a paragraph ends in the second half of what fits, the cut is there."""
    text = "a" * 100 + "\n\n" + "b" * 100 + "\n\n" + "c" * 300
    assert originals.cut_body(text, 300, "x").startswith(
        "a" * 100 + "\n\n" + "b" * 100 + "\n\n[cut here"
    )


@given(st.text(alphabet=st.characters(codec=None), max_size=80))
def test_any_body_can_be_written_as_utf8(text):
    """NUL and lone surrogates are gone, so that every body is text."""
    cleaned = originals.to_body(text)
    assert b"\0" not in cleaned.encode()
    assert cleaned == "" or cleaned.endswith("\n")
