"""`memtool forget`: a soft deletion with a reason; `restore` undoes it."""

from __future__ import annotations

import shlex

from memtool.authoring import write
from memtool.authoring.selection import naming_exceptions, select_memories
from memtool.authoring.write import ChangedMemories, ChangeResult
from memtool.commands import _features, _settling
from memtool.commands._render import format_changed as render
from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.memory.memory import Fields, Memory
from memtool.store.context import Context

__all__ = ["forget", "render"]


class ForgetResult(ChangedMemories):
    """The change of each forgotten memory."""

    json_fields = f"{ChangedMemories.json_fields} forgotten"

    @property
    def forgotten(self) -> tuple[ChangeResult, ...]:
        """The same as `memories`, by the name that programs know."""
        return self.memories


def forget(
    context: Context, *id: str, reason: str = "", commit: bool = False, dry_run: bool = False
) -> ForgetResult:
    """Delete memories, with a reason.

    They are no longer found or shown; memtool restore brings them back. The files stay, with the
    reason, the time and your name in them; memtool purge removes them later.

    Example:
        memtool forget sem-gnq8 --reason "the VPN is gone" --commit
        memtool forget tag:vpn --reason "the VPN is gone"

    Args:
        id: memories by id or words; with a filter such as tag:vpn, all are one query
        reason: the reason, required
        commit: commit these files only
        dry_run: show what would change, write nothing
    """
    if not reason.strip():
        raise MemtoolError(
            "cannot forget: the reason is missing",
            hint=f'memtool forget {shlex.join(id) or "ID"} --reason "REASON"',
        )
    selection = select_memories(context, id, "forget", dry_run=dry_run)
    if context.caller.agent and selection.words and len(selection.ids) > 1:
        titles = selection.tree.list_titles(selection.ids)
        raise MemtoolError(
            f"cannot forget: an agent must name {len(selection.ids)} memories by id:{titles}",
            hint=f'memtool forget {selection.ids[0]} --reason "REASON"',
            code="ambiguous-id",
        )
    deleted = {
        "at": timestamps.render(context.clock.now),
        "by": write.find_author(context),
        "reason": reason.strip(),
    }

    def changes(memory: Memory) -> Fields:
        if memory.status == "deleted":
            return {}
        return {"status": "deleted", "deleted": deleted | {"was": memory.status}}

    with naming_exceptions(selection, "forget"):
        done = write.change_all(
            context,
            selection.ids,
            changes,
            "forget",
            commit=commit,
            dry_run=dry_run,
            reason=reason,
        )
    gone = [change.id for change in done.memories if change.changes]
    _features.follow_end(context, gone, commit=commit, dry_run=dry_run)
    _settling.note_unsettled(context, done)
    return ForgetResult(done.memories, done.commit, done.dry_run)
