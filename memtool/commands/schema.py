"""`memtool schema`: the JSON Schema of a memory's frontmatter, made from the table of fields.

It covers the rules of `memtool check` for single keys, so that an editor marks faults while one
types. Rules that need another key, another file or git are left to `check`.
"""

from __future__ import annotations

import json
from typing import Any

from memtool.commands._layout import Layout
from memtool.memory.fields import (
    CAUSE_KINDS,
    FIELDS,
    LIST_KINDS,
    OWN_PREFIX,
    REQUIRED,
    SOURCE_KINDS,
    Field,
)
from memtool.memory.schema import MAX_ITEMS, MAX_LINE
from memtool.store.context import Context
from memtool.value import Value

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_ID_PATTERN = "[a-z0-9][a-z0-9._-]{2,119}$"
_ID = {"type": "string", "pattern": f"^{_ID_PATTERN}"}
_DAY = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"
# memtool reads a line as text; an editor may parse it as a number or a boolean.
_LINE = {"type": ["string", "number", "boolean"], "pattern": r"\S", "maxLength": MAX_LINE}
_AMOUNT = {"type": ["number", "string"], "minimum": 0, "pattern": "^[0-9.eE+-]+$"}

SHAPES: dict[str, dict[str, Any]] = {
    "id": _ID,
    "moment": {"type": "string", "pattern": f"^{_DAY}[Tt ]{_TIME}$"},
    "when": {"type": "string", "pattern": f"^{_DAY}([Tt ]{_TIME})?$"},
    "line": _LINE,
    "flag": {"enum": [True, False, "true", "false"]},
    "count": {"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+$"},
    "number": _AMOUNT | {"maximum": 1_000_000},
    "share": _AMOUNT | {"maximum": 1},
    "words": _LINE,
    "paths": {
        "type": "string",
        "pattern": r"^(?!\.\.(/|$))(?!.*/\.\.(/|$))[^/~\\][^\\]*$",
        "maxLength": MAX_LINE,
    },
    "ids": _ID,
    "sources": {
        "type": "string",
        "pattern": rf"^({'|'.join(SOURCE_KINDS)}):.*\S",
        "maxLength": MAX_LINE,
    },
    "causes": {"type": "string", "pattern": rf"^({'|'.join(CAUSE_KINDS)}):{_ID_PATTERN}"},
}
"""The schema of a value of each kind; for a list kind, of one item."""


class FrontmatterSchema(Value):
    """A JSON Schema of draft 2020-12."""

    schema: dict[str, Any]

    def plain(self) -> dict[str, Any]:
        """Return the schema itself."""
        return self.schema


def schema(context: Context) -> FrontmatterSchema:
    """Print the JSON Schema of the keys of a memory, for editors that check YAML.

    It knows the categories of this repository. memtool check also checks the file name, the text,
    other memories and git.

    Example:
        memtool schema > memory.schema.json
    """
    properties = {
        field.name: _build_property(field, context.settings.categories) for field in FIELDS
    }
    own_key = _LINE | {"description": "a key of your own: one line that memtool never interprets"}
    del own_key["pattern"]
    return FrontmatterSchema(
        {
            "$schema": DRAFT,
            "title": "The frontmatter of a memory",
            "type": "object",
            "properties": properties,
            "patternProperties": {f"^{OWN_PREFIX}[A-Za-z0-9_-]+$": own_key},
            "required": list(REQUIRED),
            "additionalProperties": False,
        }
    )


def render(frontmatter: FrontmatterSchema, _layout: Layout) -> str:
    """Return the schema as JSON."""
    return json.dumps(frontmatter.schema, indent=2)


def _build_property(field: Field, categories: dict[str, Any]) -> dict[str, Any]:
    if field.kind in ("choice", "category"):
        shape: dict[str, Any] = {"enum": list(field.choices or categories)}
    elif field.kind == "mapping":
        shape = {
            "type": "object",
            "properties": {
                name: SHAPES["moment" if name == "at" else "line"] for name in field.choices
            },
            "additionalProperties": False,
        }
        if "saw" in field.choices:  # `saw` is alone until the first confirmation
            shape["anyOf"] = [{"required": ["at"]}, {"required": ["saw"], "maxProperties": 1}]
        else:
            shape["required"] = ["at"]
    elif field.kind in LIST_KINDS:
        shape = {"type": "array", "items": SHAPES[field.kind], "maxItems": MAX_ITEMS}
        if field.required:
            shape["minItems"] = 1
    else:
        shape = dict(SHAPES[field.kind])
    if field.default:
        shape["default"] = field.default
    return shape | {"description": field.doc}
