"""Notes: folders of markdown in which other tools keep memories.

basic-memory has notes with a front matter, categorised observations and relations to `[[others]]`;
a memory bank has a few files of known names, whose sections are memories; Serena has one memory a
file; and there are memories with a front matter and a `schema_version`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from memtool.importing import agents, entries, originals
from memtool.importing.entries import StoreEntry, StoreRequest, relation_of, snake
from memtool.importing.originals import ForeignRecord, Original
from memtool.memory import ids
from memtool.memory.schema import Problem

_ENDS = (".md", ".markdown")
_OBSERVATION = re.compile(r"\s*[-*]\s+\[([^\[\]()]{2,})\]\s+(.*\S)")
_RELATION = re.compile(
    r"""\s*[-*]\s+(?:"([^"]+)"|'([^']+)'|([^\s\[]+))?\s*\[\[([^\]|#]+)[^\]]*\]\]"""
)
_MENTION = re.compile(r"\[\[([^\]|#]+)(?:#[^\]|]*)?(?:\|([^\]]*))?\]\]")
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_TITLE = re.compile(r"#\s+(.*\S)\s*")
_DATED = re.compile(
    r"\[?(\d{4}-\d\d-\d\d)[^\]\s]*(?:[ T]\d\d:\d\d(?::\d\d)?)?\]?[\s:\u2013\u2014-]*(\S.*)"
)
_NO_NOTES = ("readme", "_")
Drafts = Iterator[ForeignRecord | Problem]


def drafts(path: str, asked: StoreRequest) -> Drafts:
    """Yield memories that are markdown with a front matter, of `schema_version` 1, 2 or none."""
    return _each(path, asked, _memory)


def basic_memory_drafts(path: str, asked: StoreRequest) -> Drafts:
    """Yield the notes of a project of basic-memory."""
    return _each(path, asked, _note)


def serena_drafts(path: str, asked: StoreRequest) -> Drafts:
    """Yield the memories of Serena, of the folder `.serena/memories` or the one that has it."""
    inside = os.path.join(path, ".serena", "memories")
    return _each(inside if os.path.isdir(inside) else path, asked, _serena)


def memory_bank_drafts(path: str, asked: StoreRequest) -> Drafts:
    """Yield the sections of a memory bank, of its folder or the one that has it."""
    names = ("memory-bank", "memory_bank", ".memory-bank", "cline_docs")
    places = (os.path.join(path, name) for name in names)
    found: list[StoreEntry | Problem] = []
    for source, text in _texts(next(filter(os.path.isdir, places), path), asked, found):
        found += _bank(source, text)
    return entries.records(found, asked)


def _each(
    path: str,
    asked: StoreRequest,
    read: Callable[[Original, dict[str, Any], str, str], StoreEntry | Problem],
) -> Drafts:
    """Yield the record of each file: `read` gets its front matter, its title and its text."""
    found: list[StoreEntry | Problem] = []
    root = originals.located(path)
    for source, text in _texts(path, asked, found):
        lines = text.split("\n")
        front, first = originals.front_matter(lines)
        body = "\n".join(lines[first:]).strip("\n")
        title, body = _without_title(body)
        entry = read(source, dict(front), title, body)
        if isinstance(entry, StoreEntry):
            place = os.path.relpath(
                source.path, root if os.path.isdir(root) else os.path.dirname(root)
            )
            stem = os.path.splitext(place)[0].replace(os.sep, "/")
            values = {"id": stem, "title": title or _words(stem), **_said(entry.values)}
            names = (*entry.names, stem, stem.rpartition("/")[2])
            span = (1, len(lines) - (not lines[-1]))
            entry = entry.replace(values=values, lines=span, names=tuple(dict.fromkeys(names)))
        found.append(entry)
    return entries.records(found, asked)


def _said(values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in ("", (), [], {}, None)}


def _texts(
    path: str, asked: StoreRequest, found: list[StoreEntry | Problem]
) -> Iterator[tuple[Original, str]]:
    """Yield the notes of a folder; what cannot be read goes to `found`, and so do other files."""
    others: dict[str, int] = {}

    def is_wanted(name: str) -> bool:
        is_note = name.lower().endswith(_ENDS)
        if not is_note and name[0] != ".":
            kind = os.path.splitext(name)[1] or "without an ending"
            others[kind] = others.get(kind, 0) + 1
        return is_note and not name.lower().startswith(_NO_NOTES)

    for one in originals.texts(path, asked.top, is_wanted):
        if isinstance(one, Problem):
            found.append(one)
        else:
            yield one
    shown = originals.original(originals.located(path), asked.top).shown
    for kind, count in sorted(others.items()):
        what = f"{count:,} files {kind} are no notes, and are left out"
        found.append(Problem(shown, 0, "left-out", what, "", severity="warning"))


def _without_title(body: str) -> tuple[str, str]:
    """Return the heading that a text begins with, and the rest."""
    first, _newline, rest = body.partition("\n")
    found = _TITLE.fullmatch(first)
    return (found[1], rest.strip("\n")) if found else ("", body)


def _words(stem: str) -> str:
    name = stem.rpartition("/")[2].replace("_", " ").replace("-", " ").strip()
    return name[:1].upper() + name[1:]


def _listed(front: dict[str, Any]) -> dict[str, Any]:
    """Return a front matter with its lists as lists; it is read as text, tuples and tables."""
    return {key: list(one) if isinstance(one, tuple) else one for key, one in front.items()}


def _memory(source: Original, front: dict[str, Any], title: str, body: str) -> StoreEntry | Problem:
    """Read a memory with a front matter; a text in its keys goes before the one below them."""
    values = _listed(front)
    told = [str(values.pop(key)) for key in ("content", "text", "memory") if values.get(key)]
    text = "\n\n".join(dict.fromkeys(filter(None, [*told, body])))
    name = values.get("title") or values.get("headline") or title or entries.title_of(text)
    return StoreEntry(
        {**values, "title": name, "content": text},
        source,
        names=tuple(str(values[key]) for key in ("id", "memory_id", "uid") if values.get(key)),
    )


def _note(source: Original, front: dict[str, Any], title: str, body: str) -> StoreEntry | Problem:
    """Read a note of basic-memory; links in its text become plain, as they are relations here."""
    values = _listed(front)
    kind = snake(str(values.get("type", "note")))
    if kind == "schema":
        what = "it is a schema of notes, and is left out"
        return Problem(source.shown, 1, "left-out", what, "", severity="warning")
    told: dict[str, list[str]] = {}
    tags: list[str] = []
    categories: list[str] = []
    for line in body.split("\n"):
        seen = _OBSERVATION.fullmatch(line)
        if seen and not seen[2].startswith("("):
            categories.append(snake(seen[1]))
            tags += _TAG.findall(seen[2])
            continue
        edge = _RELATION.match(line)
        word = (edge[1] or edge[2] or edge[3] or "") if edge else ""
        relation = relation_of(word, "related_to")
        targets = [edge[4]] if edge else [one[1] for one in _MENTION.finditer(line)]
        for target in targets:
            told.setdefault(relation, []).append(target.strip())
    if kind not in entries.TYPE_WORDS and categories:
        known = [word for word in categories if word in entries.TYPE_WORDS]
        values["type"] = max(known, key=known.count) if known else kind
    own_tags = values.pop("tags", [])
    own_tags = own_tags if isinstance(own_tags, list) else str(own_tags).split(",")
    permalink = str(values.pop("permalink", ""))
    name = str(values.get("title") or title)
    kept = {key: value for key, value in values.items() if key != "schema"}
    plain = _MENTION.sub(lambda found: (found[2] or found[1]).strip(), body)
    return StoreEntry(
        kept
        | told
        | {"id": permalink, "title": name, "content": plain, "tags": [*own_tags, *tags]},
        source,
        names=tuple(filter(None, (permalink, name, ids.slug(name) if name else ""))),
    )


def _serena(source: Original, front: dict[str, Any], title: str, body: str) -> StoreEntry | Problem:
    """Read a memory of Serena: its folder is a tag, and its name says what kind it is."""
    folder = os.path.basename(os.path.dirname(source.path))
    name = os.path.splitext(os.path.basename(source.path))[0]
    words = f"{folder} {name}".lower().replace("_", " ").replace("-", " ").split()
    tags = [folder] if folder not in ("memories", ".serena") else []
    values = _listed(front) | {"title": title, "content": body, "tags": tags}
    return StoreEntry(values | {"type": _kind_of(words)}, source)


_KINDS: tuple[tuple[str, str], ...] = (
    ("decision", "decision decisions decisionlog adr adrs"),
    ("preference", "style convention conventions preference preferences rule rules guidelines"),
    ("pattern", "tech techcontext stack command commands completion checklist"),
    ("progress", "progress active activecontext todo task tasks status plan roadmap"),
    ("warning", "gotchas gotcha pitfalls issues known warnings"),
    ("architecture", "architecture structure overview design patterns systempatterns"),
    ("architecture", "brief projectbrief productcontext context product"),
)
"""Words of names, and the kind that they mean; the first row that has one counts."""


def _kind_of(words: list[str]) -> str:
    return next(
        (kind for kind, known in _KINDS if set(known.split()).intersection(words)), "pattern"
    )


def _bank(source: Original, text: str) -> Iterator[StoreEntry]:
    """Yield the sections of a file of a memory bank; what its name says holds for all of them.

    A heading that begins with a day, as those of a decision log do, is of that day.
    """
    name = os.path.splitext(os.path.basename(source.path))[0]
    words = snake(name).replace("_", " ").split()
    kind = _kind_of([*words, name.lower()])
    parts = agents.parts(text, os.path.basename(source.path))
    tops = {part.headings[0] for part in parts if part.headings}
    is_titled = len(tops) == 1 and any(len(part.headings) > 1 for part in parts)
    title = tops.pop() if is_titled else " ".join(words).capitalize()
    for part in parts:
        inner = [one for one in part.headings if one != title and _squeezed(one) != _squeezed(name)]
        if inner and _squeezed(inner[-1]) == "tableofcontents":
            continue
        own = _kind_of(" ".join(inner).lower().split()) if inner else kind
        dated = _DATED.fullmatch(inner[-1]) if inner else None
        shown = [*inner[:-1], dated[2]] if dated else inner
        values = {
            "id": ids.slug(" ".join([title, *inner]), 90),
            "title": " > ".join([title, *shown]),
            "content": part.text,
            "type": own if kind == "pattern" or own == "decision" else kind,
            "date": dated[1] if dated else "",
        }
        span = part.first_line, part.last_line
        yield StoreEntry(values, source, span, part="" if source.name else title)


def _squeezed(name: str) -> str:
    return snake(name).replace("_", "")
