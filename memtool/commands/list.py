"""`memtool list`: the memories that match filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from memtool.commands import _filters
from memtool.commands._render import STEP, columns, jsonl
from memtool.index import index
from memtool.search.query import parse, with_depth
from memtool.search.retrieve import count_expired
from memtool.search.saved import text_of
from memtool.search.scope import (
    ACCESSED,
    MemoryRow,
    day,
    first,
    row_of,
    scope_of,
    shown_to,
    tell_expired,
    tell_rest,
    tell_withheld,
    told_trust,
)
from memtool.store.context import Context
from memtool.store.tree import Record
from memtool.value import Value, plain

Rows = Callable[[Sequence[Record]], Iterator[MemoryRow]]


class Stream(Sequence[MemoryRow]):
    """Rows that are made of records when they are read, some at a time, and not kept."""

    def __init__(self, make: Rows, records: Sequence[Record]) -> None:
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
        for at in range(0, len(self._records), STEP):
            yield from self._make(self._records[at : at + STEP])


class MemoryList(Value):
    """Rows in order; `total` counts all that match, before the limit.

    `expired` counts what matches but for its age.
    """

    total: int
    memories: Sequence[MemoryRow]
    expired: int = 0

    def plain(self) -> dict[str, Any]:
        """Return the fields, the rows of a stream read to the end."""
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
    """List the memories that match filters, the newest first.

    Filters are those of search, such as type:decision,state tag:auth file:src/ since:30d is:due
    parent:ID. Of plain words one at least has to occur. Superseded, deleted, archived and expired
    memories are listed only when asked for, such as with status:archived or is:superseded. @NAME
    is a query saved in queries.toml of the memory directory, with values for its parameters
    (@recent tag=auth); memtool list @ names them.

    Example:
        memtool list type:decision tag:auth since:90d
        memtool list parent:release-plan --depth 2 --limit 0 --format jsonl

    Args:
        filters: what they must match; everything without any
        limit: most memories, 0 for all, by default the setting search.limit
        offset: pass over so many of them first
        sort: the order; accessed is what was shown most often first
        depth: how many steps supersedes:, related: and parent: go, 0 for all, by default one
        format: jsonl writes one JSON object a line, each as soon as it is read
        at: the memories of this revision instead of the worktree
        as_of: the memories as they stood at this moment: a date, an RFC 3339 moment, or an age
            such as 30d
    """
    most = _filters.limit_of(context, limit)
    asked = with_depth(parse(text_of(context, filters)), depth)
    tree = index.open(context, at, as_of, exact=True)
    if sort == ACCESSED:
        _filters.take_over(context)
    scope = shown_to(context, scope_of(context, tree, context.clock.moment_of(as_of)))
    shown, total = first(scope, asked, sort, most + offset)
    del shown[:offset]
    tell_rest(context, len(shown), total, "--limit N lists more", offset)
    expired = count_expired(scope.facts(), asked)
    tell_expired(context, expired)
    tell_withheld(context, scope, asked)
    if not total:
        context.notes.append("no memory matches" if filters else "there is no memory yet")
    now = scope.now

    def rows(some: Sequence[Record]) -> Iterator[MemoryRow]:
        origins = context.origins(tree, some)
        return (row_of(context, record, origins, now) for record in some)

    if format == "jsonl":
        return MemoryList(total, Stream(rows, shown), expired)
    return MemoryList(total, tuple(rows(shown)), expired)


def render(listed: MemoryList) -> str | Iterator[str]:
    """Return one line per memory: id, day, type and category, status, trust, title."""
    if isinstance(listed.memories, Stream):
        return jsonl(listed.memories)
    return "\n".join(
        columns(
            (
                row.id,
                day(row.timestamp),
                f"{row.type}/{row.category}",
                f"{row.status}, due" if row.due else row.status,
                told_trust(row.trust, row.unproven),
                row.title,
            )
            for row in listed.memories
        )
    )
