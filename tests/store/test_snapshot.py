"""Snapshots: the same memories from worktree, index and commit, and regular files only."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from conftest import Sandbox, make_memory

from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.schema import Problem
from memtool.store import snapshot
from memtool.store.snapshot import Snapshot
from memtool.store.tree import find_lineage_problems, read_tree

KINDS = (None, ":index", "HEAD")


def take_snapshot(sandbox: Sandbox, at: str | None = None) -> Snapshot:
    return sandbox.context().snapshot(at)


def bytes_of(scan: Snapshot) -> dict[str, bytes | Problem]:
    return {entry.path: data for entry, data in scan.read()}


def codes(scan: Snapshot) -> dict[str, str]:
    return {problem.path: problem.code for problem in scan.problems}


def test_a_clean_checkout_is_the_same_from_all_sides(sandbox: Sandbox) -> None:
    """Worktree, index and commit hold the same files, bytes and memories."""
    for number in range(20):
        sandbox.memory(
            f"dec-{number:02}", f"Body {number}, été.\n", type=("state", "decision")[number % 2]
        )
    sandbox.write(".memory/deep/er/and/deeper/sem-flat.md", document.write(make_memory("sem-flat")))
    sandbox.write(".memory/config.toml", "")
    sandbox.write(".memory/README.md", "not a memory")
    sandbox.write(".memory/_draft.md", "not a memory")
    sandbox.write(".memory/decision/notes.txt", "not a memory")
    sandbox.write("docs/dec-x.md", document.write(make_memory("dec-x")))
    sandbox.commit()
    sides = [take_snapshot(sandbox, at) for at in KINDS]
    assert [len(side.entries) for side in sides] == [21] * 3
    assert bytes_of(sides[0]) == bytes_of(sides[1]) == bytes_of(sides[2])
    trees = [[(r.memory, r.path, r.oid) for r in read_tree(side).records] for side in sides]
    assert trees[0] == trees[1] == trees[2]
    assert [side.problems for side in sides] == [()] * 3


def test_what_is_staged_is_the_index(sandbox: Sandbox) -> None:
    """An edit after `git add` is in the worktree only; a removal in the index leaves the file."""
    path = sandbox.memory("dec-a", "committed\n")
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.memory("dec-a", "staged\n")
    sandbox.git("add", ".memory")
    sandbox.memory("dec-a", "edited\n")
    sandbox.git("rm", "--quiet", "--cached", ".memory/decision/2026-02/dec-b.md")
    bodies = [read_tree(take_snapshot(sandbox, at))["dec-a"].memory.body for at in KINDS]
    assert bodies == ["edited\n", "staged\n", "committed\n"]
    assert [len(take_snapshot(sandbox, at).entries) for at in KINDS] == [2, 1, 2]
    assert path in bytes_of(take_snapshot(sandbox, ":index"))


def test_an_intent_to_add_is_not_yet_in_the_index(sandbox: Sandbox) -> None:
    """`git add -N` stages nothing, so nothing is checked; a staged empty file is there."""
    sandbox.memory("dec-a")
    sandbox.write(".memory/empty.md", "")
    sandbox.git("add", "--intent-to-add", ".memory/decision")
    sandbox.git("add", ".memory/empty.md")
    assert bytes_of(take_snapshot(sandbox, ":index")) == {".memory/empty.md": b""}


def test_an_unfinished_merge_is_a_problem_of_the_index(sandbox: Sandbox) -> None:
    """A file in conflict is not read in one of its versions, but named."""
    path = sandbox.memory("dec-a", "one\n")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "other")
    sandbox.memory("dec-a", "two\n")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    sandbox.memory("dec-a", "three\n")
    sandbox.commit()
    sandbox.git("merge", "other", check=False)
    scan = take_snapshot(sandbox, ":index")
    assert (scan.entries, set(codes(scan).items())) == ((), {(path, "conflict-markers")})
    assert [p.code for p in read_tree(take_snapshot(sandbox)).problems] == ["conflict-markers"]


def test_sparse_checkouts_are_complete(sandbox: Sandbox) -> None:
    """Files outside a sparse checkout are read from the index, once."""
    sandbox.memory("dec-a")
    sandbox.write("src/a.py", "")
    sandbox.commit()
    full = bytes_of(take_snapshot(sandbox))
    sandbox.git("sparse-checkout", "set", "--cone", "src")
    assert not (sandbox.path / ".memory" / "decision").exists()
    assert bytes_of(take_snapshot(sandbox)) == full
    assert [r.id for r in sandbox.context().tree().records] == ["dec-a"]
    sandbox.git("sparse-checkout", "disable")
    sandbox.git("update-index", "--skip-worktree", *full)
    assert bytes_of(take_snapshot(sandbox)) == full


def test_links_and_devices_are_problems_and_never_opened(sandbox: Sandbox, tmp_path: Path) -> None:
    """A linked file, a linked directory and a pipe are named; their targets are not read."""
    sandbox.memory("dec-a")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "dec-b.md").write_bytes(document.write(make_memory("dec-b")))
    memory = sandbox.path / ".memory"
    (memory / "dec-b.md").symlink_to(outside / "dec-b.md")
    (memory / "folder").symlink_to(outside)
    (memory / "loop").symlink_to(".")
    (memory / "gone.md").symlink_to("nowhere")
    os.mkfifo(memory / "pipe.md")
    scan = take_snapshot(sandbox)
    assert [entry.path for entry in scan.entries] == [".memory/decision/2026-02/dec-a.md"]
    names = ("dec-b.md", "folder", "gone.md", "loop", "pipe.md")
    assert codes(scan) == {f".memory/{name}": "symlink" for name in names}
    (memory / "pipe.md").unlink()
    sandbox.commit()
    for at in (":index", "HEAD"):
        assert codes(take_snapshot(sandbox, at)) == {
            f".memory/{name}": "symlink" for name in names[:4]
        }


def test_a_linked_memory_directory_is_a_problem(sandbox: Sandbox, tmp_path: Path) -> None:
    """A `.memory` that leads elsewhere is not followed."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "dec-a.md").write_bytes(document.write(make_memory("dec-a")))
    (sandbox.path / ".memory").rmdir()
    (sandbox.path / ".memory").symlink_to("../outside")
    sandbox.commit()
    for at in KINDS:
        scan = take_snapshot(sandbox, at)
        assert (scan.entries, codes(scan)) == ((), {".memory": "symlink"})


def test_a_file_in_the_place_of_the_directory_is_a_problem(sandbox: Sandbox) -> None:
    """A `.memory` that is a file holds no memories."""
    (sandbox.path / ".memory").rmdir()
    sandbox.write(".memory", "a file")
    assert codes(take_snapshot(sandbox)) == {".memory": "unreadable"}


def test_a_file_that_becomes_a_link_after_the_scan_is_not_followed(sandbox: Sandbox) -> None:
    """Between listing and reading a file may change; no link is opened even then."""
    path = sandbox.path / sandbox.memory("dec-a")
    scan = take_snapshot(sandbox)
    for change in (lambda: path.symlink_to("/etc/passwd"), lambda: os.mkfifo(path), path.mkdir):
        path.unlink()
        change()
        ((_entry, data),) = scan.read()
        assert isinstance(data, Problem)
        assert data.code == "symlink"
    path.rmdir()
    ((_entry, data),) = scan.read()
    assert isinstance(data, Problem)
    assert data.code == "unreadable"


def test_what_the_system_refuses_is_a_problem(sandbox: Sandbox) -> None:
    """A name that is too long to open, or any other refusal, is told of that file alone."""
    sandbox.memory("dec-a")
    scan = take_snapshot(sandbox)
    entry = scan.entries[0].replace(path=".memory/" + "a" * 300 + ".md")
    both = scan.replace(entries=(*scan.entries, entry))
    kinds = [type(data) for _entry, data in both.read()]
    assert kinds == [bytes, Problem]


def test_odd_names_are_the_same_from_all_sides(sandbox: Sandbox) -> None:
    """Names with any bytes are listed as they are, and none of them breaks a listing."""
    folder = os.fsencode(sandbox.path / ".memory")
    odd = [
        b"a b.md",
        b"new\nline.md",
        b"tab\t.md",
        b'quo"te.md',
        b"caf\xc3\xa9.md",
        b"\xff\xfe.md",
        b"-rf.md",
        b":(top)x.md",
        b"*.md",
        b"back\\slash.md",
    ]
    for name in odd:
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(document.write(make_memory("dec-a")))
    sandbox.commit()
    sides = [
        [os.fsencode(entry.path) for entry in take_snapshot(sandbox, at).entries] for at in KINDS
    ]
    assert sorted(b".memory/" + name for name in odd) == sorted(sides[0])
    assert sides[0] == sides[1] == sides[2]
    assert {p.code for p in read_tree(take_snapshot(sandbox)).problems} == {"wrong-name"}


def test_leftovers_of_killed_writers_are_passed_over(sandbox: Sandbox) -> None:
    """A temporary file is neither a memory nor a problem."""
    path = sandbox.memory("dec-a")
    (sandbox.path / path).with_name(".tmp-1-ab-dec-b.md").write_bytes(b"half")
    scan = take_snapshot(sandbox)
    assert ([entry.path for entry in scan.entries], scan.problems) == ([path], ())


def test_large_files_are_read_only_as_far_as_is_allowed(sandbox: Sandbox) -> None:
    """A huge file is refused, and not read to its end."""
    place = sandbox.write(".memory/huge.md", b"---\n")
    os.truncate(place, 1 << 40)
    ((_entry, data),) = take_snapshot(sandbox).read()
    assert isinstance(data, bytes)
    assert len(data) == document.MAX_BYTES + 1
    assert [p.code for p in read_tree(take_snapshot(sandbox)).problems] == ["too-large"]


def test_nested_repositories_and_depths_without_end_are_problems(sandbox: Sandbox) -> None:
    """A repository inside the memory directory is not entered; very deep directories are told."""
    sandbox.git("init", "--quiet", ".memory/inner")
    sandbox.write(".memory/" + "d/" * 30 + "dec-a.md", document.write(make_memory("dec-a")))
    assert [path.count("/") for path in codes(take_snapshot(sandbox))] == [13, 2]


@pytest.mark.parametrize("at", [":index", "HEAD"])
def test_submodules_inside_are_problems(sandbox: Sandbox, at: str) -> None:
    """A submodule in place of a file is not a memory."""
    sandbox.memory("dec-a")
    commit = sandbox.commit()
    sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{commit},.memory/sub.md")
    sandbox.git("commit", "--quiet", "--message", "sub")
    assert codes(take_snapshot(sandbox, at)) == {".memory/sub.md": "symlink"}


def test_bare_repositories_have_commits_only(sandbox: Sandbox, tmp_path: Path) -> None:
    """A bare repository is read at a revision; its worktree does not exist, which is said."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--bare", ".", "../bare.git")
    bare = Sandbox(tmp_path / "bare.git", sandbox.env).context()
    assert [record.id for record in bare.tree("HEAD").records] == ["dec-a"]
    with pytest.raises(MemtoolError, match="bare repository has no worktree"):
        bare.snapshot()


def test_an_unborn_branch_has_worktree_and_index(sandbox: Sandbox) -> None:
    """Before the first commit only HEAD is missing."""
    sandbox.memory("dec-a")
    sandbox.git("add", ".memory")
    assert [len(take_snapshot(sandbox, at).entries) for at in KINDS[:2]] == [1, 1]
    with pytest.raises(MemtoolError, match='no revision "HEAD"'):
        take_snapshot(sandbox, "HEAD")


@pytest.mark.parametrize(
    "revision", ["", "-x", "--output=x", "HEAD:.memory", "a..b", "^HEAD", "@{99}", "\n", "\0"]
)
def test_revisions_that_name_no_commit_are_refused(sandbox: Sandbox, revision: str) -> None:
    """A revision is a name, never an option, a range or a file."""
    sandbox.memory("dec-a")
    sandbox.commit()
    with pytest.raises(MemtoolError) as caught:
        take_snapshot(sandbox, revision)
    assert caught.value.code == "unknown-revision"
    assert not (sandbox.path / "x").exists()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".memory/a.md", True),
        (".memory/a/b/c.md", True),
        (".memory/a.MD", False),
        (".memory/_a.md", False),
        (".memory/README.md", False),
        (".memory/a.txt", False),
        (".memoryx/a.md", False),
        ("a.md", False),
        (".memory/.tmp-1-a.md", False),
    ],
)
def test_paths_of_memories(path: str, expected: bool) -> None:  # noqa: FBT001
    """A memory is an .md file below the directory that is neither note nor leftover."""
    assert snapshot.is_memory_path(path, ".memory") is expected


def state(sandbox: Sandbox) -> object:
    """Everything that is derived from the files."""
    tree = sandbox.context().tree()
    lineage = tree.lineage
    return (
        [(record.id, record.path, record.oid) for record in tree.records],
        tree.problems,
        lineage.superseded_by,
        lineage.find_forks(),
        lineage.find_cycles(),
        lineage.find_dangling(),
        find_lineage_problems(tree),
    )


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
        (path, "duplicate-id"),
        (other, "duplicate-id"),
    ]
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
    [
        ("dec-aa", "dec-aa"),
        ("dec-aab", "dec-aabb"),
        ("sem", "sem-x"),
        (".memory/decision/2026-02/dec-aa.md", "dec-aa"),
    ],
)
def test_memories_are_found_by_id_beginning_or_path(
    sandbox: Sandbox, wanted: str, id_: str
) -> None:
    """A whole id wins over what it is the beginning of."""
    for name in ("dec-aa", "dec-aabb", "sem-x"):
        sandbox.memory(name)
    assert sandbox.context().tree().find(wanted).id == id_


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("keep-sessions", ["postgres", "redis"]),
        ("sessions in redis", ["redis"]),
        ("Bill with Stripe", ["stripe"]),
        ("bill-2026", ["stripe"]),
        ("caf\u00e9", ["caf"]),
        ("postg", ["postgres"]),
        ("car", ["car"]),
        ("type:decision", []),
        ("in", ["postgres", "redis"]),
        ("redis*", []),
        ("-", []),
        ("redis sessions", ["redis"]),
        ("redis 9999", []),
    ],
)
def test_words_of_an_id_mean_the_one_memory_that_holds_them(
    sandbox: Sandbox, wanted: str, names: list[str]
) -> None:
    """Whole words come before beginnings of words; of several each is named, and none is taken."""
    ids = {
        "redis": "dec-2026-02-22-keep-sessions-in-redis-4k2p",
        "postgres": "dec-2026-03-01-keep-sessions-in-postgres-a1b2",
        "stripe": "sem-2026-03-02-bill-with-stripe-0001",
        "car": "sem-2026-03-02-park-the-car-0002",
        "caf": "sem-2026-03-02-the-cafe-and-the-cards-0003",
    }
    for name in ids.values():
        sandbox.memory(name)
    matching = [ids[name] for name in names]
    tree = sandbox.context().tree()
    if len(matching) == 1:
        assert tree.find(wanted).id == matching[0]
    else:
        with pytest.raises(MemtoolError) as caught:
            tree.find(wanted)
        assert caught.value.code == ("ambiguous-id" if matching else "unknown-id")
        assert all(name in str(caught.value) for name in matching)
    with pytest.raises(MemtoolError, match="no memory is called"):
        tree.find(wanted, by_words=False)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ("dec", "ambiguous-id"),
        ("", "unknown-id"),
        ("zzz", "unknown-id"),
        ("dec-ab", "unknown-id"),
        ("broken", "bad-yaml"),
        ("../x", "unknown-id"),
        ("*", "unknown-id"),
        ("\n", "unknown-id"),
    ],
)
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
    problems = [(p.id, p.code, p.severity) for p in find_lineage_problems(sandbox.context().tree())]
    assert problems == [
        ("dec-a", "cycle", "error"),
        ("dec-b", "cycle", "error"),
        ("dec-b", "dangling", "error"),
        ("dec-y", "fork", "warning"),
        ("dec-z", "fork", "warning"),
    ]


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
    trees = [read_tree(other.context().snapshot(at)) for at in (None, ":index", "HEAD")]
    assert [tree.records[0].oid for tree in trees] == [oid] * 3
