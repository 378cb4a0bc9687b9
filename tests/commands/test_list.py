"""Tests of `memtool list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from memtool.commands.list import list as list_memories
from memtool.commands.list import render
from memtool.errors import MemtoolError

if TYPE_CHECKING:
    from conftest import Sandbox

FIELDS = [
    "id", "title", "type", "category", "status", "confidence", "path", "timestamp", "commit",
    "trust", "due",
]  # fmt: skip


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """A repository with three memories, one of them not committed."""
    sandbox.memory("dec-a", title="Zebra", timestamp="2026-02-01T00:00:00Z")
    sandbox.memory("sem-b", title="apple", type="semantic", importance="0.9")
    sandbox.commit()
    sandbox.memory("dec-c", title="Mango", timestamp="2026-02-27T00:00:00+02:00")
    return sandbox


def test_the_json_is_the_documented_shape(filled: Sandbox) -> None:
    """Programs may rely on every field of the contract, in its order."""
    head = filled.git("rev-parse", "HEAD").strip()
    answer = filled.json("list", "type:semantic")
    assert list(answer) == ["total", "memories", "expired"]
    assert answer["total"] == 1
    (row,) = answer["memories"]
    assert list(row) == FIELDS
    assert row == row | {"id": "sem-b", "commit": head, "trust": "committed", "title": "apple"}


ORDERS = {
    "newest": ["dec-c", "sem-b", "dec-a"],
    "oldest": ["dec-a", "sem-b", "dec-c"],
    "importance": ["sem-b", "dec-a", "dec-c"],
    "title": ["sem-b", "dec-c", "dec-a"],
    "id": ["dec-a", "dec-c", "sem-b"],
}


@pytest.mark.parametrize("sort", ORDERS)
def test_every_order(filled: Sandbox, sort: Any) -> None:
    """Each order is what it says, ties by id."""
    listed = list_memories(filled.context(), sort=sort)
    assert [row.id for row in listed.memories] == ORDERS[sort]


def test_the_newest_come_first_by_default(filled: Sandbox) -> None:
    """Without a word about it the list begins with what was written last."""
    listed = list_memories(filled.context())
    assert [row.id for row in listed.memories] == ORDERS["newest"]


def test_the_total_counts_what_the_limit_cut(filled: Sandbox) -> None:
    """The user is told how much was not shown."""
    ws = filled.context()
    listed = list_memories(ws, limit=1)
    assert (listed.total, len(listed.memories)) == (3, 1)
    assert ws.notes == ["1 of 3 shown; --limit N lists more"]


def test_each_memory_is_one_line(filled: Sandbox) -> None:
    """The text form aligns id, day in UTC, kind, status, trust and title."""
    assert render(list_memories(filled.context())).splitlines() == [
        "dec-c  2026-02-26  decision/decision  confirmed  local      Mango",
        "sem-b  2026-02-22  semantic/pattern   confirmed  committed  apple",
        "dec-a  2026-02-01  decision/decision  confirmed  committed  Zebra",
    ]


def test_filters_are_joined(filled: Sandbox) -> None:
    """Several words of the command line are one query."""
    listed = list_memories(filled.context(), "type:decision", "-mango")
    assert [row.id for row in listed.memories] == ["dec-a"]


def test_archived_ones_are_listed_when_asked_for(filled: Sandbox) -> None:
    """The default list is what holds now."""
    filled.memory("dec-old", status="archived")
    assert list_memories(filled.context()).total == 3
    assert [row.id for row in list_memories(filled.context(), "is:archived").memories] == [
        "dec-old"
    ]


def test_an_empty_tree_lists_nothing(sandbox: Sandbox) -> None:
    """Before the first memory the list is empty, and that is no error."""
    answer = sandbox.json("list")
    assert answer == {"total": 0, "memories": [], "expired": 0}


def test_an_earlier_revision_is_listed(filled: Sandbox) -> None:
    """`--at` and `--as-of` show the tree of another time."""
    ws = filled.context()
    assert list_memories(ws, at="HEAD").total == 2
    assert [row.id for row in list_memories(ws, as_of="2026-02-10").memories] == ["dec-a"]


def test_bad_values_are_refused(filled: Sandbox) -> None:
    """What cannot be listed is told."""
    ws = filled.context()
    with pytest.raises(MemtoolError):
        list_memories(ws, "type:nothing")
