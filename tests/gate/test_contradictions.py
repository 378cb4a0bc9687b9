"""What two sentences must share before one of them is shown as the contrary of the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import make_memory
from hypothesis import given, settings
from hypothesis import strategies as st

from memtool.gate.contradictions import Statement, between, find, measure, statements
from memtool.memory.memory import Memory

DATA = Path(__file__).parent / "data"
PAIRS = [json.loads(line) for line in (DATA / "conflicts.jsonl").read_text().splitlines()]
MISSED = ("far", "version of a thing", "sub-clause")
"""Kinds of conflicts that nobody finds by signs and values alone, or that cost false alarms."""
VALUED = ("port", "key", "version", "unit", "path")


def rows(name: str) -> list[list[str]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.split("|")] for line in lines if line and line[0] != "#"]


def side(row: dict, name: str) -> Memory:
    title, body = row[name]
    return make_memory(f"sem-{name}", body + "\n", title=title, type=row.get("type", "semantic"),
                       tags=tuple(row.get("tags", ())))  # fmt: skip


@pytest.mark.parametrize(
    "row", [row for row in PAIRS if row["label"] == "none"], ids=lambda row: row["a"][0]
)
def test_what_can_hold_together_is_no_conflict(row: dict):
    """Other qualifiers, scopes, keys, dates, numbered things and double negations are fine."""
    assert between(side(row, "a"), side(row, "b")) is None


@pytest.mark.parametrize(
    "row", [row for row in PAIRS if row["label"] == "conflict"], ids=lambda row: row["a"][0]
)
def test_contrary_statements_are_found_and_quoted(row: dict):
    """Every row of the tables, and values of every kind, whichever memory comes first."""
    found, back = between(side(row, "a"), side(row, "b")), between(side(row, "b"), side(row, "a"))
    if row["kind"] in MISSED:
        assert found is back is None
        return
    assert found is not None
    assert back is not None
    assert found.kind == back.kind == ("values" if row["kind"] in VALUED else "opposition")
    assert " against " in found.reason


@pytest.mark.parametrize("row", rows("statements.txt"), ids=lambda row: row[0])
def test_a_sentence_is_taken_apart_by_the_tables(row: list[str]):
    """A sign, a concept, the terms of the subject and values, or nothing where it is no claim."""
    sentence, sign, *rest = row
    found = statements(make_memory(title=sentence, body=""))
    if not sign:
        assert found == ()
        return
    (one,) = found
    assert f"{'+' if one.sign > 0 else '-'} {one.concept}".strip() == sign
    assert " ".join(sorted(one.subject)) == rest[0]
    assert ", ".join(" ".join(value) for value in one.values) == "".join(rest[1:])


@pytest.mark.parametrize("row", rows("measures.txt"), ids=lambda row: row[0])
def test_numbers_units_and_versions_have_one_spelling(row: list[str]):
    """What means the same is written the same; other words are no quantity."""
    word, _space, after = row[0].partition(" ")
    found, width = measure(word, after)
    assert (f"{' '.join(found)}, {width}" if found else "") == row[1]


def test_a_choice_says_yes_to_one_and_no_to_the_other():
    """`X instead of Y for Z` is two statements."""
    found = statements(make_memory(title="Use tabs instead of spaces for Makefiles", body=""))
    assert [(s.sign, sorted(s.subject)) for s in found] == [
        (1, ["makefil", "tab"]), (-1, ["makefil", "space"]),
    ]  # fmt: skip


def test_only_title_and_first_sentence_state_something():
    """What follows gives reasons, and weighs what was not chosen."""
    body = "- Opening one. It goes on.\n\nMore.\n\n## Chosen\n\nChosen thing.\n"
    said = [s.text for s in statements(make_memory(title="Title words", body=body))]
    assert said == ["Title words", "Opening one."]


def test_among_many_memories_only_the_contrary_ones_are_found():
    """Each pair once, in the order of the list."""
    memories = [make_memory(f"sem-{at}", f"Use tool{at}x for job{at}x.\n", type="semantic",
                            title=f"Use tool{at}x for job{at}x") for at in range(200)]  # fmt: skip
    memories[150] = make_memory("sem-no", "Do not use tool7x for job7x.\n", type="semantic",
                                title="Do not use tool7x for job7x")  # fmt: skip
    found = find(memories)
    assert [(one.one, one.other, one.kind) for one in found] == [(7, 150, "opposition")]
    assert found[0].reason == (
        '"Use tool7x for job7x" against "Do not use tool7x for job7x"'
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tags": ("cache",)}, True),
        ({"files": ("a.py",)}, True),
        ({"tags": ("other",)}, False),
        ({}, False),
    ],
)
def test_a_subject_of_one_word_needs_something_in_common(fields: dict, *, expected: bool):
    """A shared tag or file, or a word of both titles, says that both mean the same thing."""
    base = {"tags": ("cache",), "files": ("a.py",)}
    one = make_memory("dec-a", "Use Redis.\n", title="Speed", **base)
    other = make_memory("dec-b", "Do not use Redis.\n", title="Costs", **fields)
    assert (between(one, other) is not None) == expected


def test_a_memory_does_not_contradict_itself():
    """Contrary sentences of one memory are its own matter."""
    one = make_memory(title="Use Redis for sessions", body="Do not use Redis for sessions.\n")
    assert find([one]) == find([]) == []


def test_only_rules_contradict_and_digests_state_nothing():
    """Traces and states were true at their time, and a digest repeats its sources."""
    for fields in ({"type": "episodic"}, {"source": ("tool:digest/0123",)}):
        yes, no = (
            make_memory(f"sem-{at}", "", title=title, **{"type": "semantic", **fields})
            for at, title in enumerate(("Use tabs in Makefiles", "Never use tabs in Makefiles"))
        )
        assert between(yes, no) is None


def test_many_equal_memories_cost_no_more_than_few():
    """What says the same is compared as one."""
    same = [make_memory(f"sem-{at}", "", title="Lines have 88 characters", type="semantic")
            for at in range(3_000)]  # fmt: skip
    other = make_memory("sem-x", "", title="Lines have 100 characters", type="semantic")
    assert len(find([*same, other])) == 3_000


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.text(max_size=400))
def test_any_text_can_be_read(title: str, body: str):
    """Nothing that a memory may hold is too odd, and no subject is empty."""
    for statement in statements(make_memory(title=title, body=body)):
        assert isinstance(statement, Statement)
        assert statement.subject
        assert statement.sign in (1, -1)


def test_a_long_text_is_read_in_bounded_time():
    """One long line costs what it holds."""
    body = "never " * 10_000 + "=" * 10_000 + ": " * 5_000
    assert len(statements(make_memory(body=body))) <= 2
