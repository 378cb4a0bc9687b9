"""The user's own repository of global memories.

It is an ordinary git repository in the user's data directory. As long as there is none, an absent
one stands for it: it holds nothing, and nothing can be written below it.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store.git import LOCATION_VARIABLES, Git, GitError
from memtool.store.repository import (
    GLOBAL_VARIABLE,
    NOWHERE,
    Repository,
    discover,
    global_directory,
    is_global_made,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NOTHING = "there are no global memories yet"
FIRST = 'memtool remember --global "TEXT" writes the first'
_LISTINGS = ("diff-index", "ls-files", "status")
"""Commands that tell what is there, which is nothing."""


def repository(env: Mapping[str, str]) -> Repository:
    """Open the global repository, or what stands for an absent one.

    Raises:
        MemtoolError: there is no place for it, or something else is there.
    """
    place = global_directory(env)
    if not place:
        raise MemtoolError(
            "there is no place for global memories, since HOME is not set",
            hint=f"{GLOBAL_VARIABLE}=/path/to/a/directory names one",
            code="global",
        )
    if not is_global_made(place):
        if not _holds_files(place):
            git = _NoGit(os.sep, local_environment(env))
            return Repository(place, NOWHERE, NOWHERE, lambda: git)
        if not is_global_made(place):  # else another process has made it meanwhile
            raise MemtoolError(
                f"{place} holds files and is no git repository",
                hint=f"git init {place}, or name an empty directory with {GLOBAL_VARIABLE}",
                code="global",
            )
    found = discover(place, local_environment(env))
    if found.top != os.path.realpath(place):
        raise MemtoolError(
            f"{place} is not the top of a git repository with a work tree",
            hint=f"git init {place}, or name another directory with {GLOBAL_VARIABLE}",
            code="global",
        )
    return found


def _holds_files(place: str) -> bool:
    """Tell whether a directory holds anything: files that are not ours to put into git."""
    try:
        return bool(os.listdir(place))
    except FileNotFoundError:
        return False


def nothing() -> MemtoolError:
    """Return the refusal of what an absent repository cannot answer."""
    return MemtoolError(NOTHING, hint=FIRST, code="no-memory")


def local_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what points git at the repository that a hook runs for."""
    return {key: value for key, value in env.items() if key not in LOCATION_VARIABLES}


class _NoGit(Git):
    """Git without a repository: it knows the user's settings, and of everything else nothing."""

    def __init__(self, directory: str, env: Mapping[str, str]) -> None:
        super().__init__(directory, dict(env) | {"GIT_DIR": NOWHERE})

    def run(
        self,
        *args: str,
        stdin: bytes | None = None,
        allowed: Iterable[int] = (0,),
        env: Mapping[str, str] | None = None,
        with_hooks: bool = False,
    ) -> bytes:
        """Run git; a caller who takes 1 for `there is none`, or asks what there is, gets that."""
        try:
            return super().run(*args, stdin=stdin, allowed=allowed, env=env, with_hooks=with_hooks)
        except GitError:
            if 1 in allowed or args[0] in _LISTINGS:
                return b""
            raise nothing() from None
