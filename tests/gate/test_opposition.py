from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import make_memory

from memtool.gate.opposition import opposed, oppositions
from memtool.memory.memory import Memory

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "conflicts.jsonl").read_text().splitlines()
]
MISTAKEN = {"Timeouts in Go 1.20"}
"""Pairs without a conflict that are taken for one."""


def side(row: dict, name: str) -> Memory:
    title, body = row[name]
    return make_memory(f"sem-{name}", body + "\n", title=title, type=row.get("type", "semantic"),
                       tags=tuple(row.get("tags", ())))  # fmt: skip


@pytest.mark.parametrize(
    "row", [row for row in PAIRS if row["label"] == "none"], ids=lambda row: row["a"][0]
)
def test_what_can_hold_together_is_no_conflict(row: dict):
    """Other qualifiers, scopes, keys, dates and double negations contradict nothing."""
    kind, _reason = opposed(side(row, "a"), side(row, "b"))
    assert bool(kind) == (row["a"][0] in MISTAKEN)


@pytest.mark.parametrize(
    "row",
    [row for row in PAIRS if row["label"] == "conflict" and row["kind"] != "far"],
    ids=lambda row: row["a"][0],
)
def test_contrary_statements_are_found(row: dict):
    """Every row of the tables, and values of every kind, whichever memory comes first."""
    wanted = "values" if row["kind"] in ("port", "key", "version", "unit", "path") else "opposition"
    kind, reason = opposed(side(row, "a"), side(row, "b"))
    assert kind == wanted
    assert " against " in reason
    assert opposed(side(row, "b"), side(row, "a"))[0] == wanted


def test_among_many_memories_only_the_contrary_ones_are_told():
    """Each pair once, in the order of the list."""
    memories = [make_memory(f"sem-{at}", f"Use tool{at}x for job{at}x.\n", type="semantic",
                            title=f"Use tool{at}x for job{at}x") for at in range(200)]  # fmt: skip
    memories[150] = make_memory("sem-no", "Do not use tool7x for job7x.\n", type="semantic",
                                title="Do not use tool7x for job7x")  # fmt: skip
    found = oppositions(memories)
    assert [(one.one, one.other, one.kind) for one in found] == [(7, 150, "opposition")]
    assert found[0].reason == (
        '"Use tool7x for job7x" against "Do not use tool7x for job7x"'
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tags": ("cache",)}, "opposition"),
        ({"files": ("a.py",)}, "opposition"),
        ({"tags": ("other",)}, ""),
        ({}, ""),
    ],
)
def test_a_subject_of_one_word_needs_something_in_common(fields: dict, expected: str):
    """A shared tag or file, or a word of both titles, says that both mean the same thing."""
    base = {"tags": ("cache",), "files": ("a.py",)}
    one = make_memory("dec-a", "Use Redis.\n", title="Speed", **base)
    other = make_memory("dec-b", "Do not use Redis.\n", title="Costs", **fields)
    assert opposed(one, other)[0] == expected


def test_a_memory_does_not_contradict_itself():
    """Contrary sentences of one memory are its own matter."""
    body = "Use Redis for sessions.\n\nDo not use Redis for sessions.\n"
    assert oppositions([make_memory(body=body)]) == []
    assert oppositions([]) == []
