"""`memtool unpin`: out of the pinned tier."""

from __future__ import annotations

from memtool.commands import writing
from memtool.commands.writing import Changed
from memtool.commands.writing import render_changed as render
from memtool.errors import MemtoolError
from memtool.memory.memory import Fields, Memory
from memtool.workspace import Workspace

__all__ = ["render", "unpin"]


def unpin(ws: Workspace, id: str, *, commit: bool = False, dry_run: bool = False) -> Changed:
    """Take a memory out of the pinned tier; it is confirmed as before.

    Example:
        memtool unpin dec-2026-02-22-keep-sessions-in-redis

    Args:
        id: the memory, by its id or the beginning of it
        commit: commit just this file
        dry_run: say what would change, write nothing
    """
    return writing.change(ws, id, _unpinned, "unpin", commit=commit, dry_run=dry_run)


def _unpinned(memory: Memory) -> Fields:
    if memory.status not in ("pinned", "confirmed"):
        raise MemtoolError(
            f"{memory.id} is {memory.status}, not pinned",
            hint="memtool list is:pinned shows what is",
            code="not-pinned",
        )
    return {"status": "confirmed"}
