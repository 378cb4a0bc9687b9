"""Branching: a commit on a branch that nobody has checked out, without touching any worktree.

`git fast-import` makes it from bytes alone, and moves the branch as its last act.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store.git import GitError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.store.repository import Repository
    from memtool.upkeep.writing import Edit

HEADS = "refs/heads/"
PLAIN_FILE = "100644"


class Branch(Value):
    """A branch by its full name. `tip` is empty where it is not there yet.

    `worktree` is where it is checked out, empty for nowhere.
    """

    ref: str
    tip: str
    worktree: str


def find(repository: Repository, name: str) -> Branch:
    """Return a branch by its short name.

    Raises:
        MemtoolError: no branch can have that name.
    """
    ref = HEADS + name.removeprefix(HEADS)
    git = repository.git
    is_name = name not in ("", "HEAD", "@") and not name.startswith("-") and name.isprintable()
    try:
        git.run("check-ref-format", ref if is_name else "")
    except GitError:
        raise MemtoolError(
            f"{name!r} is no name of a branch",
            hint="memtool maintain --apply --branch memtool/maintain",
            code="usage",
        ) from None
    tip = git.line("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", allowed=(0, 1))
    worktree, found = "", ""
    for row in git.run("worktree", "list", "--porcelain", "-z").split(b"\0"):
        if row.startswith(b"worktree "):
            worktree = os.fsdecode(row[len(b"worktree ") :])
        elif row == f"branch {ref}".encode():
            found = worktree
    return Branch(ref, tip, found)


def base(repository: Repository, branch: Branch, head: str) -> tuple[str, int]:
    """Return the commit that comes next on a branch stands on, and how many of HEAD it lacks.

    A branch that HEAD holds already goes on from there.
    """
    if not branch.tip or not head:
        return branch.tip or head, 0
    git = repository.git
    own = git.line("rev-list", "--count", f"{head}..{branch.tip}")
    if own == "0":
        return head, 0
    return branch.tip, int(git.line("rev-list", "--count", f"{branch.tip}..{head}"))


def commit(
    repository: Repository,
    branch: Branch,
    base: str,
    edits: Iterable[Edit],
    modes: Mapping[str, str],
    message: str,
) -> str:
    """Commit files on a branch that begins at `base`, or moves there; return the commit's id.

    Raises:
        MemtoolError: git does not know who commits, or the branch was moved meanwhile.
    """
    said = message.encode(errors="replace")
    parts = [
        f"commit {branch.ref}\n".encode(),
        b"author %s\n" % _person(repository, "AUTHOR"),
        b"committer %s\n" % _person(repository, "COMMITTER"),
        b"data %d\n%s\n" % (len(said), said),
        f"from {base}\n".encode(),
    ]
    for edit in edits:
        mode = modes.get(edit.path, PLAIN_FILE).encode()
        parts.append(b"M %s inline %s\n" % (mode, _quoted(edit.path)))
        parts.append(b"data %d\n%s\n" % (len(edit.after), edit.after))
    parts.append(b"done\n")
    try:
        repository.git.run("fast-import", "--quiet", "--done", stdin=b"".join(parts))
    except GitError as error:
        if "Not updating" in error.stderr:
            raise MemtoolError(
                f"{branch.ref} was moved by somebody else meanwhile",
                hint="run the same command again",
                code="changed",
            ) from None
        raise
    return repository.git.rev(branch.ref)


def _person(repository: Repository, role: str) -> bytes:
    """Return name, address and time as git writes them in a commit."""
    try:
        return repository.git.run("var", f"GIT_{role}_IDENT").rstrip(b"\n")
    except GitError as error:
        raise MemtoolError(
            f"git does not know who commits: {error.message}",
            hint="git config user.name NAME, and user.email ADDRESS",
            code="no-identity",
        ) from None


def _quoted(path: str) -> bytes:
    """Return a path as fast-import reads any path."""
    raw = os.fsencode(path)
    for plain, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        raw = raw.replace(plain, escaped)
    return b'"%s"' % raw
