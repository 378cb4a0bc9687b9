"""`memtool archive`: put away, found only when asked for."""

from __future__ import annotations

from memtool.authoring import write
from memtool.authoring.write import Changed
from memtool.commands._render import changed as render
from memtool.memory.memory import Fields, Memory
from memtool.store.context import Context

__all__ = ["archive", "render"]


def archive(
    context: Context, id: str, *, why: str = "", commit: bool = False, dry_run: bool = False
) -> Changed:
    """Put a memory away: list, search and inject leave it out until they are asked for it.

    The file stays where it is. `memtool list status:archived` shows such memories.

    Example:
        memtool archive sta-2026-02-22-release-plan --commit

    Args:
        id: the memory, by its id or the beginning of it
        why: the reason, kept in the message of the commit
        commit: commit just this file
        dry_run: say what would change, write nothing
    """
    if why and not commit:
        context.notes.append("the reason is kept in a commit only: add --commit")
    return write.change(
        context, id, _archived, "archive", commit=commit, dry_run=dry_run, reason=why
    )


def _archived(memory: Memory) -> Fields:
    write.refuse_deleted(memory)
    return {"status": "archived"}
