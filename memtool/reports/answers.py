"""Answers of `--json`, read back from a file that anybody can have written.

Only the fields of the expected value are read, each of its own type; everything else is ignored.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeVar

    from memtool.value import Value

    Answer = TypeVar("Answer", bound=Value)

MAX_BYTES = 8 << 20
MAX_ITEMS = 20_000
MAX_NUMBER = 1 << 31
MAX_WORD_CHARS = 40
_WORD_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz-")


class MalformedError(Exception):
    """A part of the answer is absent, or of another type; the text names the part."""


def read_answer(
    path: str, kind: type[Answer], parts: tuple[type[Value], ...], *, directory: str, verb: str
) -> Answer:
    """Read the JSON of a value of a verb; `parts` are the classes of the values inside it.

    A relative path is below the directory.

    Raises:
        MemtoolError: there is no such file, or it does not hold such a value.
    """
    import json

    from memtool.store.files import read_regular

    try:
        data = read_regular(os.path.join(directory, path), MAX_BYTES + 1)
    except OSError:
        raise MemtoolError(
            f"{path} does not exist, or is not a regular file",
            hint=f"memtool {verb} --json",
            code="no-file",
        ) from None
    if len(data) > MAX_BYTES:
        raise refuse_answer(path, verb, f"it has more than {MAX_BYTES >> 20} MB")
    try:
        return _build(json.loads(data), kind, {part.__name__: part for part in parts})
    except MalformedError as error:
        raise refuse_answer(path, verb, str(error)) from None
    except (ValueError, RecursionError):
        raise refuse_answer(path, verb, "it is not JSON") from None


def refuse_answer(path: str, verb: str, reason: str) -> MemtoolError:
    """Build the error for a file that is not the answer of a verb; the reason quotes none of it."""
    return MemtoolError(
        f"{path} is not an answer of {verb} with --json: {reason}",
        hint=f"memtool {verb} --json",
        code="no-answer",
    )


def is_word(text: str) -> bool:
    """Return whether a text may be a code or state: at most 40 of a-z and `-`."""
    return 0 < len(text) <= MAX_WORD_CHARS and _WORD_CHARS.issuperset(text)


def _build(row: Any, kind: type[Answer], parts: Mapping[str, type[Value]]) -> Answer:
    """Build a value of a class from a JSON object."""
    if not isinstance(row, dict):
        raise MalformedError(f"a {kind.__name__} is not an object")
    names = dict(kind.json_names)
    annotations = {
        field: annotation
        for base in kind.__mro__
        for field, annotation in vars(base).get("__annotations__", {}).items()
    }
    written = kind.json_fields.split() or kind.field_names
    values = {}
    for field in kind.field_names:
        name = names.get(field, field)
        if field in written and name in row:
            values[field] = _convert(row[name], annotations[field], name, parts)
        elif field not in kind.field_defaults:
            raise MalformedError(f"a {kind.__name__} has no {name}")
    return kind(**values)


def _convert(value: Any, annotation: str, name: str, parts: Mapping[str, type[Value]]) -> Any:
    if annotation == "str" and isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if annotation == "bool" and isinstance(value, bool):
        return value
    if annotation == "int" and type(value) is int and 0 <= value < MAX_NUMBER:
        return value
    part = annotation.removeprefix("tuple[").removesuffix(", ...]")
    if part in parts and isinstance(value, list) and len(value) <= MAX_ITEMS:
        return tuple(_build(item, parts[part], parts) for item in value)
    raise MalformedError(f"{name} is of another type, or too large")
