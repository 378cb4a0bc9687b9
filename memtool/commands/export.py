"""`memtool export`: the memories as JSON lines."""

from __future__ import annotations

from typing import Any

from memtool.importing import jsonl
from memtool.search import retrieve
from memtool.search.query import parse
from memtool.search.scope import scope_of
from memtool.store.context import Context
from memtool.value import Value


class Exported(Value):
    """One row per memory, sorted by id; as JSON just the list of them."""

    rows: tuple[dict[str, Any], ...]

    def plain(self) -> Any:
        """Return the rows as a list."""
        return list(self.rows)


def render(exported: Exported) -> str:
    """Return one line of JSON per memory."""
    return "".join(f"{jsonl.line(row)}\n" for row in exported.rows)


def export(
    context: Context, *filters: str, at: str | None = None, no_body: bool = False
) -> Exported:
    """Write memories as JSON lines: every key, the body and the path.

    From all of them memtool import jsonl makes the same files again. Without filters everything
    is written, also what is superseded, archived or deleted; with filters what list finds with
    them.

    Example:
        memtool export > memories.jsonl
        memtool export type:decision is:pinned --at v1.0

    Args:
        filters: what they must match, as in memtool list; everything without any
        at: the memories of this revision instead of the worktree
        no_body: leave the bodies out
    """
    tree = context.tree(at)
    records = list(tree.records)
    if filters:
        scope = scope_of(context, tree, context.now)
        records = retrieve.select(scope, parse(" ".join(filters)))
    rows = [jsonl.row(record, has_body=not no_body) for record in records]
    return Exported(tuple(sorted(rows, key=lambda row: (str(row["id"]), str(row["path"])))))
