"""`memtool list`: the memories that match filters."""

from __future__ import annotations

from typing import Literal

from memtool.commands import _filters
from memtool.commands._render import columns
from memtool.index import index
from memtool.search.query import parse, text_of
from memtool.search.retrieve import count_expired
from memtool.search.scope import (
    MemoryRow,
    day,
    first,
    row_of,
    scope_of,
    tell_expired,
    tell_rest,
)
from memtool.store.context import Context
from memtool.value import Value


class MemoryList(Value):
    """Rows in order; `total` counts all that match, before the limit.

    `expired` counts what matches but for its age.
    """

    total: int
    memories: tuple[MemoryRow, ...]
    expired: int = 0


def list(  # noqa: A001  # a verb is named as the user types it
    context: Context,
    *filters: str,
    limit: int | None = None,
    sort: Literal["newest", "oldest", "importance", "title", "id"] = "newest",
    at: str | None = None,
    as_of: str | None = None,
) -> MemoryList:
    """List the memories that match filters, the newest first.

    Filters are those of search: type: category: tag: file: status: confidence: importance: since:
    until: source: author: error: task: id: is:. Of plain words one at least has to occur.
    Superseded, deleted, archived and expired memories are listed only when asked for, such as
    with status:archived or is:superseded. @NAME at the beginning is a query that is saved in
    queries.toml of the memory directory; memtool list @ names them.

    Example:
        memtool list type:decision tag:auth since:90d

    Args:
        filters: what they must match; everything without any
        limit: most memories to list, 0 for all, by default the setting search.limit
        sort: the order
        at: the memories of this revision instead of the worktree
        as_of: the memories as they stood at this moment: a date, an RFC 3339 moment, or an age
            such as 30d
    """
    most = _filters.limit_of(context, limit)
    asked = parse(text_of(context, filters))
    tree = index.open(context, at, as_of, exact=True)
    scope = scope_of(context, tree, context.moment_of(as_of))
    shown, total = first(scope, asked, sort, most)
    origins = context.origins(tree, shown)
    tell_rest(context, len(shown), total, "--limit N lists more")
    expired = count_expired(scope.facts(), asked)
    tell_expired(context, expired)
    now, categories = scope.now, context.settings.categories
    rows = tuple(row_of(record, origins, now, categories) for record in shown)
    return MemoryList(total, rows, expired)


def render(listed: MemoryList) -> str:
    """Return one line per memory: id, day, type and category, status, trust, title."""
    return "\n".join(
        columns(
            (
                row.id,
                day(row.timestamp),
                f"{row.type}/{row.category}",
                f"{row.status}, due" if row.due else row.status,
                row.trust,
                row.title,
            )
            for row in listed.memories
        )
    )
