"""Lately: which files the work at hand is about, and which memories came since a commit.

Two or three short git processes. Where git cannot say, nothing was changed.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store import snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.repository import Repository

COMMITS = 10
"""The last commits that count where no branch parted from the trusted ref."""
MOST = 500
_MAGIC = {"GIT_LITERAL_PATHSPECS": "0"}
"""Git passes the memories over itself: it need not look at ten thousand files on disk."""


def changed(
    repository: Repository, directory: str, head: str, trusted_at: str, *, is_checked_out: bool
) -> tuple[str, ...]:
    """Return the files that a branch changed, or its last commits, and what differs on disk.

    Paths are from the top, sorted; memories are none of them. Files that git does not know yet
    are left out, since looking for them means reading every directory.
    """
    if not head:
        return ()
    git = repository.git
    others = (":(top)", f":(top,exclude,literal){directory}")
    try:
        base = git.line("merge-base", head, trusted_at, allowed=(0, 1)) if trusted_at else ""
        if not base or base == head:
            # By themselves paths leave out commits too; every one of the last few is to count.
            answer = git.run("log", f"--max-count={COMMITS}", "--format=", "--name-only", "-z",
                             "--no-renames", "--no-ext-diff", "--full-history", "--sparse",
                             "--end-of-options", head, "--", *others, env=_MAGIC)  # fmt: skip
            base = head
        else:
            answer = b""
        ends = (base,) if is_checked_out else (base, head)
        if is_checked_out or base != head:
            compare = "diff-index" if is_checked_out else "diff-tree"
            answer += git.run(compare, "-r", "--name-only", "-z", "--no-renames", *ends,
                              "--", *others, env=_MAGIC)  # fmt: skip
    except MemtoolError:
        return ()
    kept = sorted({raw for raw in answer.split(b"\0") if raw})
    return tuple(map(os.fsdecode, kept[:MOST]))


def arrived(repository: Repository, directory: str, old: str, new: str) -> frozenset[str]:
    """Return the paths of the memories that one commit holds and an older one does not.

    Nothing where the older one is not here any more.
    """
    if not old or not new or old == new:
        return frozenset()
    try:
        answer = repository.git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames",
                                    "--diff-filter=A", old, new, "--", directory)  # fmt: skip
    except MemtoolError:
        return frozenset()
    paths = (os.fsdecode(raw) for raw in answer.split(b"\0") if raw)
    return frozenset(path for path in paths if snapshot.is_memory_path(path, directory))
