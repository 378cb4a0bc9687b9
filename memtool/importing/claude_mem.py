"""claude-mem: observations and session summaries, from its SQLite database or JSON export.

A model wrote them without review, so they become candidates of low confidence. A database has all
projects of a user; only the entries of one project are imported. Prompts of users are left out. The
database is opened read-only and without a lock, so that a running worker is not affected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from memtool.errors import MemtoolError
from memtool.importing import entries, originals
from memtool.importing.entries import StoreEntry
from memtool.importing.json_stores import UNREVIEWED_DEFAULTS, Rows, read_files, warn_omitted
from memtool.importing.json_values import split_items, to_scalar_text
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.memory.schema import Problem
from memtool.store.files import explaining_errors

ID_PREFIXES = {"observations": "obs", "session_summaries": "summary"}
"""The tables that are read, and the prefixes of the ids of their rows."""
_SECTIONS = {"observations": "obs", "summaries": "summary"}
_OMITTED_SECTIONS = ("user_prompts", "sdk_sessions", "prompts", "sessions")
_PARTS = ("subtitle", "narrative", "text")
_SUMMARY = (
    ("investigated", "Investigated"),
    ("learned", "Learned"),
    ("completed", "Completed"),
    ("next_steps", "Next steps"),
    ("notes", "Notes"),
)
_MAGIC = b"SQLite format 3\0"
_DATABASE_NAME = "claude-mem.db"


def drafts(path: str, request: ImportRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the records of a database, of an export, or of the folder with the database.

    Raises:
        MemtoolError: it is none of these, or has no entries of the project.
    """
    inside = os.path.join(path, _DATABASE_NAME)
    place = originals.locate(inside if os.path.isfile(inside) else path)
    source = originals.build_original(place, request.top)
    if os.path.isdir(place):
        raise MemtoolError(
            f"cannot import: no {_DATABASE_NAME} in {source.shown}",
            hint="memtool import claude-mem ~/.claude-mem",
            code="no-file",
        )
    hint = "name a plain file that you may read"
    with (
        explaining_errors(f"{source.shown} cannot be read", hint, "no-file"),
        originals.open_plain(source) as file,
    ):
        is_database = file.read(len(_MAGIC)) == _MAGIC
    if not is_database:
        yield from read_files(
            place, request, lambda rows, source: _read_export(rows, source, request)
        )
        return
    source = source.replace(is_compressed=True)  # a database has no lines to cite
    rows = _read_database(source)
    yield from entries.build_records(list(_select_project(rows, source, request)), request)


def _read_export(
    rows: Rows, source: Original, request: ImportRequest
) -> Iterator[StoreEntry | Problem]:
    """Yield the entries of an export."""
    entry_rows: list[tuple[str, Mapping[str, Any], tuple[int, int]]] = []
    omitted: dict[str, int] = {}
    for row in rows:
        if isinstance(row, Problem):
            yield row
        elif row.section in _SECTIONS and isinstance(row.value, dict):
            entry_rows.append((_SECTIONS[row.section], row.value, row.lines))
        elif row.section in _OMITTED_SECTIONS:
            omitted[row.section] = omitted.get(row.section, 0) + 1
    yield from _select_project(entry_rows, source, request)
    yield from warn_omitted(source, omitted, "what people typed, and when, is no memory")


def _select_project(
    entry_rows: list[tuple[str, Mapping[str, Any], tuple[int, int]]],
    source: Original,
    request: ImportRequest,
) -> Iterator[StoreEntry | Problem]:
    """Yield the entries of the requested project, and warnings that count those of others."""
    wanted = request.project or os.path.basename(os.path.realpath(request.top))
    other_projects: dict[str, int] = {}
    for prefix, values, lines in entry_rows:
        project = to_scalar_text(values.get("project"))
        if project.rpartition("/")[2] in (wanted, "") or project == wanted:
            yield _build_entry(prefix, values, source, lines)
        else:
            other_projects[project] = other_projects.get(project, 0) + 1
    if other_projects and sum(other_projects.values()) == len(entry_rows):
        largest = max(other_projects, key=lambda name: other_projects[name])
        names = ", ".join(originals.to_line(name, 60) for name in sorted(other_projects)[:5])
        raise MemtoolError(
            f"cannot import: {source.shown} has no project {wanted}, only {names}",
            hint=f"memtool import claude-mem PATH --project {largest}",
            code="no-records",
        )
    shown = {f"entries of the project {name}": count for name, count in other_projects.items()}
    yield from warn_omitted(source, shown, "--project NAME takes another one")


def _build_entry(
    prefix: str, values: Mapping[str, Any], source: Original, lines: tuple[int, int]
) -> StoreEntry:
    """Build an entry from an observation or summary."""
    copied_keys = ("memory_session_id", "created_at", "agent_id", "metadata")
    entry: dict[str, Any] = {key: values[key] for key in copied_keys if values.get(key)}
    entry["id"] = f"claude-mem-{prefix}-{to_scalar_text(values.get('id'))}"
    if prefix == "summary":
        parts = [
            f"{title}: {to_scalar_text(values[key])}" for key, title in _SUMMARY if values.get(key)
        ]
        entry |= {"title": to_scalar_text(values.get("request")), "content": "\n\n".join(parts)}
        entry |= {"type": "episodic", "category": "discovery"}
    else:
        facts = [text for text in map(to_scalar_text, _to_list(values.get("facts"))) if text]
        parts = [to_scalar_text(values.get(key)) for key in _PARTS]
        parts += ["\n".join(f"- {fact}" for fact in facts)]
        entry |= {
            "title": to_scalar_text(values.get("title")),
            "type": to_scalar_text(values.get("type")),
        }
        entry |= {"content": "\n\n".join(dict.fromkeys(filter(None, parts)))}
        entry |= {"tags": _to_list(values.get("concepts"))}
    entry["files"] = _to_list(values.get("files_modified") or values.get("files_edited"))
    return StoreEntry(entry, source, lines, UNREVIEWED_DEFAULTS, part=entry["id"])


def _to_list(value: Any) -> list[Any]:
    """Return a list; a database stores it as JSON text."""
    return value if isinstance(value, list) else split_items(to_scalar_text(value))


def _read_database(
    source: Original,
) -> list[tuple[str, Mapping[str, Any], tuple[int, int]]]:
    """Read the rows of a database file.

    Raises:
        MemtoolError: it is damaged, or not a database of claude-mem.
    """
    import sqlite3  # only this store is a database

    entry_rows: list[tuple[str, Mapping[str, Any], tuple[int, int]]] = []
    place = f"file:{quote(source.path)}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(place, uri=True)
        try:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda data: data.decode(errors="replace")
            # No views: one could be built to have endless rows.
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
            )
            names = {row[0] for row in tables}
            for table, prefix in ID_PREFIXES.items():
                if table in names:
                    rows = connection.execute(f"SELECT * FROM {table} ORDER BY id")  # noqa: S608
                    entry_rows += [(prefix, dict(row), (1, 1)) for row in rows]
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise MemtoolError(
            f"cannot read {source.shown}: {error}",
            hint="stop claude-mem, then import again\nif it is damaged: sqlite3 FILE .recover",
            code="no-file",
        ) from None
    if not names & ID_PREFIXES.keys():
        raise MemtoolError(
            f"{source.shown} is a database, but not of claude-mem",
            hint=f"its table {' or '.join(ID_PREFIXES)} is missing; name {_DATABASE_NAME}",
            code="no-file",
        )
    return entry_rows


def find_unread_log(path: str) -> str:
    """Return a note if the database has a write-ahead log, which is not read; else empty."""
    place = os.path.join(path, _DATABASE_NAME) if os.path.isdir(path) else path
    try:
        is_waiting = os.stat(f"{place}-wal").st_size > 0
    except OSError:
        return ""
    what = f"{os.path.basename(place)} has a log beside it, whose entries are not in the file yet"
    return f"{what}; stop claude-mem and import again to have them" if is_waiting else ""
