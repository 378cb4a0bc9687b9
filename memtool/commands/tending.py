"""Tending: may upkeep begin here, what it must leave alone, and what a run before left behind."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager

from memtool.errors import MemtoolError
from memtool.store import ledger
from memtool.upkeep import applying, uses
from memtool.upkeep.branching import Branch
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.store.repository import Repository

LOCK = "maintain.lock"
UNFINISHED = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD")
"""Names in a git directory that say that something else must be finished before a commit."""


def is_here(repository: Repository, target: Branch | None) -> bool:
    """Tell whether the commit goes where the worktree stands. Raises MemtoolError for elsewhere."""
    if target is None:
        return True
    if not target.worktree:
        return False
    if repository.is_bare or os.path.realpath(target.worktree) != repository.top:
        raise MemtoolError(
            f"{target.ref} is checked out in {target.worktree}",
            hint=f"memtool -C {target.worktree} maintain --apply",
            code="elsewhere",
        )
    return True


@contextmanager
def alone(repository: Repository) -> Iterator[None]:
    """Hold the lock of upkeep. Raises MemtoolError where another process does."""
    path = os.path.join(repository.cache_dir, LOCK)
    try:
        os.makedirs(repository.cache_dir, mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise MemtoolError(
            f"{path} cannot be written: {os.strerror(error.errno or 0)}",
            hint="give yourself permission; without --apply only the plan is shown",
            code="disk",
        ) from None
    try:
        _take(handle)
        yield
    finally:
        os.close(handle)


def _take(handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise MemtoolError(
            "another memtool maintain is at work in this repository",
            hint="run the same command again when it is done",
            code="busy",
        ) from None


def refuse_unready(repository: Repository) -> None:
    """Raise MemtoolError where a commit would be lost, or would get in the way of another one."""
    if repository.is_bare:
        raise MemtoolError(
            "a bare repository has no branch checked out",
            hint="memtool maintain --apply --branch memtool/maintain",
            code="bare",
        )
    if any(os.path.exists(os.path.join(repository.git_dir, name)) for name in UNFINISHED):
        raise MemtoolError(
            "a merge or rebase is unfinished",
            hint="finish it first; --branch NAME works meanwhile",
            code="merging",
        )
    if not repository.git.line("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1)):
        raise MemtoolError(
            "HEAD is detached, so that no branch would keep the commit",
            hint="git switch BRANCH, or memtool maintain --apply --branch NAME",
            code="detached",
        )


def recover(ws: Workspace) -> None:
    """Take back what a run wrote that was killed, and say so."""
    found = applying.recover(ws.repository)
    if found.undone:
        count = len(found.undone)
        files = "1 file" if count == 1 else f"{count} files"
        ws.notes.append(f"an earlier run was interrupted: {files} that it wrote are taken back")
    if found.left:
        ws.notes.append(f"an earlier run was interrupted; changed since: {', '.join(found.left)}")


def accesses(ws: Workspace) -> uses.Uses:
    """Return what the ledger has counted; nothing where it cannot be read."""
    directory = ws.repository.cache_dir
    try:
        ledger.fold(directory)
        return uses.read(directory)
    except MemtoolError as error:
        ws.notes.append(f"accesses are not counted: {error}")
        return uses.Uses()


def dirty(ws: Workspace) -> tuple[str, ...]:
    """Return the memory files that are not as HEAD has them, or not in this checkout, by path."""
    git = ws.repository.git
    rows = git.run(
        "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--", ws.directory
    )
    found = {os.fsdecode(row[3:]) for row in rows.split(b"\0")[:-1]}
    if os.path.exists(os.path.join(ws.repository.git_dir, "info", "sparse-checkout")):
        listed = git.run("ls-files", "-t", "-z", "--", ws.directory).split(b"\0")[:-1]
        found |= {os.fsdecode(row[2:]) for row in listed if row.startswith(b"S ")}
    return tuple(sorted(path for path in found if path.endswith(".md")))
