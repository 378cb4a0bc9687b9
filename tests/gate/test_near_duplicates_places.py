from __future__ import annotations

import shutil

import pytest
from conftest import Sandbox, make_memory

from memtool.gate import near_duplicates
from memtool.gate.near_duplicates import MOST_CHANGED
from memtool.memory.memory import Memory
from memtool.store.tree import Record

TEXT = "Sessions live in Redis because the cookie store grew past four kilobytes.\n"


def asked(memory: Memory | None = None) -> list[Record]:
    return [Record(memory or make_memory("dec-new", TEXT, title="Sessions in Redis"), "", "")]


def found(sandbox: Sandbox, where: str = "worktree", memory: Memory | None = None) -> list[str]:
    ws = sandbox.context()
    place = (ws.repository, ws.directory, ws.settings.categories)
    near = {
        "worktree": lambda: near_duplicates.of_worktree(*place),
        "index": lambda: near_duplicates.of_index(*place),
        "HEAD": lambda: near_duplicates.of_commit(*place, "HEAD"),
    }[where]()
    return [one.record.id for one in near.of(asked(memory))[0]]


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """A committed twin among other memories."""
    sandbox.memory("dec-a", TEXT, title="Sessions in Redis")
    for at in range(5):
        sandbox.memory(f"dec-other-{at}", f"Text {at} about {at * 7} things.\n")
    sandbox.commit()
    return sandbox


@pytest.mark.parametrize("where", ["worktree", "index", "HEAD"])
def test_a_twin_is_found_with_and_without_a_cache(filled: Sandbox, where: str):
    """The first question makes the table, the second one reads it; both answer the same."""
    assert found(filled, where) == ["dec-a"]
    assert list((filled.path / ".git/memtool/twins").iterdir())
    assert found(filled, where) == ["dec-a"]


def test_the_index_the_worktree_and_a_commit_are_told_apart(filled: Sandbox):
    """What is staged, only written, or committed counts where it is, and nowhere else."""
    found(filled)
    filled.memory("dec-b", TEXT, title="Sessions in Redis")
    assert [found(filled, w) for w in ("HEAD", "index", "worktree")] == [
        ["dec-a"], ["dec-a"], ["dec-a", "dec-b"],
    ]  # fmt: skip
    filled.git("add", "--all")
    assert found(filled, "index") == ["dec-a", "dec-b"]
    assert found(filled, "HEAD") == ["dec-a"]


def test_an_edited_or_removed_memory_is_seen_as_it_is_now(filled: Sandbox):
    """The table never speaks for a file that changed since."""
    found(filled)
    path = filled.memory("dec-a", "Something else entirely is told here.\n", title="Other")
    assert found(filled) == []
    assert found(filled, "index") == ["dec-a"]
    (filled.path / path).unlink()
    assert found(filled) == []


@pytest.mark.parametrize("status", ["archived", "deprecated", "deleted"])
def test_a_memory_out_of_use_is_no_neighbour(filled: Sandbox, status: str):
    """What it said may be said again, whether the table or the worktree knows its status."""
    extra = {"deleted": {"at": "2026-02-23T00:00:00Z"}} if status == "deleted" else {}
    found(filled)
    filled.memory("dec-a", TEXT, title="Sessions in Redis", status=status, **extra)
    assert found(filled) == []
    filled.commit()
    shutil.rmtree(filled.path / ".git/memtool")
    assert found(filled) == []


def test_a_superseded_memory_is_no_neighbour(filled: Sandbox):
    """Only heads count, whether the successor is known to the table or came later."""
    found(filled)
    successor = filled.memory("dec-b", "Keep them elsewhere.\n", supersedes=("dec-a",))
    assert found(filled) == []
    filled.commit()
    shutil.rmtree(filled.path / ".git/memtool")
    assert found(filled) == []
    (filled.path / successor).unlink()
    assert found(filled) == ["dec-a"]


def test_a_memory_is_no_neighbour_of_itself_or_of_what_it_replaces(filled: Sandbox):
    """Its own file, another file with its id, and its predecessor do not count."""
    same = make_memory("dec-a", TEXT, title="Sessions in Redis")
    newer = make_memory("dec-new", TEXT, title="Sessions in Redis", supersedes=("dec-a",))
    assert found(filled, memory=same) == []
    assert found(filled, memory=newer) == []


def test_a_repository_without_a_commit_has_neighbours(sandbox: Sandbox):
    """Before the first commit everything is a change."""
    sandbox.memory("dec-a", TEXT, title="Sessions in Redis")
    assert found(sandbox) == ["dec-a"]
    assert found(sandbox, "index") == []
    sandbox.git("add", "--all")
    assert found(sandbox, "index") == ["dec-a"]


def test_the_table_moves_on_when_much_has_changed(filled: Sandbox):
    """After many commits a new table is made from the old one, and answers the same."""
    found(filled)
    for at in range(MOST_CHANGED + 2):
        filled.memory(f"dec-more-{at}", f"More text {at} of kind {at * 3}.\n")
    filled.memory("dec-b", TEXT, title="Sessions in Redis")
    filled.commit()
    assert found(filled) == ["dec-a", "dec-b"]
    assert len(list((filled.path / ".git/memtool/twins").iterdir())) == 2
    assert found(filled) == ["dec-a", "dec-b"]


def test_a_rewritten_history_makes_the_table_anew(filled: Sandbox):
    """A table whose tree is gone is left alone."""
    found(filled)
    folder = filled.path / ".git/memtool/twins"
    (table,) = folder.iterdir()
    table.rename(folder / f"{table.name[:-40]}{'a' * 40}")
    assert found(filled) == ["dec-a"]


def test_damage_and_a_read_only_cache_cost_time_only(filled: Sandbox):
    """Any broken byte of the table leaves the answer as it is."""
    found(filled)
    (table,) = (filled.path / ".git/memtool/twins").iterdir()
    whole = table.read_bytes()
    for at in range(0, len(whole), 41):
        table.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert found(filled) == ["dec-a"], at
    shutil.rmtree(filled.path / ".git/memtool")
    (filled.path / ".git/memtool").write_text("in the way")
    assert found(filled) == ["dec-a"]


def test_files_that_are_no_memories_are_passed_over(filled: Sandbox):
    """Junk, links and README files beside the memories change nothing."""
    filled.write(".memory/decision/junk.md", b"\xff\xfe\0")
    filled.write(".memory/README.md", TEXT)
    (filled.path / ".memory/link.md").symlink_to("decision/2026-02/dec-a.md")
    assert found(filled) == ["dec-a"]
    filled.commit()
    assert found(filled, "index") == ["dec-a"]


def test_many_judged_memories_answer_as_each_alone(filled: Sandbox):
    """Asking about many at once gives each the answer that it has alone."""
    ws = filled.context()
    records = list(ws.tree().records) * 10
    near = near_duplicates.of_worktree(ws.repository, ws.directory, ws.settings.categories)
    together = [[one.record.id for one in row] for row in near.of(records)]
    alone = [[one.record.id for one in near.of([record])[0]] for record in records]
    assert together == alone


def test_another_file_with_the_same_id_is_no_neighbour(filled: Sandbox):
    """A copy of a memory under another name is for the schema check to report."""
    source = filled.path / ".memory/decision/2026-02/dec-a.md"
    source.with_name("dec-copy.md").write_bytes(source.read_bytes())
    same = make_memory("dec-a", TEXT, title="Sessions in Redis")
    assert found(filled, memory=same) == []
