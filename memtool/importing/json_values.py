"""Conversion of JSON values to values of a memory's keys: texts, lists, moments, numbers.

A value of the wrong shape for its key raises `NoValueError`; nothing is guessed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from memtool.importing import originals
from memtool.memory import schema, timestamps
from memtool.memory.fields import BY_NAME, LIST_KINDS
from memtool.memory.memory import Fields, FieldValue

FIRST_DESIGNS = {
    "emotional_resonance": "x-emotional-resonance",
    "context_type": "x-context-type",
    "problem_solution": "x-problem-solution",
}
"""Keys of early memory designs without effect here, and the x- key that preserves each. A numeric
confidence becomes one of three levels, and is preserved as x-confidence."""
CONFIDENCE_MINIMUMS = (("high", 0.8), ("medium", 0.5), ("low", 0.0))
"""The minimum, from 0 to 1, of each confidence level."""
MAX_DEPTH = 6
"""Levels of nested tables and lists that are written as text in a body; deeper ones as JSON."""


class NoValueError(ValueError):
    """A value does not fit its key; the message is one clause."""


def to_text(value: Any, depth: int = 0) -> str:
    """Format any value as text: lists and tables as lines, deep ones as JSON."""
    indent = "  " * depth
    if depth >= MAX_DEPTH and isinstance(value, list | dict):
        return f"{indent}{json.dumps(value, sort_keys=True)}"
    if isinstance(value, dict):
        rows = [(f"{name}: ", inner) for name, inner in value.items()]
    elif isinstance(value, list):
        rows = [("", inner) for inner in value]
    else:
        return to_scalar_text(value)
    lines = []
    for name, inner in rows:
        if isinstance(inner, list | dict):
            lines += [f"{indent}- {name.strip()}".rstrip(), to_text(inner, depth + 1)]
        else:
            lines.append(f"{indent}- {name}{to_scalar_text(inner)}")
    return "\n".join(lines)


def parse_json(text: str) -> Any:
    """Parse a text as JSON; None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def split_items(text: str) -> list[Any]:
    """Split a text that is a JSON list or comma-separated."""
    items = parse_json(text) if text.startswith("[") else None
    if isinstance(items, list):
        return items
    return [part for part in (item.strip() for item in text.split(",")) if part]


def to_scalar_text(value: Any) -> str:
    """Return a scalar as text; empty for None, lists and tables."""
    if value is None or isinstance(value, list | dict | tuple):
        return ""
    return require_scalar(value)


def parse_number(value: Any) -> float | None:
    """Parse a finite number from 0 up, or a text with one; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def convert_value(name: str, value: Any) -> FieldValue:
    """Convert a JSON value for its key. Raises NoValueError if the shape does not fit."""
    field = BY_NAME.get(name)
    kind = field.kind if field else "line"
    if name == "superseded_by" or kind in LIST_KINDS:
        return split_texts(value)
    if kind == "mapping":
        if not isinstance(value, dict):
            raise NoValueError("is a table")
        return {str(key): require_scalar(item) for key, item in value.items()}
    if name == "body":
        if not isinstance(value, str):
            raise NoValueError("is text")
        return value
    if kind == "moment":
        return parse_moment(value)
    if isinstance(value, list) and kind == "line":
        value = ", ".join(split_texts(value))
    if name == "confidence" and is_share(value):
        return next(word for word, minimum in CONFIDENCE_MINIMUMS if value >= minimum)
    text = require_scalar(value)
    if kind in ("choice", "category"):
        return text if name == "status" else text.lower()
    return originals.to_line(text, 10 * schema.MAX_LINE) if kind == "line" else text


def read_first_designs(row: Mapping[str, Any]) -> Fields:
    """Return the values of early-design keys in a row, under x- keys."""
    fields: Fields = {}
    for name, own in {**FIRST_DESIGNS, "confidence": "x-confidence"}.items():
        value = row.get(name)
        if value in (None, "", [], {}) or (name == "confidence" and not is_share(value)):
            continue
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        fields[own] = originals.to_line(text, schema.MAX_LINE)
    return fields


def is_share(value: Any) -> bool:
    """Return whether a value is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def split_texts(value: Any) -> tuple[str, ...]:
    """Return the items of a list or of comma-separated text; URLs as sources."""
    parts = value if isinstance(value, list) else require_scalar(value).split(",")
    texts = [require_scalar(part) for part in parts]
    urls = ("http://", "https://")
    return tuple(
        dict.fromkeys(f"url:{text}" if text.startswith(urls) else text for text in texts if text)
    )


def require_scalar(value: Any) -> str:
    """Return a scalar as text. Raises NoValueError for a list or table."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise NoValueError("is one value, not a list or table")


def parse_moment(value: Any) -> str:
    """Convert a date, a moment or seconds (or milliseconds) since 1970 to RFC 3339.

    Other text is returned unchanged.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e14:
        return timestamps.render(int(value if abs(value) < 1e11 else value / 1000))
    text = require_scalar(value)
    return originals.parse_moment(text) or text


def find_at_paths(row: Mapping[str, Any], paths: Sequence[str]) -> Any:
    """Return the first non-empty value at one of the paths, or None."""
    for path in paths:
        value = row[path] if path in row else _find_at(row, path.split("."))
        if value not in (None, "", [], {}):
            return value
    return None


def _find_at(value: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 6:
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value
