"""`memtool archive`: put away, found only when asked for."""

from __future__ import annotations

from memtool.commands import writing
from memtool.commands.writing import Changed
from memtool.commands.writing import render_changed as render
from memtool.memory.memory import Fields, Memory
from memtool.workspace import Workspace

__all__ = ["archive", "render"]


def archive(
    ws: Workspace, id: str, *, why: str = "", commit: bool = False, dry_run: bool = False
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
        ws.notes.append("the reason is kept in a commit only: add --commit")
    return writing.change(ws, id, _archived, "archive", commit=commit, dry_run=dry_run, reason=why)


def _archived(memory: Memory) -> Fields:
    writing.refuse_deleted(memory)
    return {"status": "archived"}
