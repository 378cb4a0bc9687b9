"""Beads: the issues and memories of its export, one JSON object a line.

Decisions, bugs and tasks are taken, with their labels, dependencies and comments, and what
`bd remember` stored. A task that is closed is archived: it is found when it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from memtool import tables
from memtool.importing import originals
from memtool.importing.entries import StoreEntry, StoreRequest, relation_of, snake
from memtool.importing.json_stores import Rows, left_out, read_files
from memtool.importing.json_values import as_text, moment_of
from memtool.importing.originals import ForeignRecord, Original
from memtool.memory import timestamps
from memtool.memory.schema import Problem

_FILE = "issues.jsonl"
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
_TOLD = frozenset(tables.grouped("importing/left_out")["beads"])


def drafts(path: str, asked: StoreRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the records of a file, or of the folder `.beads`, also where the one above is named."""
    places = (os.path.join(path, ".beads", _FILE), os.path.join(path, _FILE))
    found = next(filter(os.path.isfile, places), path)
    return read_files(found, asked, _beads, is_lines=True)


def _beads(found: Rows, source: Original) -> Iterator[StoreEntry | Problem]:
    """Yield decisions, bugs and tasks, and what `bd remember` stored; not what agents exchange."""
    issues: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {}
    left: dict[str, int] = {}
    for row in found:
        if isinstance(row, Problem):
            yield row
            continue
        value = row.value if isinstance(row.value, dict) else {}
        if value.get("_type") == "memory":
            own = {"id": value.get("key"), "content": value.get("value"), "type": "semantic"}
            yield StoreEntry(own, source, row.lines)
            continue
        kind = as_text(value.get("issue_type")) or "task"
        name = as_text(value.get("id"))
        if not name or kind not in _TYPES or value.get("ephemeral") or value.get("is_template"):
            kind = "rows without an id" if not name else f"issues of type {kind}"
            left[kind] = left.get(kind, 0) + 1
        elif name in issues:
            what = f"{originals.line(name, 80)} stands in line {issues[name][1][0]} already"
            yield Problem(
                source.shown, row.lines[0], "duplicate-record", what, "give it another id"
            )
        else:
            issues[name] = value, row.lines
    dates = {name: _second(value.get("created_at")) for name, (value, _lines) in issues.items()}
    for value, lines in issues.values():
        yield StoreEntry(_issue(value, dates), source, lines)
    yield from left_out(source, left, "they are work between agents, and not what a project knows")


def _issue(value: dict[str, Any], dates: Mapping[str, int]) -> dict[str, Any]:
    """Return an issue as an entry, with what is done out of the way."""
    type_, category = _TYPES[as_text(value.get("issue_type")) or "task"]
    state = snake(as_text(value.get("status")) or "open")
    status = "confirmed"
    if value.get("pinned") or state == "pinned":
        status = "pinned"
    elif state == "closed":
        status = "archived" if type_ == "state" else "confirmed"
    elif state == "deferred" or type_ == "decision":
        status = "candidate"
    parts = [as_text(value.get("description"))]
    parts += [f"{title}: {as_text(value[key])}" for key, title in _SECTIONS if value.get(key)]
    comments = [one for one in value.get("comments") or () if isinstance(one, dict)]
    said = [f"- {as_text(one.get('author'))}: {as_text(one.get('text'))}" for one in comments]
    parts += ["Comments:\n\n" + "\n".join(said)] if said else []
    entry = {name: one for name, one in value.items() if name not in _TOLD}
    entry |= {key: value.get(key) for key in ("id", "title", "created_at", "labels")}
    entry |= {"type": type_, "category": category, "status": status, "due_at": value.get("due_at")}
    entry |= {"content": "\n\n".join(filter(None, parts)), "assignee": value.get("assignee")}
    outside, author = as_text(value.get("external_ref")), as_text(value.get("created_by"))
    sources = [outside] if outside.startswith(("http://", "https://")) else []
    sources += [f"human:{author}"] if author else []
    entry |= {"source": sources, "external_ref": "" if sources[:1] == [outside] else outside}
    priority = value.get("priority")
    if isinstance(priority, int) and 0 <= priority < len(_IMPORTANCE):
        entry["importance"] = _IMPORTANCE[priority]
    for relation, other in _edges(value, dates):
        entry.setdefault(relation, []).append(other)
    return entry


def _edges(value: dict[str, Any], dates: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield relations of an issue to others that are here."""
    own = dates[as_text(value.get("id"))]
    rows_ = value.get("dependencies")
    for one in rows_ if isinstance(rows_, list) else ():
        other = as_text(one.get("depends_on_id")) if isinstance(one, dict) else ""
        if other not in dates:
            continue
        kind = snake(as_text(one.get("type")) or "blocks")
        if (
            kind == "supersedes"
        ):  # bd supersede writes it from the old to the new, others as it reads
            yield ("supersedes" if dates[other] < own else "superseded_by"), other
        elif kind == "duplicates":
            yield "superseded_by", other
        else:
            yield (
                relation_of("blocked_by" if kind == "blocks" else kind, "related_to"),
                other,
            )


def _second(text: Any) -> int:
    try:
        return timestamps.parse(moment_of(as_text(text)))
    except ValueError:
        return 0
