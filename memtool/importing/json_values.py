"""JSON values as values of a memory's keys: texts, lists, moments, numbers.

A value of another shape than its key holds raises `NoValueError`; nothing is guessed.
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
"""Keys of the first designs of agent memories that have no effect here, and the key of the user's
own that keeps each. A numeric confidence becomes one of three, and stays as x-confidence."""
CONFIDENCE_FROM = (("high", 0.8), ("medium", 0.5), ("low", 0.0))
"""The least number, of 0 to 1, for each confidence."""
MOST_DEPTH = 6
"""Levels of tables and lists in a body that are written as text; what is deeper is JSON."""


class NoValueError(ValueError):
    """A value that its key cannot hold; the message is one clause."""


def shown(value: Any, depth: int = 0) -> str:
    """Return any value as text: lists and tables as lines, what is deep as JSON."""
    indent = "  " * depth
    if depth >= MOST_DEPTH and isinstance(value, list | dict):
        return f"{indent}{json.dumps(value, sort_keys=True)}"
    if isinstance(value, dict):
        rows = [(f"{name}: ", inner) for name, inner in value.items()]
    elif isinstance(value, list):
        rows = [("", inner) for inner in value]
    else:
        return as_text(value)
    lines = []
    for name, inner in rows:
        if isinstance(inner, list | dict):
            lines += [f"{indent}- {name.strip()}".rstrip(), shown(inner, depth + 1)]
        else:
            lines.append(f"{indent}- {name}{as_text(inner)}")
    return "\n".join(lines)


def json_of(text: str) -> Any:
    """Return what a text says in JSON, None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def parts_of(text: str) -> list[Any]:
    """Return the items of a text that is a JSON list, or has commas between them."""
    found = json_of(text) if text.startswith("[") else None
    if isinstance(found, list):
        return found
    return [part for part in (one.strip() for one in text.split(",")) if part]


def as_text(value: Any) -> str:
    """Return a scalar as text, empty for None, lists and tables."""
    if value is None or isinstance(value, list | dict | tuple):
        return ""
    return scalar(value)


def as_number(value: Any) -> float | None:
    """Return a number, or a text that is one; None for anything else, and for no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def value_of(name: str, value: Any) -> FieldValue:
    """Return a JSON value as its key wants it. Raises NoValueError where the shapes do not fit."""
    field = BY_NAME.get(name)
    kind = field.kind if field else "line"
    if name == "superseded_by" or kind in LIST_KINDS:
        return items_of(value)
    if kind == "mapping":
        if not isinstance(value, dict):
            raise NoValueError("is a table")
        return {str(key): scalar(item) for key, item in value.items()}
    if name == "body":
        if not isinstance(value, str):
            raise NoValueError("is text")
        return value
    if kind == "moment":
        return moment_of(value)
    if isinstance(value, list) and kind == "line":
        value = ", ".join(items_of(value))
    if name == "confidence" and is_share(value):
        return next(word for word, least in CONFIDENCE_FROM if value >= least)
    text = scalar(value)
    if kind in ("choice", "category"):
        return text if name == "status" else text.lower()
    return originals.line(text, 10 * schema.MAX_LINE) if kind == "line" else text


def of_first_designs(row: Mapping[str, Any]) -> Fields:
    """Return what a row has of the keys of the first designs, under keys of the user's own."""
    found: Fields = {}
    for name, own in {**FIRST_DESIGNS, "confidence": "x-confidence"}.items():
        value = row.get(name)
        if value in (None, "", [], {}) or (name == "confidence" and not is_share(value)):
            continue
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        found[own] = originals.line(text, schema.MAX_LINE)
    return found


def is_share(value: Any) -> bool:
    """Tell whether a value is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def items_of(value: Any) -> tuple[str, ...]:
    """Return the items of a list, or of text with commas between them; addresses as sources."""
    parts = value if isinstance(value, list) else scalar(value).split(",")
    texts = [scalar(part) for part in parts]
    urls = ("http://", "https://")
    return tuple(
        dict.fromkeys(f"url:{text}" if text.startswith(urls) else text for text in texts if text)
    )


def scalar(value: Any) -> str:
    """Return a scalar as text. Raises NoValueError for a list or table."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise NoValueError("is one value, not a list or table")


def moment_of(value: Any) -> str:
    """Return a date, a moment or the seconds (or milliseconds) since 1970 as RFC 3339.

    Text that is neither is returned as it is.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e14:
        return timestamps.render(int(value if abs(value) < 1e11 else value / 1000))
    text = scalar(value)
    return originals.moment(text) or text


def at_path(row: Mapping[str, Any], paths: Sequence[str]) -> Any:
    """Return the first value that one of the paths leads to and that is not empty, or None."""
    for path in paths:
        value = row[path] if path in row else _at(row, path.split("."))
        if value not in (None, "", [], {}):
            return value
    return None


def _at(value: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 6:
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value
