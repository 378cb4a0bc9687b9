"""`memtool session`: private sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator

from memtool.commands._render import columns
from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.sessions import findings, journal, lifecycle, redaction, store
from memtool.sessions.model import Head, Message, moment_text
from memtool.sessions.store import MEGABYTE, MESSAGES, Sessions
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from memtool.store.context import Context

MOST_TEXT = 1 << 20
"""Bytes of a message that is given by hand."""
ACTIONS: dict[str, tuple[str, ...]] = {
    "list": ("status", "limit"),
    "start": ("host", "agent", "title"),
    "add": ("role", "agent", "tool", "call", "result", "file", "reopen"),
    "checkpoint": (),
    "end": ("summary",),
    "fork": ("host", "agent", "title"),
    "show": ("limit",),
    "prune": (),
}
"""Each action with the options that mean something to it."""
_MOST_LISTED = 50


class Begun(Value):
    """A session that was begun, alone or forked from another one."""

    id: str
    parent: str = ""
    parent_messages: int = 0
    findings: int = 0
    dry_run: bool = False


class Said(Value):
    """A message that was added, as it is kept."""

    id: str
    number: int
    role: str
    text: str
    dry_run: bool = False


class CheckpointMade(Value):
    """A checkpoint by hand, after the message of that number."""

    id: str
    message: int
    note: str
    dry_run: bool = False


class Ended(Value):
    """A session that has ended, with its summary."""

    id: str
    messages: int
    summary: str
    dry_run: bool = False


class Freed(Value):
    """Sessions whose messages were removed; `size` is what all sessions take now, in bytes."""

    ids: tuple[str, ...]
    freed: int
    size: int
    dry_run: bool = False


class _Call(Value):
    """What an action is given: the options are those that mean something to it."""

    context: Context
    sessions: Sessions
    id: str
    text: str
    options: dict[str, Any]
    dry_run: bool


def session(
    context: Context,
    action: Literal["list", "start", "add", "checkpoint", "end", "fork", "show", "prune"] = "list",
    id: str = "",
    *text: str,
    role: Literal["", "user", "assistant", "tool", "system"] = "",
    agent: str = "",
    tool: str = "",
    call: str = "",
    result: Literal["", "ok", "failed"] = "",
    file: tuple[str, ...] = (),
    host: str = "",
    title: str = "",
    summary: str = "",
    status: Literal["", "open", "ended", "pruned"] = "",
    limit: int | None = None,
    reopen: bool = False,
    dry_run: bool = False,
) -> Begun | Said | CheckpointMade | Ended | Freed | SessionView | SessionList:
    """Keep the log of a session: what was said, called and answered.

    Sessions are private: they stay in the git directory of this clone, shared by its worktrees,
    and secrets are cut out before anything is written. Any number of agents may add to one.

    start prints the id of a new session; add appends a message, and makes a checkpoint every ten;
    end writes a summary, by rules where none is given, after which nothing is added; fork goes on
    in a new session that has the findings of the old one. show prints a session, or with ID#N just
    one message. prune removes the messages of those that ended first when all are too large.

    Example:
        memtool session start --agent claude
        memtool session add ses-2026-02-22-k3f9 --role user "Never retry payments."
        memtool session add ses-2026-02-22-k3f9 --call "pytest -q" --result failed - < log
        memtool session end ses-2026-02-22-k3f9

    Args:
        action: list, start, add, checkpoint, end, fork, show or prune
        id: the session, by its id or the beginning of it; with show also ID#N
        text: the message, or - to read it from stdin; for checkpoint a note
        role: add: who spoke; by default the user, or the assistant with --agent
        agent: who works or spoke, such as claude or a name
        tool: add: the tool that was called, or that answered
        call: add: what it was called with, such as a command line
        result: add: whether the tool worked
        file: add: a file that was touched; may be repeated
        host: start, fork: the agent host that it runs in
        title: start, fork: what it is about
        summary: end: the summary, or - to read it from stdin
        status: list: only sessions that stand so
        limit: list: most sessions, 50 unless it is given; show: only the last messages; 0 for all
        reopen: add: open a session again that has ended
        dry_run: say what would be done, write nothing
    """
    given = {
        "role": role, "agent": agent, "tool": tool, "call": call, "result": result, "file": file,
        "host": host, "title": title, "summary": summary, "status": status, "reopen": reopen,
    }  # fmt: skip
    if limit is not None:
        given["limit"] = limit
        if limit < 0:
            raise MemtoolError(f"--limit {limit} is below 0", hint="--limit 0 shows all")
    _refuse_stray(
        action, id, text, [name for name, value in given.items() if value or name == "limit"]
    )
    options = {name: given[name] for name in ACTIONS[action] if name in given}
    answer: Begun | Said | CheckpointMade | Ended | Freed | SessionView | SessionList
    answer = _DO[action](
        _Call(context, store.opened(context), id, " ".join(text), options, dry_run)
    )
    return answer


def render(
    answer: Begun | Said | CheckpointMade | Ended | Freed | SessionView | SessionList,
) -> str:
    """Return an answer as text; of a session that was begun just the id."""
    would = "would " if getattr(answer, "dry_run", False) else ""
    if isinstance(answer, Begun):
        return answer.id
    if isinstance(answer, Said):
        said = f"{would}add {answer.id}#{answer.number} {answer.role}: {answer.text}"
        return said if would else f"{answer.id}#{answer.number}"
    if isinstance(answer, CheckpointMade):
        return f"{would or 'made '}checkpoint after {answer.id}#{answer.message}"
    if isinstance(answer, Ended):
        return f"{would}end{'' if would else 'ed'} {answer.id}\n{answer.summary}"
    if isinstance(answer, Freed):
        rows = [f"{would}prune {id_}" if would else f"pruned {id_}" for id_ in answer.ids]
        freed = f"{size_text(answer.freed)} freed, " if answer.ids else "nothing to prune, "
        return "\n".join([*rows, f"{freed}{size_text(answer.size)} kept"])

    if isinstance(answer, SessionView):
        return show_text(answer)
    return list_text(answer)


def _refuse_stray(action: str, id: str, text: tuple[str, ...], given: list[str]) -> None:
    """Raise MemtoolError where a word or an option means nothing to an action."""
    if action in ("list", "start", "prune") and id:
        how = "--title gives it a name" if action == "start" else f"memtool session show {id}"
        raise MemtoolError(f"session {action} takes no further word, not {id!r}", hint=how)
    if action in ("end", "fork", "show") and text:
        how = 'memtool session end ID --summary "…"' if action == "end" else f"session {action} ID"
        raise MemtoolError(f"{text[0]!r} is one word too many for session {action}", hint=how)
    if not id and action not in ("list", "start", "prune"):
        raise MemtoolError(
            f"session {action} needs the id of a session",
            hint="memtool session list shows them, memtool session start begins one",
        )
    stray = [name for name in given if name not in ACTIONS[action]]
    if stray:
        takers = [name for name, options in ACTIONS.items() if stray[0] in options]
        raise MemtoolError(f"--{stray[0]} means nothing to session {action}",
                           hint=f"it belongs to session {' and '.join(takers)}")  # fmt: skip


def _start(call: _Call) -> Begun:
    head = lifecycle.new_head(call.context, call.sessions, **call.options)
    if not call.dry_run:
        lifecycle.refuse_full(call.sessions)
        head = lifecycle.start(call.context, call.sessions, head)
    return Begun(head.id, dry_run=call.dry_run)


def _add(call: _Call) -> Said:
    name = call.sessions.find(call.id)
    said = _given(call.text).strip("\n")
    if not said.strip():
        how = f'memtool session add {call.id} "…", or - to read it from stdin'
        raise MemtoolError("there is nothing to add", hint=how, code="empty")
    agent, role = call.options["agent"], call.options["role"]
    message = Message(
        number=0,
        role=role or ("tool" if call.options["result"] else "assistant" if agent else "user"),
        text=said,
        moment=call.context.now,
        agent=" ".join(agent.split()),
        tool=" ".join(call.options["tool"].split()),
        call=" ".join(call.options["call"].split()),
        is_ok={"": None, "ok": True, "failed": False}[call.options["result"]],
        files=call.options["file"],
    )
    if call.dry_run:
        (clean,) = redaction.cleaned([message], call.sessions.allowed)
        last = call.sessions.last(name)
        return Said(name, last.number + 1 if last else 1, clean.role, clean.text, dry_run=True)
    added = store.add(
        call.sessions, name, [message], call.context.now, reopen=call.options["reopen"]
    )
    call.context.notes.extend(added.notes)
    (kept,) = added.messages
    return Said(name, kept.number, kept.role, kept.text)


def _checkpoint(call: _Call) -> CheckpointMade:
    name = call.sessions.find(call.id)
    note = _given(call.text).strip()
    if call.dry_run:
        last = call.sessions.last(name)
        return CheckpointMade(name, last.number if last else 0, note, dry_run=True)
    made = store.mark(call.sessions, name, note, call.context.now)
    return CheckpointMade(name, made.message, made.note)


def _end(call: _Call) -> Ended:
    from memtool.store import usage_log

    name = call.sessions.find(call.id)
    said = _given(call.options["summary"]).strip()
    if not call.dry_run:
        findings.learn(call.sessions, name)
    with usage_log.act(call.context, "session-end", name, dry_run=call.dry_run):
        head, count = lifecycle.end(
            call.sessions, name, said, call.context.now, dry_run=call.dry_run
        )
    return Ended(name, count, head.summary, call.dry_run)


def _fork(call: _Call) -> Begun:

    parent = call.sessions.find(call.id)
    head = lifecycle.new_head(call.context, call.sessions, **call.options)
    if not call.dry_run:
        lifecycle.refuse_full(call.sessions)
    made, rows = lifecycle.forked(call.sessions, parent, head)
    if not call.dry_run:
        made = lifecycle.start(call.context, call.sessions, made, rows)
    return Begun(made.id, parent, made.parent_messages, len(rows), call.dry_run)


def _show(call: _Call) -> SessionView:

    wanted, _mark, number = call.id.removeprefix("session:").partition("#")
    name = call.sessions.find(wanted)
    if number and not (number.isascii() and number.isdigit()):
        raise MemtoolError(
            f"{number!r} is no number of a message", hint=f"memtool session show {name}"
        )
    limit = call.options.get("limit", 0)
    found = shown(call.sessions, name, int(number or 0), limit, call.context.now)
    if found is None:
        raise MemtoolError(f"session {name} has no message {number}", code="no-message",
                           hint=f"memtool session show {name} --limit 0 prints all")  # fmt: skip
    return found


def _list(call: _Call) -> SessionList:

    limit = call.options.get("limit", _MOST_LISTED)
    found, wrong = listed(call.sessions, call.options["status"], limit)
    call.context.notes.extend(wrong)
    return found


def _prune(call: _Call) -> Freed:
    from memtool.store import usage_log

    with usage_log.act(call.context, "session-purge", dry_run=call.dry_run) as act:
        done = lifecycle.prune(call.sessions, dry_run=call.dry_run)
        act.subjects = done.ids
    return Freed(done.ids, done.freed, done.size, call.dry_run)


_DO: dict[str, Callable[[_Call], Any]] = {
    "list": _list,
    "start": _start,
    "add": _add,
    "checkpoint": _checkpoint,
    "end": _end,
    "fork": _fork,
    "show": _show,
    "prune": _prune,
}


def _given(text: str) -> str:
    """Return a text, that of stdin where it is `-`. Raises MemtoolError where that is none."""
    if text != "-":
        return text
    from memtool.commands._filters import received

    return received(MOST_TEXT).decode(errors="replace")


FUTURE_S = timestamps.DAY_S
"""A message that is later than now by more than this is said to be in the future."""


class SessionRow(Value):
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


class SessionList(Value):
    """Sessions, newest first; `size` is the bytes of all that are kept, listed or not."""

    total: int
    size: int
    sessions: tuple[SessionRow, ...]


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


class SessionView(Value):
    """A session with its messages, of which `more` before them are not shown."""

    session: SessionRow
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
            row["moment"] = moment_text(row["moment"])
        head: dict[str, Any] = fields.pop("session")
        return head | fields


def listed(sessions: Sessions, status: str, limit: int) -> tuple[SessionList, list[str]]:
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
    return SessionList(len(wanted), sum(sizes.values()), rows), wrong


def shown(sessions: Sessions, id: str, number: int, limit: int, now: int) -> SessionView | None:
    """Return a session with its last messages, or with one of them; None where it has no such."""
    head = sessions.head(id)
    known, torn = sessions.messages(id)
    wanted = [one for one in known if number in (0, one.number)]
    if number and not wanted:
        return None
    part = wanted[-limit:] if limit else wanted
    made, bad = store.checkpoints(sessions, id)
    return SessionView(
        session=_row(sessions, head, sessions.size(id), known[-1] if known else None),
        summary=head.summary,
        parent_messages=head.parent_messages,
        torn=torn + bad + _set_aside(sessions.folder(id)),
        more=len(wanted) - len(part),
        checkpoints=tuple(made),
        messages=tuple(_line(one, now) for one in part),
    )


def list_text(listed: SessionList) -> str:
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
            size_text(row.size),
            row.title,
        )
        for row in listed.sessions
    )
    more = listed.total - len(listed.sessions)
    if more:
        rows.append(f"{more} more: memtool session list --limit 0")
    return "\n".join(rows)


def show_text(shown: SessionView) -> str:
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


def _row(sessions: Sessions, head: Head, size: int, last: Message | None) -> SessionRow:
    return SessionRow(
        **{name: getattr(head, name) for name in SessionRow.field_names if hasattr(head, name)}
        | {"started": moment_text(head.started), "ended": moment_text(head.ended)},
        last=moment_text(last.moment if last else 0),
        messages=last.number if last else 0,
        findings=len(findings.known(sessions, head.id).findings),
        size=size,
    )


def _set_aside(folder: str) -> int:
    """Return how many half lines were cut off the messages of a session."""
    from memtool.store.files import read_regular

    try:
        return read_regular(os.path.join(folder, MESSAGES + journal.TORN_SUFFIX)).count(b"\n")
    except OSError:
        return 0


def _line(one: Message, now: int) -> Line:
    fields = {name: getattr(one, name) for name in Line.field_names if hasattr(one, name)}
    return Line(
        **fields | {"moment": moment_text(one.moment)},
        is_future=one.moment > now + FUTURE_S,
    )


def size_text(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{count / MEGABYTE:.1f} MB" if count >= MEGABYTE // 10 else f"{-(-count // 1024)} KB"
