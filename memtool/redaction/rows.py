"""The rows by which detectors judge: lists of words, and tables of patterns.

Each file of `data/` says what its rows are.
"""

from __future__ import annotations

from memtool import tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LISTS = tables.group_rows("redaction/words")


def read_list(name: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(_LISTS[name])


def read_patterns(file_name: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table of a file, with the lines of their patterns joined."""
    rows_by_table: dict[str, list[dict[str, Any]]] = tables.read_toml(f"redaction/{file_name}")
    for rows in rows_by_table.values():
        for row in rows:
            row["pattern"] = "".join(map(str.strip, row["pattern"].split("\n")))
    return rows_by_table
