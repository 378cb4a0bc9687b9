"""The life of a session around its messages: how it begins, is forked and ends.

It owns what a head says at each of these steps, and the summary by rules. Messages and
checkpoints are the store's; how a session goes is retention's.
"""

from __future__ import annotations

import os
from contextlib import suppress

from memtool.agents import BLOCK_FORMATS
from memtool.errors import MemtoolError
from memtool.inject.session_primer import Recap
from memtool.sessions import findings, model
from memtool.sessions.journal import Writer
from memtool.sessions.model import Head, Message, line
from memtool.sessions.store import (
    HEAD,
    MESSAGES,
    Exists,
    Sessions,
    clean_texts,
    gathered,
    opened,
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
"""Sessions, by the time of their files, among which the one before is looked for."""


def new_head(
    context: Context,
    sessions: Sessions,
    *,
    id: str = "",
    host: str = "",
    agent: str = "",
    title: str = "",
    started: int = 0,
) -> Head:
    """Return the head of a session that begins here, now and under a new id unless they are given.

    The title is the first line of what is given.
    """
    answer = context.repository.git.run("symbolic-ref", "-q", "--short", "HEAD", allowed=(0, 1))
    branch, top = answer.decode(errors="replace").strip(), context.repository.top
    clean = clean_texts({host, agent, title, branch, top}, sessions.allowed)
    return Head(
        id=id or model.draw_id(context.clock.now, context.caller.random(3)),
        started=started or context.clock.now,
        host=clean[host],
        agent=" ".join(clean[agent].split()),
        title=line(clean[title]),
        worktree=clean[top],
        branch=clean[branch],
    )


def start(
    context: Context, sessions: Sessions, head: Head, findings: Sequence[dict[str, Any]] = ()
) -> Head:
    """Create a session under the first drawn id that is free; return its head.

    Raises:
        MemtoolError: the disk refuses.
    """
    for _draw in range(_DRAWS):
        try:
            sessions.create(head, findings)
        except Exists:
            head = head.replace(id=model.draw_id(context.clock.now, context.caller.random(3)))
        else:
            return head
    raise MemtoolError("no free id for a session was found", hint="run the same command again")


def recap(context: Context, session: str) -> Recap | None:
    """Return what is known of the session before the one that a host names, None without one.

    `session` is the host's name or the id here, and may be empty. What cannot be read is passed
    over: this is for the start of a session, where nobody waits for the reason.
    """
    sessions = opened(context)
    own = (
        {session, *(model.id_of_host(host, session) for host in BLOCK_FORMATS)}
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
    found: list[tuple[int, str, str]] = []
    for id_ in sorted(changed, key=lambda id_: (-changed[id_], id_))[:_NEWEST]:
        try:
            head = sessions.head(id_)
            last = None if head.ended else sessions.last(id_)
        except MemtoolError:
            continue
        moment = head.ended or max(head.started, last.moment if last else 0)
        if moment <= context.clock.now:
            found.append((moment, id_, head.summary or head.title))
    if not found:
        return None
    moment, _id, summary = max(found)
    return Recap(moment, len(ids), summary)


def end(
    sessions: Sessions, id: str, summary: str, now: int, *, dry_run: bool = False
) -> tuple[Head, int]:
    """End a session, with a summary by rules where none is given; return its head and messages.

    Raises:
        MemtoolError: there is no such session, it has ended, or the disk refuses.
    """
    folder = sessions.folder(id)
    clean = sessions.clean(summary)
    if dry_run:
        head = sessions.head(id)
        refuse_ended(head)
        return _ended(sessions, head, sessions.messages(id)[0], clean, now)
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        head = sessions.head(id)
        refuse_ended(head)
        known, _torn = gathered(folder, writer.whole())
        ended = _ended(sessions, head, known, clean, now)
        writer.sync()
        write_head(folder, ended[0])
    return ended


def _ended(
    sessions: Sessions, head: Head, known: Sequence[Message], summary: str, now: int
) -> tuple[Head, int]:
    titles = [one.title for one in findings.known(sessions, head.id).findings]
    summary = summary or summarise(known, titles)
    return head.replace(status="ended", ended=now, summary=summary), len(known)


def forked(
    sessions: Sessions, parent: str, child: Head, *, is_kept: bool = True
) -> tuple[Head, list[dict[str, Any]]]:
    """Return the head of a session that goes on from another one, and the findings that it takes.

    They stay findings of the parent, whose messages prove them. One that is still open is read
    for them first; `is_kept` false writes nothing.

    Raises:
        MemtoolError: there is no such parent, or it cannot be read.
    """
    taken = findings.learn(sessions, parent, is_kept=is_kept).findings
    last = sessions.last(parent)
    head = child.replace(parent=parent, parent_messages=last.number if last else 0)
    return head, [one.plain() for one in taken]


def before(sessions: Sessions, head: Head) -> list[tuple[str, Message]]:
    """Return what was said before a fork, with the session that has it, the oldest first.

    It ends where a session before is not there any more.
    """
    found: list[list[tuple[str, Message]]] = []
    seen = {head.id}
    while head.parent and head.parent not in seen:
        seen.add(head.parent)
        try:
            messages, _torn = sessions.messages(head.parent)
            parent = sessions.head(head.parent)
        except MemtoolError:  # it was deleted
            break
        found.append([(parent.id, one) for one in messages if one.number <= head.parent_messages])
        head = parent
    return [one for part in reversed(found) for one in part]


MOST_ASKED = 3
_MOST_FILES = 12
MOST_FAILURES = 5
MOST_FINDINGS = 5


class FailedCall(Value):
    """A call of a tool that failed. `fixed_by` is the message in which the same call worked."""

    number: int
    call: str
    error: str
    fixed_by: int = 0


def summarise(messages: Sequence[Message], findings: Sequence[str]) -> str:
    """Return some lines about a session; `findings` are the titles of what was found in it."""
    asked = [line(one.text) for one in messages if one.role == "user"]
    asked = [one for one in asked if one]
    touched = list(dict.fromkeys(path for one in messages for path in one.files))
    failed = failures(messages)
    rows = [f"asked: {one}" for one in asked[:MOST_ASKED]]
    rows += _more("asked", len(asked) - MOST_ASKED)
    if touched:
        rows.append(f"files: {first_few(touched, _MOST_FILES)}")
    for one in failed[:MOST_FAILURES]:
        fixed = f"worked in message {one.fixed_by}" if one.fixed_by else "not seen to work"
        error = f": {one.error}" if one.error else ""
        rows.append(f"failed: {one.call} in message {one.number}{error}; {fixed}")
    rows += _more("failed", len(failed) - MOST_FAILURES)
    rows += [f"found: {one}" for one in findings[:MOST_FINDINGS]]
    rows += _more("found", len(findings) - MOST_FINDINGS)
    return "\n".join(rows) or "nothing was said"


def failures(messages: Sequence[Message]) -> list[FailedCall]:
    """Return the calls that failed, each once, with the message in which the same one worked."""
    found: dict[tuple[str, str], FailedCall] = {}
    for one in messages:
        if one.role != "tool" or one.is_ok is None:
            continue
        key = one.tool, one.call
        if not one.is_ok:
            # Most tools say in the last line what was wrong.
            rows = reversed(one.text.split("\n"))
            error = line(next((row for row in rows if row.strip("-= \t")), ""))
            found[key] = FailedCall(one.number, line(one.call) or one.tool or "a tool", error)
        elif key in found and not found[key].fixed_by:
            found[key] = found[key].replace(fixed_by=one.number)
    return list(found.values())


def _more(what: str, count: int) -> list[str]:
    return [f"{what}: {count} more"] if count > 0 else []
