"""Restaging: new bytes for what git's index holds, with the mode that it has.

The worktree is not touched and no filter is run, so what is not staged stays so.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store.repository import Repository
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_PARTIAL = "next-index-"
_REGULAR = ("100644", "100755")
_ARGUMENTS = 500
"""Paths of one call that takes them as arguments: 120 KB at most are safe everywhere."""


class Staged(Value):
    """A regular file of the index. `is_sparse` says that the worktree is not to hold it."""

    path: str
    mode: str
    oid: str
    is_sparse: bool


def refuse_partial_commit(env: Mapping[str, str]) -> None:
    """Raise MemtoolError inside `git commit -- PATH`: its index is a copy that git throws away.

    What is restaged there would be committed, while the index itself keeps the secret.
    """
    if os.path.basename(env.get("GIT_INDEX_FILE", "")).startswith(_PARTIAL):
        raise MemtoolError(
            "nothing can be restaged inside git commit -- PATH, which commits from a copy of "
            "the index",
            hint="memtool redact PATH, then git commit without a path",
            code="partial-commit",
        )


def staged(repository: Repository, paths: Sequence[str]) -> dict[str, Staged]:
    """Return the regular files that the index holds at some paths, or below them.

    Raises:
        MemtoolError: a merge is unfinished at one of them.
    """
    found: dict[str, Staged] = {}
    for first in range(0, len(paths), _ARGUMENTS):
        some = paths[first : first + _ARGUMENTS]
        answer = repository.git.run("ls-files", "--stage", "-t", "-z", "--", *some)
        for row in answer.split(b"\0")[:-1]:
            meta, _tab, raw = row.partition(b"\t")
            tag, mode, oid, stage = meta.decode().split()
            path = os.fsdecode(raw)
            if stage != "0":
                raise MemtoolError(
                    f"a merge is unfinished in {path}",
                    hint=f"keep one side, then git add {path}",
                    code="conflict-markers",
                )
            if mode in _REGULAR:
                found[path] = Staged(path, mode, oid, tag == "S")
    return found


def changed(repository: Repository) -> set[str]:
    """Return the paths whose staged content differs from HEAD, without deleted ones."""
    tree = repository.git.head()
    if not tree:
        answer = repository.git.run("ls-files", "-z")
    else:
        answer = repository.git.run(
            "diff-index", "--cached", "--name-only", "--no-renames", "--diff-filter=d", "-z", tree
        )
    return {os.fsdecode(raw) for raw in answer.split(b"\0")[:-1]}


def restage(repository: Repository, contents: Iterable[tuple[Staged, bytes]]) -> None:
    """Put new bytes into the index, all at once.

    Raises:
        GitError: the index is locked or cannot be written; it is as it was.
    """
    rows = []
    sparse = []
    for entry, data in contents:
        oid = repository.git.run(
            "hash-object", "-w", "--stdin", "--no-filters", stdin=data
        ).decode()
        raw = os.fsencode(entry.path)
        rows.append(b"%s %s\t%s\0" % (entry.mode.encode(), oid.strip().encode(), raw))
        sparse += [raw + b"\0"] if entry.is_sparse else []
    if rows:
        repository.git.run("update-index", "-z", "--index-info", stdin=b"".join(rows))
    if sparse:  # a new entry has forgotten that the worktree leaves it out
        repository.git.run(
            "update-index", "-z", "--skip-worktree", "--stdin", stdin=b"".join(sparse)
        )
