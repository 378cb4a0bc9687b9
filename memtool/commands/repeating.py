"""Repeating: what happens when a new memory says what a living one says already."""

from __future__ import annotations

from memtool.commands import writing
from memtool.commands.writing import Written
from memtool.errors import MemtoolError
from memtool.gate import near_duplicates
from memtool.gate.near_duplicates import THRESHOLD_KEY, Twin
from memtool.memory import document
from memtool.memory.memory import Fields, Memory
from memtool.store.tree import Record
from memtool.workspace import Workspace

MORE = 0.1
"""How much importance a memory gains when it is said again; it ends at 1."""


def twin_of(ws: Workspace, memory: Memory, *, dry_run: bool) -> Twin | None:
    """Return the living memory of the worktree that says the same, None where there is none."""
    categories = ws.settings.categories
    near = near_duplicates.of_worktree(ws.repository, ws.directory, categories, is_kept=not dry_run)
    threshold = ws.settings.number(THRESHOLD_KEY)
    draft = Record(
        memory.with_fields(id=""), "", ""
    )  # its id may be taken, and is drawn again then
    (found,) = near_duplicates.twins([draft], near, threshold, ws.now, categories)
    return found


def strengthen(ws: Workspace, twin: Twin, *, commit: bool, dry_run: bool) -> Written:
    """Raise the importance of an exact twin instead of writing its words again."""
    record = twin.record
    before = record.memory.importance
    after = f"{min(1.0, round(before + MORE, 4)):g}"

    def stronger(memory: Memory) -> Fields:
        return {} if memory.importance >= 1.0 else {"importance": after}

    changed = writing.change(ws, record.id, stronger, "strengthen", commit=commit, dry_run=dry_run)
    data = writing.bytes_of(ws.repository.top, changed.path) or b""
    text = document.edit(data, stronger(record.memory), changed.path) if dry_run else data
    would = "would be" if dry_run else "is now"
    ws.notes.append(
        f"{record.id} says this already; its importance {would} {after}"
        if changed.changes
        else f"{record.id} says this already, and no importance is greater than its own"
    )
    return Written(record.id, changed.path, changed.commit, text.decode(), dry_run, record.id)


def refusal(twin: Twin, memory: Memory) -> MemtoolError:
    """Return why a memory is not written, and what to do instead."""
    other = twin.record
    how = "the same as" if twin.is_exact else f"nearly ({twin.likeness:.2f}) the same as"
    hint = (
        f"add --supersedes {other.id}"
        if memory.supersedes
        else f'memtool supersede {other.id} "{memory.title}"'
    )
    if not twin.is_exact:
        hint += f"; if both are meant, memtool new with --set related_to={other.id}"
    return MemtoolError(
        f"this says {how} {other.id}, {other.memory.title!r}", hint=hint, code="duplicate"
    )
