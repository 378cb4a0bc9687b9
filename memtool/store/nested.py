"""Memory directories that lie below another directory of the worktree, and so are not read.

They come with a repository that was moved into a larger one.
"""

from __future__ import annotations

import os

from memtool.memory.fields import TYPES
from memtool.store.config import DEFAULT_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.repository import Repository


def take_over(place: str) -> str:
    """Return what to do with such a directory."""
    import shlex  # hardly any repository has one

    name = shlex.quote(place)
    return f"memtool import markdown {name} --commit takes it over, git rm -r {name} removes it"


def nested_directories(repository: Repository, directory: str) -> tuple[str, ...]:
    """Return the paths of directories with memories that git tracks besides `directory`, sorted.

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
    found = set()
    for path in paths:
        parts = path.split("/")
        place = parts.index(DEFAULT_DIRECTORY)
        if parts[place + 1] in TYPES and len(parts) > place + 2:
            found.add("/".join(parts[: place + 1]))
    return tuple(sorted(found, key=os.fsencode))
