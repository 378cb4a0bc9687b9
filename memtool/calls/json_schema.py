"""JSON Schema of the arguments and results of a call, from the signature of its verb.

The schema of the arguments comes from the parameters, that of the result from the annotations of
the returned value.
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
"""Fields whose type in JSON differs from their annotation, by value class."""


def build_object_schema(parameters: Mapping[str, Parameter], *, is_bounded: bool) -> Schema:
    """Build the schema of an object with a property for each parameter, and no others.

    `is_bounded` adds the limits of the values.
    """
    # Programs rely on the limits, but for a model that reads the schema they only cost tokens.
    return {
        "type": "object",
        "properties": {
            name: build_parameter_schema(parameter, is_bounded=is_bounded)
            for name, parameter in parameters.items()
        },
        "required": [name for name, parameter in parameters.items() if parameter.is_required],
        "additionalProperties": False,
    }


def build_parameter_schema(parameter: Parameter, *, is_bounded: bool) -> Schema:
    """Build the schema of a parameter's value, with its help as the description."""
    schema: Schema = {"type": _TYPES[parameter.kind.__name__]}
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if is_bounded:
        schema |= _build_bounds(parameter)
    if parameter.is_many:
        # A model needs to know one form only. Limits of texts do not concern a list.
        is_text = parameter.kind is str and not parameter.choices
        takes_text = is_bounded and parameter.is_positional and is_text
        either = schema | {"type": ["array", "string"]} if takes_text else {"type": "array"}
        schema = either | {"items": schema}
        if is_bounded and parameter.max_items:
            schema["maxItems"] = parameter.max_items
        if is_bounded and parameter.is_required:
            schema["minItems"] = 1
    if parameter.default not in (None, "", (), False):
        schema["default"] = parameter.default
    # The help of an option lists its choices; a model has them already.
    is_known = (
        not is_bounded and parameter.choices and all(map(parameter.help.count, schema["enum"]))
    )
    return schema if is_known else schema | {"description": parameter.help}


def _build_bounds(parameter: Parameter) -> Schema:
    """Build the limits of one value, also of each value in a list."""
    if parameter.kind in (int, float):
        least = 0 if parameter.zero_means else -MAX_NUMBER
        return {"maximum": MAX_NUMBER, "minimum": least}
    if parameter.kind is bool or parameter.choices:
        return {}
    bounds: Schema = {"maxLength": parameter.max_chars}
    if parameter.keys:
        bounds["pattern"] = f"^({'|'.join(parameter.keys)})="
    elif not parameter.takes_blank:
        bounds |= {"minLength": 1, "pattern": NOT_BLANK}
    return bounds


def build_value_schema(annotation: str, module: str, values: dict[str, Schema]) -> Schema:
    """Build the schema for an annotation, whose names are looked up in `module`.

    The schemas of value classes are added to `values`, by name. A name that is imported for type
    checkers only gets an empty schema, which allows anything.
    """
    parts = _split(annotation, "|")
    if len(parts) > 1:
        return {"anyOf": [build_value_schema(part, module, values) for part in parts]}
    if annotation in _TYPES:
        return {"type": _TYPES[annotation]}
    head, bracket, inner = annotation.partition("[")
    if bracket and head in _LISTS:
        return {
            "type": "array",
            "items": build_value_schema(_split(inner[:-1], ",")[0], module, values),
        }
    if bracket and head in _MAPPINGS:
        element = build_value_schema(_split(inner[:-1], ",")[1], module, values)
        return {"type": "object", "additionalProperties": element}
    value_type = getattr(sys.modules[module], annotation, None)
    if not isinstance(value_type, ValueType):
        return {}
    if value_type.__name__ not in values:
        values[value_type.__name__] = {}  # a value class may contain itself
        values[value_type.__name__] = _build_fields_schema(value_type, values)
    return build_reference("schemas", value_type.__name__)


def build_result_schema(annotation: str, module: str) -> Schema:
    """Build the schema of a verb's value as an object that stands alone, without descriptions.

    No field is required: an interface may leave some out.
    """
    values: dict[str, Schema] = {}
    whole = build_value_schema(annotation, module, values)
    return {"type": "object", **_move(whole), "$defs": _move(values)}


def _move(schema: Any) -> Any:
    """Return a part of a schema whose references are to `$defs`."""
    if isinstance(schema, list):
        return [_move(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(reference := schema.get("$ref"), str):
        return {"$ref": reference.replace("#/components/schemas/", "#/$defs/")}
    is_class = isinstance(schema.get("properties"), dict)
    dropped = ("description", "required") if is_class else ()
    return {name: _move(item) for name, item in schema.items() if name not in dropped}


def _build_fields_schema(kind: ValueType, values: dict[str, Schema]) -> Schema:
    """Build the schema of a value class."""
    # No field is required if the class has its own `plain`, which may leave fields out.
    about = {"description": " ".join((kind.__doc__ or "").partition("\n\n")[0].split())}
    plain = getattr(kind, "plain", None)
    plain = None if plain is Value.plain else plain
    if plain is not None and plain.__annotations__["return"] == "Any":
        return {**about, "type": "array", "items": {"type": "object"}}
    names = dict(kind.json_names)
    fields = {
        names.get(name, name): {}
        if name in RESHAPED.get(kind.__name__, ())
        else build_value_schema(*_find_annotation(kind, name), values)
        for name in kind.json_fields.split() or kind.field_names
    }
    optional = {names.get(name, name) for name in kind.json_optional.split()}
    always = [name for name in fields if name not in optional]
    required = always if plain is None else []
    return {**about, "type": "object", "properties": fields, "required": required}


def _find_annotation(kind: ValueType, name: str) -> tuple[str, str]:
    """Return the annotation of a field or property, and the module for its names."""
    for base in kind.__mro__:
        member = vars(base).get(name)
        if isinstance(member, property):
            return member.fget.__annotations__["return"], base.__module__
        if name in vars(base).get("__annotations__", {}):
            return vars(base)["__annotations__"][name], base.__module__
    raise TypeError(f"{kind.__name__} has no {name}")


def _split(text: str, sign: str) -> list[str]:
    """Split an annotation at a sign, except inside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == sign and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def build_reference(kind: str, name: str) -> Schema:
    """Build a reference to a component of an OpenAPI document, such as a schema."""
    return {"$ref": f"#/components/{kind}/{name}"}
