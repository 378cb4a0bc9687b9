"""Identity: slugs, ids and fingerprints are made from the words, and are always valid."""

from __future__ import annotations

import pytest
from conftest import make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory import schema, timestamps
from memtool.memory.ids import ALPHABET, TYPE_PREFIX, fingerprint, make_id, nearest, place, slug

NOON = timestamps.parse("2026-02-22T12:00:00Z")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Keep sessions in Redis", "keep-sessions-in-redis"),
        ("  Ünïcode — & C++/Rust! ", "unicode-c-rust"),
        ("日本語", "memory"),
        ("", "memory"),
        ("../../etc/passwd", "etc-passwd"),
        ("a" * 100, "a" * 48),
        ("word " * 20, "word-word-word-word-word-word-word-word-word"),
        ("x²", "x2"),
    ],
)
def test_slugs_are_whole_words(text: str, expected: str) -> None:
    """A slug has the words of a text in lower case, cut where a word ends."""
    assert slug(text) == expected


@given(st.text(), st.binary(min_size=3, max_size=8), st.sampled_from(sorted(TYPE_PREFIX)))
def test_every_title_gives_a_valid_id(title: str, random: bytes, type_: str) -> None:
    """Whatever the title is, the id is one, names type and day, and ends in four characters."""
    id_ = make_id(type_, NOON, title, random)
    assert schema.is_id(id_)
    assert id_.startswith(f"{TYPE_PREFIX[type_]}-2026-02-22-")
    assert len(id_.rpartition("-")[2]) == 4
    assert set(id_[-4:]) <= set(ALPHABET)


def test_twenty_random_bits_are_in_the_suffix() -> None:
    """Different bits give different ids, the same bits the same."""
    made = {make_id("state", NOON, "a", n.to_bytes(3, "big")) for n in range(0, 1 << 20, 37)}
    assert len(made) == len(range(0, 1 << 20, 37))


def test_the_place_is_type_and_month() -> None:
    """A new file lies in the directory of its type and month, in UTC."""
    memory = make_memory("dec-a", timestamp="2026-03-01T01:00:00+02:00")
    assert place(memory) == "decision/2026-02/dec-a.md"


def test_fingerprints_see_words_only() -> None:
    """Case, white space, id and time do not count; type, title and words do."""
    base = make_memory("dec-a", "Keep It so.\n", title="Why")
    same = make_memory(
        "dec-b", "\n  keep\tit\r\nSO.", title="WHY ", timestamp="2020-01-01T00:00:00Z"
    )
    assert fingerprint(base) == fingerprint(same)
    others = [
        base.with_fields(type="state"),
        base.with_fields(title="Who"),
        base.with_body("No."),
    ]
    assert len({fingerprint(memory) for memory in [base, *others]}) == 4
    assert len(fingerprint(base)) == 16


def test_the_nearest_ids_hold_the_word_first() -> None:
    """Ids that contain what was typed come before those that resemble it, at most three."""
    ids = ["dec-a-redis", "dec-b-redis", "dec-c-redis", "dec-d-redis", "sem-x"]
    assert nearest("redis", ids) == ids[:3]
    assert nearest("sem-y", ids)[0] == "sem-x"
    assert nearest("qqqqqqqq", ids) == []
