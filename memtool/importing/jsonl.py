"""JSON lines: one JSON object a line, imported with a map of keys, and exported.

An object that `memtool export` wrote becomes exactly that memory. Any other object is read by a map
from the keys of a memory to paths in the object; what it has under a key of memtool itself is kept
where it fits. A line that cannot be read is a problem, what is no text or one JSON list is refused.
"""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from collections.abc import Collection, Iterator, Sequence
from io import BufferedReader, BytesIO
from typing import Any

from memtool.errors import MemtoolError, reason_of
from memtool.importing import originals
from memtool.importing.json_values import NoValueError, at_path, of_first_designs, value_of
from memtool.importing.originals import ForeignRecord, Original
from memtool.memory import ids, schema
from memtool.memory.fields import (
    BY_NAME,
    DEFAULT_CATEGORIES,
    OWN_PREFIX,
    REQUIRED,
    order,
)
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.schema import Problem
from memtool.store.tree import Record
from memtool.value import plain

MAX_LINE_BYTES = 4 << 20
"""A line above this length is passed over unread; a memory holds 64 KB."""
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
"""Where fields are looked for without --map: the first name that an object has. All other keys of a
memory are looked for under their own name."""
STDIN = Original("/dev/stdin", "", "stdin")
_MAP_HINT = "name another place with --map FIELD=JSON.PATH"


def drafts(
    path: str,
    top: str,
    pairs: Sequence[str] = (),
    *,
    categories: Collection[str] = DEFAULT_CATEGORIES,
    stdin: bytes | None = None,
) -> Iterator[ForeignRecord | Problem]:
    """Yield the record of each line of a file, or of `stdin`, or what is wrong with the line.

    Raises:
        MemtoolError: the path is no file of lines at all, or a pair of the map is none.
    """
    chosen = field_map(pairs)
    source = STDIN if stdin is not None else originals.original(originals.located(path), top)
    try:
        file: BufferedReader[Any] = (
            originals.open_plain(source) if stdin is None else BufferedReader(BytesIO(stdin))
        )
    except OSError as error:
        raise _no_lines(source, f"cannot be read: {reason_of(error)}") from None
    source = source.replace(is_compressed=file.peek(2)[:2] == _GZIP)
    unused = {pair.partition("=")[0] for pair in pairs}
    has_records = False
    with file:
        for number, row in _objects(source, file):
            if isinstance(row, Problem):
                yield row
                continue
            has_records = True
            unused -= {name for name in unused if at_path(row, chosen[name]) is not None}
            if not pairs and _is_exported(row):
                yield _exact(source, number, row)
            else:
                yield from _record(source, number, row, chosen, categories)
    for name in sorted(unused) if has_records else ():
        yield Problem(
            source.shown,
            0,
            "unused-map",
            f"no record has anything at {chosen[name][0]}, so {name} is set nowhere",
            "the names must be those of the JSON objects, such as meta.status",
            severity="warning",
        )


def field_map(pairs: Sequence[str], known: FieldMap = DEFAULT_MAP) -> FieldMap:
    """Return a map, by default the usual one, changed by `FIELD=JSON.PATH` pairs.

    Raises:
        MemtoolError: a pair has no `=`, or names what no memory has.
    """
    chosen = dict(known)
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals or not path.strip("."):
            raise MemtoolError(
                f"--map {pair!r} is not FIELD=JSON.PATH", hint="--map status=meta.status"
            )
        is_own = name.startswith(OWN_PREFIX) and len(name) > len(OWN_PREFIX)
        if name not in BY_NAME and name not in PSEUDO_FIELDS and not is_own:
            near = ids.nearest(name, [*BY_NAME, *PSEUDO_FIELDS], 2)
            raise MemtoolError(
                f"no memory has the field {name!r}",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else f"for a key of your own: --map {OWN_PREFIX}{pair}",
                code="unknown-key",
            )
        chosen[name] = (path,)
    return chosen


def _objects(source: Original, plain: BufferedReader[Any]) -> Iterator[tuple[int, Any]]:
    """Yield each line that is not blank with its number: a dict, or the problem that it is none.

    Raises:
        MemtoolError: the first line shows that the file is something else.
    """
    for number, line in _lines(source, plain):
        if isinstance(line, Problem):
            yield number, line
            continue
        if number == 1:
            _refuse_other(source, line)
        fault = "it is another kind of value"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            row, fault = None, str(getattr(error, "msg", "it cannot be read"))
        if not isinstance(row, dict):
            row = _problem(source, number, "not-json", f"it is no JSON object: {fault}")
        yield number, row


def objects(source: Original) -> Iterator[tuple[int, Any]]:
    """Yield each line of a file that is not blank with its number: a dict, or what is wrong.

    Raises:
        MemtoolError: the file cannot be read, or holds no lines at all.
    """
    try:
        file = originals.open_plain(source)
    except OSError as error:
        raise _no_lines(source, f"cannot be read: {reason_of(error)}") from None
    source = source.replace(is_compressed=file.peek(2)[:2] == _GZIP)
    with file:
        yield from _objects(source, file)


def _lines(source: Original, plain: BufferedReader[Any]) -> Iterator[tuple[int, bytes | Problem]]:
    file = gzip.GzipFile(fileobj=plain) if source.is_compressed else plain
    for number in itertools.count(1):
        try:
            line = file.readline(MAX_LINE_BYTES + 1)
            is_cut = len(line) > MAX_LINE_BYTES and not line.endswith(b"\n")
            rest = line
            while is_cut and rest and not rest.endswith(b"\n"):
                rest = file.readline(MAX_LINE_BYTES)
        except (OSError, EOFError, zlib.error):  # what gzip says of broken files
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
        raise _no_lines(source, "is no UTF-8 text")
    if line.lstrip().startswith(b"["):
        hint = f"jq -c '.[]' {source.shown} > records.jsonl makes lines of it"
        raise _no_lines(source, "is one JSON list", hint)


def _no_lines(source: Original, what: str, hint: str = "") -> MemtoolError:
    return MemtoolError(
        f"{source.shown} {what}",
        hint=hint or "name a file with one JSON object a line, plain or .gz",
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


def _exact(source: Original, number: int, row: dict[str, Any]) -> ForeignRecord:
    fields: Fields = {}
    for key, value in row.items():
        if isinstance(value, list):
            fields[key] = tuple(map(str, value))
        elif isinstance(value, dict):
            fields[key] = {name: str(item) for name, item in value.items()}
        elif key not in ("path", "body"):
            fields[key] = str(value)
    return _draft(source, number, row["id"], row["id"], fields, row["body"]).replace(is_exact=True)


def _record(
    source: Original,
    number: int,
    row: dict[str, Any],
    chosen: FieldMap,
    categories: Collection[str],
) -> Iterator[ForeignRecord | Problem]:
    """Yield the draft of a row, or the problem that it has; warnings may come before it."""
    fields: Fields = {}
    for name, paths in chosen.items():
        value = at_path(row, paths)
        try:
            if value is not None:
                fields[name] = value_of(name, value)
        except NoValueError as error:
            yield Problem(source.shown, number, "bad-value", f"{name}: {error}", _MAP_HINT)
            return
    for name in sorted(row.keys() - chosen.keys()):
        fitting = _own_value(name, row[name], categories)
        if isinstance(fitting, NoValueError):
            what = f"{name}: {fitting}; it is left out"
            hint = f"--map {name}=JSON.PATH names another place, --set {name}=VALUE sets it"
            yield Problem(source.shown, number, "bad-value", what, hint, severity="warning")
        elif fitting is not None:
            fields[name] = fitting
    fields = of_first_designs(row) | fields
    body = str(fields.pop("body", ""))
    newer = fields.pop("superseded_by", ())
    name = str(fields.pop("id", ""))
    title = str(fields.get("title", ""))
    key = name or f"{title} {originals.digest(body)}"
    prefix = ids.TYPE_PREFIX.get(str(fields.get("type", "")), "rec")
    word = str(fields.get("status", ""))
    if word:
        fields["status"] = originals.state(word) or "candidate"
    draft = _draft(
        source, number, key, originals.as_id(name or ids.slug(title), prefix), fields, body
    )
    if word and not originals.state(word):
        yield draft.problem(
            "unknown-state",
            f"{originals.line(word, 80)!r} is no known state, it becomes a candidate",
            f"memtool confirm {draft.id}, if it holds",
            severity="warning",
        )
    yield draft.replace(superseded_by=newer if isinstance(newer, tuple) else ())


def _draft(
    source: Original, number: int, key: str, id_: str, fields: Fields, body: str
) -> ForeignRecord:
    return ForeignRecord(key, id_, fields, body, source, (number, number), part=key)


def _own_value(
    name: str, value: Any, categories: Collection[str]
) -> FieldValue | NoValueError | None:
    """Return what is found under a name that may be a key of memtool, or why it does not fit.

    None stands for a name of another meaning, and for a key without a value.
    """
    field = BY_NAME.get(name)
    if value in (None, "", [], {}) or (field is None and not name.startswith(OWN_PREFIX)):
        return None
    try:
        found = value_of(name, value)
    except NoValueError as error:
        return error
    fault = schema.value_fault(field, found, categories) if field else ""
    return NoValueError(originals.line(fault, 200)) if fault else found


def row(record: Record, *, has_body: bool = True) -> dict[str, Any]:
    """Return every key of a memory in the table's order, then its body and path."""
    fields = record.memory.fields
    keys: dict[str, Any] = {key: plain(fields[key]) for key in sorted(fields, key=order)}
    if has_body:
        keys["body"] = record.memory.body
    return keys | {"path": record.path}


def line(row_: dict[str, Any]) -> str:
    """Return a row as one line of JSON in ASCII, without the line feed."""
    return json.dumps(row_, separators=(", ", ": "))
