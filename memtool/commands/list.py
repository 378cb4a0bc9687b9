"""`memtool list`: the memories that match filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from memtool.commands import _filters
from memtool.commands._layout import Layout
from memtool.commands._render import (
    ROWS_PER_CHUNK,
    format_kind,
    format_states,
    iter_jsonl,
    list_states,
)
from memtool.index import index
from memtool.memory.drift import format_renamed_mark
from memtool.search.query import Query, find_leaves, parse, with_depth
from memtool.search.retrieve import Scope, count_expired
from memtool.search.saved import expand_words
from memtool.search.scope import (
    ACCESSED,
    MemoryRow,
    build_scope,
    collect_row_fields,
    find_first,
    note_expired,
    note_truncated,
    note_withheld,
    restricted_for,
)
from memtool.search.suggested_files import suggest_files
from memtool.search.unsettled import Unsettled
from memtool.store.context import Context
from memtool.store.tree import Record
from memtool.value import Value, plain

MAX_RENAMES = 10
"""Memories whose renamed files are noted."""
RowFactory = Callable[[Sequence[Record]], Iterator[MemoryRow]]


class ListedMemory(MemoryRow):
    """A memory in a list. An imported decision also has the files that it probably governs."""

    json_optional = "suggested_files"

    suggested_files: tuple[str, ...] = ()


class Stream(Sequence[MemoryRow]):
    """Rows that are built in chunks when they are read, and not stored."""

    def __init__(self, make: RowFactory, records: Sequence[Record]) -> None:
        self._make = make
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return tuple(self._make(self._records[at]))
        (row,) = self._make([self._records[at]])
        return row

    def __iter__(self) -> Iterator[MemoryRow]:
        for at in range(0, len(self._records), ROWS_PER_CHUNK):
            yield from self._make(self._records[at : at + ROWS_PER_CHUNK])


class MemoryList(Value):
    """Rows in order; `total` counts all that match, before the limit.

    `expired` counts memories that would match if they had not expired.
    """

    total: int
    memories: Sequence[MemoryRow]
    expired: int = 0

    def plain(self) -> dict[str, Any]:
        """Return the fields, with all rows of a stream."""
        return super().plain() | {"memories": plain(tuple(self.memories))}


def list(  # noqa: A001  # a verb is named as the user types it
    context: Context,
    *filters: str,
    limit: int | None = None,
    offset: int = 0,
    sort: Literal["newest", "oldest", "importance", "accessed", "title", "id"] = "newest",
    depth: int | None = None,
    format: Literal["text", "jsonl"] = "text",
    at: str | None = None,
    as_of: str | None = None,
) -> MemoryList:
    """List memories by filter, newest first.

        type:decision since:30d     filters; all must match (memtool help filters)
        words                       at least one must occur
        is:superseded is:archived   also what is left out by default
        @NAME                       a saved query; memtool list @ lists them

    Example:
        memtool list type:decision tag:auth since:90d
        memtool list is:due --limit 0

    Args:
        filters: filters and words; without any, all memories
        limit: the number of memories, 0 for all; default: search.limit
        offset: skip this many
        sort: newest, oldest, importance, accessed, title or id
        depth: how far supersedes:, related: and parent: go; 0: all
        format: text, or jsonl for one JSON object per line
        at: a revision instead of the worktree
        as_of: a past time: a date, RFC 3339, or an age such as 30d
    """
    max_rows = _filters.resolve_limit(context, limit)
    query = with_depth(parse(expand_words(context, filters)), depth)
    tree = index.open(context, at, as_of, exact=True)
    if sort == ACCESSED:
        _filters.fold_usage_log(context)
    scope = restricted_for(context, build_scope(context, tree, context.clock.parse_as_of(as_of)))
    shown, total = find_first(scope, query, sort, max_rows + offset)
    del shown[:offset]
    note_truncated(context, len(shown), total, "--limit 0 lists all", offset)
    expired = count_expired(scope.facts(), query)
    note_expired(context, expired)
    note_withheld(context, scope, query)
    if not total:
        query_text = " ".join(filters)
        context.notes.append(
            f'no memory matches "{query_text}"'
            if query_text
            else "no memories yet; to write one: memtool new decision TITLE"
        )
    now = scope.now
    _note_renames(context, scope, query, shown)
    unsettled = Unsettled(tree, now, scope.drift)

    def rows(records: Sequence[Record]) -> Iterator[MemoryRow]:
        origins = context.origins(tree, records)
        suggested = suggest_files(tree, records)
        causes = unsettled.summarize(record.id for record in records)
        return (
            ListedMemory(
                **collect_row_fields(
                    context, record, origins[record.path], now, causes.get(record.id, "")
                ),
                suggested_files=suggested.get(record.id, ()),
            )
            for record in records
        )

    if format == "jsonl":
        return MemoryList(total, Stream(rows, shown), expired)
    return MemoryList(total, tuple(rows(shown)), expired)


def _note_renames(context: Context, scope: Scope, query: Query, records: Sequence[Record]) -> None:
    """Note which memories that a file: filter found name the file by an older path."""
    asks_for_files = any(getattr(leaf, "name", "") == "file" for leaf in find_leaves(query.root))
    if not asks_for_files or scope.drift is None:
        return
    moves = scope.drift.find_moves()
    notes = [
        f"{record.id}: {format_renamed_mark(moves.find(record))}"
        for record in records
        if moves.find(record)
    ]
    context.notes += notes[:MAX_RENAMES]
    if notes[MAX_RENAMES:]:
        context.notes.append(f"and {len(notes) - MAX_RENAMES:,} more that name renamed files")


def render(listed: MemoryList, layout: Layout) -> str | Iterator[str]:
    """Return a line per memory: short id, title, state, age and kind."""
    if isinstance(listed.memories, Stream):
        return iter_jsonl(listed.memories)
    rows = [
        (
            layout.short(row.id),
            row.title,
            format_states(layout, list_states(layout, row)),
            layout.when(row.timestamp),
            format_kind(row.category) if layout.is_wide else "",
        )
        for row in listed.memories
    ]
    return "\n".join(layout.table(rows, drop=(4, 2, 3)))
