from __future__ import annotations

import pytest
from conftest import Sandbox, make_memory

from memtool.gate import near_duplicates
from memtool.index import index
from memtool.memory.memory import Memory
from memtool.store.tree import Record

TEXT = "Sessions live in Redis because the cookie store grew past four kilobytes.\n"


def make_records(memory: Memory | None = None) -> list[Record]:
    return [Record(memory or make_memory("dec-new", TEXT, title="Sessions in Redis"), "", "draft")]


def find_twins(
    sandbox: Sandbox, where: str = "worktree", memory: Memory | None = None
) -> list[str]:
    ws = sandbox.context()
    place = (ws.repository, ws.directory, ws.settings)
    near = {
        "worktree": lambda: near_duplicates.from_worktree(*place),
        "index": lambda: near_duplicates.from_index(*place),
        "HEAD": lambda: near_duplicates.from_commit(*place, "HEAD"),
    }[where]()
    return [candidate.record.id for candidate in near.find_similar(make_records(memory))[0]]


def indexed(sandbox: Sandbox) -> None:
    """Build the search index, or bring it up to date."""
    assert index.open(sandbox.context()).index.count


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """A committed twin among other memories."""
    sandbox.memory("dec-a", TEXT, title="Sessions in Redis")
    for at in range(5):
        sandbox.memory(f"dec-other-{at}", f"Text {at} about {at * 7} things.\n")
    sandbox.commit()
    return sandbox


@pytest.mark.parametrize("where", ["worktree", "index", "HEAD"])
def test_a_twin_is_found_with_and_without_a_search_index(filled: Sandbox, where: str):
    """A clone without an index reads the memories; both answer the same, and nothing is written."""
    assert find_twins(filled, where) == ["dec-a"]
    assert not (filled.path / ".git/memtool").exists()
    indexed(filled)
    assert find_twins(filled, where) == ["dec-a"]


def test_the_index_the_worktree_and_a_commit_are_told_apart(filled: Sandbox):
    """Staged, unstaged and committed files count only where they are."""
    find_twins(filled)
    filled.memory("dec-b", TEXT, title="Sessions in Redis")
    assert [find_twins(filled, w) for w in ("HEAD", "index", "worktree")] == [
        ["dec-a"],
        ["dec-a"],
        ["dec-a", "dec-b"],
    ]
    filled.git("add", "--all")
    assert find_twins(filled, "index") == ["dec-a", "dec-b"]
    assert find_twins(filled, "HEAD") == ["dec-a"]


def test_an_edited_or_removed_memory_is_seen_as_it_is_now(filled: Sandbox):
    """The index never speaks for a file that changed since."""
    indexed(filled)
    path = filled.memory("dec-a", "Something else entirely is told here.\n", title="Other")
    assert find_twins(filled) == []
    assert find_twins(filled, "index") == ["dec-a"]
    (filled.path / path).unlink()
    assert find_twins(filled) == []


@pytest.mark.parametrize("status", ["archived", "deprecated", "deleted"])
def test_a_memory_out_of_use_is_no_neighbour(filled: Sandbox, status: str):
    """It may be repeated, whether index or worktree has its status."""
    extra = {"deleted": {"at": "2026-02-23T00:00:00Z"}} if status == "deleted" else {}
    indexed(filled)
    filled.memory("dec-a", TEXT, title="Sessions in Redis", status=status, **extra)
    assert find_twins(filled) == []
    filled.commit()
    assert find_twins(filled) == []
    indexed(filled)
    assert find_twins(filled) == []


def test_a_superseded_memory_is_no_neighbour(filled: Sandbox):
    """Only heads count, whether the index knows the successor or it came later."""
    find_twins(filled)
    successor = filled.memory("dec-b", "Keep them elsewhere.\n", supersedes=("dec-a",))
    assert find_twins(filled) == []
    filled.commit()
    assert find_twins(filled) == []
    indexed(filled)
    assert find_twins(filled) == []
    (filled.path / successor).unlink()
    assert find_twins(filled) == ["dec-a"]


def test_a_memory_is_no_neighbour_of_itself_or_of_what_it_replaces(filled: Sandbox):
    """Its own file, another file with its id, and its predecessor do not count."""
    same = make_memory("dec-a", TEXT, title="Sessions in Redis")
    newer = make_memory("dec-new", TEXT, title="Sessions in Redis", supersedes=("dec-a",))
    assert find_twins(filled, memory=same) == []
    assert find_twins(filled, memory=newer) == []


def test_a_repository_without_a_commit_has_neighbours(sandbox: Sandbox):
    """Before the first commit everything is a change."""
    sandbox.memory("dec-a", TEXT, title="Sessions in Redis")
    assert find_twins(sandbox) == ["dec-a"]
    assert find_twins(sandbox, "index") == []
    sandbox.git("add", "--all")
    assert find_twins(sandbox, "index") == ["dec-a"]


def test_an_index_that_is_out_of_date_answers_as_one_that_is_not(filled: Sandbox):
    """Commits, edits and replacements since the index was built are read from git."""
    indexed(filled)
    filled.memory("dec-b", TEXT, title="Sessions in Redis")
    filled.memory("dec-c", "All about other 3 things.\n", supersedes=("dec-a",))
    filled.commit()
    for where in ("worktree", "index", "HEAD"):
        assert find_twins(filled, where) == ["dec-b"], where


def test_an_index_of_another_branch_answers_for_this_one(filled: Sandbox):
    """Memories that only the index has are not candidates."""
    filled.git("checkout", "--quiet", "-b", "side")
    filled.memory("dec-b", TEXT, title="Sessions in Redis")
    filled.commit()
    indexed(filled)
    assert find_twins(filled, "HEAD") == ["dec-a", "dec-b"]
    filled.git("checkout", "--quiet", "main")
    assert find_twins(filled, "HEAD") == ["dec-a"]
    assert find_twins(filled) == ["dec-a"]


def test_a_damaged_index_costs_time_only(filled: Sandbox):
    """Without an index that is whole, the memories are read."""
    indexed(filled)
    (database,) = (filled.path / ".git/memtool/index").glob("*.db")
    database.write_bytes(b"x" * 9_000)
    assert find_twins(filled) == ["dec-a"]


def test_files_that_are_no_memories_are_passed_over(filled: Sandbox):
    """Junk, links and README files next to the memories change nothing."""
    filled.write(".memory/decision/junk.md", b"\xff\xfe\0")
    filled.write(".memory/README.md", TEXT)
    (filled.path / ".memory/link.md").symlink_to("decision/2026-02/dec-a.md")
    assert find_twins(filled) == ["dec-a"]
    filled.commit()
    assert find_twins(filled, "index") == ["dec-a"]


def test_many_judged_memories_answer_as_each_alone(filled: Sandbox):
    """Asking about many at once gives each the answer that it has alone."""
    ws = filled.context()
    records = list(ws.tree().records) * 10
    near = near_duplicates.from_worktree(ws.repository, ws.directory, ws.settings)
    together = [[candidate.record.id for candidate in row] for row in near.find_similar(records)]
    alone = [
        [candidate.record.id for candidate in near.find_similar([record])[0]] for record in records
    ]
    assert together == alone


def test_another_file_with_the_same_id_is_no_neighbour(filled: Sandbox):
    """A copy of a memory under another name is for the schema check to report."""
    source = filled.path / ".memory/decision/2026-02/dec-a.md"
    source.with_name("dec-copy.md").write_bytes(source.read_bytes())
    same = make_memory("dec-a", TEXT, title="Sessions in Redis")
    assert find_twins(filled, memory=same) == []
