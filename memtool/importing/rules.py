"""Scoped rules: files of rules that say for which files of the code they hold.

Cursor, Copilot, Claude Code, Cline, Roo, Windsurf and others keep them in folders of their own,
with a front matter. The globs there become `files`, and its description becomes the title.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from memtool.agents import RULE_FILES
from memtool.importing import agents, globs, originals, sections
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.memory import schema
from memtool.memory.memory import Fields
from memtool.memory.schema import Problem
from memtool.value import format_count

_TEXTS = ("*.md", "*.mdc", "*.txt")
FOLDERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (".amazonq/rules", ("*.md",)),
    (".augment/rules", ("*.md",)),
    (".claude/rules", ("*.md",)),
    (".clinerules", _TEXTS),
    (".continue/rules", ("*.md",)),
    (".cursor/rules", ("*.mdc", "*.md")),
    (".github/instructions", ("*.instructions.md",)),
    (".kiro/steering", ("*.md",)),
    (".roo/rules", _TEXTS),
    (".roo/rules-*", _TEXTS),
    (".trae/rules", ("*.md",)),
    (".windsurf/rules", ("*.md",)),
)
"""Folders of rules, also in subdirectories, with patterns of the names of files below them."""
ROOTS = frozenset(folder.partition("/")[0] for folder, _names in FOLDERS)
"""Hidden folders with rules."""
NO_RULES = frozenset({"workflows", "hooks", "skills", "prompts"})
"""Folders inside of them that hold something else."""
GLOB_KEYS = ("globs", "applyTo", "paths", "fileMatchPattern", "glob")
TITLE_KEYS = ("description", "title", "name")
ALWAYS: Mapping[str, str] = {"alwaysApply": "true", "trigger": "always_on", "inclusion": "always"}
"""Keys with the value by which a rule is always given to the agent."""
ALWAYS_TAG = "always-apply"
KNOWN_KEYS = frozenset({*GLOB_KEYS, *TITLE_KEYS, *ALWAYS, "tags", "version", "type"})
_MODE = re.compile(r"/(?:\.roo/rules|\.roorules|\.clinerules)-([\w-]+)(?=/|$)")
OWN_MARK = "# installed by memtool;"
"""A line in the front matter of the rules that memtool itself gave to an agent."""
MAX_MARK_CHARS = 200
MAX_LABEL_CHARS = 60
"""A description above this length is no title of the sections below it."""


def drafts(path: str, request: ImportRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the rules of a file, or of all files of rules below a directory."""
    place = originals.locate(path)
    root = agents.find_root(place, request.top)
    records: list[ForeignRecord | Problem] = []
    unknown: dict[str, int] = {}
    for source in originals.find_files(
        place, request.top, is_likely_name, ROOTS, is_wanted_path=is_rule_file
    ):
        text = source if isinstance(source, Problem) else originals.read_text(source)
        if isinstance(source, Problem) or isinstance(text, Problem):
            records += [text] if isinstance(text, Problem) else []
        elif OWN_MARK not in text[:MAX_MARK_CHARS]:
            records += _read_rules(source, text, root, unknown)
    yield from agents.with_distinct_titles(_without_copies(records))
    shown = originals.build_original(place, request.top).shown
    for key, count in sorted(unknown.items()):
        have = format_count(count, "file has", "files have")
        what = f"{have} {originals.to_line(key, 60)}, which is left out"
        yield Problem(shown, 0, "left-out", what, "", severity="warning")


def _without_copies(
    records: Sequence[ForeignRecord | Problem],
) -> Iterator[ForeignRecord | Problem]:
    """Yield the records, without those that say what one before says of the same files."""
    seen = set()
    for record in records:
        if isinstance(record, ForeignRecord):
            mark = record.body, record.fields.get("files")
            if mark in seen:
                continue
            seen.add(mark)
        yield record


def is_likely_name(name: str) -> bool:
    """Return whether a file may hold rules, by its name alone."""
    return name.endswith((".md", ".mdc", ".txt")) or name.startswith((".", "copilot-"))


def is_rule_file(path: str) -> bool:
    """Return whether a file holds rules, by its name and the folders that it is in."""
    parts = path.replace(os.sep, "/").split("/")
    name = parts[-1]
    if "/." not in path and name.endswith((".md", ".txt")) and not _may_be_rules(name):
        return False
    if any(fnmatchcase(name, pattern) for pattern in RULE_FILES):
        return True
    for at, part in enumerate(parts[:-1]):
        if part in ROOTS and not NO_RULES.intersection(parts[at:]):
            inside = "/".join(parts[at:-1])
            return any(
                _is_below(inside, folder) and any(fnmatchcase(name, pattern) for pattern in names)
                for folder, names in FOLDERS
            )
    return False


def _may_be_rules(name: str) -> bool:
    return name.endswith(".instructions.md") or name == "copilot-instructions.md"


def _is_below(path: str, folder: str) -> bool:
    """Return whether a folder is another one or below it; the latter may be a pattern."""
    depth = folder.count("/") + 1
    return fnmatchcase("/".join(path.split("/")[:depth]), folder)


def _read_rules(
    source: Original, text: str, root: str, unknown: dict[str, int]
) -> Iterator[ForeignRecord | Problem]:
    lines = text.split("\n")
    front, first = originals.front_matter(lines)
    body = "\n".join([*[""] * first, *lines[first:]])
    folder = agents.find_governed_folder(source.path, root, ROOTS)
    for key in front:
        if key not in KNOWN_KEYS:
            unknown[key] = unknown.get(key, 0) + 1
    scope = globs.build_scope(
        next((front[key] for key in GLOB_KEYS if front.get(key)), ""),
        folder,
        matches_names="applyTo" not in front,
    )
    for fault in globs.join_faults(scope.faults):
        line = _find_line(lines, GLOB_KEYS)
        yield Problem(source.shown, line, "left-out", fault, "", severity="warning")
    title = _find_title(front)
    label = title if len(title) <= MAX_LABEL_CHARS else ""
    passages = sections.split_passages(body, os.path.basename(source.path), label)
    if not passages:
        what = "it only points to other files" if body.strip() else "it has no text"
        what += "; it is left out"
        yield Problem(source.shown, first + 1, "empty-entry", what, "", severity="warning")
        return
    if len(passages) == 1:
        stem = _name_from_stem(source.path)
        titles = dict.fromkeys(filter(None, (title, *passages[0].titles, stem)))
        passages = [passages[0].replace(titles=tuple(titles))]
    fields: Fields = {"files": scope.files} if scope.files else {}
    tags = _find_tags(source.path, front)
    if tags:
        fields["tags"] = tags
    if title and len(passages) > 1:
        fields["x-description"] = title
    yield from agents.build_records(source, passages, fields)


def _find_title(front: Mapping[str, Any]) -> str:
    """Return the description, or the name; text over several lines becomes one."""
    values = (front.get(key) for key in TITLE_KEYS)
    texts = (originals.to_line(value, 200) for value in values if isinstance(value, str))
    return next((text.rstrip(".") for text in texts if text), "")


def _find_tags(path: str, front: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tags of a file: its own, its mode, and that it is always given."""
    own = front.get("tags", ())
    tags = list(own) if isinstance(own, tuple) else [tag.strip() for tag in str(own).split(",")]
    mode = _MODE.search(path.replace(os.sep, "/"))
    tags += [mode[1]] if mode else []
    if any(str(front.get(key, "")).lower() == value for key, value in ALWAYS.items()):
        tags.append(ALWAYS_TAG)
    return tuple(dict.fromkeys(tag for tag in tags if tag and schema.is_line(tag)))


def _name_from_stem(path: str) -> str:
    stem = os.path.basename(path).partition(".")[0] or os.path.basename(path).strip(".")
    name = stem.replace("_", " ").replace("-", " ").strip()
    return name[:1].upper() + name[1:]


def _find_line(lines: list[str], keys: tuple[str, ...]) -> int:
    """Return the number of the first line that begins with one of the keys; 1 if none does."""
    starts = tuple(f"{key}:" for key in keys)
    return next((at for at, line in enumerate(lines, 1) if line.startswith(starts)), 1)
