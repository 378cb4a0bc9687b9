"""`memtool deprecate`: no longer recommended, not yet replaced."""

from __future__ import annotations

from memtool.authoring import write
from memtool.authoring.write import Changed
from memtool.commands._render import changed as render
from memtool.memory.memory import Fields, Memory
from memtool.store.context import Context

__all__ = ["deprecate", "render"]


def deprecate(
    context: Context, id: str, *, why: str = "", commit: bool = False, dry_run: bool = False
) -> Changed:
    """Keep a memory findable, but no longer inject it.

    Where something better is known, supersede says it in one step.

    Example:
        memtool deprecate dec-2026-02-22-keep-sessions-in-redis --why "we are moving off Redis"

    Args:
        id: the memory, by its id or the beginning of it
        why: the reason, kept in the message of the commit
        commit: commit just this file
        dry_run: say what would change, write nothing
    """
    if why and not commit:
        context.notes.append("the reason is kept in a commit only: add --commit")
    return write.change(
        context, id, _deprecated, "deprecate", commit=commit, dry_run=dry_run, reason=why
    )


def _deprecated(memory: Memory) -> Fields:
    write.refuse_deleted(memory)
    return {"status": "deprecated"}
