"""Files that change together in git, and files that the work at hand changed.

One file for each commit that is read from, `<cache>/cochange/<scope>-<commit>`, with a line for
each path that has companions. A warm answer finds its few lines here and starts no git; without
the cache the answer is the same.

How closely two files belong together is the share of commits that they have in common, of the
average number of both: a file that every commit touches belongs to none. Bounds are those of
code-maat, but for fewer commits in common, as young repositories have few.

What a branch changed is kept in one small file for each commit, `<cache>/lately/<scope>-<commit>`,
so that a session which starts asks git only for what differs on disk; without the cache the answer
is the same. Where git cannot say, nothing was changed.
"""

from __future__ import annotations

import os
from itertools import combinations

from memtool.errors import MemtoolError
from memtool.store import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.store.repository import Repository

VERSION = "cochange 2"
KEPT = 4
"""Tables that stay: those of the commits that were read from last."""


def companions(
    repository: Repository, directory: str, head: str, files: Sequence[str], *, is_cached: bool
) -> tuple[str, ...]:
    """Return the paths that change together with some files, without these, sorted.

    Counted are the commits that lead to `head`; those of a merge, of many files at once, and the
    memories in `directory` are left out. Nothing where git cannot say.
    """
    if not head or not files:
        return ()
    table = _table(repository, directory, head, is_cached=is_cached)
    found = {name for path in files for name in _companions(table, os.fsencode(path))}
    return tuple(sorted(map(os.fsdecode, found.difference(map(os.fsencode, files)))))


def _companions(table: bytes, path: bytes) -> list[bytes]:
    """Look a path up: `path NUL companion NUL companion`, each line after a line feed."""
    wanted = b"\n%b\0" % path
    at = table.find(wanted)
    if at < 0:
        return []
    start = at + len(wanted)
    return table[start : table.index(b"\n", start)].split(b"\0")


def _table(repository: Repository, directory: str, head: str, *, is_cached: bool) -> bytes:
    """Return the lines for a commit, from the cache or from git, which are then kept."""
    folder = os.path.join(repository.cache_dir, "cochange")
    cut = ",".join(sorted(repository.shallow_commits()))
    name = f"{cache.digest(VERSION, directory, cut)}-{head}"
    if is_cached:
        table = cache.read(os.path.join(folder, name), VERSION)
        if table is not None:
            return table

    table = counted(commits(repository, directory, head))
    if is_cached:
        cache.keep(folder, name, VERSION, table, KEPT)
    return table


COCHANGE_COMMITS = 500
"""Commits that are looked at, without merges: these repeat what their branches say."""
MOST_FILES = 30
"""A commit of more files than this moves or formats, and says nothing about any two of them."""
LEAST_COMMON = 3
LEAST_SHARE = 0.3
MOST_COMPANIONS = 5


def commits(repository: Repository, directory: str, head: str) -> list[list[bytes]]:
    """Return the files of each of the last commits, memories left out; one git process.

    Nothing where git cannot say, as in a clone without the trees of older commits.
    """
    try:
        found = repository.git.log_names(
            f"--max-count={COCHANGE_COMMITS}", "--no-merges", "--root", "--no-renames",
            "--format=%x00%H", "--end-of-options", head,
        )  # fmt: skip
    except MemtoolError:
        return []
    cut = repository.shallow_commits()  # such a commit seems to write all that it holds
    return [
        [os.fsencode(path) for path in names if not path.startswith(f"{directory}/")]
        for commit, names in found
        if commit not in cut
    ]


def counted(changes: Iterable[list[bytes]]) -> bytes:
    """Return the lines of the table for the files of each commit."""
    alone: dict[bytes, int] = {}
    common: dict[tuple[bytes, bytes], int] = {}
    for change in changes:
        files = sorted({path for path in change if b"\n" not in path})
        if len(files) > MOST_FILES:
            continue
        for path in files:
            alone[path] = alone.get(path, 0) + 1
        for pair in combinations(files, 2):
            common[pair] = common.get(pair, 0) + 1
    near: dict[bytes, list[tuple[float, bytes]]] = {}
    for (one, other), count in common.items():
        share = 2 * count / (alone[one] + alone[other])
        if count >= LEAST_COMMON and share >= LEAST_SHARE:
            near.setdefault(one, []).append((-share, other))
            near.setdefault(other, []).append((-share, one))
    lines = [b""]
    for path in sorted(near):
        best = sorted(near[path])[:MOST_COMPANIONS]
        lines.append(b"\0".join([path, *(name for _share, name in best)]))
    return b"\n".join([*lines, b""])


BRANCH_COMMITS = 10
"""The last commits that count where no branch parted from the trusted ref."""
MOST = 500
CHANGED_VERSION = "lately 2"
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
        base, paths = past(repository, directory, head, trusted_at)
        ends = (base,) if is_checked_out else (base, head)
        if is_checked_out or base != head:
            compare = "diff-index" if is_checked_out else "diff-tree"
            paths += repository.git.names(compare, "-r", "--name-only", "-z", "--no-renames", *ends,
                                          "--", *others, env=_MAGIC)  # fmt: skip
    except MemtoolError:
        return ()
    return tuple(sorted(set(paths), key=os.fsencode)[:MOST])


def _others(directory: str) -> tuple[str, str]:
    return ":(top)", f":(top,exclude,literal){directory}"


def _past(
    repository: Repository, directory: str, head: str, trusted_at: str
) -> tuple[str, list[str]]:
    """Return the commit from which on a branch counts, and the files of commits before it.

    Where no branch parted from the trusted ref, that is the head, with its last few commits.
    """
    git = repository.git
    base = git.line("merge-base", head, trusted_at, allowed=(0, 1)) if trusted_at else ""
    if base and base != head:
        return base, []
    # By themselves paths leave out commits too; every one of the last few is to count.
    return head, git.names("log", f"--max-count={BRANCH_COMMITS}", "--format=", "--name-only", "-z",
                           "--no-renames", "--no-ext-diff", "--full-history", "--sparse",
                           "--end-of-options", head, "--", *_others(directory),
                           env=_MAGIC)  # fmt: skip


def _kept_past(
    repository: Repository, directory: str, head: str, trusted_at: str
) -> tuple[str, list[str]]:
    """Return what `_past` says, from the cache or from git, which is then kept."""
    folder = os.path.join(repository.cache_dir, "lately")
    cut = ",".join(sorted(repository.shallow_commits()))
    name = f"{cache.digest(CHANGED_VERSION, directory, cut, trusted_at)}-{head}"
    kept = cache.read(os.path.join(folder, name), CHANGED_VERSION)
    if kept is None:
        base, paths = _past(repository, directory, head, trusted_at)
        cache.keep(folder, name, CHANGED_VERSION, os.fsencode("\0".join([base, *paths])), KEPT)
        return base, paths
    base, *paths = os.fsdecode(kept).split("\0")
    return base, [path for path in paths if path]


def arrived(repository: Repository, directory: str, old: str, new: str) -> frozenset[str]:
    """Return the paths of the memories that one commit holds and an older one does not.

    Nothing where the older one is not here any more.
    """
    if not old or not new or old == new:
        return frozenset()
    try:
        paths = repository.git.names("diff-tree", "-r", "-z", "--name-only", "--no-renames",
                                     "--diff-filter=A", old, new, "--", directory)  # fmt: skip
    except MemtoolError:
        return frozenset()
    from memtool.store import snapshot  # few sessions find another commit

    return frozenset(path for path in paths if snapshot.is_memory_path(path, directory))
