"""Tests of `memtool list`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from conftest import PIPED

from memtool.commands.list import list as list_memories
from memtool.commands.list import render
from memtool.commands.search import render as render_search
from memtool.commands.search import search
from memtool.errors import MemtoolError

if TYPE_CHECKING:
    from conftest import Sandbox

EVERY = "type:decision OR type:semantic"
FIELDS = [
    "id",
    "title",
    "type",
    "category",
    "status",
    "confidence",
    "path",
    "timestamp",
    "commit",
    "trust",
    "due",
    "unproven",
    "unsettled",
]


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
    assert ws.notes == ["1 of 3 shown; --limit 0 lists all"]


def test_pages_follow_each_other(filled: Sandbox) -> None:
    """`--offset` passes over what was shown, in list and search, and says how to go on."""
    ws = filled.context()
    pages = [list_memories(ws, limit=1, offset=at).memories[0].id for at in range(3)]
    assert pages == ORDERS["newest"]
    assert ws.notes[1:] == ["2 to 2 of 3 shown (--offset 2: the next ones)"]
    ws = filled.context()
    assert list_memories(ws, limit=0, offset=1).total == 3
    assert not list_memories(ws, offset=3).memories
    assert ws.notes == ["no more results at --offset 3: 3 match"]
    whole = search(ws, EVERY).results
    assert [search(ws, EVERY, limit=1, offset=at).results[0] for at in range(3)] == [*whole]
    assert str(render_search(search(ws, EVERY, offset=2), PIPED)).startswith("3. ")


def test_the_most_used_come_first(filled: Sandbox) -> None:
    """Memories shown on request count, after the log was taken over."""
    for name in ("dec-c", "sem-b", "sem-b"):
        filled.run("show", name)
    listed = list_memories(filled.context(), sort="accessed")
    assert [row.id for row in listed.memories] == ["sem-b", "dec-c", "dec-a"]
    answer = search(filled.context(), EVERY, sort="accessed")
    assert [row.id for row in answer.results] == ["sem-b", "dec-c", "dec-a"]


def test_a_stream_is_one_object_a_line(filled: Sandbox) -> None:
    """`--format jsonl` gives the rows of `--json`, read as they are taken; notes stay on stderr."""
    done = filled.run("list", "--format", "jsonl", "--limit", "2")
    assert (done.returncode, "2 of 3 shown" in done.stderr) == (0, True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows == filled.json("list", "--limit", "2")["memories"]
    assert filled.json("list", "--format", "jsonl", "--limit", "2")["memories"] == rows
    listed = list_memories(filled.context(), format="jsonl").memories
    assert (len(listed), listed[1].id) == (3, "sem-b")
    assert [row.id for row in listed] == [row.id for row in listed[:]] == ORDERS["newest"]
    lines = filled.run("search", EVERY, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [
        row.id for row in search(filled.context(), EVERY).results
    ]
    assert filled.run("list", "tag:none", "--format", "jsonl").stdout == ""


def test_each_memory_is_one_line(filled: Sandbox) -> None:
    """The text form aligns id, title, what is unusual, day in UTC and kind."""
    assert render(list_memories(filled.context()), PIPED).splitlines() == [
        "dec-c  Mango  not committed  2026-02-26  decision",
        "sem-b  apple  not merged     2026-02-22  pattern",
        "dec-a  Zebra  not merged     2026-02-01  decision",
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
    """Before the first memory the list is empty, which is not an error."""
    answer = sandbox.json("list")
    assert answer == {"total": 0, "memories": [], "expired": 0}


def test_an_earlier_revision_is_listed(filled: Sandbox) -> None:
    """`--at` and `--as-of` show the tree of another time."""
    ws = filled.context()
    assert list_memories(ws, at="HEAD").total == 2
    assert [row.id for row in list_memories(ws, as_of="2026-02-10").memories] == ["dec-a"]


def test_bad_values_are_refused(filled: Sandbox) -> None:
    """Invalid values are reported in a sentence."""
    ws = filled.context()
    with pytest.raises(MemtoolError):
        list_memories(ws, "type:nothing")
