"""JSON lines: one object a line, plain or compressed by gzip, with any names for its fields.

What `memtool export` wrote is taken as it stands. Any other object is read by a map from the keys
of a memory to paths in the object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memtool.errors import MemtoolError
from memtool.memory import identity, moments, schema
from memtool.memory.fields import BY_NAME, LIST_KINDS, OWN_PREFIX, REQUIRED
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.problem import Problem
from memtool.upkeep import jsonl, originals, wording
from memtool.upkeep.draft import Draft
from memtool.upkeep.originals import Original

PSEUDO_FIELDS = ("body", "superseded_by")
DEFAULT_MAP: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "title": ("title",),
    "body": ("text", "body", "content"),
    "type": ("type",),
    "tags": ("tags",),
    "timestamp": ("timestamp", "date", "created"),
}
"""Where fields are looked for without --map: the first name that an object has."""

FieldMap = dict[str, tuple[str, ...]]


class _NoValue(ValueError):
    """A value that its key cannot hold; the message is one clause."""


def field_map(pairs: Sequence[str]) -> FieldMap:
    """Return the default map changed by `FIELD=JSON.PATH` pairs.

    Raises:
        MemtoolError: a pair has no `=`, or names what no memory has.
    """
    chosen = dict(DEFAULT_MAP)
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals or not path.strip("."):
            raise MemtoolError(
                f"--map {pair!r} is not FIELD=JSON.PATH", hint="--map status=meta.status"
            )
        is_own = name.startswith(OWN_PREFIX) and len(name) > len(OWN_PREFIX)
        if name not in BY_NAME and name not in PSEUDO_FIELDS and not is_own:
            near = identity.nearest(name, [*BY_NAME, *PSEUDO_FIELDS], 2)
            raise MemtoolError(
                f"no memory has the field {name!r}",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else f"for a key of your own: --map {OWN_PREFIX}{pair}",
                code="unknown-key",
            )
        chosen[name] = (path,)
    return chosen


def drafts(path: str, top: str, pairs: Sequence[str] = ()) -> Iterator[Draft | Problem]:
    """Yield the record of each line, or what is wrong with the line.

    Raises:
        MemtoolError: the path is no file of lines at all, or a pair of the map is none.
    """
    chosen = field_map(pairs)
    source, file = jsonl.opened(originals.original(originals.located(path), top))
    unused = {pair.partition("=")[0] for pair in pairs}
    has_records = False
    with file:
        for number, row in jsonl.objects(source, file):
            if isinstance(row, Problem):
                yield row
                continue
            has_records = True
            unused -= {name for name in unused if _found(row, chosen[name]) is not None}
            if not pairs and _is_exported(row):
                yield _exact(source, number, row)
            else:
                yield from _record(source, number, row, chosen)
    for name in sorted(unused) if has_records else ():
        yield Problem(
            source.shown,
            0,
            "unused-map",
            f"no record has anything at {chosen[name][0]}, so {name} is set nowhere",
            "the names must be those of the JSON objects, such as meta.status",
            severity="warning",
        )


def _found(row: dict[str, Any], paths: Sequence[str]) -> Any:
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


def _is_exported(row: dict[str, Any]) -> bool:
    path, id_ = row.get("path"), row.get("id")
    return (
        all(key in row for key in REQUIRED)
        and isinstance(row.get("body"), str)
        and isinstance(id_, str)
        and isinstance(path, str)
        and path.endswith(f"/{id_}.md")
    )


def _exact(source: Original, number: int, row: dict[str, Any]) -> Draft:
    fields: Fields = {}
    for key, value in row.items():
        if key in ("path", "body"):
            continue
        if isinstance(value, list):
            fields[key] = tuple(map(str, value))
        elif isinstance(value, dict):
            fields[key] = {name: str(item) for name, item in value.items()}
        else:
            fields[key] = str(value)
    return _draft(source, number, row["id"], row["id"], fields, row["body"]).replace(is_exact=True)


def _record(
    source: Original, number: int, row: dict[str, Any], chosen: FieldMap
) -> Iterator[Draft | Problem]:
    """Yield the draft of a row, or the problem that it has; a warning may come before it."""
    fields: Fields = {}
    for name, paths in chosen.items():
        value = _found(row, paths)
        try:
            if value is not None:
                fields[name] = _value(name, value)
        except _NoValue as error:
            yield Problem(source.shown, number, "bad-value", f"{name}: {error}", _MAP_HINT)
            return
    body = str(fields.pop("body", ""))
    newer = fields.pop("superseded_by", ())
    name = str(fields.pop("id", ""))
    title = str(fields.get("title", ""))
    key = name or f"{title} {wording.digest(body)}"
    prefix = identity.TYPE_PREFIX.get(str(fields.get("type", "")), "rec")
    word = str(fields.get("status", ""))
    if word:
        fields["status"] = wording.state(word) or "candidate"
    draft = _draft(
        source, number, key, wording.as_id(name or identity.slug(title), prefix), fields, body
    )
    if word and not wording.state(word):
        yield draft.problem(
            "unknown-state",
            f"{wording.line(word, 80)!r} is no known state, it becomes a candidate",
            f"memtool confirm {draft.id}, if it holds",
            severity="warning",
        )
    yield draft.replace(superseded_by=newer if isinstance(newer, tuple) else ())


def _draft(source: Original, number: int, key: str, id_: str, fields: Fields, body: str) -> Draft:
    return Draft(
        key=key,
        id=id_,
        fields=fields,
        body=body,
        original=source,
        lines=(number, number),
        part=key,
    )


_MAP_HINT = "name another place with --map FIELD=JSON.PATH"


def _value(name: str, value: Any) -> FieldValue:
    """Return a JSON value as its key wants it. Raises _NoValue where the shapes do not fit."""
    field = BY_NAME.get(name)
    kind = field.kind if field else "line"
    if name == "superseded_by" or kind in LIST_KINDS:
        return _items(value)
    if kind == "mapping":
        if not isinstance(value, dict):
            raise _NoValue("is a table")
        return {str(key): _scalar(item) for key, item in value.items()}
    if name == "body":
        if not isinstance(value, str):
            raise _NoValue("is text")
        return value
    if kind == "moment":
        return _moment(value)
    if isinstance(value, list) and kind == "line":
        value = ", ".join(_items(value))
    text = _scalar(value)
    if kind in ("choice", "category"):
        return text if name == "status" else text.lower()
    return wording.line(text, 10 * schema.MAX_LINE) if kind == "line" else text


def _items(value: Any) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else _scalar(value).split(",")
    texts = [_scalar(part) for part in parts]
    urls = ("http://", "https://")
    return tuple(
        dict.fromkeys(f"url:{text}" if text.startswith(urls) else text for text in texts if text)
    )


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise _NoValue("is one value, not a list or table")


def _moment(value: Any) -> str:
    """Return a date, a moment or the seconds (or milliseconds) since 1970 as RFC 3339."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e14:
        return moments.render(int(value if abs(value) < 1e11 else value / 1000))
    text = _scalar(value)
    return wording.moment(text) or text
