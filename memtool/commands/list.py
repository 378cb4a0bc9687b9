"""`memtool list`: the memories that match filters."""

from __future__ import annotations

from typing import Literal

from memtool.commands import asking, listing
from memtool.commands.columns import columns
from memtool.commands.listing import Row
from memtool.search import parser, retrieve
from memtool.value import Value
from memtool.workspace import Workspace

__all__ = ["list", "render"]


class Listed(Value):
    """Rows in order; `total` counts all that match, before the limit."""

    total: int
    memories: tuple[Row, ...]


def list(  # noqa: A001  # a verb is named as the user types it
    ws: Workspace,
    *filters: str,
    limit: int | None = None,
    sort: Literal["newest", "oldest", "importance", "title", "id"] = "newest",
    at: str | None = None,
    as_of: str | None = None,
) -> Listed:
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
        limit: most memories to list, by default the setting search.limit
        sort: the order
        at: the memories of this revision instead of the worktree
        as_of: the memories as they stood at this moment: a date, an RFC 3339 moment, or an age
            such as 30d
    """
    most = listing.limit_of(ws, limit)
    asked = parser.parse(asking.text(ws, filters))
    tree = ws.catalog(at, as_of, exact=True)
    found = retrieve.select(listing.scope(ws, tree, ws.moment_of(as_of)), asked)
    shown = sorted(found, key=listing.SORTS[sort])[:most]
    origins = ws.origins(tree, shown)
    listing.tell_rest(ws, len(shown), len(found), "--limit N lists more")
    return Listed(len(found), tuple(listing.row(record, origins) for record in shown))


def render(listed: Listed) -> str:
    """Return one line per memory: id, day, type and category, status, trust, title."""
    return "\n".join(
        columns(
            (
                row.id,
                listing.day(row.timestamp),
                f"{row.type}/{row.category}",
                row.status,
                row.trust,
                row.title,
            )
            for row in listed.memories
        )
    )
