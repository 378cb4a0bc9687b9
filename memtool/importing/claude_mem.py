"""claude-mem: observations and summaries of sessions, of its SQLite database or its JSON export.

A model wrote them and nobody reviewed them, so they become candidates of low confidence. One
database holds all projects of a user: only the entries of one are taken. What people typed is left
out. The database is opened for reading only, without a lock, so that neither it nor a running
worker notices.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from memtool.errors import MemtoolError
from memtool.importing import entries, originals
from memtool.importing.entries import StoreEntry, StoreRequest
from memtool.importing.json_stores import UNREVIEWED, Rows, left_out, read_files
from memtool.importing.json_values import as_text, parts_of
from memtool.importing.originals import ForeignRecord, Original
from memtool.memory.schema import Problem
from memtool.store.files import refusing

TABLES = {"observations": "obs", "session_summaries": "summary"}
"""The tables that are read, and how the ids of their rows begin."""
_SECTIONS = {"observations": "obs", "summaries": "summary"}
_LEFT = ("user_prompts", "sdk_sessions", "prompts", "sessions")
_PARTS = ("subtitle", "narrative", "text")
_SUMMARY = (
    ("investigated", "Investigated"),
    ("learned", "Learned"),
    ("completed", "Completed"),
    ("next_steps", "Next steps"),
    ("notes", "Notes"),
)
_MAGIC = b"SQLite format 3\0"
_NAME = "claude-mem.db"


def drafts(path: str, asked: StoreRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the records of a database, of an export, or of the folder with the database.

    Raises:
        MemtoolError: it is neither, or no entry is of the project.
    """
    inside = os.path.join(path, _NAME)
    place = originals.located(inside if os.path.isfile(inside) else path)
    source = originals.original(place, asked.top)
    if os.path.isdir(place):
        raise MemtoolError(
            f"there is no {_NAME} in {source.shown}",
            hint="memtool import claude-mem ~/.claude-mem, or the file of an export",
            code="no-file",
        )
    hint = "name a plain file that you may read"
    with (
        refusing(f"{source.shown} cannot be read", hint, "no-file"),
        originals.open_plain(source) as file,
    ):
        is_database = file.read(len(_MAGIC)) == _MAGIC
    if not is_database:
        yield from read_files(place, asked, lambda rows, source: _of_rows(rows, source, asked))
        return
    source = source.replace(is_compressed=True)  # it has no lines that could be cited
    found = _of_database(source)
    yield from entries.records(list(_of_project(found, source, asked)), asked)


def _of_rows(rows: Rows, source: Original, asked: StoreRequest) -> Iterator[StoreEntry | Problem]:
    """Yield the entries of an export."""
    found: list[tuple[str, Mapping[str, Any], tuple[int, int]]] = []
    left: dict[str, int] = {}
    for row in rows:
        if isinstance(row, Problem):
            yield row
        elif row.section in _SECTIONS and isinstance(row.value, dict):
            found.append((_SECTIONS[row.section], row.value, row.lines))
        elif row.section in _LEFT:
            left[row.section] = left.get(row.section, 0) + 1
    yield from _of_project(found, source, asked)
    yield from left_out(source, left, "what people typed, and when, is no memory")


def _of_project(
    found: list[tuple[str, Mapping[str, Any], tuple[int, int]]],
    source: Original,
    asked: StoreRequest,
) -> Iterator[StoreEntry | Problem]:
    """Yield the entries of the project that is asked for; how many others have is told."""
    wanted = asked.project or os.path.basename(os.path.realpath(asked.top))
    others: dict[str, int] = {}
    for prefix, values, lines in found:
        project = as_text(values.get("project"))
        if project.rpartition("/")[2] in (wanted, "") or project == wanted:
            yield _entry(prefix, values, source, lines)
        else:
            others[project] = others.get(project, 0) + 1
    if others and sum(others.values()) == len(found):
        most = max(others, key=lambda name: others[name])
        names = ", ".join(originals.line(name, 60) for name in sorted(others)[:5])
        raise MemtoolError(
            f"{source.shown} has nothing of the project {wanted}, but of {names}",
            hint=f"memtool import claude-mem PATH --project {most}",
            code="no-records",
        )
    shown = {f"entries of the project {name}": count for name, count in others.items()}
    yield from left_out(source, shown, "--project NAME takes another one")


def _entry(
    prefix: str, values: Mapping[str, Any], source: Original, lines: tuple[int, int]
) -> StoreEntry:
    """Return an observation or summary as an entry."""
    kept = ("memory_session_id", "created_at", "agent_id", "metadata")
    entry: dict[str, Any] = {key: values[key] for key in kept if values.get(key)}
    entry["id"] = f"claude-mem-{prefix}-{as_text(values.get('id'))}"
    if prefix == "summary":
        parts = [f"{title}: {as_text(values[key])}" for key, title in _SUMMARY if values.get(key)]
        entry |= {"title": as_text(values.get("request")), "content": "\n\n".join(parts)}
        entry |= {"type": "episodic", "category": "discovery"}
    else:
        facts = [text for text in map(as_text, _listed(values.get("facts"))) if text]
        parts = [as_text(values.get(key)) for key in _PARTS]
        parts += ["\n".join(f"- {fact}" for fact in facts)]
        entry |= {"title": as_text(values.get("title")), "type": as_text(values.get("type"))}
        entry |= {"content": "\n\n".join(dict.fromkeys(filter(None, parts)))}
        entry |= {"tags": _listed(values.get("concepts"))}
    entry["files"] = _listed(values.get("files_modified") or values.get("files_edited"))
    return StoreEntry(entry, source, lines, UNREVIEWED, part=entry["id"])


def _listed(value: Any) -> list[Any]:
    """Return a list, which a database holds as the text of JSON."""
    return value if isinstance(value, list) else parts_of(as_text(value))


def _of_database(
    source: Original,
) -> list[tuple[str, Mapping[str, Any], tuple[int, int]]]:
    """Return the rows of a database, as they are in the file.

    Raises:
        MemtoolError: it is damaged, or not one of claude-mem.
    """
    import sqlite3  # only this store is one

    found: list[tuple[str, Mapping[str, Any], tuple[int, int]]] = []
    place = f"file:{quote(source.path)}?mode=ro&immutable=1"
    try:
        held = sqlite3.connect(place, uri=True)
        try:
            held.row_factory = sqlite3.Row
            held.text_factory = lambda data: data.decode(errors="replace")
            # A view could be made to have rows without end.
            listed = held.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
            )
            names = {row[0] for row in listed}
            for table, prefix in TABLES.items():
                if table in names:
                    rows = held.execute(f"SELECT * FROM {table} ORDER BY id")  # noqa: S608
                    found += [(prefix, dict(row), (1, 1)) for row in rows]
        finally:
            held.close()
    except sqlite3.Error as error:
        raise MemtoolError(
            f"{source.shown} cannot be read: {error}",
            hint="stop claude-mem, and import again; sqlite3 FILE .recover mends a damaged file",
            code="no-file",
        ) from None
    if not names & TABLES.keys():
        raise MemtoolError(
            f"{source.shown} is a database, but not one of claude-mem",
            hint=f"its table {' or '.join(TABLES)} is missing; name {_NAME}",
            code="no-file",
        )
    return found


def unseen(path: str) -> str:
    """Return a note where a database has a log that is not part of its file yet, else nothing."""
    place = os.path.join(path, _NAME) if os.path.isdir(path) else path
    try:
        is_waiting = os.stat(f"{place}-wal").st_size > 0
    except OSError:
        return ""
    what = f"{os.path.basename(place)} has a log beside it, whose entries are not in the file yet"
    return f"{what}; stop claude-mem and import again to have them" if is_waiting else ""
