"""`memtool confirm`: somebody looked, and it still holds."""

from __future__ import annotations

from memtool.authoring import write
from memtool.authoring.write import Changed
from memtool.commands._render import changed as render
from memtool.memory import timestamps
from memtool.memory.memory import Fields, Memory
from memtool.store.context import Context

__all__ = ["confirm", "render"]


def confirm(context: Context, id: str, *, commit: bool = False, dry_run: bool = False) -> Changed:
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
    head = context.repository.git.head()
    checked = {"at": timestamps.render(context.now), "by": write.author(context)}
    if head:
        checked["commit"] = head

    def confirmed(memory: Memory) -> Fields:
        write.refuse_deleted(memory)
        status = "pinned" if memory.status == "pinned" else "confirmed"
        return {"status": status, "checked": checked}

    return write.change(context, id, confirmed, "confirm", commit=commit, dry_run=dry_run)
