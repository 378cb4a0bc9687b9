"""Where git's index differs from a commit.

It is all that a commit without memories costs, so it imports next to nothing.
"""

from __future__ import annotations

import os

from memtool.store import config as config_file
from memtool.store.git import GitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.store.git import RawChange
    from memtool.store.repository import Repository

EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""What the first commit is compared with: git knows these trees without having them."""
NO_MODE = "000000"
"""Stands for no file."""
MERGE_ENV = "GITHEAD_"
"""`git merge` names what it merges so in the environment of its hooks, before MERGE_HEAD exists."""


def of_index(
    repository: Repository, directory: str, env: Mapping[str, str]
) -> tuple[list[list[RawChange]], str]:
    """Return where the index differs from HEAD and from each commit that is being merged.

    Also returns `HEAD`, or nothing before the first commit.
    """
    rows, head = differences(repository, directory)
    others = [differences(repository, directory, parent)[0] for parent in merged(repository, env)]
    return [rows, *others], head


def differences(
    repository: Repository, directory: str, commit: str = "HEAD"
) -> tuple[list[RawChange], str]:
    """Return where the index differs from a commit, and the commit; empty before the first one."""
    paths = (directory, config_file.POINTER_NAME)
    index = ("diff-index", "--cached", "--ita-invisible-in-index", "--no-renames")
    try:
        rows = repository.git.diff_raw(*index, commit, "--", *paths)
    except GitError:
        if commit != "HEAD" or repository.git.head():
            raise
        commit = ""
        empty = EMPTY_TREE[repository.object_format]
        rows = repository.git.diff_raw(*index, empty, "--", *paths)
    return by_path(rows), commit


def by_path(rows: Iterable[RawChange]) -> list[RawChange]:
    """Return one row for each path, sorted: an unfinished merge has two."""
    found: dict[str, RawChange] = {}
    for row in rows:
        if row.path not in found or row.status == "U":
            found[row.path] = row
    return [found[path] for path in sorted(found)]


def merged(repository: Repository, env: Mapping[str, str]) -> list[str]:
    """Return the commits that the next commit will join to HEAD, none outside of a merge."""
    try:
        with open(os.path.join(repository.git_dir, "MERGE_HEAD"), encoding="ascii") as file:
            return file.read().split()
    except (OSError, UnicodeDecodeError):
        return sorted(name[len(MERGE_ENV) :] for name in env if name.startswith(MERGE_ENV))
