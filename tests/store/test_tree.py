"""Trees: what can be read is found, what cannot is told, and branches merge to one state."""

from __future__ import annotations

import random

import pytest
from conftest import Sandbox

from memtool.errors import MemtoolError
from memtool.store.tree import Tree, lineage_problems


def state(sandbox: Sandbox) -> object:
    """Everything that is derived from the files."""
    tree = sandbox.context().tree()
    lineage = tree.lineage
    return (
        [(record.id, record.path, record.oid) for record in tree.records], tree.problems,
        lineage.superseded_by, lineage.forks(), lineage.cycles(), lineage.dangling(),
        lineage_problems(tree),
    )  # fmt: skip


def test_records_are_sorted_and_named_as_git_names_them(sandbox: Sandbox) -> None:
    """Records come by id, and their blob id is git's."""
    paths = [sandbox.memory(id_) for id_ in ("dec-c", "dec-a", "dec-b")]
    tree = sandbox.context().tree()
    assert [record.id for record in tree.records] == ["dec-a", "dec-b", "dec-c"]
    for path in paths:
        oid = sandbox.git("hash-object", path).strip()
        assert oid in {record.oid for record in tree.records if record.path == path}


def test_an_id_that_stands_twice_is_a_problem_of_both_files(sandbox: Sandbox) -> None:
    """Neither file is dropped or chosen by luck."""
    path = sandbox.memory("dec-a")
    other = ".memory/decision/2026-03/dec-a.md"
    sandbox.write(other, (sandbox.path / path).read_bytes())
    tree = sandbox.context().tree()
    assert [(p.path, p.code) for p in tree.problems] == [
        (path, "duplicate-id"), (other, "duplicate-id"),
    ]  # fmt: skip
    assert len(tree.records) == 2


def test_as_of_leaves_out_what_was_written_later(sandbox: Sandbox) -> None:
    """A memory from after the moment supersedes nothing yet."""
    sandbox.memory("dec-a", timestamp="2026-02-01T00:00:00Z")
    sandbox.memory("dec-b", timestamp="2026-02-03T00:00:00Z", supersedes=("dec-a",))
    then = sandbox.context().tree(as_of="2026-02-02")
    assert [record.id for record in then.records] == ["dec-a"]
    assert then.lineage.is_head("dec-a")
    assert not sandbox.context().tree(as_of="2026-02-03").lineage.is_head("dec-a")


@pytest.mark.parametrize(
    ("wanted", "id_"),
    [("dec-aa", "dec-aa"), ("dec-aab", "dec-aabb"), ("sem", "sem-x"),
     (".memory/decision/2026-02/dec-aa.md", "dec-aa")],
)  # fmt: skip
def test_memories_are_found_by_id_beginning_or_path(
    sandbox: Sandbox, wanted: str, id_: str
) -> None:
    """A whole id wins over what it is the beginning of."""
    for name in ("dec-aa", "dec-aabb", "sem-x"):
        sandbox.memory(name)
    assert sandbox.context().tree().find(wanted).id == id_


@pytest.mark.parametrize(
    ("wanted", "code"),
    [("dec", "ambiguous-id"), ("", "unknown-id"), ("zzz", "unknown-id"), ("dec-ab", "unknown-id"),
     ("broken", "bad-yaml"), ("../x", "unknown-id"), ("*", "unknown-id"), ("\n", "unknown-id")],
)  # fmt: skip
def test_other_words_are_refused_with_a_hint(sandbox: Sandbox, wanted: str, code: str) -> None:
    """The error says whether none or several match, or that the file cannot be read."""
    sandbox.memory("dec-aa")
    sandbox.memory("dec-bb")
    sandbox.write(".memory/broken.md", "---\nid: [\n---\n")
    with pytest.raises(MemtoolError) as caught:
        sandbox.context().tree().find(wanted)
    assert code == caught.value.code
    assert caught.value.hint


def test_problems_of_lineage_name_their_files(sandbox: Sandbox) -> None:
    """Circles and missing ids are errors, forks are warnings."""
    sandbox.memory("dec-a", supersedes=("dec-b",))
    sandbox.memory("dec-b", supersedes=("dec-a", "dec-gone"))
    sandbox.memory("dec-x")
    sandbox.memory("dec-y", supersedes=("dec-x",))
    sandbox.memory("dec-z", supersedes=("dec-x",))
    found = [(p.id, p.code, p.severity) for p in lineage_problems(sandbox.context().tree())]
    assert found == [
        ("dec-a", "cycle", "error"), ("dec-b", "cycle", "error"), ("dec-b", "dangling", "error"),
        ("dec-y", "fork", "warning"), ("dec-z", "fork", "warning"),
    ]  # fmt: skip


def test_bytes_without_sense_are_problems_of_their_file_only(sandbox: Sandbox) -> None:
    """However broken some files are, the others are read."""
    rng = random.Random(5)
    for number in range(50):
        sandbox.write(f".memory/junk-{number:02}.md", rng.randbytes(rng.randrange(300)))
        sandbox.write(f".memory/text-{number:02}.md", b"---\n" + rng.randbytes(99) + b"\n---\n")
    sandbox.memory("dec-a")
    tree = sandbox.context().tree()
    assert [record.id for record in tree.records] == ["dec-a"]
    assert len({problem.path for problem in tree.problems}) == 100


def grow(sandbox: Sandbox, rng: random.Random, branch: str, steps: int) -> set[str]:
    """Add and supersede on a branch: new files only, as every verb does."""
    made = set()
    sandbox.git("checkout", "--quiet", branch)
    for step in range(steps):
        ids = [record.id for record in sandbox.context().tree().records]
        id_ = f"dec-{branch}-{step}"
        olds = tuple(sorted(rng.sample(ids, rng.randint(0, min(2, len(ids))))))
        sandbox.memory(id_, f"Body of step {rng.randrange(4)}.\n", supersedes=olds)
        made.add(id_)
    sandbox.commit(f"on {branch}")
    return made


@pytest.mark.parametrize("seed", range(6))
def test_branches_merge_without_conflict_to_one_state(sandbox: Sandbox, seed: int) -> None:
    """Three branches of adds and corrections, merged in any order, lose nothing and agree."""
    rng = random.Random(seed)
    branches = ["one", "two", "three"]
    sandbox.memory("dec-base")
    sandbox.commit()
    for branch in branches:
        sandbox.git("branch", branch)
    made = {"dec-base"}
    for branch in branches:
        made |= grow(sandbox, rng, branch, rng.randint(1, 3))
    sandbox.git("checkout", "--quiet", "two")  # criss-cross: two has seen one already
    sandbox.git("merge", "--quiet", "--no-edit", "one")
    made |= grow(sandbox, rng, "two", 4) - made
    states = []
    for number, order in enumerate([branches, branches[::-1], ["two", "three", "one"]]):
        sandbox.git("checkout", "--quiet", "-b", f"merged-{number}", order[0])
        for branch in order[1:]:
            sandbox.git("merge", "--quiet", "--no-edit", branch)
        states.append(state(sandbox))
        assert {record.id for record in sandbox.context().tree().records} == made
    assert states[0] == states[1] == states[2]
    assert sandbox.context().tree().problems == ()


def test_sha256_repositories_name_blobs_in_their_way(sandbox: Sandbox) -> None:
    """Where objects are named by SHA-256, so are the files of the worktree."""
    place = sandbox.path.parent / "sha256"
    place.mkdir()
    other = Sandbox(place, sandbox.env)
    other.git("init", "--quiet", "--object-format=sha256")
    path = other.memory("dec-a")
    other.commit()
    oid = other.git("rev-parse", f"HEAD:{path}").strip()
    trees = [Tree(other.context().snapshot(at)) for at in (None, ":index", "HEAD")]
    assert [tree.records[0].oid for tree in trees] == [oid] * 3
