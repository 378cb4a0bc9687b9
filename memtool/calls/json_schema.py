"""JSON Schema of what a call takes and returns, made of the signature of its verb.

What it takes is described by the parameters that its values are fitted to, what it returns by the
annotations of the value.
"""

from __future__ import annotations

import sys

from memtool.calls.bind import NOT_BLANK
from memtool.calls.signature import MAX_NUMBER
from memtool.value import Value, ValueType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from memtool.calls.signature import Parameter

    Schema = dict[str, Any]

_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null"}
_LISTS = ("tuple", "list", "set", "frozenset", "Sequence", "Iterable", "Iterator", "Collection")
_MAPPINGS = ("dict", "Mapping")
RESHAPED = {"SessionView": ("checkpoints",)}
"""Fields that a value gives another type in its JSON than it has itself."""


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
    schema: Schema = {"type": _TYPES[parameter.kind.__name__]}
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


def value_schema(annotation: str, module: str, values: dict[str, Schema]) -> Schema:
    """Return the schema of a value by its annotation, which is read in a module.

    The schemas of the values that it holds are added to `values`, by name. A name that is there
    for type checkers alone, such as one of a module that few verbs load, is anything.
    """
    parts = _split(annotation, "|")
    if len(parts) > 1:
        return {"anyOf": [value_schema(part, module, values) for part in parts]}
    if annotation in _TYPES:
        return {"type": _TYPES[annotation]}
    head, bracket, inner = annotation.partition("[")
    if bracket and head in _LISTS:
        return {"type": "array", "items": value_schema(_split(inner[:-1], ",")[0], module, values)}
    if bracket and head in _MAPPINGS:
        more = value_schema(_split(inner[:-1], ",")[1], module, values)
        return {"type": "object", "additionalProperties": more}
    found = getattr(sys.modules[module], annotation, None)
    if not isinstance(found, ValueType):
        return {}
    if found.__name__ not in values:
        values[found.__name__] = {}  # a value may hold others of its kind
        values[found.__name__] = _fields_schema(found, values)
    return reference("schemas", found.__name__)


def _fields_schema(kind: ValueType, values: dict[str, Schema]) -> Schema:
    """Return the schema of a value. One that shapes its JSON itself may leave out what it has."""
    about = {"description": " ".join((kind.__doc__ or "").partition("\n\n")[0].split())}
    plain = getattr(kind, "plain", None)
    plain = None if plain is Value.plain else plain
    if plain is not None and plain.__annotations__["return"] == "Any":
        return {**about, "type": "array", "items": {"type": "object"}}
    names = dict(kind.json_names)
    fields = {
        names.get(name, name): {}
        if name in RESHAPED.get(kind.__name__, ())
        else value_schema(*_annotated(kind, name), values)
        for name in kind.json_fields.split() or kind.field_names
    }
    always = [name for name in fields if name not in kind.json_optional.split()]
    required = always if plain is None else []
    return {**about, "type": "object", "properties": fields, "required": required}


def _annotated(kind: ValueType, name: str) -> tuple[str, str]:
    """Return the annotation of a field or property, and the module in which it is read."""
    for one in kind.__mro__:
        member = vars(one).get(name)
        if isinstance(member, property):
            return member.fget.__annotations__["return"], one.__module__
        if name in vars(one).get("__annotations__", {}):
            return vars(one)["__annotations__"][name], one.__module__
    raise TypeError(f"{kind.__name__} has no {name}")


def _split(text: str, sign: str) -> list[str]:
    """Split an annotation at a sign that stands outside of brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == sign and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def reference(kind: str, name: str) -> Schema:
    """Return a reference to a component of an OpenAPI document, such as the schema of a value."""
    return {"$ref": f"#/components/{kind}/{name}"}
