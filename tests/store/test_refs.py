"""Refs: what the files say is what git says, and anything unusual is left to git."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.store import refs


@pytest.fixture
def history(sandbox: Sandbox) -> Sandbox:
    """Two commits, a branch, a tag, and a remote whose default branch is packed."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("branch", "side/one")
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    sandbox.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    sandbox.git("tag", "-m", "one", "v1")
    return sandbox


def rev(sandbox: Sandbox, name: str) -> str:
    return sandbox.git(
        "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False
    ).strip()


NAMES = (
    "refs/heads/main", "refs/heads/side/one", "refs/heads/gone", "refs/heads/side",
    "refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/gone",
    "refs/tags/v1", "HEAD", "main~1", "refs/heads/../heads/main", "refs/heads/main^0", "",
)  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_branch_is_what_git_says(history: Sandbox, name: str, *, packed: bool) -> None:
    """Loose or packed, present or absent; None only hands the question over."""
    if packed:
        history.git("pack-refs", "--all")
    found = refs.branch(history.context().repository, name)
    assert found in (None, rev(history, name))
    assert (found is None) == (not name.startswith(refs.BRANCHES) or ".." in name or "^" in name)


@pytest.mark.parametrize("packed", [False, True])
def test_head_is_what_git_says(history: Sandbox, *, packed: bool) -> None:
    """On a branch, detached, in a linked worktree, and while a ref is being written."""
    if packed:
        history.git("pack-refs", "--all")
    assert refs.head(history.context().repository) == rev(history, "HEAD")
    history.git("worktree", "add", "--quiet", "../other", "side/one")
    other = Sandbox(history.path.parent / "other", history.env)
    assert refs.head(other.context().repository) == rev(other, "HEAD") != rev(history, "HEAD")
    history.git("checkout", "--quiet", "--detach", "HEAD~1")
    assert refs.head(history.context().repository) == rev(history, "HEAD")
    (history.path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (history.path / ".git" / "refs" / "heads" / "main").write_text("half")
    assert refs.head(history.context().repository) is None


def test_an_unborn_branch_is_left_to_git(sandbox: Sandbox) -> None:
    """Nothing is claimed before the first commit."""
    assert refs.head(sandbox.context().repository) is None


def test_a_reftable_is_left_to_git(history: Sandbox) -> None:
    """Where refs are no files, that there is no file says nothing."""
    history.git("pack-refs", "--all")
    (history.path / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    repository = history.context().repository
    assert refs.head(repository) is None
    assert refs.branch(repository, "refs/remotes/origin/main") is None


SHORT = ("main", "side/one", "origin/main", "origin", "gone", "v1", "HEAD", "abcd", "main~1", "@",
         "origin/../main", "heads/main")  # fmt: skip


@pytest.mark.parametrize("name", SHORT)
def test_a_short_name_is_what_git_says(history: Sandbox, name: str) -> None:
    """A tag before a branch, a branch before a remote's; what could be a commit is git's."""
    assert refs.named(history.context().repository, name) in (None, "", rev(history, name))
    history.git("tag", "main", "side/one")
    assert refs.named(history.context().repository, "main") is None


def test_circles_of_refs_end(history: Sandbox) -> None:
    """A ref that names itself is git's to complain about."""
    place = history.path / ".git" / "refs" / "heads" / "loop"
    place.write_text("ref: refs/heads/loop\n")
    assert refs.branch(history.context().repository, "refs/heads/loop") is None
