"""JSON stores: documents and lines in which other tools keep their memories.

A document is a list of entries, a table with such a list under a name such as `memories`, or a
table of entries by id. It is read entry by entry, each with its line, so that the entries before a
broken place are imported. Exports of mem0 are such documents. The knowledge graph of the MCP memory
server is a document or lines; this module also interprets its entries.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from memtool import tables
from memtool.errors import MemtoolError
from memtool.importing import entries, jsonl, originals
from memtool.importing.entries import StoreEntry, find_relation, to_snake_case
from memtool.importing.json_values import to_scalar_text
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.memory import ids
from memtool.memory.schema import Problem
from memtool.value import Value

MAX_DOCUMENT_BYTES = 64 << 20
"""Limit of a document; larger ones must be JSON lines."""
SECTIONS = frozenset(tables.read_words("importing/sections"))
"""Names of lists in which a plain text is an entry."""
UNREVIEWED_DEFAULTS = {"status": "candidate", "confidence": "low"}
"""Defaults for entries that a model wrote without review."""
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_REASONS = {ValueError: "a number of too many digits", RecursionError: "too many levels"}


_LINES_HINT = "memtool import jsonl reads a file with one document a line"


class JsonRow(Value):
    """A value of a document, with the name of its list or table, its own name, and its lines."""

    section: str
    name: str
    value: Any
    lines: tuple[int, int]


class _LineCounter:
    """Finds the lines of increasing positions in a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1

    def find_line(self, at: int) -> int:
        self._line += self._text.count("\n", self._at, max(at, self._at))
        self._at = max(at, self._at)
        return self._line


def read_rows(source: Original, text: str) -> Iterator[JsonRow | Problem]:
    """Yield the entries of a document, and a problem if it is broken."""
    counter = _LineCounter(text)
    at = _skip_blanks(text, 0)
    try:
        if text[at : at + 1] == "[":
            end = yield from _read_list(text, at, "", counter)
        elif text[at : at + 1] == "{":
            end = yield from _read_table(text, at, "", counter)
        else:
            what = "it is no JSON list or table" if text.strip() else "the file is empty"
            yield Problem(source.shown, 1, "not-json", what, "name a JSON document")
            return
        following = _skip_blanks(text, end)
        if text[at : at + 1] == text[following : following + 1] == "{":
            what = "one document follows another, as in JSON lines, so only the first is read"
            yield Problem(source.shown, counter.find_line(following), "not-json", what, _LINES_HINT)
        elif following < len(text):
            raise json.JSONDecodeError("something follows the document", text, end)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "") or _REASONS.get(type(error), str(error))
        line = counter.find_line(getattr(error, "pos", 0))
        what = f"the document is broken here, and what follows is lost: {reason}"
        yield Problem(source.shown, line, "not-json", what, "mend the document, or export it again")


def _skip_blanks(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _read_list(
    text: str, at: int, section: str, counter: _LineCounter
) -> Generator[JsonRow, None, int]:
    """Yield the items of the list at a position; return its end."""
    at = _skip_blanks(text, at + 1)
    while text[at : at + 1] != "]":
        start = counter.find_line(at)
        value, end = _DECODER.raw_decode(text, at)
        yield JsonRow(section, "", value, (start, counter.find_line(end)))
        at = _find_next(text, end, "]")
    return at + 1


def _read_table(
    text: str, at: int, section: str, counter: _LineCounter
) -> Generator[JsonRow, None, int]:
    """Yield the values of the table at a position (one level deeper at the top); return its end."""
    at = _skip_blanks(text, at + 1)
    while text[at : at + 1] != "}":
        name, end = _DECODER.raw_decode(text, at)
        at = _skip_blanks(text, end)
        if not isinstance(name, str) or text[at : at + 1] != ":":
            raise json.JSONDecodeError("a name and a colon are expected", text, at)
        at = _skip_blanks(text, at + 1)
        opening = text[at : at + 1]
        if not section and opening == "[":
            end = yield from _read_list(text, at, name, counter)
        elif not section and opening == "{":
            end = yield from _read_table(text, at, name, counter)
        else:
            start = counter.find_line(at)
            value, end = _DECODER.raw_decode(text, at)
            yield JsonRow(section, name, value, (start, counter.find_line(end)))
        at = _find_next(text, end, "}")
    return at + 1


def _find_next(text: str, at: int, closing: str) -> int:
    """Return the position of the next item, or of the closing bracket."""
    at = _skip_blanks(text, at)
    if text[at : at + 1] == ",":
        at = _skip_blanks(text, at + 1)
        if text[at : at + 1] == closing:
            raise json.JSONDecodeError("a comma too many", text, at)
        return at
    if text[at : at + 1] != closing:
        raise json.JSONDecodeError(f"a comma or {closing} is expected", text, at)
    return at


Drafts = Iterator[ForeignRecord | Problem]
Rows = Iterable[JsonRow | Problem]


def drafts(path: str, request: ImportRequest) -> Drafts:
    """Yield the entries of any JSON document, or of each document below a folder."""
    return read_files(path, request, lambda rows_, source: _read_generic(rows_, source, {}))


def mem0_drafts(path: str, request: ImportRequest) -> Drafts:
    """Yield the memories of an export of mem0, which a model extracted from conversations."""
    return read_files(
        path, request, lambda rows_, source: _read_generic(rows_, source, UNREVIEWED_DEFAULTS)
    )


def graph_drafts(path: str, request: ImportRequest) -> Drafts:
    """Yield the entities of the MCP memory server's knowledge graph, with their relations."""
    return read_files(path, request, _read_graph, is_lines=True)


def read_files(
    path: str,
    request: ImportRequest,
    read: Callable[[Rows, Original], Iterator[StoreEntry | Problem]],
    *,
    is_lines: bool = False,
) -> Drafts:
    """Yield the records that `read` builds from a file, or from each file below a folder.

    Raises:
        MemtoolError: a file is missing, or too large for a document.
    """
    for source in _find_files(path, request, (".jsonl", ".json") if is_lines else (".json",)):
        if isinstance(source, Problem):
            yield source
            continue
        file_rows: Rows
        if is_lines and not _is_document(source):
            file_rows = _read_lines(source)
        else:
            text = _read_document(source)
            file_rows = [text] if isinstance(text, Problem) else read_rows(source, text)
        yield from entries.build_records(list(read(file_rows, source)), request)


def _find_files(
    path: str, request: ImportRequest, ends: tuple[str, ...]
) -> Iterator[Original | Problem]:
    place = originals.locate(path)
    if not os.path.isdir(place):
        yield originals.build_original(place, request.top)
        return
    yield from originals.find_files(place, request.top, lambda name: name.lower().endswith(ends))


def _is_document(source: Original) -> bool:
    """Return whether a file is one document; in JSON lines, the first line is complete."""
    try:
        with originals.open_plain(source) as file:
            start = file.read(1 << 20).lstrip()
    except OSError:
        return True  # reading it reports the error
    if start[:1] != b"{":
        return True
    try:
        json.loads(start.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return not start.startswith((b'{"type"', b'{"id"', b'{"_type"'))
    return start.partition(b"\n")[2].strip()[:1] != b"{" and b'"entities"' in start


def _read_lines(source: Original) -> Iterator[JsonRow | Problem]:
    for number, row in jsonl.read_objects(source):
        yield row if isinstance(row, Problem) else JsonRow("", "", row, (number, number))


def _read_document(source: Original) -> str | Problem:
    """Read the text of a document. Raises MemtoolError if it is too large."""
    text = originals.read_text(source, MAX_DOCUMENT_BYTES)
    if isinstance(text, Problem) and text.code == "too-large":
        raise MemtoolError(
            f"cannot import: {source.shown} is larger than {MAX_DOCUMENT_BYTES >> 20} MB",
            hint=f"jq -c '.[]' {source.shown} > records.jsonl\nmemtool import jsonl records.jsonl",
            code="too-large",
        )
    return text


def warn_omitted(source: Original, counts: Mapping[str, int], why: str) -> Iterator[Problem]:
    """Yield a warning for each kind of entry that is deliberately left out."""
    for name, count in sorted(counts.items()):
        shown = originals.to_line(name, 60)
        what = f"{shown} ({count:,}) left out: {why}"
        yield Problem(source.shown, 0, "left-out", what, "", severity="warning")


def _read_generic(
    file_rows: Rows, source: Original, defaults: Mapping[str, str]
) -> Iterator[StoreEntry | Problem]:
    """Yield the entries of a document of unknown structure."""
    loose: dict[str, Any] = {}
    lines = (1, 1)
    omitted: dict[str, int] = {}
    for row in file_rows:
        if isinstance(row, Problem):
            yield row
        elif isinstance(row.value, dict) and to_snake_case(row.section) not in (
            "relations",
            "links",
        ):
            own = {"id": row.name} if row.name and row.section else {}
            entry_defaults = {**defaults, **_section_defaults(row.section)}
            yield StoreEntry(own | row.value, source, row.lines, entry_defaults)
        elif isinstance(row.value, str) and (
            not row.section or to_snake_case(row.section) in SECTIONS
        ):
            if row.name:
                loose[row.name], lines = row.value, row.lines
            else:
                entry_defaults = {**defaults, **_section_defaults(row.section)}
                yield StoreEntry({"content": row.value}, source, row.lines, entry_defaults)
        elif row.section:
            omitted[row.section] = omitted.get(row.section, 0) + 1
        else:
            loose[row.name or str(row.lines[0])] = row.value
    if any(isinstance(loose.get(name), str) for name in ("content", "text", "memory", "body")):
        yield StoreEntry(loose, source, lines, defaults)
    yield from warn_omitted(source, omitted, "they are no entries with a text")


def _section_defaults(section: str) -> dict[str, str]:
    """Return type and category, or status, by the name of a list, such as `decisions`."""
    word = to_snake_case(section)
    for form in (word, word.removesuffix("s"), f"{word.removesuffix('ies')}y"):
        if form in entries.TYPE_WORDS:
            type_, category = entries.TYPE_WORDS[form]
            return {"type": type_} | ({"category": category} if category else {})
    return {"status": "archived"} if word in ("archived", "deleted") else {}


def _read_graph(file_rows: Rows, source: Original) -> Iterator[StoreEntry | Problem]:
    """Yield the entities of a knowledge graph; relations to unknown names stay as text."""
    nodes: dict[str, list[JsonRow]] = {}
    edges: list[tuple[str, str, str]] = []
    omitted: dict[str, int] = {}
    for row in file_rows:
        if isinstance(row, Problem):
            yield row
            continue
        value = row.value if isinstance(row.value, dict) else {}
        kind = to_scalar_text(value.get("type")) or to_snake_case(row.section)
        ends = tuple(to_scalar_text(value.get(name)) for name in ("from", "to", "relationType"))
        if all(ends[:2]) and kind in ("relation", "relations"):
            edges.append((ends[0], ends[1], ends[2] or "related_to"))
        elif to_scalar_text(value.get("name")) and kind in ("entity", "entities"):
            nodes.setdefault(to_scalar_text(value["name"]), []).append(row)
        else:
            omitted[kind or "values"] = omitted.get(kind or "values", 0) + 1
    for name, node_rows in nodes.items():
        values, notes = _build_entity(name, [row.value for row in node_rows], edges, nodes.keys())
        yield StoreEntry(
            values,
            source,
            node_rows[0].lines,
            {"confidence": "medium"},
            (ids.make_slug(name),),
            name,
        )
        for what in notes:
            line = node_rows[0].lines[0]
            yield Problem(source.shown, line, "left-out", what, "", severity="warning")
    yield from warn_omitted(source, omitted, "they are neither entities nor relations of a graph")


def _build_entity(
    name: str,
    values: list[dict[str, Any]],
    edges: list[tuple[str, str, str]],
    entity_names: Iterable[str],
) -> tuple[dict[str, Any], list[str]]:
    """Build an entry from an entity, and notes on relations to unknown entities."""
    kind = to_scalar_text(values[0].get("entityType"))
    facts = [
        text
        for value in values
        for text in map(to_scalar_text, value.get("observations") or ())
        if text
    ]
    relations: dict[str, Any] = {}
    lines, notes = [], []
    for start, end, word in edges:
        if start != name:
            continue
        relation = find_relation(word, "related_to")
        lines.append(f"- {word} {end}")
        if end in entity_names:
            relations.setdefault(relation, []).append(end)
        else:
            notes.append(f"{word} {end} of {name} stays as text: no entity has this name")
    facts = list(dict.fromkeys(facts))
    body = facts[0] if len(facts) == 1 and not lines else "\n".join(f"- {fact}" for fact in facts)
    if lines:
        body = "\n\n".join(filter(None, [body, "Relations:\n\n" + "\n".join(dict.fromkeys(lines))]))
    entry = {"id": name, "title": name.replace("_", " "), "content": body, "type": kind}
    times = {key: values[0][key] for key in ("createdAt", "updatedAt") if key in values[0]}
    return entry | times | relations | {"tags": [kind] if kind else []}, notes
