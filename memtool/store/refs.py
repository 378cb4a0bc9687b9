"""Refs read from files: which commit HEAD or a branch is at, without a child process.

Only what is certain is answered here. A tag, an expression such as `HEAD~1`, a short name that
could be a commit, a repository with reftables, a file that is being written: `None` leaves all of
that to git.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.repository import Repository

ABSENT = ""
"""There is certainly no such ref, or it points to one that is not there."""
BRANCHES = ("refs/heads/", "refs/remotes/")
"""Refs that hold commits themselves; a tag may have to be peeled."""
_REFTABLE = b"ref: refs/heads/.invalid"
_MOST_HOPS = 5
_HEX = frozenset("0123456789abcdef")
_EXPRESSION = frozenset(" ~^:?*[\\@{\0\n")


def head(repository: Repository) -> str | None:
    """Return the commit that is checked out, None where git has to say."""
    return _followed(repository, _line(repository.git_dir, "HEAD"), 0) or None


def branch(repository: Repository, name: str) -> str | None:
    """Return the commit of a branch by its full name, `ABSENT`, or None where git has to say."""
    if not name.startswith(BRANCHES) or not _EXPRESSION.isdisjoint(name) or ".." in name:
        return None
    return _found(repository, name, 0)


def named(repository: Repository, name: str) -> str | None:
    """Return the commit that a short name such as `origin/main` means, None where git has to say.

    Git looks in the git directory itself, then for any ref and tag, before it takes a branch.
    """
    if not name or not _EXPRESSION.isdisjoint(name) or ".." in name or _HEX.issuperset(name):
        return None
    for before in ("", "refs/", "refs/tags/"):
        if _found(repository, before + name, 0) != ABSENT:
            return None
    for kind in BRANCHES:
        commit = branch(repository, kind + name)
        if commit != ABSENT:
            return commit
    return None


def _found(repository: Repository, name: str, hops: int) -> str | None:
    line = _line(repository.common_dir, name)
    return _packed(repository, name) if line is None else _followed(repository, line, hops)


def _followed(repository: Repository, line: bytes | None, hops: int) -> str | None:
    """Return the commit that the content of a ref leads to."""
    if line is None or line == _REFTABLE or hops > _MOST_HOPS:
        return None
    text = line.decode(errors="replace")
    if not text.startswith("ref: "):
        return text if len(text) in (40, 64) and _HEX.issuperset(text) else None
    name = text[5:].strip()
    if not name.startswith(BRANCHES) or ".." in name:
        return None
    return _found(repository, name, hops + 1)


def _line(folder: str, name: str) -> bytes | None:
    """Return the content of a ref's own file, None where there is none."""
    try:
        handle = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(handle, 4096).rstrip()
    except OSError:  # a directory of refs
        return None
    finally:
        os.close(handle)


def _packed(repository: Repository, name: str) -> str | None:
    """Return the commit of a ref in `packed-refs`, a line `commit name` each."""
    if _line(repository.git_dir, "HEAD") in (None, _REFTABLE):
        return None  # refs are no files here
    try:
        with open(os.path.join(repository.common_dir, "packed-refs"), "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return ABSENT
    except OSError:
        return None
    at = data.find(b" " + os.fsencode(name) + b"\n")
    if at < 0:
        return ABSENT
    commit = data[data.rfind(b"\n", 0, at) + 1 : at].decode(errors="replace")
    return commit if _HEX.issuperset(commit) else None
