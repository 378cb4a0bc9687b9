"""Whereabouts: what git itself says about the repository that a directory lies in.

It is asked wherever `repository` does not know a layout: variables that move things, bare
repositories, somebody else's files.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store.git import Git, GitError
from memtool.store.repository import Repository, common_dir_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def asked(start: str, env: Mapping[str, str]) -> Repository:
    """Return the repository that a directory lies in, as git says.

    Raises:
        MemtoolError: there is none, or git refuses it.
    """
    git = Git(start, env)
    try:
        answer = git.run(
            "rev-parse",
            "--path-format=absolute",
            "--is-bare-repository",
            "--git-dir",
            "--git-common-dir",
        )
        bare, git_dir, common_dir = answer.decode(errors="surrogateescape").splitlines()
        top = "" if bare == "true" else git.line("rev-parse", "--show-toplevel")
    except GitError as error:
        if "not a git repository" in error.stderr:
            raise MemtoolError(
                f"{start} is not in a git repository",
                hint="git init makes one; memtool -C DIR looks in another directory",
                code="no-repository",
            ) from None
        if "work tree" in error.stderr:  # called from inside the git directory
            top = ""
        elif "bare repository" in error.stderr:  # safe.bareRepository=explicit
            return _bare(start, env)
        else:
            raise
    if not top and "GIT_DIR" not in env:
        return _bare(git_dir, env)
    if "GIT_DIR" in env:  # may be relative to where we were called, and git will run at the top
        env = dict(env) | {"GIT_DIR": git_dir} | ({"GIT_WORK_TREE": top} if top else {})
    return Repository(top, git_dir, common_dir, lambda: Git(top or start, env))


def _bare(start: str, env: Mapping[str, str]) -> Repository:
    """Name a bare repository explicitly, as git demands since a clone may smuggle one in.

    Only a directory that itself is the repository counts, not one above it.
    """
    if not all(os.path.exists(os.path.join(start, name)) for name in ("HEAD", "objects", "refs")):
        raise MemtoolError(
            f"{start} lies inside a git directory",
            hint="memtool -C DIR with the top of the worktree, or the bare repository itself",
            code="no-repository",
        )
    git = Git(start, dict(env) | {"GIT_DIR": start})
    git.run("rev-parse", "--git-dir")  # git's own refusal, if any, goes to the user
    return Repository("", start, common_dir_of(start) or start, lambda: git)
