"""Memories come back from an index as they were put in."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memtool.index import text, writing
from memtool.index.memories import MemoryRows
from memtool.memory import lifecycle, timestamps
from memtool.store.tree import Record
from tests.conftest import make_memory
from tests.index.shelves import built

LINES = st.text(st.characters(min_codepoint=32, exclude_categories=["C"]), min_size=0, max_size=20)
VALUES = LINES | st.lists(LINES, max_size=3).map(tuple) | st.dictionaries(LINES, LINES, max_size=3)


def shelf(records: list[Record]) -> MemoryRows:
    ordered = sorted(records, key=lambda row: row.path)
    return built(writing.pair_documents(ordered)).memories


def record(id_: str, folder: str = "a", body: str = "It is so.\n", **fields: Any) -> Record:
    memory = make_memory(id_, body, **fields)
    return Record(memory, f".memory/{folder}/{id_}.md", "ab" * 20)


@given(st.dictionaries(st.sampled_from(("tags", "title", "x-own", "checked")), VALUES), st.text())
def test_fields_and_bodies_come_back(fields: dict[str, Any], body: str) -> None:
    """Texts, lists and tables of any visible text, in their order; any body."""
    fields.pop("checked", None)  # its moments are read for the columns
    made = record("dec-a", body=body, **fields)
    (stored,) = [shelf([made]).record(0)]
    assert stored == made
    assert list(stored.memory.fields) == list(made.memory.fields)


def test_columns_say_when_a_memory_is_alive() -> None:
    """At every moment as `lifecycle.state` does, for all ways to begin and to end."""
    lives: list[dict[str, Any]] = [
        {},
        {"status": "pinned"},
        {"status": "archived"},
        {"status": "deleted"},
        {"status": "deleted", "deleted": {"at": "2026-03-01T00:00:00Z"}},
        {"valid_from": "2026-03-01"},
        {"valid_through": "2026-03-01"},
        {"valid_from": "2026-02-25", "valid_through": "2026-02-27T10:00:00Z"},
        {"temporal_class": "eternal"},
        {"category": "warning", "checked": {"at": "2026-03-05T00:00:00Z"}},
    ]
    records = [record(f"dec-{number:02}", **fields) for number, fields in enumerate(lives)]
    made = shelf(records)
    first = timestamps.parse("2026-02-20T00:00:00Z")
    for now in range(first, first + 150 * timestamps.DAY_S, timestamps.DAY_S // 2):
        alive = set(range(len(records))) - made.find_not_alive(now)
        for number, row in enumerate(records):
            is_alive = lifecycle.find_state(row.memory, now) == "alive"
            assert (number in alive) == made.row(number).is_alive(now) == is_alive
            assert made.record(number).memory.timestamp == row.memory.timestamp


def test_short_lists_are_apart() -> None:
    """Pinned, links with their targets, twins; numbers go by path."""
    records = [
        record("dec-b", "z", supersedes=("dec-c",), status="deleted"),
        record("dec-a", "y", supersedes=("dec-b", "dec-none")),
        record("dec-b", "x", status="pinned"),
        record("dec-c", "w", supersedes=("dec-a",), status="candidate"),
    ]
    made = shelf(records)
    assert [made.path(number) for number in range(4)] == [
        ".memory/w/dec-c.md",
        ".memory/x/dec-b.md",
        ".memory/y/dec-a.md",
        ".memory/z/dec-b.md",
    ]
    assert made.find_by_kind(lambda kind: kind.status == "pinned") == [1]
    assert made.links == [
        (0, "dec-c", True, ("dec-a",)),
        (2, "dec-a", False, ("dec-b", "dec-none")),
    ]
    assert made.targets == {"dec-a": [2], "dec-b": [1, 3]}
    assert made.shared_ids == ["dec-b"]
    assert [number for _id, _path, number in made.list_by_id()] == [2, 1, 3, 0]
    assert [made.find_by_id(f"dec-{x}") for x in "abcd"] == [[2], [1, 3], [0], []]
    assert made.find_written_after(timestamps.parse("2026-02-22T19:32:59Z")) == {0, 1, 2, 3}
    assert made.find_written_after(timestamps.parse("2026-02-22T19:33:00Z")) == set()


def test_who_is_at_the_end_of_life_is_listed_by_it() -> None:
    """The list of expired memories equals what their last seconds give, at every second."""
    days = ["2026-03-05", "2026-03-01", "2026-03-05"]
    records = [record(f"dec-{number}", valid_through=day) for number, day in enumerate(days)]
    made = shelf([*records, record("dec-3", temporal_class="eternal")])
    untils = [made.row(number).until for number in range(4)]
    for second in {now for until in untils if until for now in (until, until + 1)}:
        over = [n for n, until in enumerate(untils) if until is not None and until < second]
        assert sorted(number for number, _kind in made.find_ended(second)) == over
    assert len(made.find_ended(timestamps.parse("2026-03-06T00:00:00Z"))) == 3


def test_an_empty_shelf_is_one() -> None:
    """No memories, no lists."""
    made = shelf([])
    assert (made.count, made.list_by_id(), made.shared_ids) == (0, [], [])
    assert made.find_by_id("dec-a") == []


def test_a_thread_is_a_session_a_task_or_a_parent() -> None:
    """The session is that of the key or of a source, and comes before the task and the parent."""
    named = [
        ({"session": "s1", "task_id": "t"}, "session s1"),
        ({"source": ("human:x", "session:s1#4"), "parent": ("p",)}, "session s1"),
        ({"task_id": "T 7", "parent": ("p",)}, "task T 7"),
        ({"parent": ("dec-p", "dec-q")}, "parent dec-p"),
        ({"source": ("human:x",)}, ""),
    ]
    fields = shelf([record(f"dec-{n}", **own) for n, (own, _name) in enumerate(named)])
    assert [fields.find_thread(n) for n in range(len(named))] == [name for _own, name in named]
    assert list(fields.list_thread("session s1")) == [0, 1]
    assert list(fields.list_thread("session s2")) == []


def test_a_thread_is_in_the_order_of_what_happened() -> None:
    """Messages of a session go by number, others by time, and turn 9 comes before turn 10."""
    rows: list[tuple[str, dict[str, Any]]] = [
        ("a", {"source": ("session:s#10",)}),
        ("b", {"source": ("session:s#9",)}),
        ("late-1", {"session": "t", "timestamp": "2026-02-23T00:00:00Z"}),
        ("turn-10", {"session": "t"}),
        ("turn-9", {"session": "t"}),
    ]
    fields = shelf([record(id_, **own) for id_, own in rows])
    assert [fields.id(n) for n in fields.list_thread("session s")] == ["b", "a"]
    assert [fields.id(n) for n in fields.list_thread("session t")] == [
        "turn-9",
        "turn-10",
        "late-1",
    ]


def test_without_threads_nothing_is_stored() -> None:
    """A repository that has no sessions pays nothing for those that have."""
    fields = shelf([record("dec-a"), record("dec-b")])
    assert not fields.has_threads
    assert fields.find_thread(1) == ""


def test_the_category_is_text_and_a_session_is_none() -> None:
    """A word of the category finds a memory; the name of a session says nothing about it."""
    memory = record("dec-a", category="warning", source=("session:redis-talk#1", "human:ada"))
    texts = text.list_texts(memory)
    assert ("category", "warning") in texts
    assert [text for key, text in texts if key == "source"] == ["human:ada"]
