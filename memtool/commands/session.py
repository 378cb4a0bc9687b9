"""Keep a private log of what happened in a session.

Sessions stay in the git directory of this clone, which its worktrees share. Secrets are cut out
before anything is written. Several agents may add to one session.

Example:
    memtool session start --agent claude
    memtool session add ses-2026-02-22-k3f9 --role user "Never retry payments."
    memtool session add ses-2026-02-22-k3f9 --call "pytest -q" --result failed - < log
    memtool session end ses-2026-02-22-k3f9
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

from memtool.commands import _filters
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.sessions import findings, journal, lifecycle, retention, store
from memtool.sessions.model import Message, Session, format_second
from memtool.sessions.store import MESSAGES, Sessions
from memtool.store import usage_log
from memtool.store.context import Context
from memtool.store.files import read_regular
from memtool.value import Value, format_count

MAX_TEXT_BYTES = 1 << 20
MAX_CLOCK_SKEW_S = timestamps.DAY_S
"""Seconds by which a message may be later than now before it counts as in the future."""


class SessionStarted(Value):
    """A new session, started or forked from another."""

    id: str
    parent: str = ""
    parent_messages: int = 0
    findings: int = 0
    dry_run: bool = False


class MessageAdded(Value):
    """A message that was added, as stored."""

    id: str
    number: int
    role: str
    text: str
    dry_run: bool = False


class CheckpointAdded(Value):
    """A manual checkpoint after message number `message`."""

    id: str
    message: int
    note: str
    dry_run: bool = False


class SessionEnded(Value):
    """An ended session with its summary."""

    id: str
    messages: int
    summary: str
    dry_run: bool = False


class SessionRow(Value):
    """A session in the list. Moments are text, "" for none; `size` is its bytes on disk."""

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
    """Sessions, newest first; `size` is the bytes of all stored sessions, listed or not."""

    total: int
    size: int
    sessions: tuple[SessionRow, ...]


class MessageRow(Value):
    """A message for display; `is_future` if its clock was ahead of ours."""

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
    """A session with its messages; `hidden_count` earlier ones are not shown.

    `before` are messages of the sessions that it was forked from, up to the fork, each with the
    id of its session.
    """

    json_names = (("hidden_count", "more"),)

    session: SessionRow
    summary: str
    parent_messages: int
    torn: int
    hidden_count: int
    checkpoints: tuple[store.Checkpoint, ...]
    messages: tuple[MessageRow, ...]
    before: tuple[tuple[str, MessageRow], ...] = ()
    has_messages: bool = True
    """Whether the text has the messages; JSON always has."""

    def plain(self) -> dict[str, Any]:
        """Return the session and the other fields in one object, with moments as text."""
        fields = super().plain()
        for row in fields["checkpoints"]:
            row["moment"] = format_second(row["moment"])
        fields["before"] = [{"id": name} | line.plain() for name, line in self.before]
        del fields["has_messages"]
        head: dict[str, Any] = fields.pop("session")
        return head | fields


def session_list(
    context: Context, *, status: Literal["", "open", "ended", "pruned"] = "", limit: int = 50
) -> SessionList:
    """List the sessions of this clone, newest first.

    Example:
        memtool session list --status open

    Args:
        status: only sessions that are open, ended or pruned
        limit: the number of sessions, 0 for all
    """
    sessions = store.open_sessions(context)
    heads, wrong = sessions.heads()
    context.notes.extend(wrong)
    sizes = retention.measure_sizes(sessions)
    wanted = [head for head in heads if status in ("", head.status)]
    wanted.sort(key=lambda head: (-head.started, head.id))
    rows: list[SessionRow] = []
    total = len(wanted)
    for head in wanted:
        if limit and len(rows) == limit:
            break
        try:
            row = _build_row(sessions, head, sizes.get(head.id, 0), sessions.read_last(head.id))
        except MemtoolError as error:
            context.notes.append(f"{head.id} is passed over: {error.message}; memtool doctor")
            total -= 1
        else:
            rows.append(row)
    return SessionList(total, sum(sizes.values()), tuple(rows))


def session_start(
    context: Context, *, host: str = "", agent: str = "", title: str = "", dry_run: bool = False
) -> SessionStarted:
    """Begin a session, and print its id.

    Example:
        memtool session start --agent claude --title "Retry of payments"

    Args:
        host: the program that it runs in
        agent: who works, such as claude
        title: what it is about
        dry_run: print an id, write nothing
    """
    sessions = store.open_sessions(context)
    head = lifecycle.begin_session(context, sessions, host=host, agent=agent, title=title)
    if not dry_run:
        retention.refuse_full(sessions)
        head = lifecycle.start(context, sessions, head)
    return SessionStarted(head.id, dry_run=dry_run)


def session_add(
    context: Context,
    id: str,
    *text: str,
    role: Literal["", "user", "assistant", "tool", "system"] = "",
    agent: str = "",
    tool: str = "",
    call: str = "",
    result: Literal["", "ok", "failed"] = "",
    file: tuple[str, ...] = (),
    reopen: bool = False,
    dry_run: bool = False,
) -> MessageAdded:
    """Append a message to a session.

    Every ten messages a checkpoint is made.

    Example:
        memtool session add ses-2026-02-22-k3f9 --role user "Never retry payments."
        memtool session add ses-2026-02-22-k3f9 --call "pytest -q" --result failed - < log

    Args:
        id: the session, by id or its beginning
        text: the message, or - to read it from stdin
        role: who spoke: user (default), assistant, tool or system
        agent: the name of the agent that spoke
        tool: the tool that was called, or that answered
        call: what it was called with, such as a command
        result: whether the tool worked
        file: a file that was touched; may be repeated
        reopen: reopen a session that has ended
        dry_run: print the message, write nothing
    """
    sessions = store.open_sessions(context)
    name = sessions.find(id)
    words = _read_text(" ".join(text)).strip("\n")
    if not words.strip():
        how = f'memtool session add {id} "…", or - to read it from stdin'
        raise MemtoolError("cannot add: the text is missing", hint=how, code="empty")
    message = Message(
        number=0,
        role=role or ("tool" if result else "assistant" if agent else "user"),
        text=words,
        moment=context.clock.now,
        agent=" ".join(agent.split()),
        tool=" ".join(tool.split()),
        call=" ".join(call.split()),
        is_ok={"": None, "ok": True, "failed": False}[result],
        files=file,
    )
    if dry_run:
        (clean,) = store.clean_messages([message], sessions.allowed)
        last = sessions.read_last(name)
        return MessageAdded(
            name, last.number + 1 if last else 1, clean.role, clean.text, dry_run=True
        )
    added = store.add(sessions, name, [message], context.clock.now, reopen=reopen)
    context.notes.extend(added.notes)
    (stored,) = added.messages
    return MessageAdded(name, stored.number, stored.role, stored.text)


def session_checkpoint(
    context: Context, id: str, *text: str, dry_run: bool = False
) -> CheckpointAdded:
    """Add a checkpoint with a note to a session.

    Example:
        memtool session checkpoint ses-2026-02-22-k3f9 "the tests pass again"

    Args:
        id: the session, by id or its beginning
        text: the note, or - to read it from stdin
        dry_run: show what would be done, write nothing
    """
    sessions = store.open_sessions(context)
    name = sessions.find(id)
    note = _read_text(" ".join(text)).strip()
    if dry_run:
        last = sessions.read_last(name)
        return CheckpointAdded(name, last.number if last else 0, note, dry_run=True)
    checkpoint = store.add_checkpoint(sessions, name, note, context.clock.now)
    return CheckpointAdded(name, checkpoint.message, checkpoint.note)


def session_end(
    context: Context, id: str, *, summary: str = "", dry_run: bool = False
) -> SessionEnded:
    """End a session with a summary.

    Without --summary, one is made from the messages.

    Example:
        memtool session end ses-2026-02-22-k3f9 --summary "payments are not retried any more"

    Args:
        id: the session, by id or its beginning
        summary: the summary, or - to read it from stdin
        dry_run: print the summary, write nothing
    """
    sessions = store.open_sessions(context)
    name = sessions.find(id)
    own_summary = _read_text(summary).strip()
    if not dry_run:
        findings.learn(sessions, name)
    with usage_log.audit(context, "session-end", name, dry_run=dry_run):
        head, count = lifecycle.end(sessions, name, own_summary, context.clock.now, dry_run=dry_run)
    return SessionEnded(name, count, head.summary, dry_run)


def session_fork(
    context: Context,
    id: str,
    *,
    host: str = "",
    agent: str = "",
    title: str = "",
    dry_run: bool = False,
) -> SessionStarted:
    """Continue a session in a new one that has its lessons, and print the new id.

    Example:
        memtool session fork ses-2026-02-22-k3f9 --agent codex

    Args:
        id: the session to continue, by id or its beginning
        host: the program that the new one runs in
        agent: who works, such as claude
        title: what the new one is about
        dry_run: print an id, write nothing
    """
    sessions = store.open_sessions(context)
    parent = sessions.find(id)
    head = lifecycle.begin_session(context, sessions, host=host, agent=agent, title=title)
    if not dry_run:
        retention.refuse_full(sessions)
    fork, rows = lifecycle.fork(sessions, parent, head, is_kept=not dry_run)
    if not dry_run:
        fork = lifecycle.start(context, sessions, fork, rows)
    return SessionStarted(fork.id, parent, fork.parent_messages, len(rows), dry_run)


def session_show(
    context: Context, id: str, *, messages: bool = False, limit: int = 0
) -> SessionView:
    """Show a session, or one of its messages.

    It shows the summary; --messages adds what was said.

    Example:
        memtool session show ses-2026-02-22-k3f9 --messages
        memtool session show ses-2026-02-22-k3f9#2

    Args:
        id: the session, by id or its beginning; ID#N is its message N
        messages: also show what was said
        limit: only the last messages, 0 for all
    """
    sessions = store.open_sessions(context)
    wanted, _mark, digits = id.removeprefix("session:").partition("#")
    name = sessions.find(wanted)
    if digits and not (digits.isascii() and digits.isdigit()):
        raise MemtoolError(
            f"{digits!r} is not the number of a message", hint=f"memtool session show {name}"
        )
    number = int(digits or 0)
    head = sessions.head(name)
    all_messages, torn = sessions.messages(name)
    wanted_messages = [message for message in all_messages if number in (0, message.number)]
    if number and not wanted_messages:
        raise MemtoolError(
            f"session {name} has no message {number}",
            hint=f"memtool session show {name} --limit 0",
            code="no-message",
        )
    earlier = [] if number else lifecycle.collect_before(sessions, head)
    part = wanted_messages[-limit:] if limit else wanted_messages
    earlier_limit = limit - len(part)
    shown = (earlier[-earlier_limit:] if earlier_limit else []) if limit else earlier
    checkpoints, bad = store.read_checkpoints(sessions, name)
    return SessionView(
        session=_build_row(
            sessions, head, sessions.size(name), all_messages[-1] if all_messages else None
        ),
        summary=head.summary,
        parent_messages=head.parent_messages,
        torn=torn + bad + _count_torn_lines(sessions.folder(name)),
        hidden_count=len(wanted_messages) - len(part) + len(earlier) - len(shown),
        checkpoints=tuple(checkpoints),
        messages=tuple(_build_message_row(message, context.clock.now) for message in part),
        before=tuple(
            (id_, _build_message_row(message, context.clock.now)) for id_, message in shown
        ),
        has_messages=messages or bool(limit or number),
    )


def _read_text(argument: str) -> str:
    """Return a text, or standard input for `-`, in any encoding: it may be output of a tool."""
    if argument != "-":
        return argument
    return _filters.read_stdin(MAX_TEXT_BYTES).decode(errors="replace")


def render(
    answer: SessionStarted
    | MessageAdded
    | CheckpointAdded
    | SessionEnded
    | SessionView
    | SessionList,
    layout: Layout,
) -> str:
    """Return an answer as text; for a new session just the id."""
    would = "would " if getattr(answer, "dry_run", False) else ""
    if isinstance(answer, SessionStarted):
        return answer.id
    if isinstance(answer, MessageAdded):
        line = f"{would}add {answer.id}#{answer.number} {answer.role}: {answer.text}"
        return line if would else f"{answer.id}#{answer.number}"
    if isinstance(answer, CheckpointAdded):
        return f"{would or 'made '}checkpoint after {answer.id}#{answer.message}"
    if isinstance(answer, SessionEnded):
        return f"{would}end{'' if would else 'ed'} {answer.id}\n{answer.summary}"
    if isinstance(answer, SessionView):
        return _format_session(answer, layout)
    return _format_list(answer, layout)


def _format_list(listed: SessionList, layout: Layout) -> str:
    if not listed.sessions:
        layout.report("no session is stored yet; memtool capture reads a transcript")
        return ""
    table = [
        (
            row.id,
            row.title,
            row.agent or row.host,
            row.status if row.status != "ended" else "",
            _count_contents(row),
            layout.when(row.last or row.started),
        )
        for row in listed.sessions
    ]
    rows = layout.table(table, drop=(4, 3))
    hidden_count = listed.total - len(listed.sessions)
    if hidden_count:
        rows.append(f"and {hidden_count:,} more (memtool session list --limit 0)")
    return "\n".join(rows)


def _count_contents(row: SessionRow) -> str:
    lessons = [format_count(row.findings, "lesson")] if row.findings else []
    return ", ".join([format_count(row.messages, "message"), *lessons])


def _format_session(shown: SessionView, layout: Layout) -> str:
    """Return a session as text: its fields and summary, and with `has_messages` its messages."""
    row = shown.session
    rows = layout.title_line(row.title or row.id, row.id if row.title else "")
    when = layout.when(row.ended or row.last or row.started)
    facts = [row.agent or row.host, row.status, _count_contents(row), when]
    rows.append(" · ".join(filter(None, facts)))
    fields = {
        "branch": row.branch,
        "worktree": row.worktree,
        "forked from": f"{row.parent} after message {shown.parent_messages}" * bool(row.parent),
        "torn lines": str(shown.torn) if shown.torn else "",
    }
    rows += [f"{name}: {value}" for name, value in fields.items() if value]
    if shown.summary:
        rows += ["", *shown.summary.split("\n")]
    messages = [*shown.before, *(("", message) for message in shown.messages)]
    if not shown.has_messages and messages:
        rows += ["", f"What was said: memtool session show {row.id} --messages"]
        return "\n".join(rows)
    if shown.hidden_count:
        rows.append(f"{format_count(shown.hidden_count, 'message')} before these (--limit 0: all)")
    for name, message in messages:
        rows += _format_message(message, name)
    return "\n".join(rows)


def _format_message(message: MessageRow, session: str = "") -> Iterator[str]:
    failed = {True: "worked", False: "failed", None: ""}[message.is_ok]
    words = (
        f"{session}#{message.number}",
        message.moment,
        "(in the future)" * message.is_future,
        message.role,
        message.agent,
        message.tool,
        failed,
    )
    yield " ".join(filter(None, words))
    if message.call:
        yield f"  $ {message.call}"
    yield from _indent(message.text)


def _indent(text: str) -> Iterator[str]:
    return (f"  {line}".rstrip() for line in text.split("\n")) if text else iter(())


def _build_row(sessions: Sessions, head: Session, size: int, last: Message | None) -> SessionRow:
    return SessionRow(
        **{name: getattr(head, name) for name in SessionRow.field_names if hasattr(head, name)}
        | {"started": format_second(head.started), "ended": format_second(head.ended)},
        last=format_second(last.moment if last else 0),
        messages=last.number if last else 0,
        findings=len(findings.read_learned(sessions, head.id).findings),
        size=size,
    )


def _count_torn_lines(folder: str) -> int:
    """Return how many incomplete lines were cut from the journal of a session."""
    try:
        return read_regular(os.path.join(folder, MESSAGES + journal.TORN_SUFFIX)).count(b"\n")
    except OSError:
        return 0


def _build_message_row(message: Message, now: int) -> MessageRow:
    fields = {
        name: getattr(message, name) for name in MessageRow.field_names if hasattr(message, name)
    }
    return MessageRow(
        **fields | {"moment": format_second(message.moment)},
        is_future=message.moment > now + MAX_CLOCK_SKEW_S,
    )
