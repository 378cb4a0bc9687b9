"""JSON stores: documents and lines in which other tools keep their memories.

A document is a list of entries, or a table with such a list under a name such as `memories`, or a
table of entries by their ids. It is read entry by entry, each with its line, so that what stands
before a tear is taken. Exports of mem0 are such documents; the knowledge graph of the MCP memory
server is one as well, or lines, and what its entries mean is here.
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
from memtool.importing.entries import StoreEntry, StoreRequest, relation_of, snake
from memtool.importing.json_values import as_text
from memtool.importing.originals import ForeignRecord, Original
from memtool.memory import ids
from memtool.memory.schema import Problem
from memtool.value import Value

MOST_BYTES = 64 << 20
"""Bytes of a document; what is larger must come as lines."""
SECTIONS = frozenset(tables.words("importing/sections"))
"""Sections in which a text is an entry."""
UNREVIEWED = {"status": "candidate", "confidence": "low"}
"""What holds of entries that a model wrote and nobody confirmed, unless they say otherwise."""
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_REASONS = {ValueError: "a number of too many digits", RecursionError: "too many levels"}


_LINES_HINT = "memtool import jsonl reads a file with one document a line"


class JsonRow(Value):
    """A value of a document: the list or table that it is in, its name there, and its lines."""

    section: str
    name: str
    value: Any
    lines: tuple[int, int]


class _Lines:
    """Counts the lines of a text up to positions that only grow."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1

    def of(self, at: int) -> int:
        self._line += self._text.count("\n", self._at, max(at, self._at))
        self._at = max(at, self._at)
        return self._line


def rows(source: Original, text: str) -> Iterator[JsonRow | Problem]:
    """Yield the entries of a document, and where it is torn or broken."""
    counted = _Lines(text)
    at = _skip(text, 0)
    try:
        if text[at : at + 1] == "[":
            end = yield from _list(text, at, "", counted)
        elif text[at : at + 1] == "{":
            end = yield from _table(text, at, "", counted)
        else:
            what = "it is no JSON list or table" if text.strip() else "the file is empty"
            yield Problem(source.shown, 1, "not-json", what, "name a JSON document")
            return
        following = _skip(text, end)
        if text[at : at + 1] == text[following : following + 1] == "{":
            what = "one document follows another, as in JSON lines, so only the first is read"
            yield Problem(source.shown, counted.of(following), "not-json", what, _LINES_HINT)
        elif following < len(text):
            raise json.JSONDecodeError("something follows the document", text, end)
    except (ValueError, RecursionError) as error:
        said = getattr(error, "msg", "") or _REASONS.get(type(error), str(error))
        line = counted.of(getattr(error, "pos", 0))
        what = f"the document is broken here, and what follows is lost: {said}"
        yield Problem(source.shown, line, "not-json", what, "mend the document, or export it again")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _list(text: str, at: int, section: str, counted: _Lines) -> Generator[JsonRow, None, int]:
    """Yield the items of the list that begins at a position; return where it ends."""
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        start = counted.of(at)
        value, end = _DECODER.raw_decode(text, at)
        yield JsonRow(section, "", value, (start, counted.of(end)))
        at = _after(text, end, "]")
    return at + 1


def _table(text: str, at: int, section: str, counted: _Lines) -> Generator[JsonRow, None, int]:
    """Yield the values of a table, those of the whole document one level deeper."""
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        name, end = _DECODER.raw_decode(text, at)
        at = _skip(text, end)
        if not isinstance(name, str) or text[at : at + 1] != ":":
            raise json.JSONDecodeError("a name and a colon are expected", text, at)
        at = _skip(text, at + 1)
        opening = text[at : at + 1]
        if not section and opening == "[":
            end = yield from _list(text, at, name, counted)
        elif not section and opening == "{":
            end = yield from _table(text, at, name, counted)
        else:
            start = counted.of(at)
            value, end = _DECODER.raw_decode(text, at)
            yield JsonRow(section, name, value, (start, counted.of(end)))
        at = _after(text, end, "}")
    return at + 1


def _after(text: str, at: int, closing: str) -> int:
    """Return the position of the next item, or of the closing bracket."""
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        at = _skip(text, at + 1)
        if text[at : at + 1] == closing:
            raise json.JSONDecodeError("a comma too many", text, at)
        return at
    if text[at : at + 1] != closing:
        raise json.JSONDecodeError(f"a comma or {closing} is expected", text, at)
    return at


Drafts = Iterator[ForeignRecord | Problem]
Rows = Iterable[JsonRow | Problem]


def drafts(path: str, asked: StoreRequest) -> Drafts:
    """Yield the entries of any JSON document, or of each document below a folder."""
    return read_files(path, asked, lambda found, source: _generic(found, source, {}))


def mem0_drafts(path: str, asked: StoreRequest) -> Drafts:
    """Yield the memories of an export of mem0: what a model drew from conversations."""
    return read_files(path, asked, lambda found, source: _generic(found, source, UNREVIEWED))


def graph_drafts(path: str, asked: StoreRequest) -> Drafts:
    """Yield the entities of the MCP memory server's knowledge graph, with their relations."""
    return read_files(path, asked, _graph, is_lines=True)


def read_files(
    path: str,
    asked: StoreRequest,
    read: Callable[[Rows, Original], Iterator[StoreEntry | Problem]],
    *,
    is_lines: bool = False,
) -> Drafts:
    """Yield what `read` makes of the rows of a file, or of each file below a folder.

    Raises:
        MemtoolError: a file is not there, or larger than a document may be.
    """
    for source in _files(path, asked, (".jsonl", ".json") if is_lines else (".json",)):
        if isinstance(source, Problem):
            yield source
            continue
        found: Rows
        if is_lines and not _is_document(source):
            found = _of_lines(source)
        else:
            text = _text(source)
            found = [text] if isinstance(text, Problem) else rows(source, text)
        yield from entries.records(list(read(found, source)), asked)


def _files(path: str, asked: StoreRequest, ends: tuple[str, ...]) -> Iterator[Original | Problem]:
    place = originals.located(path)
    if not os.path.isdir(place):
        yield originals.original(place, asked.top)
        return
    yield from originals.files(place, asked.top, lambda name: name.lower().endswith(ends))


def _is_document(source: Original) -> bool:
    """Tell whether a file is one document; the first line of lines is a whole document itself."""
    try:
        with originals.open_plain(source) as file:
            start = file.read(1 << 20).lstrip()
    except OSError:
        return True  # reading it says why
    if start[:1] != b"{":
        return True
    try:
        json.loads(start.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return not start.startswith((b'{"type"', b'{"id"', b'{"_type"'))
    return start.partition(b"\n")[2].strip()[:1] != b"{" and b'"entities"' in start


def _of_lines(source: Original) -> Iterator[JsonRow | Problem]:
    for number, row in jsonl.objects(source):
        yield row if isinstance(row, Problem) else JsonRow("", "", row, (number, number))


def _text(source: Original) -> str | Problem:
    """Return the text of a document. Raises MemtoolError if it is too large."""
    text = originals.read_text(source, MOST_BYTES)
    if isinstance(text, Problem) and text.code == "too-large":
        raise MemtoolError(
            f"{source.shown} is larger than {MOST_BYTES >> 20} MB",
            hint=f"jq -c '.[]' {source.shown} > records.jsonl makes lines of a list, and "
            "memtool import jsonl records.jsonl takes any number of them",
            code="too-large",
        )
    return text


def left_out(source: Original, counts: Mapping[str, int], why: str) -> Iterator[Problem]:
    """Yield a warning for each kind of entry that is left out on purpose."""
    for name, count in sorted(counts.items()):
        shown = originals.line(name, 60)
        what = f"{shown} ({count:,}) left out: {why}"
        yield Problem(source.shown, 0, "left-out", what, "", severity="warning")


def _generic(
    found: Rows, source: Original, defaults: Mapping[str, str]
) -> Iterator[StoreEntry | Problem]:
    """Yield the entries of a document whose shape is not known before."""
    loose: dict[str, Any] = {}
    lines = (1, 1)
    left: dict[str, int] = {}
    for row in found:
        if isinstance(row, Problem):
            yield row
        elif isinstance(row.value, dict) and snake(row.section) not in ("relations", "links"):
            own = {"id": row.name} if row.name and row.section else {}
            meant = {**defaults, **_of_section(row.section)}
            yield StoreEntry(own | row.value, source, row.lines, meant)
        elif isinstance(row.value, str) and (not row.section or snake(row.section) in SECTIONS):
            if row.name:
                loose[row.name], lines = row.value, row.lines
            else:
                meant = {**defaults, **_of_section(row.section)}
                yield StoreEntry({"content": row.value}, source, row.lines, meant)
        elif row.section:
            left[row.section] = left.get(row.section, 0) + 1
        else:
            loose[row.name or str(row.lines[0])] = row.value
    if any(isinstance(loose.get(name), str) for name in ("content", "text", "memory", "body")):
        yield StoreEntry(loose, source, lines, defaults)
    yield from left_out(source, left, "they are no entries with a text")


def _of_section(section: str) -> dict[str, str]:
    """Return type and category that the name of a list says, such as `decisions`."""
    word = snake(section)
    for one in (word, word.removesuffix("s"), f"{word.removesuffix('ies')}y"):
        if one in entries.TYPE_WORDS:
            type_, category = entries.TYPE_WORDS[one]
            return {"type": type_} | ({"category": category} if category else {})
    return {"status": "archived"} if word in ("archived", "deleted") else {}


def _graph(found: Rows, source: Original) -> Iterator[StoreEntry | Problem]:
    """Yield the entities of a knowledge graph; a relation that is not one of ours stays as text."""
    nodes: dict[str, list[JsonRow]] = {}
    edges: list[tuple[str, str, str]] = []
    left: dict[str, int] = {}
    for row in found:
        if isinstance(row, Problem):
            yield row
            continue
        value = row.value if isinstance(row.value, dict) else {}
        kind = as_text(value.get("type")) or snake(row.section)
        ends = tuple(as_text(value.get(name)) for name in ("from", "to", "relationType"))
        if all(ends[:2]) and kind in ("relation", "relations"):
            edges.append((ends[0], ends[1], ends[2] or "related_to"))
        elif as_text(value.get("name")) and kind in ("entity", "entities"):
            nodes.setdefault(as_text(value["name"]), []).append(row)
        else:
            left[kind or "values"] = left.get(kind or "values", 0) + 1
    for name, same in nodes.items():
        values, notes = _entity(name, [row.value for row in same], edges, nodes.keys())
        yield StoreEntry(
            values, source, same[0].lines, {"confidence": "medium"}, (ids.slug(name),), name
        )
        for what in notes:
            line = same[0].lines[0]
            yield Problem(source.shown, line, "left-out", what, "", severity="warning")
    yield from left_out(source, left, "they are neither entities nor relations of a graph")


def _entity(
    name: str,
    values: list[dict[str, Any]],
    edges: list[tuple[str, str, str]],
    known: Iterable[str],
) -> tuple[dict[str, Any], list[str]]:
    """Return an entity as an entry, and what is said of others that are not in the graph."""
    kind = as_text(values[0].get("entityType"))
    facts = [
        text for value in values for text in map(as_text, value.get("observations") or ()) if text
    ]
    told: dict[str, Any] = {}
    lines, notes = [], []
    for start, end, word in edges:
        if start != name:
            continue
        relation = relation_of(word, "related_to")
        lines.append(f"- {word} {end}")
        if end in known:
            told.setdefault(relation, []).append(end)
        else:
            notes.append(f"{word} {end} of {name} stays as text: no entity has that name")
    facts = list(dict.fromkeys(facts))
    body = facts[0] if len(facts) == 1 and not lines else "\n".join(f"- {fact}" for fact in facts)
    if lines:
        body = "\n\n".join(filter(None, [body, "Relations:\n\n" + "\n".join(dict.fromkeys(lines))]))
    entry = {"id": name, "title": name.replace("_", " "), "content": body, "type": kind}
    times = {key: values[0][key] for key in ("createdAt", "updatedAt") if key in values[0]}
    return entry | times | told | {"tags": [kind] if kind else []}, notes
