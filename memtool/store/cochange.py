"""Cochange: which files are mostly changed together with others, as the last commits tell.

One file for each commit that is read from, `<cache>/cochange/<scope>-<commit>`, with a line for
each path that has companions. A warm answer finds its few lines here and starts no git; without
the cache the answer is the same. `cochanging` counts.
"""

from __future__ import annotations

import os

from memtool.store import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
    from memtool.store import cochanging  # once for each commit

    table = cochanging.counted(cochanging.commits(repository, directory, head))
    if is_cached:
        cache.keep(folder, name, VERSION, table, KEPT)
    return table
