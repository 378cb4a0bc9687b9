"""Where git's index differs from a commit.

It is all that a commit without memories costs, so it imports next to nothing.
"""

from __future__ import annotations

import os

from memtool.store import config as config_file
from memtool.store.git import GitError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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


class Difference(Value):
    """One path at which git's index differs from a commit. A mode of zeros means: no file."""

    path: str
    old_mode: str
    old_oid: str
    mode: str
    oid: str
    status: str


def of_index(
    repository: Repository, directory: str, env: Mapping[str, str]
) -> tuple[list[list[Difference]], str]:
    """Return where the index differs from HEAD and from each commit that is being merged.

    Also returns `HEAD`, or nothing before the first commit.
    """
    rows, head = differences(repository, directory)
    others = [differences(repository, directory, parent)[0] for parent in merged(repository, env)]
    return [rows, *others], head


def differences(
    repository: Repository, directory: str, commit: str = "HEAD"
) -> tuple[list[Difference], str]:
    """Return where the index differs from a commit, and the commit; empty before the first one."""
    paths = (directory, config_file.POINTER_NAME)
    ask = ("--raw", "-z", "--no-abbrev", "--no-renames")
    index = ("diff-index", "--cached", "--ita-invisible-in-index", *ask)
    try:
        answer = repository.git.run(*index, commit, "--", *paths)
    except GitError:
        if commit != "HEAD" or repository.git.head():
            raise
        commit = ""
        empty = EMPTY_TREE[repository.object_format]
        answer = repository.git.run(*index, empty, "--", *paths)
    return parse(answer), commit


def parse(answer: bytes) -> list[Difference]:
    """Read the rows of `--raw -z`, without renames."""
    found: dict[str, Difference] = {}
    tokens = iter(answer.split(b"\0"))
    for token in tokens:
        if token:
            old_mode, mode, old_oid, oid, status = token.decode()[1:].split()
            path = os.fsdecode(next(tokens))
            row = Difference(path, old_mode, old_oid, mode, oid, status)
            if path not in found or status == "U":  # an unfinished merge has two rows
                found[path] = row
    return [found[path] for path in sorted(found)]


def merged(repository: Repository, env: Mapping[str, str]) -> list[str]:
    """Return the commits that the next commit will join to HEAD, none outside of a merge."""
    try:
        with open(os.path.join(repository.git_dir, "MERGE_HEAD"), encoding="ascii") as file:
            return file.read().split()
    except (OSError, UnicodeDecodeError):
        return sorted(name[len(MERGE_ENV) :] for name in env if name.startswith(MERGE_ENV))
