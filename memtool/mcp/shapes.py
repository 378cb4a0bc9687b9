"""Shapes: what the structured answer of each tool holds at least, as JSON Schema.

The same shapes as those of `--json`. More may be added to them; nothing is taken away or renamed.
A shape is written as Python shows it: `str`, `[item]`, `{"key": value}`, `{str: value}` for any
keys, and `Or(str, None)`.
"""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", None: "null"}


class Or(Value):
    """A value that may also be null."""

    shape: Any


ROW = {
    "id": str, "title": str, "type": str, "category": str, "status": str, "confidence": str,
    "path": str, "timestamp": str, "commit": Or(str), "trust": str,
}  # fmt: skip
WRITTEN = {"id": str, "path": str, "commit": Or(str), "dry_run": bool}
CHANGED = WRITTEN | {"changes": {str: [str]}}
PART = {"name": str, "value": str, "commit": str, "author": str, "date": str, "state": str}
PROBLEM = {
    "path": str, "line": int, "code": str, "severity": str, "id": str, "message": str, "hint": str,
}  # fmt: skip
CONFLICT = {"kind": str, "ids": [str], "reason": str, "accepted": bool}

_SHAPES: dict[str, dict[str, Any]] = {
    "search": {
        "query": str, "total": int, "elapsed_ms": float, "freshness": str, "depth": str,
        "results": [ROW | {"score": float, "snippet": str, "factors": {str: float}}],
    },
    "show": ROW | {
        "body": str, "superseded_by": [str], "heads": [str], "fingerprint": str, "state": str,
        "expires_at": Or(str), "author": str, "citation": str,
    },
    "list": {"total": int, "memories": [ROW]},
    "inject": {
        "budget": {"total": int, "pinned": int, "retrieval": int, "summary": int, "used": int},
        "items": [{
            "id": str, "tier": str, "score": Or(float), "tokens": int, "commit": Or(str),
            "trust": str, "drift": Or(float), "conflicts": [str],
        }],
        "text": str,
    },
    "why": {"id": str, "title": str, "path": str, "commit": str, "trust": str, "sources": [{}]},
    "log": {
        "id": str, "removed": bool, "more": bool,
        "events": [{"kind": str, "id": str, "title": str, "commit": str, "author": str,
                    "date": str}],
    },
    "blame": {"id": str, "path": str, "fields": [PART], "sections": [PART]},
    "diff": {"from": str, "to": str, "changes": [{"kind": str, "id": str}]},
    "conflicts": {"conflicts": [CONFLICT]},
    "check": {"checked": int, "problems": [PROBLEM]},
    "status": {
        "directory": str, "revision": str, "total": int, "alive": int, "superseded": int,
        "types": {str: int}, "statuses": {str: int}, "uncommitted": [str], "candidates": [str],
        "problems": [PROBLEM],
    },
    "remember": WRITTEN,
    "new": WRITTEN,
    "supersede": WRITTEN,
    "resolve": {"resolved": [{"ids": [str], "kept": str}]},
    "confirm": CHANGED,
    "pin": CHANGED,
    "unpin": CHANGED,
    "restore": CHANGED,
    "forget": {"forgotten": [CHANGED]},
}  # fmt: skip


def schema(shape: Any) -> dict[str, Any]:
    """Return the JSON Schema of a shape: what it names is required, what it does not may be."""
    if isinstance(shape, Or):
        return {"type": [_NAMES[shape.shape], "null"]}
    if isinstance(shape, list):
        return {"type": "array", "items": schema(shape[0])}
    if not isinstance(shape, dict):
        return {"type": _NAMES[shape]}
    if str in shape:
        return {"type": "object", "additionalProperties": schema(shape[str])}
    properties = {name: schema(inner) for name, inner in shape.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}


SHAPES: dict[str, dict[str, Any]] = {name: schema(shape) for name, shape in _SHAPES.items()}
