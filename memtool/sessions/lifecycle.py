"""The life of a session apart from its messages: start, fork and end.

This module owns the contents of the head at each of these steps, and the summary by rules. Messages
and checkpoints belong to the store, deletion to retention.
"""

from __future__ import annotations

import os
from contextlib import suppress

from memtool.agents import BLOCK_FORMATS
from memtool.errors import MemtoolError
from memtool.inject.session_primer import Recap
from memtool.sessions import findings, model
from memtool.sessions.journal import Writer
from memtool.sessions.model import Message, Session, first_line
from memtool.sessions.store import (
    HEAD,
    MESSAGES,
    SessionExistsError,
    Sessions,
    clean_texts,
    gather,
    open_sessions,
    refuse_ended,
    write_head,
)
from memtool.value import Value, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from memtool.store.context import Context

_DRAWS = 1_000
_NEWEST = 8
"""Number of sessions, latest file time first, that are searched for the previous session."""


def begin_session(
    context: Context,
    sessions: Sessions,
    *,
    id: str = "",
    host: str = "",
    agent: str = "",
    title: str = "",
    started: int = 0,
) -> Session:
    """Return the head of a new session in this worktree. By default it starts now, with a new id.

    The title is cut to its first line.
    """
    answer = context.repository.git.run("symbolic-ref", "-q", "--short", "HEAD", allowed=(0, 1))
    branch, top = answer.decode(errors="replace").strip(), context.repository.top
    clean = clean_texts({host, agent, title, branch, top}, sessions.allowed)
    return Session(
        id=id or model.draw_id(context.clock.now, context.caller.random(3)),
        started=started or context.clock.now,
        host=clean[host],
        agent=" ".join(clean[agent].split()),
        title=first_line(clean[title]),
        worktree=clean[top],
        branch=clean[branch],
    )


def start(
    context: Context, sessions: Sessions, head: Session, findings: Sequence[dict[str, Any]] = ()
) -> Session:
    """Create a session under the first drawn id that is free; return its head.

    Raises:
        MemtoolError: the disk refuses.
    """
    for _draw in range(_DRAWS):
        try:
            sessions.create(head, findings)
        except SessionExistsError:
            head = head.replace(id=model.draw_id(context.clock.now, context.caller.random(3)))
        else:
            return head
    raise MemtoolError("cannot find a free id for the session", hint="run the command again")


def find_recap(context: Context, session: str) -> Recap | None:
    """Return a recap of the session before the one that a host names, None if there is none.

    `session` is the host's id or ours, and may be empty. Errors are ignored: this runs at the start
    of a session, where no user would see them.
    """
    sessions = open_sessions(context)
    own = (
        {session, *(model.name_host_session(host, session) for host in BLOCK_FORMATS)}
        if session
        else set()
    )
    changed: dict[str, int] = {}
    try:
        ids = [id_ for id_ in sessions.ids() if id_ not in own]
    except MemtoolError:
        return None
    for id_ in ids:
        with suppress(MemtoolError, OSError):
            changed[id_] = os.stat(sessions.path(id_, HEAD)).st_mtime_ns
    candidates: list[tuple[int, str, str]] = []
    for id_ in sorted(changed, key=lambda id_: (-changed[id_], id_))[:_NEWEST]:
        try:
            head = sessions.head(id_)
            last = None if head.ended else sessions.read_last(id_)
        except MemtoolError:
            continue
        moment = head.ended or max(head.started, last.moment if last else 0)
        if moment <= context.clock.now:
            candidates.append((moment, id_, head.summary or head.title))
    if not candidates:
        return None
    moment, _id, summary = max(candidates)
    return Recap(moment, summary)


def end(
    sessions: Sessions, id: str, summary: str, now: int, *, dry_run: bool = False
) -> tuple[Session, int]:
    """End a session; return its head and its number of messages. An empty summary is made by rules.

    Raises:
        MemtoolError: the session does not exist or has ended, or the disk refuses.
    """
    folder = sessions.folder(id)
    clean = sessions.clean(summary)
    if dry_run:
        head = sessions.head(id)
        refuse_ended(head)
        return _end(sessions, head, sessions.messages(id)[0], clean, now)
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        head = sessions.head(id)
        refuse_ended(head)
        messages, _torn = gather(folder, writer.read_whole())
        ended = _end(sessions, head, messages, clean, now)
        writer.sync()
        write_head(folder, ended[0])
    return ended


def _end(
    sessions: Sessions, head: Session, messages: Sequence[Message], summary: str, now: int
) -> tuple[Session, int]:
    titles = [finding.title for finding in findings.read_learned(sessions, head.id).findings]
    summary = summary or summarise(messages, titles)
    return head.replace(status="ended", ended=now, summary=summary), len(messages)


def fork(
    sessions: Sessions, parent: str, child: Session, *, is_kept: bool = True
) -> tuple[Session, list[dict[str, Any]]]:
    """Return the head of a fork, and the findings that it takes over.

    They stay findings of the parent, whose messages prove them. The parent's findings are brought
    up to date first; `is_kept` false writes nothing.

    Raises:
        MemtoolError: the parent does not exist or cannot be read.
    """
    learned_findings = findings.learn(sessions, parent, is_kept=is_kept).findings
    last = sessions.read_last(parent)
    head = child.replace(parent=parent, parent_messages=last.number if last else 0)
    return head, [finding.plain() for finding in learned_findings]


def collect_before(sessions: Sessions, head: Session) -> list[tuple[str, Message]]:
    """Return the messages before a fork with their session ids, oldest first.

    The history ends at an ancestor that no longer exists.
    """
    parts: list[list[tuple[str, Message]]] = []
    seen = {head.id}
    while head.parent and head.parent not in seen:
        seen.add(head.parent)
        try:
            messages, _torn = sessions.messages(head.parent)
            parent = sessions.head(head.parent)
        except MemtoolError:  # it was deleted
            break
        parts.append(
            [(parent.id, message) for message in messages if message.number <= head.parent_messages]
        )
        head = parent
    return [message for part in reversed(parts) for message in part]


MAX_REQUESTS = 3
_MAX_FILES = 12
MAX_FAILURES = 5
MAX_FINDINGS = 5


class FailedCall(Value):
    """A tool call that failed; `fixed_by` is the number of the message in which it worked."""

    number: int
    call: str
    error: str
    fixed_by: int = 0


def summarise(messages: Sequence[Message], findings: Sequence[str]) -> str:
    """Summarise a session in a few lines; `findings` are the titles of its findings."""
    requests = [first_line(message.text) for message in messages if message.role == "user"]
    requests = [request for request in requests if request]
    touched = list(dict.fromkeys(path for message in messages for path in message.files))
    failed = find_failures(messages)
    rows = [f"asked: {request}" for request in requests[:MAX_REQUESTS]]
    rows += _and_more("asked", len(requests) - MAX_REQUESTS)
    if touched:
        rows.append(f"files: {first_few(touched, _MAX_FILES)}")
    for failure in failed[:MAX_FAILURES]:
        fixed = f"worked in message {failure.fixed_by}" if failure.fixed_by else "not seen to work"
        error = f": {failure.error}" if failure.error else ""
        rows.append(f"failed: {failure.call} in message {failure.number}{error}; {fixed}")
    rows += _and_more("failed", len(failed) - MAX_FAILURES)
    rows += [f"found: {finding}" for finding in findings[:MAX_FINDINGS]]
    rows += _and_more("found", len(findings) - MAX_FINDINGS)
    return "\n".join(rows) or "nothing was said"


def find_failures(messages: Sequence[Message]) -> list[FailedCall]:
    """Return the failed calls, each once, with the message in which the same call worked."""
    failed_calls: dict[tuple[object, ...], FailedCall] = {}
    for message in messages:
        if message.role != "tool" or message.is_ok is None:
            continue
        key = _identify(message)
        if not message.is_ok:
            # Most tools report the error in the last line.
            rows = reversed(message.text.split("\n"))
            error = first_line(next((row for row in rows if row.strip("-= \t")), ""))
            failed_calls[key] = FailedCall(
                message.number, first_line(message.call) or message.tool or "a tool", error
            )
        elif key in failed_calls and not failed_calls[key].fixed_by:
            failed_calls[key] = failed_calls[key].replace(fixed_by=message.number)
    return list(failed_calls.values())


def _identify(call: Message) -> tuple[object, ...]:
    """Return what a call has in common with each repetition, however a command is spelled."""
    from memtool.sessions.extract.commands import find_targets, is_script  # starts need none
    from memtool.sessions.extract.scene import runs_command

    targets = find_targets(call.call) if runs_command(call) else ()
    return (call.tool, call.call) if is_script(targets) else (call.tool, *targets)


def _and_more(what: str, count: int) -> list[str]:
    return [f"{what}: {count} more"] if count > 0 else []
