"""`memtool capture`: take an agent's transcript into a session."""

from __future__ import annotations

import io
import os
from collections import Counter

from memtool.commands import _filters
from memtool.sessions import store
from memtool.sessions.transcripts.reader import KINDS
from memtool.store import usage_log
from memtool.value import Value, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from memtool.sessions.capture import Transcript
    from memtool.sessions.model import Head
    from memtool.sessions.transcripts.reader import Reading
    from memtool.store.context import Context

MOST_STDIN = 64 << 20
_NOBODY = ("chat", "plain")
"""Formats that name no agent."""
NO_SPEAKERS = (
    "no speakers were found in it, so nothing of it counts as a person's word;"
    " a line User: or Assistant: before each turn names who speaks"
)


class CaptureReport(Value):
    """What was captured: how many messages, from number `first` to `last`, 0 for none.

    `broken` counts lines that could not be read, `future` messages dated later than now, `lost`
    those that the session has no room for.
    """

    session: str
    host: str
    captured: int
    first: int
    last: int
    roles: dict[str, int]
    broken: int
    future: int
    lost: int
    new_session: bool
    ended: bool = False
    dry_run: bool = False


def capture(
    context: Context,
    transcript: str,
    *,
    session: str = "",
    host: Annotated[str, KINDS] = "",
    end: bool = False,
    dry_run: bool = False,
) -> CaptureReport:
    """Take a transcript of an agent into a session: who said what, which tools ran and failed.

    Known are Claude Code, Codex, Gemini, OpenCode (its database, or what opencode export prints),
    Cursor, SpecStory, aider's chat history, lines of role and content, markdown and plain text; the
    content tells which one it is. Only what a person typed is taken as the user's word: of a text
    in which nobody is named as the speaker that is nothing. What memtool itself put into the
    conversation is left out. Secrets are cut out before anything is written.

    Doing it again takes only what is new. It goes into the session that the transcript names, or
    into the one that is given, which is begun if it is not there.

    Example:
        memtool capture ~/.claude/projects/-home-ada-shop/0f5c.jsonl
        opencode export ses_6f3a | memtool capture -

    Args:
        transcript: the file, or - to read it from stdin
        session: the session that it goes into
        host: who wrote it, where the content does not tell
        end: end the session after it
        dry_run: say what would be captured, write nothing
    """
    from memtool.sessions import capture, findings, lifecycle, manager, promote, retention

    sessions = store.opened(context)
    source = _source(context, transcript, host, session)

    def begin(id: str, read: Reading) -> Head:
        if not dry_run:
            retention.refuse_full(sessions)
        agent = "" if read.host in _NOBODY else read.host
        asked = next((one.text for one in read.messages if one.role == "user"), "")
        started = next((one.moment for one in read.messages if one.moment), 0)
        return lifecycle.new_head(
            context, sessions, id=id, host=read.host, agent=agent, title=asked, started=started
        )

    with source.file, usage_log.act(context, "capture", dry_run=dry_run) as act:
        done = capture.capture(sessions, source, begin, context.clock.now, dry_run=dry_run)
        act.subjects, act.detail = (done.session,), f"{done.host}, messages: {len(done.messages)}"
    context.notes.extend(done.notes)
    if done.host == "plain" and {one.role for one in done.messages} == {"system"}:
        context.notes.append(NO_SPEAKERS)
    is_there = done.is_new or done.session in sessions.ids()  # not where it was deleted
    if not dry_run and is_there:
        before = findings.known(sessions, done.session).findings
        learned = before
        if end or findings.is_due(sessions, done.session):
            learned = findings.learn(sessions, done.session).findings
        if end and sessions.head(done.session).status == "open":
            lifecycle.end(sessions, done.session, "", context.clock.now)
        if learned != before:
            promote.count(context, sessions)
        if end:
            manager.start(context, done.session)
    numbers = [one.number for one in done.messages]
    return CaptureReport(
        session=done.session,
        host=done.host,
        captured=len(numbers),
        first=numbers[0] if numbers else 0,
        last=numbers[-1] if numbers else 0,
        roles=dict(Counter(one.role for one in done.messages)),
        broken=done.broken,
        future=done.future,
        lost=done.lost,
        new_session=done.is_new,
        ended=end and is_there and not dry_run,
        dry_run=dry_run,
    )


def render(done: CaptureReport) -> str:
    """Return one line on what was captured, and one on what could not be."""
    would = "would capture" if done.dry_run else "captured"
    roles = ", ".join(f"{count:,} {role}" for role, count in done.roles.items())
    rows = [f"nothing new of {done.host} in {done.session}"]
    if done.captured:
        where = f" (#{done.first} to #{done.last})" if done.first else ""
        what = f"{would} {plural(done.captured, 'message')} of {done.host} into {done.session}"
        rows = [f"{what}{where}: {roles}"]
    if done.broken:
        lines = "1 line was" if done.broken == 1 else f"{done.broken:,} lines were"
        rows.append(f"{lines} cut off or broken, and left out")
    if done.lost:
        rows.append(f"{done.lost:,} messages were left out: the session is full")
    if done.future:
        one = "1 message lies" if done.future == 1 else f"{done.future:,} messages lie"
        rows.append(f"{one} in the future by this clock")
    return "\n".join(rows)


def _source(context: Context, transcript: str, host: str, session: str) -> Transcript:
    """Return the transcript that is named, opened. Raises MemtoolError where it is none."""
    from memtool.sessions.capture import Transcript
    from memtool.sessions.transcripts import reader

    tops = (context.repository.top, os.path.dirname(context.repository.common_dir))
    id_ = store.opened(context).named(host or "session", session) if session else ""
    if transcript == "-":  # it is read twice
        return Transcript(io.BytesIO(_filters.read_stdin(MOST_STDIN)), "", tops, host, id_)
    path = os.path.realpath(os.path.join(context.caller.cwd, transcript))
    return Transcript(reader.opened(path), path, tops, host, id_)
