"""Agent files, such as CLAUDE.md and AGENTS.md: each rule and each section becomes a memory.

A file of a subdirectory governs that directory. Files that one imports (`@docs/style.md`) are read
too, within the repository. Text that memtool itself injected into such a file is ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator

from memtool import tables
from memtool.agents import INSTRUCTION_FILES
from memtool.importing import originals, sections
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.importing.sections import Passage
from memtool.memory import ids
from memtool.memory.memory import Fields, find_code_lines
from memtool.memory.schema import Problem

MAX_IMPORT_DEPTH = 5
"""Hops from a file to those that it imports, as in Claude Code."""
MAX_SLUG_CHARS = 80
MAX_LINE_CHARS = 2_000
"""Characters of a line in which imports are looked for."""
AGENT_FOLDERS = frozenset({".claude", ".gemini", ".qwen", ".github"})
"""Hidden directories with files for the directory around them."""
_PREFERENCE_WORDS = frozenset(tables.read_words("importing/preference_words"))
_IMPORT = re.compile(r"(?<![\w`@/.])@((?:~/|\.{0,2}/)?[\w.-][\w./-]*)")
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_TEXT_ENDS = (".md", ".mdc", ".markdown", ".txt")
_FOR_PEOPLE = ("readme", "changelog", "license", "contributing")
"""Beginnings of names of imported files that are written for people."""


def drafts(path: str, request: ImportRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the passages of a file, or of all agent files below a directory, and of their imports.

    A passage that is in two files (AGENTS.md is often a copy of CLAUDE.md) is yielded once.
    """
    place = originals.locate(path)
    root = find_root(place, request.top)
    records: list[ForeignRecord | Problem] = []
    seen: set[tuple[tuple[str, ...], str, str]] = set()
    for item in _read_all(place, root, request.top):
        if isinstance(item, Problem):
            records.append(item)
            continue
        source, text, folder = item
        passages = []
        for passage in sections.split_passages(text, os.path.basename(source.path)):
            mark = (() if passage.is_rule else passage.headings, passage.text, folder)
            if mark not in seen:
                seen.add(mark)
                passages.append(passage)
        fields: Fields = {"files": (f"{folder}/**",)} if folder else {}
        records += build_records(source, passages, fields)
    yield from with_distinct_titles(records)


def find_root(place: str, top: str) -> str:
    """Return the directory whose files may be read: the repository's, or that of a path outside."""
    real_top = os.path.realpath(top)
    if is_within(place, real_top):
        return real_top
    return place if os.path.isdir(place) else os.path.dirname(place)


def find_governed_folder(path: str, root: str, own_folders: Collection[str] = ()) -> str:
    """Return the directory that a file governs, relative to `root`; empty for all of it.

    A file in one of the tool's own folders governs the directory around that folder.
    """
    folder = os.path.relpath(os.path.dirname(path), root).replace(os.sep, "/")
    if folder == "." or folder.startswith(".."):
        return ""
    parts = folder.split("/")
    own = next((at for at, part in enumerate(parts) if part in own_folders), len(parts))
    return "/".join(parts[:own])


AgentText = tuple[Original, str, str]
"""A file, its text, and the directory that it governs."""


def _read_all(place: str, root: str, top: str) -> Iterator[AgentText | Problem]:
    """Yield the agent files at a place by path, each followed by the files that it imports."""
    done: set[str] = set()
    for agent_file in originals.find_files(
        place, top, INSTRUCTION_FILES.__contains__, AGENT_FOLDERS, links_within=root
    ):
        if isinstance(agent_file, Problem):
            yield agent_file
        else:
            parent = os.path.basename(os.path.dirname(agent_file.path))
            own_folders = AGENT_FOLDERS.intersection((parent,))
            folder = find_governed_folder(agent_file.path, root, own_folders)
            yield from _read_with_imports(agent_file, folder, root, top, done, 0)


def _read_with_imports(
    source: Original, folder: str, root: str, top: str, done: set[str], depth: int
) -> Iterator[AgentText | Problem]:
    """Yield a file that was not read yet, then the files that it imports."""
    real = os.path.realpath(source.path)
    if real in done:
        return
    done.add(real)
    source = originals.build_original(real, top)
    text = originals.read_text(source)
    if isinstance(text, Problem):
        yield text
        return
    yield source, text, folder
    for name, line in find_imports(text):
        target = _resolve_import(name, source.path)
        if target is None:
            if name.endswith(_TEXT_ENDS):
                yield _import_warning(source, line, name, "which is not there")
        elif not is_within(target, root):
            yield _import_warning(source, line, name, "which is outside of the repository")
        elif not target.endswith(_TEXT_ENDS) or os.path.basename(target).lower().startswith(
            _FOR_PEOPLE
        ):
            yield _import_warning(source, line, name, "which holds no text for agents")
        elif target not in done and depth >= MAX_IMPORT_DEPTH:
            yield _import_warning(source, line, name, f"after {depth} imports in a row")
        else:
            inner = originals.build_original(target, top)
            yield from _read_with_imports(inner, folder, root, top, done, depth + 1)


def is_within(path: str, root: str) -> bool:
    """Return whether a real path is a directory or below it."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _import_warning(source: Original, line: int, name: str, why: str) -> Problem:
    what = f"it imports @{originals.to_line(name, 80)}, {why}; that is left out"
    return Problem(source.shown, line, "left-out", what, "", severity="warning")


def find_imports(text: str) -> list[tuple[str, int]]:
    """Return the paths that a text imports as `@path`, with their lines; code does not count."""
    if "@" not in text:
        return []
    code = find_code_lines(text)
    imports = []
    for number, line in enumerate(text.split("\n")):
        if "@" in line and number not in code:
            plain = _CODE_SPAN.sub(" ", line[:MAX_LINE_CHARS])
            imports += [(match[1].rstrip("."), number + 1) for match in _IMPORT.finditer(plain)]
    return imports


def _resolve_import(name: str, path: str) -> str | None:
    """Return the real path of an imported file; None if there is no such file."""
    place = os.path.join(os.path.dirname(path), os.path.expanduser(name))
    return os.path.realpath(place) if os.path.isfile(place) else None


def build_records(
    source: Original, passages: Iterable[Passage], fields: Fields
) -> Iterator[ForeignRecord]:
    """Yield the record of each passage of a file; `fields` are for all of them.

    Until its titles are compared with others, the names of a record are its possible titles.
    """
    counts: dict[str, int] = {}
    for passage in passages:
        record = _build_record(source, passage, fields)
        counts[record.key] = counts.get(record.key, 0) + 1
        if counts[record.key] > 1:
            record = record.replace(key=f"{record.key}#{counts[record.key]}")
        yield record


def _build_record(source: Original, passage: Passage, fields: Fields) -> ForeignRecord:
    place = source.name or source.shown
    file_name = source.path.rpartition("/")[2]
    heading = " > ".join(passage.headings) or file_name
    name = passage.name or file_name
    file_words = os.path.splitext(place)[0].replace("/", " ")
    words = {word.strip(".,:;'").lower() for word in heading.replace("'", "").split()}
    is_short = passage.is_rule or "\n\n" not in passage.text
    forbids = is_short and sections.has_prohibition(passage.text)
    category = "preference" if words & _PREFERENCE_WORDS else "pattern"
    own: Fields = {
        "type": "semantic",
        "title": passage.titles[0] if passage.titles else file_name,
        "category": "warning" if forbids and "files" in fields else category,
        "status": "confirmed",
    }
    return ForeignRecord(
        key=f"{place} {name}",
        id=originals.to_id(ids.make_slug(f"{file_words} {name}", MAX_SLUG_CHARS), "sem"),
        fields=own | fields,
        body=passage.text,
        original=source,
        lines=(passage.first_line, passage.last_line),
        names=passage.titles,
        part="" if source.name else name,
    )


def with_distinct_titles(
    records: Iterable[ForeignRecord | Problem],
) -> Iterator[ForeignRecord | Problem]:
    """Yield the records, each with the shortest of its titles that no record before it has."""
    used: set[str] = set()
    for record in records:
        if isinstance(record, Problem):
            yield record
            continue
        title = str(record.fields["title"])
        place = os.path.splitext(record.original.name or record.original.shown)[0]
        longer = (*record.names, f"{title} ({place})", f"{title} ({place}:{record.lines[0]})")
        title = next((name for name in longer if name.lower() not in used), longer[-1])
        used.add(title.lower())
        yield record.replace(fields=record.fields | {"title": title}, names=())
