"""What several verbs print: columns, memories that were written, rows as JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memtool.value import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from memtool.authoring.write import Changed, Written

WIDEST = 68
"""As wide as an id that memtool makes. A longer cell pushes its own row to the right alone."""


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a line per row, cells two spaces apart, without spaces at its end.

    A column in which no row has anything is left out.
    """
    table = [list(row) for row in rows]
    if not table:
        return []
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell.ljust(min(width, WIDEST)) for cell, width in zip(row, widths, strict=True) if width
        ).rstrip()
        for row in table
    ]


MEGABYTE = 1 << 20


def size_text(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{count / MEGABYTE:.1f} MB" if count >= MEGABYTE // 10 else f"{-(-count // 1024)} KB"


def written(answer: Written) -> str:
    """Return the path, after the whole text where nothing was written."""
    return f"{answer.text}\n{answer.path}" if answer.dry_run else answer.path


def changed(answer: Changed) -> str:
    """Return one line per changed key, then the path."""
    rows = [f"{key}: {old or '-'} -> {new or '-'}" for key, (old, new) in answer.changes.items()]
    if not rows:
        rows = [f"{answer.id} was so already"]
    elif answer.dry_run:
        rows.insert(0, "would change:")
    return "\n".join([*rows, answer.path])


STEP = 500
"""Rows that are written as JSON lines at once."""


def jsonl(rows: Sequence[Any]) -> Iterator[str]:
    """Yield rows as JSON, one a line in ASCII, many lines at once."""
    import json  # most answers are text

    for first in range(0, len(rows), STEP):
        some = rows[first : first + STEP]
        yield "".join(json.dumps(plain(row), allow_nan=False) + "\n" for row in some)
