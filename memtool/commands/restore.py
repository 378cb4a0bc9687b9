"""`memtool restore`: what was put away comes back."""

from __future__ import annotations

from memtool.authoring import write
from memtool.authoring.write import Changed
from memtool.commands._render import changed as render
from memtool.memory.memory import FieldValue, Memory
from memtool.store.context import Context

__all__ = ["render", "restore"]


def restore(context: Context, id: str, *, commit: bool = False, dry_run: bool = False) -> Changed:
    """Undo forget, archive or deprecate.

    A forgotten memory gets the status that it had before; any other is confirmed.

    Example:
        memtool restore dec-2026-02-22-keep-sessions-in-redis --commit

    Args:
        id: the memory, by its id or the beginning of it
        commit: commit just this file
        dry_run: say what would change, write nothing
    """
    return write.change(context, id, _restored, "restore", commit=commit, dry_run=dry_run)


def _restored(memory: Memory) -> dict[str, FieldValue | None]:
    if memory.status == "deleted":
        return {"status": memory.table("deleted").get("was", "confirmed"), "deleted": None}
    if memory.status in ("archived", "deprecated"):
        return {"status": "confirmed"}
    return {}
