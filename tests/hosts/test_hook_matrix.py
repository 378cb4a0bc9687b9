"""What a real `git commit` lets pass, made in every way, with the hook that memtool installs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Sandbox, make_memory

from memtool.memory import document

PATH = ".memory/decision/2026-02/dec-new.md"
OLD = ".memory/decision/2026-02/dec-old.md"
KEY = "AK" + "IA" + "QWERTYUIOPASDFGH"
KINDS: dict[str, tuple[str, bool]] = {
    "clean": ("We keep it in Redis.\n", True),
    "bad": ("We keep it\x1b[31m in Redis.\n", False),
    "secret": (f"The key is {KEY} for all.\n", False),
}
"""Body of the memory that is committed, and whether the commit must pass."""
UNSTAGED = "nobody has staged this\n"


class Way:
    """One way to make a commit: what is set up before, and the words after `git`."""

    def __init__(
        self,
        words: tuple[str, ...],
        prepare: Callable[[Sandbox, bytes], None],
        *,
        folder: str = "",
        env: Callable[[Sandbox], dict[str, str]] = lambda _sandbox: {},
        path: str = PATH,
    ) -> None:
        self.words = words
        self.prepare = prepare
        self.folder = folder
        self.env = env
        self.path = path


def memory(body: str, id: str = "dec-new", **fields: str) -> bytes:
    return document.write(make_memory(id, body, **fields))


def stage(sandbox: Sandbox, data: bytes) -> None:
    sandbox.write(PATH, data)
    sandbox.git("add", PATH)
    sandbox.write("notes.txt", UNSTAGED)


def tracked(sandbox: Sandbox, data: bytes) -> None:
    """A candidate is committed, and edited in the worktree only."""
    sandbox.write(PATH, memory("It may change.\n", status="candidate"))
    sandbox.git("add", PATH)
    sandbox.git("commit", "--quiet", "--no-verify", "--message", "candidate")
    sandbox.write(PATH, data)


def partial(sandbox: Sandbox, data: bytes) -> None:
    """The index holds the content, the worktree something else: clean for dirty, and back."""
    stage(sandbox, data)
    other = "clean" if b"Redis." not in data or b"\x1b" in data else "secret"
    sandbox.write(PATH, memory(KINDS[other][0]))


def amended(sandbox: Sandbox, data: bytes) -> None:
    sandbox.write("README.md", "hello\n")
    sandbox.git("add", "README.md")
    sandbox.git("commit", "--quiet", "--no-verify", "--message", "begin it")
    stage(sandbox, data)


def in_linked(sandbox: Sandbox, data: bytes) -> None:
    sandbox.git("worktree", "add", "--quiet", "../linked", "-b", "side")
    linked = Sandbox(sandbox.path.parent / "linked", sandbox.env)
    stage(linked, data)


def from_below(sandbox: Sandbox, data: bytes) -> None:
    sandbox.write("src/deep/a.txt", "x\n")
    stage(sandbox, data)


def merging(sandbox: Sandbox, data: bytes) -> None:
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.write(PATH, data)
    sandbox.git("add", PATH)
    sandbox.git("commit", "--quiet", "--no-verify", "--message", "side")
    sandbox.git("checkout", "--quiet", "main")
    sandbox.write("README.md", "ours\n")
    sandbox.git("add", "README.md")
    sandbox.git("commit", "--quiet", "--no-verify", "--message", "ours")


def merged_by_hand(sandbox: Sandbox, data: bytes) -> None:
    merging(sandbox, data)
    sandbox.git("merge", "--no-commit", "--no-ff", "side")


WAYS: dict[str, Way] = {
    "plain": Way(("commit", "-m", "m"), stage),
    "all": Way(("commit", "-a", "-m", "m"), tracked),
    "path": Way(("commit", "-m", "m", "--", PATH), tracked),
    "only": Way(("commit", "-m", "m", "--only", PATH), tracked),
    "include": Way(("commit", "-m", "m", "--include", PATH), tracked),
    "amend": Way(("commit", "--amend", "-m", "m"), amended),
    "partial": Way(("commit", "-m", "m"), partial),
    "linked": Way(("commit", "-m", "m"), in_linked, folder="../linked"),
    "below": Way(("commit", "-m", "m"), from_below, folder="src/deep"),
    "git-dir": Way(
        ("commit", "-m", "m"),
        stage,
        folder="..",
        env=lambda s: {"GIT_DIR": str(s.path / ".git"), "GIT_WORK_TREE": str(s.path)},
    ),
    "git-dir-option": Way(
        ("--git-dir=project/.git", "--work-tree=project", "commit", "-m", "m"), stage, folder=".."
    ),
    "merge": Way(("merge", "--no-edit", "side"), merging),
    "merge-by-hand": Way(("commit", "-m", "m"), merged_by_hand),
}


@pytest.fixture
def hooked(sandbox: Sandbox) -> Sandbox:
    """A repository with a confirmed memory, a file of its own, and memtool's hooks."""
    sandbox.memory("dec-old", "It was so before, for reasons of the time.\n")
    sandbox.write("notes.txt", "noted\n")
    sandbox.commit("begin")
    assert sandbox.run("install", "git").returncode == 0
    return sandbox


def commit(sandbox: Sandbox, way: Way) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["git", *way.words],
        cwd=sandbox.path / way.folder,
        env=sandbox.env | way.env(sandbox),
        capture_output=True,
        check=False,
    )


def index_of(folder: Path, sandbox: Sandbox) -> str:
    return Sandbox(folder, sandbox.env).git("ls-files", "--stage")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WAYS)
def test_a_commit_holds_checked_bytes_or_is_not_made(hooked: Sandbox, name: str, kind: str) -> None:
    """Clean content is committed as it is; a refusal leaves HEAD, index and files as they were."""
    way, (body, passes) = WAYS[name], KINDS[kind]
    data = memory(body)
    way.prepare(hooked, data)
    place = hooked.path.parent / "linked" if name == "linked" else hooked.path
    there = Sandbox(place, hooked.env)
    head, index = there.git("rev-parse", "HEAD"), there.git("ls-files", "--stage")
    notes = (place / "notes.txt").read_bytes()
    written = (place / PATH).read_bytes() if (place / PATH).exists() else b""
    done = commit(hooked, way)
    assert (done.returncode == 0) == passes, done.stderr.decode()
    assert KEY.encode() not in done.stdout + done.stderr
    assert b"Traceback" not in done.stderr
    assert (place / "notes.txt").read_bytes() == notes
    if passes:
        assert there.git("show", f"HEAD:{PATH}").encode() == data
        assert written in (b"", (place / PATH).read_bytes())
        return
    assert there.git("rev-parse", "HEAD") == head
    assert KEY not in there.git("log", "-p", "HEAD", "--", ".memory")
    if name != "merge":  # a refused merge leaves what it staged, to be mended or aborted
        assert there.git("ls-files", "--stage") == index
        assert (place / PATH).read_bytes() == written


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_commit_is_checked_too(sandbox: Sandbox, kind: str) -> None:
    """Without a HEAD to compare with, every file is new."""
    passes = KINDS[kind][1]
    assert sandbox.run("install", "git").returncode == 0
    stage(sandbox, memory(KINDS[kind][0]))
    done = commit(sandbox, WAYS["plain"])
    assert (done.returncode == 0) == passes, done.stderr.decode()
    if passes:
        assert sandbox.git("show", f"HEAD:{PATH}").encode() == memory(KINDS[kind][0])


@pytest.mark.parametrize("words", [("commit", "-m", "m"), ("commit", "-a", "-m", "m")])
def test_a_silent_edit_is_refused(hooked: Sandbox, words: tuple[str, ...]) -> None:
    """The claim of a confirmed memory does not change, whichever way it is committed."""
    hooked.write(OLD, memory("It is otherwise now.\n", id="dec-old"))
    if "-a" not in words:
        hooked.git("add", OLD)
    done = commit(hooked, Way(words, stage))
    assert done.returncode == 1
    assert b"silent-edit" in done.stdout + done.stderr


def test_a_lifecycle_change_passes(hooked: Sandbox) -> None:
    """Fields that may change in a confirmed memory can be committed."""
    assert hooked.run("pin", "dec-old", "--commit").returncode == 0
    assert "status: pinned" in hooked.git("show", f"HEAD:{OLD}")


def test_a_deletion_alone_is_seen(hooked: Sandbox) -> None:
    """A commit that only deletes a memory is checked, though it stages no file."""
    hooked.memory("dec-x", "We keep it in Redis.\n")
    hooked.memory("dec-y", "Ports are fixed.\n")
    hooked.commit("two at once, of which one alone cannot be taken back")
    hooked.git("rm", "--quiet", ".memory/decision/2026-02/dec-x.md")
    done = commit(hooked, WAYS["plain"])
    assert done.returncode == 1
    assert b"removed" in done.stdout + done.stderr


def test_a_rename_is_seen(hooked: Sandbox) -> None:
    """Git's own rename detection must not hide that a memory moved."""
    hooked.git("mv", OLD, ".memory/dec-old.md")
    done = commit(hooked, WAYS["plain"])
    assert done.returncode == 1
    assert b"moved" in done.stdout + done.stderr


def test_undoing_a_silent_edit_passes(hooked: Sandbox) -> None:
    """Who bypassed the hook can go back to what the memory said before."""
    before = (hooked.path / OLD).read_bytes()
    hooked.write(OLD, memory("It is otherwise now.\n", id="dec-old"))
    hooked.git("commit", "--quiet", "--all", "--no-verify", "--message", "bypassed")
    hooked.write(OLD, before)
    done = commit(hooked, Way(("commit", "-a", "-m", "back"), stage))
    assert done.returncode == 0, done.stderr.decode()


def test_a_rebase_is_not_stopped_by_what_was_checked(hooked: Sandbox) -> None:
    """Commits that passed once pass again when they are replayed and reworded."""
    hooked.git("checkout", "--quiet", "-b", "side")
    stage(hooked, memory("We keep it in Redis.\n"))
    hooked.git("commit", "--quiet", "--message", "side")
    hooked.git("checkout", "--quiet", "main")
    hooked.write("README.md", "ours\n")
    hooked.git("add", "README.md")
    hooked.git("commit", "--quiet", "--message", "ours")
    hooked.git("checkout", "--quiet", "side")
    hooked.git("stash", "--quiet")
    hooked.git("rebase", "--quiet", "main")
    done = commit(hooked, Way(("commit", "--amend", "-m", "reworded"), stage))
    assert done.returncode == 0, done.stderr.decode()
