"""Exporting: memories as JSON lines, from which `import jsonl` makes the same files again."""

from __future__ import annotations

import json
from typing import Any

from memtool.memory.fields import order
from memtool.store.tree import Record
from memtool.value import plain


def row(record: Record, *, has_body: bool = True) -> dict[str, Any]:
    """Return every key of a memory in the table's order, then its body and path."""
    fields = record.memory.fields
    keys: dict[str, Any] = {key: plain(fields[key]) for key in sorted(fields, key=order)}
    if has_body:
        keys["body"] = record.memory.body
    return keys | {"path": record.path}


def line(row_: dict[str, Any]) -> str:
    """Return a row as one line of JSON in ASCII, without the line feed."""
    return json.dumps(row_, separators=(", ", ": "))
