"""`memtool tag`: add tags to memories, and remove tags from them."""

from __future__ import annotations

import shlex

from memtool.authoring import write
from memtool.authoring.selection import naming_exceptions, select_memories
from memtool.authoring.write import ChangedMemories
from memtool.commands._layout import Layout
from memtool.commands._render import format_changed
from memtool.errors import MemtoolError
from memtool.memory.memory import FieldValue, Memory
from memtool.store.context import Context

KeyChanges = dict[str, FieldValue | None]


def tag(
    context: Context,
    *id: str,
    add: tuple[str, ...] = (),
    remove: tuple[str, ...] = (),
    reason: str = "",
    commit: bool = False,
    dry_run: bool = False,
) -> ChangedMemories:
    """Add tags to memories, and remove tags from them.

    The other tags stay, in their order. memtool undo takes the change back.

    Example:
        memtool tag dec-2g54 --add billing --commit
        memtool tag tag:payments --add billing --remove payments --commit

    Args:
        id: memories by id or words; with a filter such as tag:api, all are one query
        add: add this tag; may be repeated
        remove: remove this tag; may be repeated
        reason: the reason, kept in the message of the commit
        commit: commit these files only
        dry_run: show what would change, write nothing
    """
    added, removed = _parse_tags(add), _parse_tags(remove)
    named = shlex.join(id) or "ID"
    if not (added or removed):
        raise MemtoolError("cannot tag: no tag is given", hint=f"memtool tag {named} --add TAG")
    if both := sorted(added.keys() & removed):
        raise MemtoolError(
            f"cannot tag: {both[0]!r} is to be added and removed",
            hint=f"memtool tag {named} --add {shlex.quote(both[0])}",
        )
    selection = select_memories(context, id, "tag", dry_run=dry_run)

    def changes(memory: Memory) -> KeyChanges:
        write.refuse_deleted(memory)
        tags = memory.items("tags")
        new = dict.fromkeys(tag for tag in (*tags, *added) if tag not in removed)
        return {"tags": tuple(new) or None}

    if reason and not commit:
        context.notes.append("the reason is only stored in a commit: add --commit")
    with naming_exceptions(selection, "tag"):
        return write.change_all(
            context, selection.ids, changes, "tag", commit=commit, dry_run=dry_run, reason=reason
        )


def _parse_tags(words: tuple[str, ...]) -> dict[str, None]:
    """Return tags as memories have them, each once. Raises MemtoolError if one is empty."""
    tags = [word.strip().lstrip("#").strip() for word in words]
    if not all(tags):
        raise MemtoolError("cannot tag: a tag is empty", hint="memtool tag ID --add TAG")
    return dict.fromkeys(tags)


def render(result: ChangedMemories, layout: Layout) -> str:
    """Return the path of each memory, and report what was changed."""
    if result.id and not result.changes:
        layout.report(f"{layout.name(result.id)}: has these tags already, nothing changed")
        return result.path
    return format_changed(result, layout)
