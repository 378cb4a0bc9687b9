"""JSON Schema of what a call takes, made of the parameters that its values are fitted to."""

from __future__ import annotations

from memtool.calls.bind import NOT_BLANK
from memtool.calls.signature import MAX_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from memtool.calls.signature import Parameter

    Schema = dict[str, Any]

_TYPES: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def object_schema(parameters: Mapping[str, Parameter], *, is_bounded: bool) -> Schema:
    """Return the schema of an object with a property for each parameter, and no others.

    `is_bounded` adds the bounds that are checked: programs rely on them, and a model that reads the
    schema pays for them.
    """
    return {
        "type": "object",
        "properties": {
            name: parameter_schema(parameter, is_bounded=is_bounded)
            for name, parameter in parameters.items()
        },
        "required": [name for name, parameter in parameters.items() if parameter.is_required],
        "additionalProperties": False,
    }


def parameter_schema(parameter: Parameter, *, is_bounded: bool) -> Schema:
    """Return the schema of the value of a parameter, with its help as the description."""
    schema: Schema = {"type": _TYPES[parameter.kind]}
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if is_bounded:
        schema |= _bounds(parameter)
    if parameter.is_many:
        schema = {"type": "array", "items": schema}
        if is_bounded and parameter.max_items:
            schema["maxItems"] = parameter.max_items
        if is_bounded and parameter.is_required:
            schema["minItems"] = 1
    if parameter.default not in (None, "", (), False):
        schema["default"] = parameter.default
    return schema | {"description": parameter.help}


def _bounds(parameter: Parameter) -> Schema:
    """Return the bounds of one value, or of one of many."""
    if parameter.kind in (int, float):
        least = 0 if parameter.zero_means else -MAX_NUMBER
        return {"maximum": MAX_NUMBER, "minimum": least}
    if parameter.kind is bool or parameter.choices:
        return {}
    bounds: Schema = {"maxLength": parameter.max_chars}
    if parameter.keys:
        bounds["pattern"] = f"^({'|'.join(parameter.keys)})="
    elif not parameter.takes_blank and not parameter.is_many:
        bounds |= {"minLength": 1, "pattern": NOT_BLANK}
    return bounds
