"""Columns: rows of short texts as aligned lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

WIDEST = 60
"""A longer cell pushes its own row to the right instead of every other."""


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
