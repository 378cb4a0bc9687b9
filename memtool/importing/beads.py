"""Beads: the issues and memories of its export, one JSON object a line.

Imported are decisions, bugs and tasks, with their labels, dependencies and comments, and memories
of `bd remember`. A closed task becomes archived, so that only an explicit search finds it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from memtool import tables
from memtool.importing import originals
from memtool.importing.entries import StoreEntry, find_relation, to_snake_case
from memtool.importing.json_stores import Rows, read_files, warn_omitted
from memtool.importing.json_values import parse_moment, to_scalar_text
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.memory import timestamps
from memtool.memory.schema import Problem

_FILE_NAME = "issues.jsonl"
_TYPES: dict[str, tuple[str, str]] = {
    "decision": ("decision", "decision"),
    "bug": ("episodic", "error"),
    **dict.fromkeys(
        ("task", "feature", "epic", "chore", "spike", "story", "milestone"),
        ("state", "task_progress"),
    ),
}
_IMPORTANCE = ("0.9", "0.7", "0.5", "0.3", "0.1")
_SECTIONS = (
    ("design", "Design"),
    ("acceptance_criteria", "Acceptance criteria"),
    ("notes", "Notes"),
    ("close_reason", "Closed"),
)
_OMITTED_KEYS = frozenset(tables.group_rows("importing/left_out")["beads"])


def drafts(path: str, request: ImportRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the records of a file, of the folder `.beads`, or of its parent folder."""
    places = (os.path.join(path, ".beads", _FILE_NAME), os.path.join(path, _FILE_NAME))
    file = next(filter(os.path.isfile, places), path)
    return read_files(file, request, _read_rows, is_lines=True)


def _read_rows(rows: Rows, source: Original) -> Iterator[StoreEntry | Problem]:
    """Yield decisions, bugs, tasks and memories, without messages between agents."""
    issues: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {}
    omitted: dict[str, int] = {}
    for row in rows:
        if isinstance(row, Problem):
            yield row
            continue
        value = row.value if isinstance(row.value, dict) else {}
        if value.get("_type") == "memory":
            own = {"id": value.get("key"), "content": value.get("value"), "type": "semantic"}
            yield StoreEntry(own, source, row.lines)
            continue
        kind = to_scalar_text(value.get("issue_type")) or "task"
        name = to_scalar_text(value.get("id"))
        if not name or kind not in _TYPES or value.get("ephemeral") or value.get("is_template"):
            kind = "rows without an id" if not name else f"issues of type {kind}"
            omitted[kind] = omitted.get(kind, 0) + 1
        elif name in issues:
            what = f"{originals.to_line(name, 80)} stands in line {issues[name][1][0]} already"
            yield Problem(
                source.shown, row.lines[0], "duplicate-record", what, "give it another id"
            )
        else:
            issues[name] = value, row.lines
    dates = {
        name: _parse_second(value.get("created_at")) for name, (value, _lines) in issues.items()
    }
    for value, lines in issues.values():
        yield StoreEntry(_build_entry(value, dates), source, lines)
    yield from warn_omitted(
        source, omitted, "they are work between agents, and not what a project knows"
    )


def _build_entry(value: dict[str, Any], dates: Mapping[str, int]) -> dict[str, Any]:
    """Build an entry from an issue; a closed task is archived."""
    type_, category = _TYPES[to_scalar_text(value.get("issue_type")) or "task"]
    state = to_snake_case(to_scalar_text(value.get("status")) or "open")
    status = "confirmed"
    if value.get("pinned") or state == "pinned":
        status = "pinned"
    elif state == "closed":
        status = "archived" if type_ == "state" else "confirmed"
    elif state == "deferred" or type_ == "decision":
        status = "candidate"
    parts = [to_scalar_text(value.get("description"))]
    parts += [
        f"{title}: {to_scalar_text(value[key])}" for key, title in _SECTIONS if value.get(key)
    ]
    comments = [comment for comment in value.get("comments") or () if isinstance(comment, dict)]
    comment_lines = [
        f"- {to_scalar_text(comment.get('author'))}: {to_scalar_text(comment.get('text'))}"
        for comment in comments
    ]
    parts += ["Comments:\n\n" + "\n".join(comment_lines)] if comment_lines else []
    entry = {name: item for name, item in value.items() if name not in _OMITTED_KEYS}
    entry |= {key: value.get(key) for key in ("id", "title", "created_at", "labels")}
    entry |= {"type": type_, "category": category, "status": status, "due_at": value.get("due_at")}
    entry |= {"content": "\n\n".join(filter(None, parts)), "assignee": value.get("assignee")}
    outside, author = (
        to_scalar_text(value.get("external_ref")),
        to_scalar_text(value.get("created_by")),
    )
    sources = [outside] if outside.startswith(("http://", "https://")) else []
    sources += [f"human:{author}"] if author else []
    entry |= {"source": sources, "external_ref": "" if sources[:1] == [outside] else outside}
    priority = value.get("priority")
    if isinstance(priority, int) and 0 <= priority < len(_IMPORTANCE):
        entry["importance"] = _IMPORTANCE[priority]
    for relation, other in _find_relations(value, dates):
        entry.setdefault(relation, []).append(other)
    return entry


def _find_relations(value: dict[str, Any], dates: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the relations of an issue to other issues of the export."""
    own = dates[to_scalar_text(value.get("id"))]
    dependencies = value.get("dependencies")
    for dependency in dependencies if isinstance(dependencies, list) else ():
        other = (
            to_scalar_text(dependency.get("depends_on_id")) if isinstance(dependency, dict) else ""
        )
        if other not in dates:
            continue
        kind = to_snake_case(to_scalar_text(dependency.get("type")) or "blocks")
        # `bd supersede` writes the edge from the old to the new one, other writers as it reads.
        if kind == "supersedes":
            yield ("supersedes" if dates[other] < own else "superseded_by"), other
        elif kind == "duplicates":
            yield "superseded_by", other
        else:
            yield (
                find_relation("blocked_by" if kind == "blocks" else kind, "related_to"),
                other,
            )


def _parse_second(text: Any) -> int:
    try:
        return timestamps.parse(parse_moment(to_scalar_text(text)))
    except ValueError:
        return 0
