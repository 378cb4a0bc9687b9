"""Arguments of a model in the types of a tool, where they can only mean one thing.

Some clients send numbers, booleans and lists as strings, and one text where a list is wanted.
What is not certain stays as it is, and the binder refuses it.
"""

from __future__ import annotations

from memtool.sessions.model import parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from memtool.calls.signature import Parameter

_BOOLEANS = {"true": True, "false": False}


def read_arguments(
    parameters: Mapping[str, Parameter], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return arguments by name, each in the type of its parameter where it is clear."""
    return {
        name: _read(parameters[name], value) if name in parameters else value
        for name, value in arguments.items()
    }


def _read(parameter: Parameter, value: Any) -> Any:
    if not parameter.is_many:
        return _read_item(parameter, value)
    if isinstance(value, str) and not value.strip():
        return None
    if isinstance(value, str) and value.lstrip().startswith("["):
        parsed = parse_json(value)
        value = parsed if isinstance(parsed, list) else value
    if isinstance(value, str | int | float):
        value = [value]
    return [_read_item(parameter, item) for item in value] if isinstance(value, list) else value


def _read_item(parameter: Parameter, value: Any) -> Any:
    if not isinstance(value, str) or parameter.kind is str:
        return value
    word = value.strip().lower()
    if word in ("", "null"):
        return None
    if parameter.kind is bool:
        return _BOOLEANS.get(word, value)
    number = parse_json(word)
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return number if is_number else value
