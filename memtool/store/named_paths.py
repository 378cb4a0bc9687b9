"""Whether the paths and globs that memories name lead to a file, and which file is meant.

A name that leads to a directory with files counts as well. Many names are looked up together, with
one or two listings.
"""

from __future__ import annotations

import os
from bisect import bisect_left

from memtool.memory.schema import Source
from memtool.store.files import matches_or_contains

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.store.repository import Repository

MAX_FOLDERS = 100
"""Directories and files that git lists by name; for more, it lists everything."""
MAX_COMPARED = 1_000
"""Paths that are compared letter by letter with a wrong one: each takes a tenth of a ms."""


def find_present(
    repository: Repository, wanted: Iterable[str], tree: str = "", *, with_worktree: bool = False
) -> frozenset[str]:
    """Return the paths and globs that match a file or a directory with files.

    They are looked up in the commit `tree`, without one in git's index, and `with_worktree` also
    on disk.
    """
    names = sorted(set(wanted))
    looked_up = _look_up(repository, tree, names) if tree else {}
    if with_worktree:
        top = repository.top
        looked_up |= {name: True for name in names if os.path.lexists(os.path.join(top, name))}
    folders = sorted({_find_folder(name) for name in names if name not in looked_up})
    paths = _list_files(repository, tree, folders) if folders else []
    return frozenset(
        name
        for name in names
        if (looked_up[name] if name in looked_up else _matches_any(name, paths))
    )


def find_untracked(repository: Repository, wanted: Iterable[str]) -> frozenset[str]:
    """Return the globs that match a file of the worktree that git does not know or ignore."""
    names = sorted(set(wanted))
    paths = (
        _list_files(repository, "", sorted(map(_find_folder, names)), "--others") if names else ()
    )
    return frozenset(name for name in names if _matches_any(name, paths))


def is_glob(name: str) -> bool:
    """Return whether a name is a pattern, and no plain path."""
    return _find_fixed_part(name) != name


def normalize(path: str) -> str:
    """Return a path without empty parts and dots."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def find_nearest(path: str, paths: Sequence[str]) -> str:
    """Return which of some paths somebody may have meant: of that name, else a similar one.

    Empty if there is none.
    """
    import difflib  # needed for a wrong path only

    folder, _slash, name = normalize(path).rpartition("/")
    namesakes = [other for other in paths if other.rpartition("/")[2] == name]
    if namesakes:
        return difflib.get_close_matches(path, namesakes, n=1, cutoff=0)[0]
    if len(paths) > MAX_COMPARED:
        paths = [other for other in paths if other.rpartition("/")[0] == folder][:MAX_COMPARED]
    return next(iter(difflib.get_close_matches(path, paths, n=1, cutoff=0.8)), "")


def list_worktree_files(repository: Repository) -> list[str]:
    """Return the files of the worktree that git does not ignore, and those of its index."""
    return _list_files(repository, "", [], "--cached", "--others")


def _matches_any(pattern: str, paths: Sequence[str]) -> bool:
    """Return whether a path or glob matches one of some sorted paths, or a directory above it."""
    clean = normalize(pattern)
    start = _find_fixed_part(clean)
    for path in paths[bisect_left(paths, start) :]:
        if not path.startswith(start):
            return False
        if matches_or_contains(clean, path):
            return True
    return not clean  # the top itself


def _find_fixed_part(pattern: str) -> str:
    """Return the part before the first wildcard."""
    ends = [at for at in (pattern.find("*"), pattern.find("?")) if at >= 0]
    return pattern[: min(ends)] if ends else pattern


def _find_folder(pattern: str) -> str:
    """Return the directory that contains all matches of a pattern; empty for the top."""
    return normalize(_find_fixed_part(pattern).rpartition("/")[0])


def _look_up(repository: Repository, tree: str, names: Iterable[str]) -> dict[str, bool]:
    """Return whether a tree has each of the names without wildcards, as file or directory."""
    from memtool.store.sources import MISSING, Citation, is_usable, resolve

    plain = {
        name: Citation(Source("file", path), tree)
        for name in names
        if (path := normalize(name)) == _find_fixed_part(path) and path and is_usable(path)
    }
    resolved = resolve(repository, plain.values())
    return {name: resolved[citation].status != MISSING for name, citation in plain.items()}


def _list_files(
    repository: Repository, tree: str, folders: Sequence[str], *options: str
) -> list[str]:
    """Return the files below directories, sorted; with `--others` those that are not ignored."""
    listed_folders = [] if "" in folders or len(folders) > MAX_FOLDERS else folders
    listing = ("ls-tree", "-r", "--name-only", "--full-tree", tree) if tree else ("ls-files",)
    if "--others" in options:
        options = (*options, "--exclude-standard")
    return sorted({*repository.git.names(*listing, *options, "-z", "--", *listed_folders)})
