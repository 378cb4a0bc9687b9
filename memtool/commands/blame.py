"""`memtool blame`: who wrote each field and section of a memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from memtool.commands._render import columns
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import strict
from memtool.memory.memory import as_text, sections
from memtool.redaction.mask import Mask
from memtool.store import versions
from memtool.store.blame import UNCOMMITTED, lines
from memtool.store.context import Context
from memtool.store.history import Commit, History, tip
from memtool.store.provenance import SHORT
from memtool.store.tree import Record
from memtool.value import Value

VALUE_WIDTH = 48
"""Characters of a value that the table shows."""
OPENING = "(opening)"
"""The name of the text before the first heading."""


class BlamePart(Value):
    """A field or section and the newest commit among its lines.

    `state` is committed, uncommitted (some line is in no commit), or shallow (history is cut off
    before it was written); commit, author and date are empty unless it is committed. Lines are
    those of the file, from 1, both inclusive.
    """

    name: str
    value: str
    commit: str
    author: str
    date: str
    state: str
    first_line: int
    last_line: int


class Blame(Value):
    """Who wrote each part of a memory; fields and sections in the order of the file."""

    id: str
    path: str
    fields: tuple[BlamePart, ...]
    sections: tuple[BlamePart, ...]


def blame(context: Context, id: str, *, at: str | None = None) -> Blame:
    """Show which commit each field and section of a memory comes from, and who wrote it.

    Of several commits the newest counts. Lines that no commit holds yet are marked.

    Example:
        memtool blame dec-2026-02-22-keep-sessions-in-redis

    Args:
        id: the memory, by its id or words of it
        at: a revision instead of the worktree
    """
    tree = index.open(context, at, exact=True)
    record = tree.find(id)
    head = tip(context.repository, at)
    files = tree.location.list_files()
    entries = tuple(entry for entry in files.entries if entry.path == record.path)
    read = next(data for _entry, data in files.replace(entries=entries).read())
    data = read if isinstance(read, bytes) else b""
    memory = versions.of_bytes(data, record.path, context.settings.categories).memory
    if memory is None:
        raise MemtoolError(
            f"{record.path} changed while it was read",
            hint="run the same command again",
            code="changed",
        )
    masked = Mask(context.settings).of_file(memory, data)
    with History(context.repository) as past:
        commits = lines(past, tree.location, head, record.path, data)
        return of_lines(record, data, commits, past, masked)


class Past(Protocol):
    """Who wrote a commit, and which of some commits is the newest."""

    def author_of(self, id_: str) -> Commit: ...

    def newest(self, commits: Iterable[str]) -> str: ...


def of_lines(
    record: Record,
    data: bytes,
    commits: Sequence[str],
    past: Past,
    masked: Callable[[str], str] = str,
) -> Blame:
    """Return who wrote each part of a memory of which the commit of each line is known.

    `data` are the bytes of its file, which is sound.
    """
    header, body = strict.split(data.decode().removeprefix("\ufeff")) or ("", "")
    rows = data.split(b"\n")
    start = len(rows) - len(body.split("\n"))
    spans = [
        (key, masked(as_text(record.memory.fields.get(key))), first, last)
        for key, (first, last) in strict.read_header(header).spans.items()
    ]
    bodies = [
        (
            masked(part.title) or OPENING,
            masked(part.text),
            start + part.first_line,
            start + part.last_line,
        )
        for part in sections(body)
    ]
    fields = tuple(_part(past, commits, rows, *span) for span in spans)
    texts = tuple(_part(past, commits, rows, *span) for span in bodies)
    return Blame(record.id, record.path, fields, texts)


def render(blame: Blame) -> str:
    """Return a table: name, commit, day, author and the beginning of the value."""
    rows = [
        (
            name,
            part.commit[:SHORT] or {"uncommitted": "not committed"}.get(part.state, part.state),
            part.date[:10],
            part.author,
            _short(part.value),
        )
        for prefix, parts in (("", blame.fields), ("## ", blame.sections))
        for part in parts
        for name in (part.name if part.name == OPENING else prefix + part.name,)
    ]
    return "\n".join([blame.path, *columns(rows)])


def _part(
    past: Past,
    commits: Sequence[str],
    rows: Sequence[bytes],
    name: str,
    value: str,
    first: int,
    last: int,
) -> BlamePart:
    """Find the newest commit of some lines; blank ones at the end belong to what comes next."""
    last = min(last, len(rows))
    while last > first and not rows[last - 1].strip():
        last -= 1
    among = commits[first - 1 : last]
    if UNCOMMITTED in among:
        return BlamePart(name, value, "", "", "", "uncommitted", first, last)
    commit = past.author_of(past.newest(among))
    state = "committed" if commit.id else "shallow"
    return BlamePart(name, value, commit.id, commit.author, commit.date, state, first, last)


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= VALUE_WIDTH else line[: VALUE_WIDTH - 1] + "…"
