"""Notes: folders of markdown in which other tools keep memories.

basic-memory has notes with front matter, categorised observations and relations to `[[notes]]`. A
vault of Obsidian has such links too, properties, templates and embedded queries. A memory bank has
a few files with fixed names, whose sections are memories. Serena has one memory per file. The
generic format has memories with front matter and a `schema_version`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memtool.importing import entries, originals, sections
from memtool.importing.entries import StoreEntry, find_relation, to_snake_case
from memtool.importing.json_values import parse_json
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.memory import ids
from memtool.memory.memory import find_code_lines
from memtool.memory.schema import Problem
from memtool.value import format_count

_SUFFIXES = (".md", ".markdown")
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


def drafts(path: str, request: ImportRequest) -> Drafts:
    """Yield memories in markdown with front matter, of `schema_version` 1, 2 or none."""
    return _read_each(path, request, _parse_memory)


def basic_memory_drafts(path: str, request: ImportRequest) -> Drafts:
    """Yield the notes of a project of basic-memory."""
    return _read_each(path, request, _parse_note)


def serena_drafts(path: str, request: ImportRequest) -> Drafts:
    """Yield the memories of Serena, from the folder `.serena/memories` or the project's top."""
    inside = os.path.join(path, ".serena", "memories")
    return _read_each(inside if os.path.isdir(inside) else path, request, _parse_serena)


def memory_bank_drafts(path: str, request: ImportRequest) -> Drafts:
    """Yield the sections of a memory bank, from its folder or its parent."""
    names = ("memory-bank", "memory_bank", ".memory-bank", "cline_docs")
    places = (os.path.join(path, name) for name in names)
    items: list[StoreEntry | Problem] = []
    titles: set[str] = set()
    for source, text in _read_texts(next(filter(os.path.isdir, places), path), request, items):
        items += _parse_bank(source, text, titles)
    return entries.build_records(items, request)


def obsidian_drafts(path: str, request: ImportRequest) -> Drafts:
    """Yield the notes of a vault of Obsidian; templates and notes without text are left out."""
    vault = _Vault(path, request)
    items = vault.read()
    yield from entries.build_records(items, request)


def _read_each(
    path: str,
    request: ImportRequest,
    parse: Callable[[Original, dict[str, Any], str, str], StoreEntry | Problem],
) -> Drafts:
    """Yield the record of each file; `parse` gets its front matter, title and text."""
    return entries.build_records(_read_entries(path, request, parse), request)


def _read_entries(
    path: str,
    request: ImportRequest,
    parse: Callable[[Original, dict[str, Any], str, str], StoreEntry | Problem | None],
) -> list[StoreEntry | Problem]:
    """Return the entry of each file, or its problem; files without either are skipped."""
    items: list[StoreEntry | Problem] = []
    root = originals.locate(path)
    for source, text in _read_texts(path, request, items):
        lines = text.split("\n")
        front, first = originals.front_matter(lines)
        body = "\n".join(lines[first:]).strip("\n")
        title, body = _split_title(body)
        entry = parse(source, dict(front), title, body)
        if isinstance(entry, StoreEntry):
            place = os.path.relpath(
                source.path, root if os.path.isdir(root) else os.path.dirname(root)
            )
            stem = os.path.splitext(place)[0].replace(os.sep, "/")
            values = {
                "id": stem,
                "title": title or _title_from_name(stem),
                **_without_empty(entry.values),
            }
            names = (*entry.names, stem, stem.rpartition("/")[2])
            span = (1, len(lines) - (not lines[-1]))
            entry = entry.replace(values=values, lines=span, names=tuple(dict.fromkeys(names)))
        if entry is not None:
            items.append(entry)
    return items


def _without_empty(values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in ("", (), [], {}, None)}


def _read_texts(
    path: str, request: ImportRequest, items: list[StoreEntry | Problem]
) -> Iterator[tuple[Original, str]]:
    """Yield the notes of a folder; add problems, and warnings on other files, to `items`."""
    omitted: dict[str, int] = {}

    def is_wanted(name: str) -> bool:
        is_note = name.lower().endswith(_SUFFIXES)
        if not is_note and name[0] != ".":
            kind = os.path.splitext(name)[1] or "without an ending"
            omitted[kind] = omitted.get(kind, 0) + 1
        return is_note and not name.lower().startswith(_NO_NOTES)

    for item in originals.read_texts(path, request.top, is_wanted):
        if isinstance(item, Problem):
            items.append(item)
        else:
            yield item
    shown = originals.build_original(originals.locate(path), request.top).shown
    for kind, count in sorted(omitted.items()):
        what = f"{count:,} files {kind} are no notes, and are left out"
        items.append(Problem(shown, 0, "left-out", what, "", severity="warning"))


def _split_title(body: str) -> tuple[str, str]:
    """Split the heading from the start of a text; empty if there is none."""
    first, _newline, following = body.partition("\n")
    match = _TITLE.fullmatch(first)
    return (match[1], following.strip("\n")) if match else ("", body)


def _title_from_name(stem: str) -> str:
    name = stem.rpartition("/")[2].replace("_", " ").replace("-", " ").strip()
    return name[:1].upper() + name[1:]


def _tuples_to_lists(front: dict[str, Any]) -> dict[str, Any]:
    """Convert the tuples of front matter to lists."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in front.items()}


def _parse_memory(
    source: Original, front: dict[str, Any], title: str, body: str
) -> StoreEntry | Problem:
    """Parse a memory with front matter; text in its keys goes before the body."""
    values = _tuples_to_lists(front)
    texts = [str(values.pop(key)) for key in ("content", "text", "memory") if values.get(key)]
    text = "\n\n".join(dict.fromkeys(filter(None, [*texts, body])))
    name = values.get("title") or values.get("headline") or title or entries.find_title(text)
    return StoreEntry(
        {**values, "title": name, "content": text},
        source,
        names=tuple(str(values[key]) for key in ("id", "memory_id", "uid") if values.get(key)),
    )


def _parse_note(
    source: Original, front: dict[str, Any], title: str, body: str
) -> StoreEntry | Problem:
    """Parse a note of basic-memory; links become plain text, and relations of the entry."""
    values = _tuples_to_lists(front)
    kind = to_snake_case(str(values.get("type", "note")))
    if kind == "schema":
        what = "it is a schema of notes, and is left out"
        return Problem(source.shown, 1, "left-out", what, "", severity="warning")
    relations: dict[str, list[str]] = {}
    tags: list[str] = []
    categories: list[str] = []
    for line in body.split("\n"):
        observation = _OBSERVATION.fullmatch(line)
        if observation and not observation[2].startswith("("):
            categories.append(to_snake_case(observation[1]))
            tags += _TAG.findall(observation[2])
            continue
        edge = _RELATION.match(line)
        word = (edge[1] or edge[2] or edge[3] or "") if edge else ""
        relation = find_relation(word, "related_to")
        targets = [edge[4]] if edge else [mention[1] for mention in _MENTION.finditer(line)]
        for target in targets:
            relations.setdefault(relation, []).append(target.strip())
    if kind not in entries.TYPE_WORDS and categories:
        known_words = [word for word in categories if word in entries.TYPE_WORDS]
        values["type"] = max(known_words, key=known_words.count) if known_words else kind
    own_tags = values.pop("tags", [])
    own_tags = own_tags if isinstance(own_tags, list) else str(own_tags).split(",")
    permalink = str(values.pop("permalink", ""))
    name = str(values.get("title") or title)
    copied = {key: value for key, value in values.items() if key != "schema"}
    plain = _MENTION.sub(lambda match: (match[2] or match[1]).strip(), body)
    return StoreEntry(
        copied
        | relations
        | {"id": permalink, "title": name, "content": plain, "tags": [*own_tags, *tags]},
        source,
        names=tuple(filter(None, (permalink, name, ids.make_slug(name) if name else ""))),
    )


def _parse_serena(
    source: Original, front: dict[str, Any], title: str, body: str
) -> StoreEntry | Problem:
    """Parse a memory of Serena: its folder becomes a tag, its name determines the kind."""
    folder = os.path.basename(os.path.dirname(source.path))
    name = os.path.splitext(os.path.basename(source.path))[0]
    words = f"{folder} {name}".lower().replace("_", " ").replace("-", " ").split()
    tags = [folder] if folder not in ("memories", ".serena") else []
    values = _tuples_to_lists(front)
    about = " ".join(str(values.pop("description", "")).split())
    own_title = title or str(values.pop("title", "")) or about
    if about and own_title != about and about not in body:
        body = f"{about}\n\n{body}"
    values |= {"title": own_title, "content": body or about, "tags": tags}
    return StoreEntry(values | {"type": _find_kind(words)}, source)


_KINDS: tuple[tuple[str, str], ...] = (
    ("decision", "decision decisions decisionlog adr adrs"),
    ("preference", "style convention conventions preference preferences rule rules guidelines"),
    ("pattern", "tech techcontext stack command commands completion checklist"),
    ("progress", "progress active activecontext todo task tasks status plan roadmap"),
    ("warning", "gotchas gotcha pitfalls issues known warnings"),
    ("architecture", "architecture structure overview design patterns systempatterns"),
    ("architecture", "brief projectbrief productcontext context product"),
)
"""Kinds, and the words in names that mean them; the first matching row counts."""


def _find_kind(words: list[str]) -> str:
    return next(
        (kind for kind, kind_words in _KINDS if set(kind_words.split()).intersection(words)),
        "pattern",
    )


def _parse_bank(source: Original, text: str, titles: set[str]) -> Iterator[StoreEntry]:
    """Yield the sections of a file of a memory bank; the file name determines their kind.

    A heading may begin with the date of its section, as in a decision log. `titles` are those of
    the sections before, and come to hold those of these.
    """
    name = os.path.splitext(os.path.basename(source.path))[0]
    words = to_snake_case(name).replace("_", " ").split()
    kind = _find_kind([*words, name.lower()])
    parts = sections.split_file(text, os.path.basename(source.path))
    tops = {part.headings[0] for part in parts if part.headings}
    is_titled = len(tops) == 1 and any(len(part.headings) > 1 for part in parts)
    title = tops.pop() if is_titled else " ".join(words).capitalize()
    for part in parts:
        inner = [
            heading
            for heading in part.headings
            if heading != title and _squeeze(heading) != _squeeze(name)
        ]
        if sections.says_nothing(part.text):
            continue
        own = _find_kind(" ".join(inner).lower().split()) if inner else kind
        dated = _DATED.fullmatch(inner[-1]) if inner else None
        shown = [*inner[:-1], dated[2]] if dated else inner
        values = {
            "id": ids.make_slug(" ".join([title, *inner]), 90),
            "title": _choose_title(sections.build_titles(shown, [title]), titles),
            "content": part.text,
            "type": own if kind == "pattern" or own == "decision" else kind,
            "date": dated[1] if dated else "",
        }
        span = part.first_line, part.last_line
        yield StoreEntry(values, source, span, part="" if source.name else title)


def _choose_title(choices: Sequence[str], used: set[str]) -> str:
    """Return the shortest title that is not used yet, and note that it is."""
    title = next((choice for choice in choices if choice.lower() not in used), choices[-1])
    used.add(title.lower())
    return title


def _squeeze(name: str) -> str:
    return to_snake_case(name).replace("_", "")


class _Vault:
    """A vault of Obsidian while it is read: what is left out is counted, not listed."""

    def __init__(self, path: str, request: ImportRequest) -> None:
        self._path = path
        self._request = request
        self._templates = _find_template_folder(originals.locate(path))
        self._counts = {"templates": 0, "empty": 0}

    def read(self) -> list[StoreEntry | Problem]:
        """Return the entries of the notes, with relations to notes that exist."""
        items = _read_entries(self._path, self._request, self._parse)
        names = {
            name.lower() for item in items if isinstance(item, StoreEntry) for name in item.names
        }
        dangling = 0
        for at, item in enumerate(items):
            if isinstance(item, StoreEntry):
                links = item.values.get("related_to", [])
                inside = [name for name in links if name.lower() in names]
                dangling += len(links) - len(inside)
                items[at] = item.replace(values={**item.values, "related_to": inside})
        shown = originals.build_original(originals.locate(self._path), self._request.top).shown
        for count, singular, plural in (
            (self._counts["templates"], "template is", "templates are"),
            (self._counts["empty"], "note without text is", "notes without text are"),
            (dangling, "link leads to no note and is", "links lead to no note and are"),
        ):
            if count:
                message = f"{format_count(count, singular, plural)} left out"
                items.append(Problem(shown, 0, "left-out", message, "", severity="warning"))
        return items

    def _parse(
        self, source: Original, front: dict[str, Any], title: str, body: str
    ) -> StoreEntry | None:
        """Parse a note, called by its file; properties without a key of their own become text."""
        stem = os.path.splitext(os.path.basename(source.path))[0]
        if self._is_template(source, body):
            self._counts["templates"] += 1
            return None
        links: list[str] = []
        text = _resolve_links(body, links)
        own = {name: _resolve_property(value, links) for name, value in front.items()}
        fields = {name: value for name, value in own.items() if _is_known(name)}
        rows = [
            f"- {name}: {', '.join(value) if isinstance(value, list) else value}"
            for name, value in own.items()
            if not _is_known(name) and value and not to_snake_case(name).startswith("css")
        ]
        if not text.strip() and not rows:
            self._counts["empty"] += 1
            return None
        heading = title if title and title != stem else ""
        is_day = bool(_DAY.fullmatch(stem))
        name = next(filter(sections.says_enough, (heading, entries.find_title(text))), "")
        name = f"{name} ({stem})" if is_day and name else stem
        shown_heading = f"# {heading}" if heading and not name.startswith(heading) else ""
        tags = fields.pop("tags", [])
        tags = tags if isinstance(tags, list) else re.split(r"[,\s]+", str(tags))
        values = fields | {
            "title": name,
            "content": "\n\n".join(
                filter(None, [shown_heading, text.strip("\n"), "\n".join(rows)])
            ),
            "tags": [tag.strip("# ") for tag in (*tags, *_find_tags(body)) if tag.strip("# ")],
            "related_to": list(dict.fromkeys(links)),
        }
        if is_day:
            values.setdefault("created", stem)
        return StoreEntry(values, source, names=(stem,))

    def _is_template(self, source: Original, body: str) -> bool:
        root = originals.locate(self._path)
        folder = os.path.relpath(os.path.dirname(source.path), root).replace(os.sep, "/")
        is_inside = bool(self._templates) and f"{folder}/".startswith(f"{self._templates}/")
        names = {part.lower().strip("_ ") for part in folder.split("/")}
        return is_inside or "templates" in names or bool(_PLACEHOLDER.search(body))


_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_PLACEHOLDER = re.compile(r"\{\{\s*(?:title|date|time)\b[^}]*\}\}|<%[-_*+]?\s*tp\.")
_EMBED = re.compile(r"!\[\[([^\]]+)\]\]")
_NOTE_EMBED = re.compile(r"[^.#|]+(?:\.md)?(?:[#|].*)?")


def _find_template_folder(root: str) -> str:
    """Return the folder that the vault's settings name for templates; empty if none."""
    source = originals.build_original(os.path.join(root, ".obsidian", "templates.json"), root)
    if not os.path.isfile(source.path):
        return ""
    text = originals.read_text(source)
    settings = parse_json(text) if isinstance(text, str) else None
    folder = settings.get("folder", "") if isinstance(settings, dict) else ""
    return str(folder).strip("/")


def _is_known(name: str) -> bool:
    return to_snake_case(name) in entries.ALL_NAMES


def _resolve_links(body: str, links: list[str]) -> str:
    """Return a text with links as words; add their targets, and leave out what is only embedded."""
    rows = []
    for line in body.split("\n"):
        text = _EMBED.sub(lambda match: match[0][1:] if _is_note(match[1]) else "", line)
        if text.strip() or not line.strip():
            links += [match[1].strip() for match in _MENTION.finditer(text)]
            rows.append(_MENTION.sub(lambda match: (match[2] or match[1]).strip(), text))
    return "\n".join(rows)


def _is_note(target: str) -> bool:
    """Return whether an embedded target is a note, and no picture or query."""
    return bool(_NOTE_EMBED.fullmatch(target))


def _resolve_property(value: Any, links: list[str]) -> Any:
    """Return the value of a property with links as words; add their targets."""
    if isinstance(value, list | tuple):
        return [_resolve_property(item, links) for item in value]
    return _resolve_links(value, links) if isinstance(value, str) else value


def _find_tags(body: str) -> list[str]:
    """Return the tags of a text; code and numbers are none."""
    code = find_code_lines(body) if "#" in body else frozenset()
    return [
        tag
        for number, line in enumerate(body.split("\n"))
        if number not in code
        for tag in _TAG.findall(line)
        if not tag.isdigit()
    ]
