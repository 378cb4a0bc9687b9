"""Memory directories below another directory of the worktree, which are not read.

They come from a repository that was moved into a larger one.
"""

from __future__ import annotations

import os

from memtool.memory.fields import TYPES
from memtool.store.config import DEFAULT_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.repository import Repository


def describe_takeover(directory: str) -> str:
    """Return a hint on how to import or remove a nested directory."""
    import shlex  # rarely needed

    name = shlex.quote(directory)
    return f"memtool import markdown {name} --commit takes it over, git rm -r {name} removes it"


def find_nested_directories(repository: Repository, directory: str) -> tuple[str, ...]:
    """Return the sorted paths of tracked directories with memories, except `directory`.

    Raises:
        MemtoolError: git fails.
    """
    if repository.is_bare:
        return ()
    paths = repository.git.names(
        "ls-files",
        "-z",
        "--",
        f":(top,glob)**/{DEFAULT_DIRECTORY}/**/*.md",
        f":(top,exclude,literal){directory}",
        env={"GIT_LITERAL_PATHSPECS": "0"},
    )
    directories = set()
    for path in paths:
        parts = path.split("/")
        depth = parts.index(DEFAULT_DIRECTORY)
        if parts[depth + 1] in TYPES and len(parts) > depth + 2:
            directories.add("/".join(parts[: depth + 1]))
    return tuple(sorted(directories, key=os.fsencode))
