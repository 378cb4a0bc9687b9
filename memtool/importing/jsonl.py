"""JSON lines: one JSON object a line, imported with a map of keys, and exported.

An object that `memtool export` wrote becomes exactly that memory. Any other object is read with a
map from the keys of a memory to paths in the object; values under other keys of memtool are
imported if they fit. A line that cannot be read is a problem; a file that is not text, or one JSON
list, is refused.
"""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from collections.abc import Collection, Iterator, Sequence
from io import BufferedReader, BytesIO
from typing import Any

from memtool.errors import MemtoolError, find_reason
from memtool.importing import originals
from memtool.importing.json_values import (
    NoValueError,
    convert_value,
    find_at_paths,
    read_first_designs,
)
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.memory import ids, schema
from memtool.memory.fields import (
    BY_NAME,
    OWN_PREFIX,
    REQUIRED,
    order,
)
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.schema import Problem
from memtool.store.tree import Record
from memtool.value import plain

MAX_LINE_BYTES = 4 << 20
"""Limit of a line; a longer one is skipped. A memory has at most 64 KB."""
_DECODER = json.JSONDecoder()
_GZIP = b"\x1f\x8b"
PSEUDO_FIELDS = ("body", "superseded_by")
FieldMap = dict[str, tuple[str, ...]]
DEFAULT_MAP: FieldMap = {
    "id": ("id",),
    "title": ("title",),
    "body": ("text", "body", "content"),
    "type": ("type",),
    "tags": ("tags",),
    "timestamp": ("timestamp", "date", "created"),
}
"""The map without --map: the first name that an object has counts. All other keys of a memory are
read under their own name."""
STDIN = Original("/dev/stdin", "", "stdin")
_MAP_HINT = "name another place with --map FIELD=JSON.PATH"


def drafts(path: str, request: ImportRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the record, or the problem, of each line of a file or of stdin.

    Raises:
        MemtoolError: the path is not a file of lines.
    """
    places: FieldMap = DEFAULT_MAP | {key: tuple(paths) for key, paths in request.places.items()}
    stdin = request.stdin
    is_file = stdin is None
    source = originals.build_original(originals.locate(path), request.top) if is_file else STDIN
    try:
        file: BufferedReader[Any] = (
            originals.open_plain(source) if stdin is None else BufferedReader(BytesIO(stdin))
        )
    except OSError as error:
        raise _not_lines_error(source, f"cannot be read: {find_reason(error)}") from None
    source = source.replace(is_compressed=file.peek(2)[:2] == _GZIP)
    unused = set(request.places)
    has_records = False
    with file:
        for number, row in _parse_objects(source, file):
            if isinstance(row, Problem):
                yield row
                continue
            has_records = True
            unused -= {name for name in unused if find_at_paths(row, places[name]) is not None}
            if not request.places and _is_exported(row):
                yield _build_exact(source, number, row)
            else:
                yield from _build_record(source, number, row, places, request.categories)
    for name in sorted(unused) if has_records else ():
        yield Problem(
            source.shown,
            0,
            "unused-map",
            f"no record has anything at {places[name][0]}, so {name} is set nowhere",
            "the names must be those of the JSON objects, such as meta.status",
            severity="warning",
        )


def build_field_map(pairs: Sequence[str]) -> FieldMap:
    """Build a map of `FIELD=JSON.PATH` pairs.

    Raises:
        MemtoolError: a pair has no `=`, or an unknown field.
    """
    chosen: FieldMap = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals or not path.strip("."):
            raise MemtoolError(
                f"--map takes FIELD=JSON.PATH, not {pair!r}", hint="--map status=meta.status"
            )
        is_own = name.startswith(OWN_PREFIX) and len(name) > len(OWN_PREFIX)
        if name not in BY_NAME and name not in PSEUDO_FIELDS and not is_own:
            near = ids.find_nearest(name, [*BY_NAME, *PSEUDO_FIELDS], 2)
            raise MemtoolError(
                f"unknown field {name!r}",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else f"for a key of your own: --map {OWN_PREFIX}{pair}",
                code="unknown-key",
            )
        chosen[name] = (path,)
    return chosen


def _parse_objects(source: Original, plain: BufferedReader[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the number and object of each line that is not blank, or a problem.

    Raises:
        MemtoolError: the first line shows that the file is not JSON lines.
    """
    for number, line in _read_lines(source, plain):
        if isinstance(line, Problem):
            yield number, line
            continue
        if number == 1:
            _refuse_other(source, line)
        rows, fault = _decode_line(line)
        for row in rows:
            yield number, row
        if fault:
            yield number, _problem(source, number, "not-json", fault)


def _decode_line(line: bytes) -> tuple[list[dict[str, Any]], str]:
    """Return the objects of a line, more than one in a damaged file, and what is wrong with it."""
    rows: list[dict[str, Any]] = []
    fault = ""
    values: list[Any] = []
    try:
        values.append(json.loads(line))
    except (ValueError, RecursionError) as error:
        fault = f"it is no JSON object: {getattr(error, 'msg', 'it cannot be read')}"
        if getattr(error, "msg", "") == "Extra data":
            values, reason = _decode_all(line.decode(json.detect_encoding(line)).strip())
            fault = f"after {len(values)} objects comes something else: {reason}" if reason else ""
    for value in values:
        if isinstance(value, dict):
            rows.append(value)
        else:
            fault = "it is no JSON object: it is another kind of value"
    return rows, fault


def _decode_all(text: str) -> tuple[list[Any], str]:
    """Return the JSON values that follow each other in a text, and why the last one is broken."""
    values: list[Any] = []
    at = 0
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            return values, str(getattr(error, "msg", "it cannot be read"))
        values.append(value)
        while text[at : at + 1].isspace():
            at += 1
    return values, ""


def read_objects(source: Original) -> Iterator[tuple[int, Any]]:
    """Yield the number and object of each line of a file that is not blank, or a problem.

    Raises:
        MemtoolError: the file cannot be read, or is not JSON lines.
    """
    try:
        file = originals.open_plain(source)
    except OSError as error:
        raise _not_lines_error(source, f"cannot be read: {find_reason(error)}") from None
    source = source.replace(is_compressed=file.peek(2)[:2] == _GZIP)
    with file:
        yield from _parse_objects(source, file)


def _read_lines(
    source: Original, plain: BufferedReader[Any]
) -> Iterator[tuple[int, bytes | Problem]]:
    file = gzip.GzipFile(fileobj=plain) if source.is_compressed else plain
    for number in itertools.count(1):
        try:
            line = file.readline(MAX_LINE_BYTES + 1)
            is_cut = len(line) > MAX_LINE_BYTES and not line.endswith(b"\n")
            chunk = line
            while is_cut and chunk and not chunk.endswith(b"\n"):
                chunk = file.readline(MAX_LINE_BYTES)
        except (OSError, EOFError, zlib.error):  # gzip raises these for broken files
            what = "the compressed file is broken here, the rest is lost"
            yield number, _problem(source, number, "unreadable", what)
            return
        if not line:
            return
        if is_cut:
            what = f"the line is longer than {MAX_LINE_BYTES:,} bytes"
            yield number, _problem(source, number, "too-large", what)
        elif line.strip():
            yield number, line


def _problem(source: Original, number: int, code: str, what: str) -> Problem:
    return Problem(source.shown, number, code, what, "correct or remove the line")


def _refuse_other(source: Original, line: bytes) -> None:
    try:
        is_text = "\0" not in line.decode()
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        raise _not_lines_error(source, "is not UTF-8 text")
    if line.lstrip().startswith(b"["):
        hint = f"jq -c '.[]' {source.shown} > records.jsonl makes lines of it"
        raise _not_lines_error(source, "is one JSON list", hint)


def _not_lines_error(source: Original, what: str, hint: str = "") -> MemtoolError:
    return MemtoolError(
        f"{source.shown} {what}",
        hint=hint or "name a file with one JSON object per line, plain or .gz",
        code="no-file",
    )


def _is_exported(row: dict[str, Any]) -> bool:
    path, id_ = row.get("path"), row.get("id")
    return (
        all(key in row for key in REQUIRED)
        and isinstance(row.get("body"), str)
        and isinstance(id_, str)
        and isinstance(path, str)
        and path.endswith(f"/{id_}.md")
    )


def _build_exact(source: Original, number: int, row: dict[str, Any]) -> ForeignRecord:
    fields: Fields = {}
    for key, value in row.items():
        if isinstance(value, list):
            fields[key] = tuple(map(str, value))
        elif isinstance(value, dict):
            fields[key] = {name: str(item) for name, item in value.items()}
        elif key not in ("path", "body"):
            fields[key] = str(value)
    return _build_draft(source, number, row["id"], row["id"], fields, row["body"]).replace(
        is_exact=True
    )


def _build_record(
    source: Original,
    number: int,
    row: dict[str, Any],
    chosen: FieldMap,
    categories: Collection[str],
) -> Iterator[ForeignRecord | Problem]:
    """Yield the record of a row, or its problem; warnings may come first."""
    fields: Fields = {}
    for name, paths in chosen.items():
        value = find_at_paths(row, paths)
        try:
            if value is not None:
                fields[name] = convert_value(name, value)
        except NoValueError as error:
            yield Problem(source.shown, number, "bad-value", f"{name}: {error}", _MAP_HINT)
            return
    for name in sorted(row.keys() - chosen.keys()):
        fitting = _convert_own(name, row[name], categories)
        if isinstance(fitting, NoValueError):
            what = f"{name}: {fitting}; it is left out"
            hint = f"--map {name}=JSON.PATH names another place, --set {name}=VALUE sets it"
            yield Problem(source.shown, number, "bad-value", what, hint, severity="warning")
        elif fitting is not None:
            fields[name] = fitting
    fields = read_first_designs(row) | fields
    body = str(fields.pop("body", ""))
    newer = fields.pop("superseded_by", ())
    name = str(fields.pop("id", ""))
    title = str(fields.get("title", ""))
    key = name or f"{title} {originals.digest(body)}"
    prefix = ids.TYPE_PREFIX.get(str(fields.get("type", "")), "rec")
    word = str(fields.get("status", ""))
    if word:
        fields["status"] = originals.find_state(word) or "candidate"
    draft = _build_draft(
        source, number, key, originals.to_id(name or ids.make_slug(title), prefix), fields, body
    )
    if word and not originals.find_state(word):
        yield draft.problem(
            "unknown-state",
            f"{originals.to_line(word, 80)!r} is no known state, it becomes a candidate",
            f"memtool confirm {draft.id}, if it holds",
            severity="warning",
        )
    yield draft.replace(superseded_by=newer if isinstance(newer, tuple) else ())


def _build_draft(
    source: Original, number: int, key: str, id_: str, fields: Fields, body: str
) -> ForeignRecord:
    return ForeignRecord(key, id_, fields, body, source, (number, number), part=key)


def _convert_own(
    name: str, value: Any, categories: Collection[str]
) -> FieldValue | NoValueError | None:
    """Convert a value whose name may be a key of memtool, or return why it does not fit.

    None if the name is not a key, or the value is empty.
    """
    field = BY_NAME.get(name)
    if value in (None, "", [], {}) or (field is None and not name.startswith(OWN_PREFIX)):
        return None
    try:
        converted = convert_value(name, value)
    except NoValueError as error:
        return error
    fault = schema.find_value_fault(field, converted, categories) if field else ""
    return NoValueError(originals.to_line(fault, 200)) if fault else converted


def build_row(record: Record) -> dict[str, Any]:
    """Return all keys of a memory in the order of the table, then its body and path."""
    fields = record.memory.fields
    keys: dict[str, Any] = {key: plain(fields[key]) for key in sorted(fields, key=order)}
    return keys | {"body": record.memory.body, "path": record.path}


def format_line(row_: dict[str, Any]) -> str:
    """Format a row as one line of ASCII JSON, without a line feed."""
    return json.dumps(row_, separators=(", ", ": "))
