"""`memtool pin`: a memory that every block begins with."""

from __future__ import annotations

from memtool.authoring import write
from memtool.authoring.write import Changed
from memtool.commands._render import changed as render
from memtool.memory.memory import Fields, Memory
from memtool.store.context import Context

__all__ = ["pin", "render"]


def pin(context: Context, id: str, *, commit: bool = False, dry_run: bool = False) -> Changed:
    """Put a memory into the pinned tier, so that it is always injected first.

    A pinned memory does not expire by the time to live of its category.

    Example:
        memtool pin dec-2026-02-22-keep-sessions-in-redis --commit

    Args:
        id: the memory, by its id or the beginning of it
        commit: commit just this file
        dry_run: say what would change, write nothing
    """
    return write.change(
        context, id, _pinned, "pin", commit=commit, dry_run=dry_run, needs_head=True
    )


def _pinned(memory: Memory) -> Fields:
    write.refuse_deleted(memory)
    return {"status": "pinned"}
