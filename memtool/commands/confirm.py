"""`memtool confirm`: somebody looked, and it still holds."""

from __future__ import annotations

from memtool.commands import writing
from memtool.commands.writing import Changed
from memtool.commands.writing import render_changed as render
from memtool.memory import moments
from memtool.memory.memory import Fields, Memory
from memtool.workspace import Workspace

__all__ = ["confirm", "render"]


def confirm(ws: Workspace, id: str, *, commit: bool = False, dry_run: bool = False) -> Changed:
    """Vouch for a memory as it stands: a candidate becomes confirmed, an old one lives again.

    The file records when, who, and at which commit the code was looked at. The time to live of the
    category counts from here.

    Example:
        memtool confirm sem-2026-02-22-deploys-need-the-vpn --commit

    Args:
        id: the memory, by its id or the beginning of it
        commit: commit just this file
        dry_run: say what would change, write nothing
    """
    head = ws.repository.git.head()
    checked = {"at": moments.render(ws.now), "by": writing.author(ws)}
    if head:
        checked["commit"] = head

    def confirmed(memory: Memory) -> Fields:
        writing.refuse_deleted(memory)
        status = "pinned" if memory.status == "pinned" else "confirmed"
        return {"status": status, "checked": checked}

    return writing.change(ws, id, confirmed, "confirm", commit=commit, dry_run=dry_run)
