"""Keep the log of a session: what was said, called and answered.

Sessions are private: they stay in the git directory of this clone, shared by its worktrees, and
secrets are cut out before anything is written. Any number of agents may add to one.

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
from memtool.commands._render import columns, size_text
from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.sessions import findings, journal, lifecycle, retention, store
from memtool.sessions.model import Head, Message, moment_text
from memtool.sessions.store import MESSAGES, Sessions
from memtool.store import usage_log
from memtool.store.context import Context
from memtool.store.files import read_regular
from memtool.value import Value, plural

MOST_TEXT = 1 << 20
"""Bytes of a message that is given by hand."""
FUTURE_S = timestamps.DAY_S
"""A message that is later than now by more than this is in the future."""


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
    """A session with its messages, of which `more` before them are not shown.

    `before` are those of the sessions that it was forked from, as `ID#N`, up to the fork.
    """

    session: SessionRow
    summary: str
    parent_messages: int
    torn: int
    more: int
    checkpoints: tuple[store.Checkpoint, ...]
    messages: tuple[Line, ...]
    before: tuple[tuple[str, Line], ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return the fields of the session and the others in one object, with the times as text."""
        fields = super().plain()
        for row in fields["checkpoints"]:
            row["moment"] = moment_text(row["moment"])
        fields["before"] = [{"id": name} | line.plain() for name, line in self.before]
        head: dict[str, Any] = fields.pop("session")
        return head | fields


def session_list(
    context: Context, *, status: Literal["", "open", "ended", "pruned"] = "", limit: int = 50
) -> SessionList:
    """List the sessions of this clone, the newest first.

    Example:
        memtool session list --status open

    Args:
        status: only sessions of this status
        limit: most sessions, 0 for all
    """
    sessions = store.opened(context)
    heads, wrong = sessions.heads()
    context.notes.extend(wrong)
    sizes = retention.sizes(sessions)
    wanted = [head for head in heads if status in ("", head.status)]
    wanted.sort(key=lambda head: (-head.started, head.id))
    rows: list[SessionRow] = []
    total = len(wanted)
    for head in wanted:
        if limit and len(rows) == limit:
            break
        try:
            row = _row(sessions, head, sizes.get(head.id, 0), sessions.last(head.id))
        except MemtoolError as error:
            context.notes.append(f"{head.id} is passed over: {error.message}; memtool doctor")
            total -= 1
        else:
            rows.append(row)
    return SessionList(total, sum(sizes.values()), tuple(rows))


def session_start(
    context: Context, *, host: str = "", agent: str = "", title: str = "", dry_run: bool = False
) -> Begun:
    """Begin a session, and print its id.

    Example:
        memtool session start --agent claude --title "Retry of payments"

    Args:
        host: the agent host that it runs in
        agent: who works, such as claude or a name
        title: what it is about
        dry_run: print an id, write nothing
    """
    sessions = store.opened(context)
    head = lifecycle.new_head(context, sessions, host=host, agent=agent, title=title)
    if not dry_run:
        retention.refuse_full(sessions)
        head = lifecycle.start(context, sessions, head)
    return Begun(head.id, dry_run=dry_run)


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
) -> Said:
    """Append a message to a session; every ten messages a checkpoint is made.

    Example:
        memtool session add ses-2026-02-22-k3f9 --role user "Never retry payments."
        memtool session add ses-2026-02-22-k3f9 --call "pytest -q" --result failed - < log

    Args:
        id: the session, by its id or the beginning of it
        text: the message, or - to read it from stdin
        role: who spoke; by default the user, the tool with --result, or the assistant with --agent
        agent: who spoke, such as claude or a name
        tool: the tool that was called, or that answered
        call: what it was called with, such as a command line
        result: whether the tool worked
        file: a file that was touched; may be repeated
        reopen: open a session again that has ended
        dry_run: print the message as it would be kept, write nothing
    """
    sessions = store.opened(context)
    name = sessions.find(id)
    words = _text(" ".join(text)).strip("\n")
    if not words.strip():
        how = f'memtool session add {id} "…", or - to read it from stdin'
        raise MemtoolError("there is nothing to add", hint=how, code="empty")
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
        (clean,) = store.cleaned([message], sessions.allowed)
        last = sessions.last(name)
        return Said(name, last.number + 1 if last else 1, clean.role, clean.text, dry_run=True)
    added = store.add(sessions, name, [message], context.clock.now, reopen=reopen)
    context.notes.extend(added.notes)
    (kept,) = added.messages
    return Said(name, kept.number, kept.role, kept.text)


def session_checkpoint(
    context: Context, id: str, *text: str, dry_run: bool = False
) -> CheckpointMade:
    """Make a checkpoint by hand, with a note.

    Example:
        memtool session checkpoint ses-2026-02-22-k3f9 "the tests pass again"

    Args:
        id: the session, by its id or the beginning of it
        text: the note, or - to read it from stdin
        dry_run: say what would be done, write nothing
    """
    sessions = store.opened(context)
    name = sessions.find(id)
    note = _text(" ".join(text)).strip()
    if dry_run:
        last = sessions.last(name)
        return CheckpointMade(name, last.number if last else 0, note, dry_run=True)
    made = store.mark(sessions, name, note, context.clock.now)
    return CheckpointMade(name, made.message, made.note)


def session_end(context: Context, id: str, *, summary: str = "", dry_run: bool = False) -> Ended:
    """End a session with a summary, after which nothing is added.

    Example:
        memtool session end ses-2026-02-22-k3f9 --summary "payments are not retried any more"

    Args:
        id: the session, by its id or the beginning of it
        summary: the summary, or - to read it from stdin; by default one made by rules
        dry_run: print the summary, write nothing
    """
    sessions = store.opened(context)
    name = sessions.find(id)
    given = _text(summary).strip()
    if not dry_run:
        findings.learn(sessions, name)
    with usage_log.act(context, "session-end", name, dry_run=dry_run):
        head, count = lifecycle.end(sessions, name, given, context.clock.now, dry_run=dry_run)
    return Ended(name, count, head.summary, dry_run)


def session_fork(
    context: Context,
    id: str,
    *,
    host: str = "",
    agent: str = "",
    title: str = "",
    dry_run: bool = False,
) -> Begun:
    """Go on in a new session that has the findings of an old one, and print its id.

    Example:
        memtool session fork ses-2026-02-22-k3f9 --agent codex

    Args:
        id: the session to go on from, by its id or the beginning of it
        host: the agent host that the new one runs in
        agent: who works, such as claude or a name
        title: what the new one is about
        dry_run: print an id, write nothing
    """
    sessions = store.opened(context)
    parent = sessions.find(id)
    head = lifecycle.new_head(context, sessions, host=host, agent=agent, title=title)
    if not dry_run:
        retention.refuse_full(sessions)
    made, rows = lifecycle.forked(sessions, parent, head, is_kept=not dry_run)
    if not dry_run:
        made = lifecycle.start(context, sessions, made, rows)
    return Begun(made.id, parent, made.parent_messages, len(rows), dry_run)


def session_show(context: Context, id: str, *, limit: int = 0) -> SessionView:
    """Print a session with its messages, or just one of them.

    Of one that was forked the messages up to the fork come first, as ID#N of the session that has
    them.

    Example:
        memtool session show ses-2026-02-22-k3f9
        memtool session show ses-2026-02-22-k3f9#2

    Args:
        id: the session, by its id or the beginning of it; ID#N is its message N
        limit: only the last messages, 0 for all
    """
    sessions = store.opened(context)
    wanted, _mark, digits = id.removeprefix("session:").partition("#")
    name = sessions.find(wanted)
    if digits and not (digits.isascii() and digits.isdigit()):
        raise MemtoolError(
            f"{digits!r} is no number of a message", hint=f"memtool session show {name}"
        )
    number = int(digits or 0)
    head = sessions.head(name)
    known, torn = sessions.messages(name)
    messages = [one for one in known if number in (0, one.number)]
    if number and not messages:
        raise MemtoolError(
            f"session {name} has no message {number}",
            hint=f"memtool session show {name} --limit 0 prints all",
            code="no-message",
        )
    earlier = [] if number else lifecycle.before(sessions, head)
    part = messages[-limit:] if limit else messages
    left = limit - len(part)
    shown = (earlier[-left:] if left else []) if limit else earlier
    made, bad = store.checkpoints(sessions, name)
    return SessionView(
        session=_row(sessions, head, sessions.size(name), known[-1] if known else None),
        summary=head.summary,
        parent_messages=head.parent_messages,
        torn=torn + bad + _torn_before(sessions.folder(name)),
        more=len(messages) - len(part) + len(earlier) - len(shown),
        checkpoints=tuple(made),
        messages=tuple(_line(one, context.clock.now) for one in part),
        before=tuple((id_, _line(one, context.clock.now)) for id_, one in shown),
    )


def _text(given: str) -> str:
    """Return a text, what is on stdin where it is `-`: output of tools, in any encoding."""
    if given != "-":
        return given
    return _filters.read_stdin(MOST_TEXT).decode(errors="replace")


def render(
    answer: Begun | Said | CheckpointMade | Ended | SessionView | SessionList,
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
    if isinstance(answer, SessionView):
        return _show_text(answer)
    return _list_text(answer)


def _list_text(listed: SessionList) -> str:
    """Return one line per session."""
    if not listed.sessions:
        return "no sessions"
    rows = columns(
        (
            row.id,
            row.status,
            row.agent or row.host,
            f"{plural(row.messages, 'message')}",
            f"{plural(row.findings, 'finding')}" if row.findings else "",
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


def _show_text(shown: SessionView) -> str:
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
        rows.append(f"{plural(shown.more, 'message')} before these: --limit 0 shows all")
    for name, one in shown.before:
        rows += _message_rows(one, name)
    for one in shown.messages:
        rows += _message_rows(one)
    return "\n".join(rows)


def _message_rows(one: Line, session: str = "") -> Iterator[str]:
    failed = {True: "worked", False: "failed", None: ""}[one.is_ok]
    words = (
        f"{session}#{one.number}",
        one.moment,
        "(in the future)" * one.is_future,
        one.role,
        one.agent,
        one.tool,
        failed,
    )
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


def _torn_before(folder: str) -> int:
    """Return how many half lines were cut off the messages of a session."""
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
