"""`memtool blame`: who wrote each field and section of a memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from memtool.commands._layout import Layout, clip
from memtool.commands._render import format_authors, format_commit
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import strict
from memtool.memory.memory import split_sections, to_text
from memtool.redaction.mask import Mask
from memtool.store import versions
from memtool.store.blame import UNCOMMITTED, blame_lines
from memtool.store.context import Context
from memtool.store.history import Commit, History, resolve_tip
from memtool.store.tree import Record
from memtool.value import Value

MAX_VALUE_WIDTH = 48
"""Cells of a value in the table."""
OPENING = "(opening)"
"""The name of the text before the first heading."""


class BlamePart(Value):
    """A field or section, and the newest commit of its lines.

    `state` is committed, uncommitted (at least one line), or shallow (the clone lacks the commit).
    Commit, author and date are empty unless it is committed. Line numbers of the file start at 1,
    both inclusive. `pull_request`, such as `#12`, and `co_authors` are set if the commit names
    them.
    """

    json_optional = "pull_request co_authors"

    name: str
    value: str
    commit: str
    author: str
    date: str
    state: str
    first_line: int
    last_line: int
    pull_request: str = ""
    co_authors: tuple[str, ...] = ()


class Blame(Value):
    """Who wrote each part of a memory; fields and sections in the order of the file."""

    id: str
    path: str
    fields: tuple[BlamePart, ...]
    sections: tuple[BlamePart, ...]


def blame(context: Context, id: str, *, at: str | None = None) -> Blame:
    """Show who wrote each key and section of a memory, and in which commit.

    Example:
        memtool blame dec-2g54

    Args:
        id: the memory, by id or words
        at: a revision instead of the worktree
    """
    tree = index.open(context, at, exact=True)
    record = tree.find(id)
    head = resolve_tip(context.repository, at)
    files = tree.location.list_files()
    entries = tuple(entry for entry in files.entries if entry.path == record.path)
    content = next(data for _entry, data in files.replace(entries=entries).read())
    data = content if isinstance(content, bytes) else b""
    memory = versions.parse_version(data, record.path, context.settings.categories).memory
    if memory is None:
        raise MemtoolError(
            f"{record.path} was changed in the meantime",
            hint="run the command again",
            code="changed",
        )
    mask_text = Mask(context.settings).for_file(memory, data)
    with History(context.repository) as history:
        commits = blame_lines(history, tree.location, head, record.path, data)
        return build_blame(record, data, commits, history, mask_text)


class CommitHistory(Protocol):
    """Finds the author of a commit, and the newest of several commits."""

    def find_author_commit(self, id_: str) -> Commit: ...

    def find_newest(self, commits: Iterable[str]) -> str: ...


def build_blame(
    record: Record,
    data: bytes,
    commits: Sequence[str],
    history: CommitHistory,
    mask_text: Callable[[str], str] = str,
) -> Blame:
    """Find the author of each part of a memory, given the commit of each line of its file.

    `data` is the content of the file, and must be a valid memory.
    """
    header, body = strict.split(data.decode().removeprefix("\ufeff")) or ("", "")
    rows = data.split(b"\n")
    start = len(rows) - len(body.split("\n"))
    field_spans = [
        (key, mask_text(to_text(record.memory.fields.get(key))), first, last)
        for key, (first, last) in strict.read_header(header).spans.items()
    ]
    section_spans = [
        (
            mask_text(part.title) or OPENING,
            mask_text(part.text),
            start + part.first_line,
            start + part.last_line,
        )
        for part in split_sections(body)
    ]
    field_parts = tuple(_build_part(history, commits, rows, *span) for span in field_spans)
    section_parts = tuple(_build_part(history, commits, rows, *span) for span in section_spans)
    return Blame(record.id, record.path, field_parts, section_parts)


def render(blame: Blame, layout: Layout) -> str:
    """Return a table: name, start of the value with short ids, commit, author and age."""
    rows = [
        (
            name,
            layout.shorten(" ".join(part.value.split())),
            format_commit(part) or {"uncommitted": "not committed"}.get(part.state, part.state),
            format_authors(part),
            layout.when(part.date),
        )
        for prefix, parts in (("", blame.fields), ("## ", blame.sections))
        for part in parts
        for name in (part.name if part.name == OPENING else prefix + part.name,)
    ]
    clipped = [(row[0], clip(row[1], MAX_VALUE_WIDTH), *row[2:]) for row in rows]
    return "\n".join([blame.path, *layout.table(clipped)])


def _build_part(
    history: CommitHistory,
    commits: Sequence[str],
    rows: Sequence[bytes],
    name: str,
    value: str,
    first: int,
    last: int,
) -> BlamePart:
    """Find the newest commit of a range of lines, without trailing blank lines."""
    last = min(last, len(rows))
    while last > first and not rows[last - 1].strip():
        last -= 1
    line_commits = commits[first - 1 : last]
    if UNCOMMITTED in line_commits:
        return BlamePart(name, value, "", "", "", "uncommitted", first, last)
    commit = history.find_author_commit(history.find_newest(line_commits))
    state = "committed" if commit.id else "shallow"
    return BlamePart(
        name,
        value,
        commit.id,
        commit.author,
        commit.date,
        state,
        first,
        last,
        commit.pull_request,
        commit.co_authors,
    )
