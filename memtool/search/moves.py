"""Moves: the new paths of files, folders and globs that memories name, as git detects renames.

A folder or glob stands for a set of files. It has moved if most of them are below one other folder
today, at the same relative paths. Copied or split files have not certainly moved.
"""

from __future__ import annotations

import posixpath
from collections import Counter

from memtool.memory.drift import Move
from memtool.store import renames
from memtool.store.commit_files import FolderReader
from memtool.store.files import matches_or_contains
from memtool.store.sources import find_objects, is_usable
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memtool.store.commit_files import CommitFiles
    from memtool.store.renames import Removals, Rename
    from memtool.store.repository import Repository


class NamedPath(Value):
    """A path or glob that a memory names, and a commit in which it existed.

    `memory` is the path of the memory, `start` the base folder of a glob, None for a path without
    wildcards.
    """

    memory: str
    path: str
    base: str
    start: str | None = None


class FollowedFile(Value):
    """A renamed file: its path and blob when it was named, and its path today.

    `names` are all of its paths in order, `commit` is the one that removed the first.
    """

    path: str
    oid: str
    names: tuple[str, ...]
    commit: str

    @property
    def now(self) -> str:
        """The path today."""
        return self.names[-1]


class FollowedPath(Value):
    """The result for a named path: the `move`, None for none, and the files that moved."""

    move: Move | None
    files: tuple[FollowedFile, ...] = ()


def follow_paths(
    repository: Repository, head: CommitFiles, wanted: Sequence[NamedPath]
) -> tuple[dict[NamedPath, FollowedPath], Removals]:
    """Return the results for paths that may have been renamed, and the removals of the others."""
    if repository.is_partial:
        return {}, renames.Removals(repository, head.commit, 0)
    members = _find_members(repository, head, wanted)
    lost = {
        named: {path: oid for path, oid in files.items() if path not in head.entries}
        for named, files in members.items()
    }
    # A set that still has half of its files has not moved.
    lost = {
        named: gone for named, gone in lost.items() if gone and 2 * len(gone) > len(members[named])
    }
    paths = {path for gone in lost.values() for path in gone}
    bases = {named.base.removesuffix("^") for named in lost}
    renamed, removals = renames.follow_renames(repository, head.commit, head.oids, paths, bases)
    return {
        named: _describe_followed(named, gone, len(members[named]), renamed)
        for named, gone in lost.items()
    }, removals


def _describe_followed(
    named: NamedPath, gone: Mapping[str, str], total: int, renamed: Mapping[str, Rename]
) -> FollowedPath:
    files = tuple(
        FollowedFile(path, oid, renamed[path].names, renamed[path].commit)
        for path, oid in gone.items()
        if path in renamed and is_usable(renamed[path].current_path)
    )
    if set(gone) == {named.path}:
        move = Move(named.path, files[0].now, files[0].commit) if files else None
        return FollowedPath(move, files)
    files = tuple(file for file in files if not matches_or_contains(named.path, file.now))
    start = named.path if named.start is None else named.start
    places: Counter[tuple[str, str]] = Counter()
    for file in files:
        inside = f"/{file.path[len(start) :].lstrip('/')}"
        if file.now.endswith(inside):
            places[file.now[: -len(inside)], file.commit] += 1
    folders: Counter[str] = Counter()
    for (folder, _commit), count in places.items():
        folders[folder] += count
    folder, count = max(folders.items(), key=lambda pair: (pair[1], pair[0]), default=("", 0))
    if 2 * count <= total or not folder:
        return FollowedPath(None, files)
    commit = max((n, commit) for (place, commit), n in places.items() if place == folder)[1]
    now = posixpath.join(folder, named.path[len(start) :].lstrip("/")).rstrip("/")
    return FollowedPath(Move(named.path, now, commit), files)


def _find_members(
    repository: Repository, head: CommitFiles, wanted: Iterable[NamedPath]
) -> dict[NamedPath, dict[str, str]]:
    """Return the files, with their blobs, that each path stood for at its commit.

    Unchanged paths are left out, and so are paths that stood for too many files.
    """
    places = {
        named: (named.base, named.path if named.start is None else named.start) for named in wanted
    }
    today = {(head.commit, place) for _base, place in places.values()}
    there = find_objects(repository, today.union(places.values()))
    folders = FolderReader(repository)
    members: dict[NamedPath, dict[str, str]] = {}
    for named, (base, place) in places.items():
        info, now = there[base, place], there[head.commit, place]
        if info is None or (now is not None and now[:2] == info[:2]):
            continue
        oid, kind, _size = info
        if kind == "blob":
            members[named] = {named.path: oid}
        elif kind == "tree":
            files = folders.list_below(oid, f"{place}/" if place else "")
            if files is not None:
                fits = {
                    path: blob
                    for path, blob in files.items()
                    if named.start is None or matches_or_contains(named.path, path)
                }
                members[named] = fits
    return members
