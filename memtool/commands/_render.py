"""Output that several verbs share: columns, written memories, rows as JSON lines."""

from __future__ import annotations

from collections.abc import Sequence

from memtool.commands._layout import measure, shorten_commit
from memtool.memory.premises import ACTS
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.value import first_few, format_count, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    from memtool.authoring.write import ChangedMemories, ChangeResult, WriteResult
    from memtool.commands._layout import Layout
    from memtool.memory.memory import Memory
    from memtool.search.scope import MemoryRow

    class CommitFields(Protocol):
        """A value with the commit that it comes from; unknown texts are empty."""

        @property
        def commit(self) -> str | None: ...
        @property
        def author(self) -> str: ...
        @property
        def pull_request(self) -> str: ...
        @property
        def co_authors(self) -> tuple[str, ...]: ...


MAX_CO_AUTHORS = 3
MAX_NAMED_FILES = 2
MAX_NAMED = 20
"""Memories that a receipt names, of several that were changed together."""
NOT_COMMITTED = "not committed (--commit does it)"


def format_commit(fields: CommitFields, digits: int | None = SHORT_ID_DIGITS) -> str:
    """Return a commit's abbreviated id and pull request: `b7329a8d01 (#12)`."""
    number = f" ({fields.pull_request})" if fields.pull_request else ""
    return f"{fields.commit[:digits]}{number}" if fields.commit else ""


def format_authors(fields: CommitFields) -> str:
    """Return the author and co-authors of a commit, such as `Ada, with Bo`."""
    co_authors = first_few(fields.co_authors, MAX_CO_AUTHORS)
    return f"{fields.author}, with {co_authors}" if co_authors else fields.author


def list_states(layout: Layout, row: MemoryRow) -> list[str]:
    """Return what is unusual about a memory in words, the most urgent first.

    Confirmed, on the trusted branch and of medium or high confidence is usual.
    """
    words = (
        ("not committed", row.trust == "local"),
        ("candidate", row.status == "candidate"),
        ("unsettled", bool(row.unsettled)),
        ("not merged", row.trust == "committed" and layout.has_trusted),
        ("unproven", bool(row.unproven)),
        ("due", row.due),
        (row.status, row.status in ("deprecated", "archived", "deleted", "pinned")),
        ("low confidence", row.confidence == "low"),
    )
    return [word for word, is_true in words if is_true]


def format_acts(short_id: str) -> list[str]:
    """Return a line for each act that settles a memory: when it is right, and the command."""
    width = max(len(when) for when, _command in ACTS)
    return [f"{when.ljust(width)}  {command.format(short_id)}" for when, command in ACTS]


def format_states(layout: Layout, states: Sequence[str]) -> str:
    """Return all states in a wide row, else the most urgent alone."""
    return ", ".join(states if layout.is_wide else states[:1])


def format_kind(category: str) -> str:
    """Return a category in words."""
    return category.replace("_", " ")


MAX_DETAIL_WIDTH = 24
"""Cells of a detail in the row of a change; a longer one goes below it on a terminal."""


def format_changes(
    layout: Layout, rows: Sequence[tuple[str, str, str, str]], indent: str = ""
) -> Iterator[str]:
    """Yield a line per change: its mark or kind, short id, title and details."""
    details = [detail for *_row, detail in rows]
    is_below = [layout.width and measure(detail) > MAX_DETAIL_WIDTH for detail in details]
    table = [
        (*row, "" if is_long else detail)
        for (*row, detail), is_long in zip(rows, is_below, strict=True)
    ]
    lines = layout.table(table, title=2, indent=indent)
    for line, detail, is_long in zip(lines, details, is_below, strict=True):
        yield line
        if is_long:
            yield from layout.wrap(detail, f"{indent}    ")


MEGABYTE = 1 << 20


def format_size(size: int) -> str:
    """Format a number of bytes as MB or KB."""
    return f"{size / MEGABYTE:.1f} MB" if size >= MEGABYTE // 10 else f"{-(-size // 1024)} KB"


def format_written(answer: WriteResult, layout: Layout) -> str:
    """Return the path of a memory, and report what was written; a dry run shows its text."""
    if answer.dry_run:
        return f"{answer.text}\n{answer.path}"
    memory = layout.memory(answer.id)
    if answer.duplicate_of:
        layout.report(f"Not written again: {layout.name(answer.id)}")
    elif memory is not None:
        layout.report(*_describe_written(memory, answer, layout))
    return answer.path


def _describe_written(memory: Memory, answer: WriteResult, layout: Layout) -> Iterator[str]:
    """Yield the receipt of a new memory: its name, then what kind it is and where it is kept."""
    name = layout.name(memory.id)
    olds = ", ".join(map(layout.short, memory.supersedes))
    if memory.replaces:
        yield f"Superseded {olds} by {name}"
    elif memory.proposes:
        yield f"Proposed {name}, to supersede {olds}"
    else:
        yield f"{'Remembered' if memory.type == 'semantic' else 'Wrote'} {name}"
    kind = format_kind(memory.category)
    files = memory.items("files")
    about = f" about {first_few(files, MAX_NAMED_FILES)}" if files else ""
    candidate = ", a candidate" if memory.status == "candidate" else ""
    yield f"  {kind}{about}{candidate}; {layout.hint(format_where(answer.commit))}"


def format_where(commit: str | None) -> str:
    """Return where a change is kept."""
    return f"committed as {shorten_commit(commit)}" if commit else NOT_COMMITTED


def format_changed(answer: ChangedMemories, layout: Layout) -> str:
    """Return the path of each memory, and report what was changed."""
    if len(answer.memories) == 1:
        layout.report(*_describe_change(answer.memories[0], layout))
    else:
        layout.report(*_describe_together(answer, layout))
    return "\n".join(change.path for change in answer.memories)


def _describe_change(answer: ChangeResult, layout: Layout) -> Iterator[str]:
    name = layout.name(answer.id)
    if not answer.changes:
        memory = layout.memory(answer.id)
        where = f"committed as {shorten_commit(answer.commit)}" if answer.commit else ""
        status = memory.status if memory else "so"
        yield f"{name}: {status} already, {where or 'nothing changed'}"
    elif answer.dry_run:
        yield f"Would change {name}"
        yield from describe_changes(answer.changes)
    else:
        yield f"{_name_change(answer.changes)} {name}"
        where = format_where(answer.commit)
        undo = f"to take it back: memtool undo {layout.short(answer.id)}"
        yield layout.hint(f"  {where}; {undo}")


def _describe_together(answer: ChangedMemories, layout: Layout) -> Iterator[str]:
    """Yield the receipt of several changes: how many of each kind, and the names of the first."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for change in answer.memories:
        old, new = change.changes.get("status", ("", ""))
        does = _name_change(change.changes) if change.changes else "Already so:"
        arrow = f"{old} -> {new}" if old else f"-> {new}"
        detail = arrow if answer.dry_run and new else ""
        group = groups.setdefault("Would change" if answer.dry_run and change.changes else does, [])
        group.append((change.id, detail))
    for does, rows in groups.items():
        yield f"{does} {format_count(len(rows), 'memory', 'memories')}"
        table = [(layout.short(id_), layout.title(id_), detail) for id_, detail in rows[:MAX_NAMED]]
        yield from layout.table(table, indent="  ")
        if len(rows) > MAX_NAMED:
            yield f"  and {len(rows) - MAX_NAMED:,} more"
    if answer.commit:
        commit = shorten_commit(answer.commit)
        yield f"  committed as {commit}; to take all back: git revert {commit}"
    elif not answer.dry_run and any(change.changes for change in answer.memories):
        yield layout.hint(f"  {NOT_COMMITTED}; to take one back: memtool undo ID")


def describe_changes(changes: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return a line for each changed key with its old and new text."""
    return [f"  {key}: {old or '-'} -> {new or '-'}" for key, (old, new) in changes.items()]


def _name_change(changes: Mapping[str, tuple[str, str]]) -> str:
    """Return what happened to a memory, by its old and new status, or its tags."""
    if "tags" in changes and "status" not in changes:
        return "Changed the tags of"
    old, new = changes.get("status", ("", "confirmed"))
    if new == "confirmed":
        words = {"pinned": "Unpinned", "archived": "Restored", "deprecated": "Restored"}
        return "Restored" if old == "deleted" else words.get(old, "Confirmed")
    words = {
        "pinned": "Pinned",
        "archived": "Archived",
        "deprecated": "Deprecated",
        "deleted": "Forgot",
    }
    return words.get(new, "Restored")


ROWS_PER_CHUNK = 500


def iter_jsonl(rows: Sequence[Any]) -> Iterator[str]:
    """Yield rows as JSON lines in ASCII, in chunks of many lines."""
    import json  # most output is text

    for first in range(0, len(rows), ROWS_PER_CHUNK):
        chunk = rows[first : first + ROWS_PER_CHUNK]
        yield "".join(json.dumps(plain(row), allow_nan=False) + "\n" for row in chunk)
