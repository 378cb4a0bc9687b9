"""`memtool unpin`: out of the pinned tier."""

from __future__ import annotations

from memtool.authoring import write
from memtool.authoring.write import Changed
from memtool.commands._render import changed as render
from memtool.errors import MemtoolError
from memtool.memory.memory import Fields, Memory
from memtool.store.context import Context

__all__ = ["render", "unpin"]


def unpin(context: Context, id: str, *, commit: bool = False, dry_run: bool = False) -> Changed:
    """Take a memory out of the pinned tier; it is confirmed as before.

    Example:
        memtool unpin dec-2026-02-22-keep-sessions-in-redis

    Args:
        id: the memory, by its id or the beginning of it
        commit: commit just this file
        dry_run: say what would change, write nothing
    """
    return write.change(context, id, _unpinned, "unpin", commit=commit, dry_run=dry_run)


def _unpinned(memory: Memory) -> Fields:
    if memory.status not in ("pinned", "confirmed"):
        raise MemtoolError(
            f"{memory.id} is {memory.status}, not pinned",
            hint="memtool list is:pinned shows what is",
            code="not-pinned",
        )
    return {"status": "confirmed"}
