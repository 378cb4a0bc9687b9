"""Files that change together, as git tells it of real histories."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memtool.store import cochange
from memtool.store.git import Git
from memtool.store.repository import discover

if TYPE_CHECKING:
    from conftest import Sandbox


def changed(sandbox: Sandbox, *paths: str, times: int = 1) -> str:
    """Change some files in one commit, several times, and return the last commit."""
    commit = ""
    for _time in range(times):
        for path in paths:
            sandbox.write(path, f"{sandbox.tick}\n")
        commit = sandbox.commit()
    return commit


def companions(
    sandbox: Sandbox, *files: str, head: str = "HEAD", is_cached: bool = False
) -> tuple[str, ...]:
    head = sandbox.git("rev-parse", head).strip()
    repository = discover(str(sandbox.path), sandbox.env)
    return cochange.companions(repository, ".memory", head, files, is_cached=is_cached)


def test_what_changes_together_is_found_from_both_sides(sandbox: Sandbox) -> None:
    """Three commits in common say so, two do not."""
    changed(sandbox, "src/a.py", "tests/a.py", times=2)
    assert companions(sandbox, "src/a.py") == ()
    changed(sandbox, "src/a.py", "tests/a.py", "README")
    assert companions(sandbox, "src/a.py") == ("tests/a.py",)
    assert companions(sandbox, "tests/a.py") == ("src/a.py",)
    assert companions(sandbox, "README") == companions(sandbox, "src", "no/such") == ()


def test_what_is_open_is_nobodys_companion(sandbox: Sandbox) -> None:
    """Of several open files only others are named, each once and in order."""
    changed(sandbox, "a", "b", "c", times=3)
    assert companions(sandbox, "b", "a") == ("c",)
    assert companions(sandbox, "b") == ("a", "c")


def test_a_file_that_every_commit_touches_belongs_to_none(sandbox: Sandbox) -> None:
    """The share counts the commits of both, so that a change log says nothing."""
    changed(sandbox, "CHANGES", "a", "b", "versions", times=3)
    changed(sandbox, "CHANGES", times=20)
    changed(sandbox, "versions", times=20)
    assert companions(sandbox, "a") == ("b",)
    assert companions(sandbox, "CHANGES") == companions(sandbox, "versions") == ()


def test_large_commits_and_memories_say_nothing(sandbox: Sandbox) -> None:
    """Formatting everything relates no two files, nor does noting a memory beside the code."""
    many = [f"src/{number:02}" for number in range(cochange.MOST_FILES)]
    changed(sandbox, *many, "one-more", times=3)
    assert companions(sandbox, "src/00") == ()
    changed(sandbox, *many, ".memory/note.md", times=3)
    assert companions(sandbox, "src/00") == tuple(many[1 : 1 + cochange.MOST_COMPANIONS])
    assert companions(sandbox, ".memory/note.md") == ()


def test_merges_are_not_counted_twice(sandbox: Sandbox) -> None:
    """What a branch did counts by its commits, not by the merge that brings them."""
    changed(sandbox, "base")
    sandbox.git("switch", "--quiet", "--create", "topic")
    changed(sandbox, "a", "b", times=2)
    sandbox.git("switch", "--quiet", "main")
    changed(sandbox, "base")
    sandbox.git("merge", "--quiet", "--no-ff", "--message", "merge", "topic")
    assert companions(sandbox, "a") == ()


def test_strange_names_are_names(sandbox: Sandbox) -> None:
    """Spaces, quotes, other scripts and bytes that are no text; only a line feed is passed over."""
    odd = ("with space", 'q"uote', "größe", "commit", "-x", os.fsdecode(b"raw\xff"))
    changed(sandbox, *odd, "two\nlines", times=3)
    assert companions(sandbox, "-x") == tuple(sorted(set(odd) - {"-x"}))
    assert companions(sandbox, "two\nlines") == ()


def test_only_what_leads_to_the_commit_counts(sandbox: Sandbox) -> None:
    """An older commit knows what was before it; a checked out one has no branch."""
    old = changed(sandbox, "a", "b", times=3)
    changed(sandbox, "a", "c", times=3)
    assert companions(sandbox, "a", head=old) == ("b",)
    assert companions(sandbox, "a") == ("b", "c")
    sandbox.git("switch", "--quiet", "--detach", old)
    assert companions(sandbox, "a") == ("b",)


def test_where_a_shallow_clone_ends_nothing_is_counted(sandbox: Sandbox, tmp_path: Path) -> None:
    """The last commit that a clone holds seems to write everything, and says nothing."""
    changed(sandbox, "a", "b")
    changed(sandbox, "a", times=2)
    changed(sandbox, "a", "b", times=3)
    clone = tmp_path / "clone"
    for depth, expected in ((3, ()), (4, ("b",))):
        sandbox.git("clone", "--quiet", f"--depth={depth}", f"file://{sandbox.path}", str(clone))
        repository = discover(str(clone), sandbox.env)
        head = repository.git.head()
        found = cochange.companions(repository, ".memory", head, ["a"], is_cached=True)
        assert found == expected
        clone.rename(tmp_path / f"clone-{depth}")


@pytest.mark.parametrize("harm", [b"", b"?" * 100, b"00000000\n\na\0wrong\n"])
def test_the_cache_changes_no_answer(sandbox: Sandbox, harm: bytes) -> None:
    """It is read without git, made anew where it is damaged, and another commit has its own."""
    changed(sandbox, "a", "b", times=3)
    cold = companions(sandbox, "a", is_cached=True)
    head = sandbox.git("rev-parse", "HEAD").strip()
    unable = discover(str(sandbox.path), sandbox.env | {"PATH": "/nowhere"})
    asked = (unable, ".memory", head, ["a"])
    assert cold == companions(sandbox, "a") == cochange.companions(*asked, is_cached=True) == ("b",)
    (kept,) = (sandbox.path / ".git/memtool/cochange").iterdir()
    kept.write_bytes(harm)
    assert companions(sandbox, "a", is_cached=True) == cold
    assert cochange.companions(*asked, is_cached=True) == cold
    changed(sandbox, "a", "c", times=3)
    assert companions(sandbox, "a", is_cached=True) == companions(sandbox, "a") == ("b", "c")


def test_where_git_cannot_say_nothing_changes_together(sandbox: Sandbox) -> None:
    """Before the first commit, or for one that is not here, there is no answer and no error."""
    repository = discover(str(sandbox.path), sandbox.env)
    assert isinstance(repository.git, Git)
    for head in ("", "1" * 40):
        found = cochange.companions(repository, ".memory", head, ["a"], is_cached=False)
        assert found == ()


def test_a_memory_about_a_companion_comes_before_one_that_is_about_neither(
    sandbox: Sandbox,
) -> None:
    """The factor of files shows it, in `inject` as in its explanation."""
    changed(sandbox, "src/login.py", "etc/session.toml", times=3)
    sandbox.memory("dec-a", "The session cookie lives a day.\n", title="Cookie", files=("lib/x",))
    sandbox.memory(
        "dec-b", "The session cookie lives a day or two.\n", title="Cookie",
        files=("etc/session.toml",),
    )  # fmt: skip
    sandbox.commit()
    asked = ("inject", "--prompt", "how long does a session cookie live?", "--explain", "--format",
             "json")  # fmt: skip
    for files, expected in (((), 1.0), (("--files", "src/login.py"), 1.05)):
        verdicts = sandbox.json(*asked, *files)["explain"]
        factors = {one["id"]: one["factors"]["files"] for one in verdicts}
        assert factors == {"dec-a": 1.0, "dec-b": expected}
