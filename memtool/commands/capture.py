"""`memtool capture`: take an agent's transcript into a session."""

from __future__ import annotations

import io
import os
from collections import Counter

from memtool.agents import AGENTS
from memtool.commands import _filters
from memtool.commands._layout import Layout
from memtool.sessions import store
from memtool.sessions.transcripts.reader import KINDS
from memtool.store import usage_log
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from memtool.sessions.capture import Transcript
    from memtool.sessions.model import Session
    from memtool.sessions.transcripts.reader import Reading
    from memtool.store.context import Context

MAX_STDIN_BYTES = 64 << 20
AGENT_FORMATS = tuple(name for name in KINDS if name in AGENTS)
"""Transcript formats that show which agent wrote them."""
NO_SPEAKERS = (
    "no speakers found, so nothing counts as the user's word;"
    " a line User: or Assistant: before each turn names the speaker"
)


class CaptureReport(Value):
    """The number of captured messages, from number `first` to `last`; 0 for none.

    `broken` counts unreadable lines, `future` messages dated later than now, `lost` messages that
    exceed the limit of the session.
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
    """Read an agent's transcript into a session.

    Formats:
        agents    {AGENT_FORMATS}: the transcript of that agent
        chat      aider's history, SpecStory, JSON lines with role and content
        plain     markdown or text

    It keeps who said what, which tools ran, and what failed. Only what a user typed counts as their
    word. Secrets are cut out first. Repeating it takes only what is new.

    Example:
        memtool capture ~/.claude/projects/-home-ada-shop/0f5c.jsonl
        opencode export ses_6f3a | memtool capture -

    Args:
        transcript: the file, or - to read it from stdin
        session: the session to add to, instead of the transcript's own
        host: the format, if it is not recognised
        end: end the session afterwards
        dry_run: show what would be captured, write nothing
    """
    from memtool.sessions import capture, findings, lifecycle, manager, promote, retention

    sessions = store.open_sessions(context)
    source = _open_transcript(context, transcript, host, session)

    def begin(id: str, reading: Reading) -> Session:
        if not dry_run:
            retention.refuse_full(sessions)
        agent = reading.host if reading.host in AGENT_FORMATS else ""
        title = next((message.text for message in reading.messages if message.role == "user"), "")
        started = next((message.moment for message in reading.messages if message.moment), 0)
        return lifecycle.begin_session(
            context, sessions, id=id, host=reading.host, agent=agent, title=title, started=started
        )

    with source.file, usage_log.audit(context, "capture", dry_run=dry_run) as act:
        done = capture.capture(sessions, source, begin, context.clock.now, dry_run=dry_run)
        act.subjects, act.detail = (done.session,), f"{done.host}, messages: {len(done.messages)}"
    context.notes.extend(done.notes)
    if done.host == "plain" and {message.role for message in done.messages} == {"system"}:
        context.notes.append(NO_SPEAKERS)
    exists = done.is_new or done.session in sessions.ids()  # not if it was deleted
    if not dry_run and exists:
        before = findings.read_learned(sessions, done.session).findings
        learned = before
        if end or findings.is_due(sessions, done.session):
            learned = findings.learn(sessions, done.session).findings
        if end and sessions.head(done.session).status == "open":
            lifecycle.end(sessions, done.session, "", context.clock.now)
        if learned != before:
            promote.count(context, sessions)
        if end:
            manager.start(context, done.session)
    numbers = [message.number for message in done.messages]
    return CaptureReport(
        session=done.session,
        host=done.host,
        captured=len(numbers),
        first=numbers[0] if numbers else 0,
        last=numbers[-1] if numbers else 0,
        roles=dict(Counter(message.role for message in done.messages)),
        broken=done.broken,
        future=done.future,
        lost=done.lost,
        new_session=done.is_new,
        ended=end and exists and not dry_run,
        dry_run=dry_run,
    )


def render(done: CaptureReport, layout: Layout) -> str:
    """Return a line on the captured messages, and one for each kind that was left out."""
    would = "Would capture" if done.dry_run else "Captured"
    roles = ", ".join(f"{count:,} {role}" for role, count in done.roles.items())
    rows = [f"Nothing new of {done.host} for {done.session}"]
    if done.captured:
        where = f" (#{done.first} to #{done.last})" if done.first else ""
        messages = format_count(done.captured, "message")
        rows = [f"{would} {messages} of {done.host} into {done.session}{where}: {roles}"]
    if done.broken:
        lines = format_count(done.broken, "line")
        rows.append(f"left out, since they cannot be read: {lines}")
    if done.lost:
        rows.append(f"left out, since the session is full: {format_count(done.lost, 'message')}")
    if done.future:
        rows.append(f"dated later than now: {format_count(done.future, 'message')}")
    return "\n".join(line for row in rows for line in layout.wrap(row))


def _open_transcript(context: Context, transcript: str, host: str, session: str) -> Transcript:
    """Open the named transcript. Raises MemtoolError if it is not one."""
    from memtool.sessions.capture import Transcript
    from memtool.sessions.transcripts import reader

    tops = (context.repository.top, os.path.dirname(context.repository.common_dir))
    id_ = store.open_sessions(context).find_name(host or "session", session) if session else ""
    if transcript == "-":  # it is read twice
        return Transcript(io.BytesIO(_filters.read_stdin(MAX_STDIN_BYTES)), "", tops, host, id_)
    path = os.path.realpath(os.path.join(context.caller.cwd, transcript))
    return Transcript(reader.open_transcript(path), path, tops, host, id_)
