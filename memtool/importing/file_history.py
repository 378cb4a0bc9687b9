"""The git history of imported files: when each began, and whether it has changed since.

A file that was moved began where its content was first committed, not on the day of the move.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence

from memtool.importing.originals import Original
from memtool.store import provenance
from memtool.store.repository import Repository
from memtool.value import Value, split_batches

MAX_MOVES = 10
"""How often a file is followed to an earlier name."""
_PATHS_EACH = 1000


class FileHistory(Value):
    """What git knows of the files at or below a path.

    `head` is the commit at HEAD, empty without one. `blobs` are the ids of their blobs there.
    `authored` and `committed` are the Unix seconds of the commit in which each began, empty in a
    shallow clone. `settled` are the files that the trusted branch has as well, or all of them if
    there is none; `branch` is its short name.
    """

    head: str = ""
    blobs: Mapping[str, str] = {}
    authored: Mapping[str, int] = {}
    committed: Mapping[str, int] = {}
    branch: str = ""
    settled: frozenset[str] = frozenset()


def read_history(
    repository: Repository, path: str, trusted_ref: str = "", *, has_dates: bool
) -> FileHistory:
    """Read the history of the files at or below a path, relative to the top.

    `trusted_ref` is the setting of this name. Without dates only the present blobs are read.
    """
    git = repository.git
    head = git.head()
    if not head:
        return FileHistory()
    limit = [] if path in ("", ".") else [path]
    blobs = {entry.path: entry.oid for entry in git.ls_tree(head, *limit)}
    if not has_dates or repository.is_shallow:
        return FileHistory(head=head, blobs=blobs)
    firsts = _find_first_commits(repository, head, limit)
    trusted = provenance.resolve_trusted(repository, trusted_ref)
    settled = (entry.path for entry in git.ls_tree(trusted, *limit)) if trusted else blobs
    return FileHistory(
        head=head,
        blobs=blobs,
        authored={name: authored for name, (_commit, authored, _committed) in firsts.items()},
        committed={name: committed for name, (_commit, _authored, committed) in firsts.items()},
        branch=provenance.format_trusted_ref(repository, trusted_ref),
        settled=frozenset(settled),
    )


Birth = tuple[str, int, int]
"""A commit, and the Unix seconds at which it was written and made."""


def _find_first_commits(
    repository: Repository, head: str, limit: Sequence[str]
) -> dict[str, Birth]:
    """Return the commit in which the content of each file began, by the file's present name."""
    firsts = _find_additions(repository, head, limit)
    earlier = {name: name for name in firsts}
    for _move in range(MAX_MOVES):
        commits = dict.fromkeys(firsts[name][0] for name in earlier)
        moves = _find_moves(repository, list(commits))
        earlier = {
            name: moves[firsts[name][0], path]
            for name, path in earlier.items()
            if (firsts[name][0], path) in moves
        }
        if not earlier:
            break
        additions: dict[str, Birth] = {}
        for paths in split_batches(sorted(set(earlier.values())), _PATHS_EACH):
            additions |= _find_additions(repository, head, paths)
        earlier = {name: path for name, path in earlier.items() if path in additions}
        firsts |= {name: additions[path] for name, path in earlier.items()}
    return firsts


def _find_additions(repository: Repository, head: str, limit: Sequence[str]) -> dict[str, Birth]:
    """Return the oldest commit that added each file at or below some paths."""
    added = repository.git.log_names(
        "--format=%x00%H %at %ct",
        "--diff-filter=A",
        "--no-renames",
        "--end-of-options",
        head,
        "--",
        *limit,
    )
    births: dict[str, Birth] = {}
    for title, names in added:  # newest first, so that the oldest overwrites it
        commit, authored, committed = title.split()
        births.update(dict.fromkeys(names, (commit, int(authored), int(committed))))
    return births


def find_last_changes(repository: Repository, names: Sequence[str]) -> dict[str, int]:
    """Return the Unix seconds of the last commit that changed each file; empty if unknown."""
    head = repository.git.head()
    if not (names and head) or repository.is_shallow:
        return {}
    options = ("--format=%x00%at", "--no-renames", "--end-of-options", head, "--")
    seconds: dict[str, int] = {}
    for authored, paths in repository.git.log_names(*options, *names):  # newest first
        for path in paths:
            seconds.setdefault(path, int(authored))
    return seconds


def _find_moves(repository: Repository, commits: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return the earlier name of each file that some commits moved, by commit and new name."""
    request = "".join(f"{commit}\n" for commit in commits).encode()
    command = ("diff-tree", "--stdin", "-r", "-M", "--diff-filter=R")
    changes = repository.git.log_raw(*command, stdin=request) if commits else ()
    return {(commit, change.path): change.old_path for commit, change in changes}


def find_committed(
    sources: Iterable[Original], blobs: Mapping[str, str], object_format: str
) -> set[str]:
    """Return the names of the originals whose content equals the blob of that name."""
    paths = {source.name: source.path for source in sources if source.name in blobs}
    return {name for name, path in paths.items() if _blob_id(path, object_format) == blobs[name]}


def is_unchanged(repository: Repository, source: Original, commit: str) -> bool:
    """Return whether a file is the same as in a commit, in which it may be missing."""
    (info,) = repository.git.infos([f"{commit}:{source.name}"])
    return info is not None and info[0] == _blob_id(source.path, repository.object_format)


def _blob_id(path: str, object_format: str) -> str:
    made = hashlib.new(object_format, usedforsecurity=False)
    try:
        with open(path, "rb") as file:
            made.update(b"blob %d\0" % os.fstat(file.fileno()).st_size)
            return hashlib.file_digest(file, lambda: made).hexdigest()
    except OSError:
        return ""
