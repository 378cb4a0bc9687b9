"""Uses: what the ledger tells of a memory, totals and details."""

from __future__ import annotations

from pathlib import Path

from conftest import make_memory

from memtool.store import ledger, usage_log
from memtool.store.usage_log import Note, ShownItem
from memtool.upkeep import steps


def test_every_answer_that_showed_a_memory_counts(tmp_path: Path):
    """Whatever the verb; since a second, all, and the last."""
    for moment, verb, id_ in ((10, "search", "a"), (20, "inject", "a"), (30, "show", "b")):
        usage_log.append_note(str(tmp_path), Note(moment, verb, 1.0, items=(ShownItem(id_),)))
    ledger.fold(str(tmp_path))
    found = steps.read(str(tmp_path))
    assert found.is_known
    memories = [make_memory(id_) for id_ in "abc"]
    assert [found.count(memory) for memory in memories] == [2, 1, 0]
    assert [found.count_asked(memory) for memory in memories] == [1, 1, 0]
    assert [found.last(memory) for memory in memories] == [20, 30, None]
    assert [found.count_since(memories[0], second) for second in (10, 11, 20, 21)] == [2, 1, 1, 0]
    after = make_memory("c", supersedes=("a", "b"))
    assert (found.count(after), found.last(after), found.count_since(after, 20)) == (3, 30, 2)


def test_an_absent_ledger_knows_nothing(tmp_path: Path):
    """That is not the same as that nobody looked."""
    found = steps.read(str(tmp_path))
    assert not found.is_known
    memory = make_memory("a")
    assert (found.count(memory), found.last(memory), found.count_since(memory, 0)) == (0, None, 0)
