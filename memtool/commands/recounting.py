"""Recounting: sessions and their messages as `memtool session list` and `show` tell them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from memtool.commands import sessions as telling
from memtool.commands.columns import columns
from memtool.memory import moments
from memtool.sessions import findings, journal, store
from memtool.sessions.model import Head, Message
from memtool.sessions.store import CHECKPOINTS, MESSAGES, Sessions
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FUTURE_S = moments.DAY_S
"""A message that is later than now by more than this is said to be in the future."""


class Row(Value):
    """A session in the list. Moments are text, empty for none; `size` is its bytes on disk."""

    id: str
    status: str
    host: str
    agent: str
    title: str
    parent: str
    branch: str
    worktree: str
    started: str
    last: str
    ended: str
    messages: int
    findings: int
    size: int


class Listed(Value):
    """Sessions, newest first; `size` is the bytes of all that are kept, listed or not."""

    total: int
    size: int
    sessions: tuple[Row, ...]


class Line(Value):
    """A message as it is shown. `is_future` says that its clock was ahead of ours."""

    number: int
    role: str
    agent: str
    moment: str
    is_future: bool
    tool: str
    call: str
    is_ok: bool | None
    files: tuple[str, ...]
    text: str


class Shown(Value):
    """A session with its messages, of which `more` before them are not shown."""

    session: Row
    summary: str
    parent_messages: int
    torn: int
    more: int
    checkpoints: tuple[store.Checkpoint, ...]
    messages: tuple[Line, ...]

    def plain(self) -> dict[str, Any]:
        """Return the fields of the session beside the others, with the times as text."""
        fields = super().plain()
        for row in fields["checkpoints"]:
            row["moment"] = telling.moment(row["moment"])
        head: dict[str, Any] = fields.pop("session")
        return head | fields


def listed(sessions: Sessions, status: str, limit: int) -> tuple[Listed, list[str]]:
    """Return the sessions of a status or of any, newest first, and what is wrong with others."""
    heads, wrong = sessions.heads()
    sizes = {head.id: sessions.size(head.id) for head in heads}
    wanted = [head for head in heads if status in ("", head.status)]
    wanted.sort(key=lambda head: head.id)
    wanted.sort(key=lambda head: head.started, reverse=True)
    rows = tuple(
        _row(sessions, head, sizes[head.id], sessions.last(head.id))
        for head in (wanted[:limit] if limit else wanted)
    )
    return Listed(len(wanted), sum(sizes.values()), rows), wrong


def shown(sessions: Sessions, id: str, number: int, limit: int, now: int) -> Shown | None:
    """Return a session with its last messages, or with one of them; None where it has no such."""
    head = sessions.head(id)
    known, torn = sessions.messages(id)
    wanted = [one for one in known if number in (0, one.number)]
    if number and not wanted:
        return None
    part = wanted[-limit:] if limit else wanted
    rows, bad = journal.read(sessions.path(id, CHECKPOINTS))
    made = tuple(one for one in map(store.read_checkpoint, rows) if one is not None)
    return Shown(
        session=_row(sessions, head, sessions.size(id), known[-1] if known else None),
        summary=head.summary,
        parent_messages=head.parent_messages,
        torn=torn + bad + _set_aside(sessions.folder(id)),
        more=len(wanted) - len(part),
        checkpoints=made,
        messages=tuple(_line(one, now) for one in part),
    )


def list_text(listed: Listed) -> str:
    """Return one line per session."""
    if not listed.sessions:
        return "no sessions"
    rows = columns(
        (
            row.id,
            row.status,
            row.agent or row.host,
            f"{row.messages:,} messages",
            f"{row.findings:,} findings" if row.findings else "",
            row.last or row.started,
            telling.size(row.size),
            row.title,
        )
        for row in listed.sessions
    )
    more = listed.total - len(listed.sessions)
    if more:
        rows.append(f"{more} more: memtool session list --limit 0")
    return "\n".join(rows)


def show_text(shown: Shown) -> str:
    """Return a session as text: what it is, then its messages."""
    row = shown.session
    rows = [" ".join(filter(None, (f"{row.id}  {row.status}", row.agent or row.host, row.title)))]
    facts = {
        "started": row.started,
        "ended": row.ended,
        "branch": row.branch,
        "worktree": row.worktree,
        "forked from": f"{row.parent} after message {shown.parent_messages}" * bool(row.parent),
        "torn lines": str(shown.torn) if shown.torn else "",
    }
    rows += [f"{name}: {value}" for name, value in facts.items() if value]
    if shown.summary:
        rows += ["summary:", *_indented(shown.summary)]
    if shown.more:
        rows.append(f"{shown.more:,} messages before these: --limit 0 shows all")
    for one in shown.messages:
        rows += _message_rows(one)
    return "\n".join(rows)


def _message_rows(one: Line) -> Iterator[str]:
    failed = {True: "worked", False: "failed", None: ""}[one.is_ok]
    words = (f"#{one.number}", one.moment, "(in the future)" * one.is_future, one.role, one.agent,
             one.tool, failed)  # fmt: skip
    yield " ".join(filter(None, words))
    if one.call:
        yield f"  $ {one.call}"
    yield from _indented(one.text)


def _indented(text: str) -> Iterator[str]:
    return (f"  {line}".rstrip() for line in text.split("\n")) if text else iter(())


def _row(sessions: Sessions, head: Head, size: int, last: Message | None) -> Row:
    return Row(
        **{name: getattr(head, name) for name in Row.field_names if hasattr(head, name)}
        | {"started": telling.moment(head.started), "ended": telling.moment(head.ended)},
        last=telling.moment(last.moment if last else 0),
        messages=last.number if last else 0,
        findings=len(findings.known(sessions, head.id).findings),
        size=size,
    )


def _set_aside(folder: str) -> int:
    """Return how many half lines were cut off the messages of a session."""
    from memtool.store.reading import read_regular

    try:
        return read_regular(os.path.join(folder, MESSAGES + journal.TORN_SUFFIX)).count(b"\n")
    except OSError:
        return 0


def _line(one: Message, now: int) -> Line:
    fields = {name: getattr(one, name) for name in Line.field_names if hasattr(one, name)}
    return Line(
        **fields | {"moment": telling.moment(one.moment)},
        is_future=one.moment > now + FUTURE_S,
    )
