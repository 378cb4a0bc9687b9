"""Lately: which files the work at hand is about, and which memories came since a commit.

What commits say is kept in one small file for each, `<cache>/lately/<scope>-<commit>`, so that a
session which starts asks git only for what differs on disk; without the cache the answer is the
same. Where git cannot say, nothing was changed.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.repository import Repository

COMMITS = 10
"""The last commits that count where no branch parted from the trusted ref."""
MOST = 500
VERSION = "lately 2"
KEPT = 4
"""Files that stay: those of the commits that were asked about last."""
_MAGIC = {"GIT_LITERAL_PATHSPECS": "0"}
"""Git passes the memories over itself: it need not look at ten thousand files on disk."""


def changed(
    repository: Repository,
    directory: str,
    head: str,
    trusted_at: str,
    *,
    is_checked_out: bool,
    is_cached: bool = False,
) -> tuple[str, ...]:
    """Return the files that a branch changed, or its last commits, and what differs on disk.

    Paths are from the top, sorted; memories are none of them. Files that git does not know yet
    are left out, since looking for them means reading every directory.
    """
    if not head:
        return ()
    others = _others(directory)
    try:
        past = _kept_past if is_cached else _past
        base, answer = past(repository, directory, head, trusted_at)
        ends = (base,) if is_checked_out else (base, head)
        if is_checked_out or base != head:
            compare = "diff-index" if is_checked_out else "diff-tree"
            answer += repository.git.run(compare, "-r", "--name-only", "-z", "--no-renames", *ends,
                                         "--", *others, env=_MAGIC)  # fmt: skip
    except MemtoolError:
        return ()
    kept = sorted({raw for raw in answer.split(b"\0") if raw})
    return tuple(map(os.fsdecode, kept[:MOST]))


def _others(directory: str) -> tuple[str, str]:
    return ":(top)", f":(top,exclude,literal){directory}"


def _past(repository: Repository, directory: str, head: str, trusted_at: str) -> tuple[str, bytes]:
    """Return the commit from which on a branch counts, and the files of commits before it.

    Where no branch parted from the trusted ref, that is the head, with its last few commits.
    """
    git = repository.git
    base = git.line("merge-base", head, trusted_at, allowed=(0, 1)) if trusted_at else ""
    if base and base != head:
        return base, b""
    # By themselves paths leave out commits too; every one of the last few is to count.
    return head, git.run("log", f"--max-count={COMMITS}", "--format=", "--name-only", "-z",
                         "--no-renames", "--no-ext-diff", "--full-history", "--sparse",
                         "--end-of-options", head, "--", *_others(directory),
                         env=_MAGIC)  # fmt: skip


def _kept_past(
    repository: Repository, directory: str, head: str, trusted_at: str
) -> tuple[str, bytes]:
    """Return what `_past` says, from the cache or from git, which is then kept."""
    folder = os.path.join(repository.cache_dir, "lately")
    cut = ",".join(sorted(repository.shallow_commits()))
    name = f"{cache.digest(VERSION, directory, cut, trusted_at)}-{head}"
    kept = cache.read(os.path.join(folder, name), VERSION)
    if kept is None:
        base, answer = _past(repository, directory, head, trusted_at)
        kept = b"%b\0%b" % (base.encode(), answer)
        cache.keep(folder, name, VERSION, kept, KEPT)
    start, _end, files = kept.partition(b"\0")
    return start.decode(), files


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
    from memtool.store import snapshot  # few sessions find another commit

    paths = (os.fsdecode(raw) for raw in answer.split(b"\0") if raw)
    return frozenset(path for path in paths if snapshot.is_memory_path(path, directory))
