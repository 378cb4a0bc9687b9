"""Founding: how the global repository comes into being, when something is first written there.

It is made complete in a directory beside its place, with its first commit, and then renamed: who
looks sees all of it or nothing, and of two processes that found it at once one is the first.
"""

from __future__ import annotations

import os
import shutil
import tempfile

from memtool.commands import init
from memtool.errors import MemtoolError
from memtool.store import global_
from memtool.store.git import Git, GitError
from memtool.store.repository import GLOBAL_VARIABLE, discover, is_global_made
from memtool.workspace import Workspace

BRANCH = "main"
_PREFIX = ".memtool-"
"""Begins the name of what is being made, before the number of the process that makes it."""


def found(ws: Workspace, *, begins: bool) -> None:
    """Make sure that the global repository can be written to: it is there, and on a branch.

    One that is absent stays so unless the verb `begins` something.

    Raises:
        MemtoolError: it cannot be made, and nothing is left of it; or it has no branch.
    """
    if not ws.repository.is_made:
        if begins:
            make(ws)
        return
    git = ws.repository.git
    if not git.run("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1)):
        top = ws.repository.top
        raise MemtoolError(
            f"the global repository {top} has no branch checked out, so a commit would be lost",
            hint=f"git -C {top} switch {BRANCH}",
            code="detached",
        )
    if begins and not ws.is_begun:
        init.init(ws, commit=True)


def make(ws: Workspace) -> None:
    """Make the global repository, and go on in it.

    Raises:
        MemtoolError: its place is within another repository, not writable, or git does not know
            who commits.
    """
    place = ws.repository.top
    parent = os.path.dirname(place)
    _refuse_within(ws, place)
    try:
        os.makedirs(parent, mode=0o700, exist_ok=True)
        _sweep(parent)
        temp = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)
        try:
            _fill(ws, temp)
            _move(temp, place)
        finally:
            shutil.rmtree(temp, ignore_errors=True)
    except OSError as error:
        raise MemtoolError(
            f"the global repository {place} cannot be made: {os.strerror(error.errno or 0)}",
            hint=f"git init {place}, or name another directory with {GLOBAL_VARIABLE}",
            code="global",
        ) from None
    ws.enter(global_.repository(ws.env))
    ws.notes.append(f"the global repository is {place}")


def _fill(ws: Workspace, directory: str) -> None:
    git = Git(directory, ws.env)
    git.run("init", "--quiet", f"--initial-branch={BRANCH}")
    try:
        for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            git.run("var", name)
    except GitError:
        raise MemtoolError(
            "git does not know who you are, and global memories are committed; nothing was written",
            hint="git config --global user.name NAME; git config --global user.email ADDRESS",
            code="no-identity",
        ) from None
    init.init(Workspace(discover(directory, ws.env), ws.env, directory), commit=True)


def _move(made: str, place: str) -> None:
    """Put what was made into its place, unless another process was faster."""
    try:
        os.rename(made, place)
    except OSError:
        if not is_global_made(place):
            raise


def _sweep(parent: str) -> None:
    """Remove what a process left behind that was killed while it made the repository."""
    for name in os.listdir(parent):
        number = name.removeprefix(_PREFIX).partition("-")[0]
        if name.startswith(_PREFIX) and number.isdecimal() and not _runs(int(number)):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's, or no number of a process
        return True
    return True


def _refuse_within(ws: Workspace, place: str) -> None:
    """Raise MemtoolError where another repository would take this one for a part of itself."""
    above = os.path.dirname(place)  # another process may just have made what is in its place
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    try:
        around = discover(above, ws.env)
    except MemtoolError as error:
        if error.code == "no-repository":
            return
        raise
    if not around.is_bare:
        plain = {"GIT_LITERAL_PATHSPECS": "0"}  # paths are literal there, and git says no to this
        if around.git.run("check-ignore", "--", place, allowed=(0, 1), env=plain):
            return
    raise MemtoolError(
        f"{place} lies inside the repository {around.top or around.git_dir}",
        hint=f"{GLOBAL_VARIABLE} names a directory outside of every repository",
        code="global",
    )
