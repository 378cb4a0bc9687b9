"""`memtool capture`: take an agent's transcript into a session."""

from __future__ import annotations

import io
import os
import shlex
from collections import Counter

from memtool.agents import AGENTS
from memtool.commands import _filters
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError, find_reason
from memtool.sessions import store
from memtool.sessions.transcripts.formats import PLAIN
from memtool.sessions.transcripts.reader import KINDS
from memtool.store import usage_log
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, BinaryIO

    from memtool.sessions.capture import Transcript
    from memtool.sessions.model import Session
    from memtool.sessions.transcripts.reader import Reading
    from memtool.store.context import Context

MAX_STDIN_BYTES = 64 << 20
SUFFIXES = (".json", ".jsonl", ".md")
"""Names of the files of a folder that may be transcripts end so."""
FOREIGN = "foreign-transcript"
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
    path: str = ""
    """The file, if it is one of several."""

    @property
    def is_empty(self) -> bool:
        """Whether the transcript has no message, so that there is no session."""
        return not self.session


class CaptureFailure(Value):
    """A file that could not be captured, and why."""

    path: str
    code: str
    message: str


class FolderReport(Value):
    """The captures of several sessions: those of the files of a folder, or of one file.

    `files` counts the transcripts, `foreign` the files that are none.
    """

    path: str
    files: int
    foreign: int
    sessions: tuple[CaptureReport, ...]
    failures: tuple[CaptureFailure, ...]
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        """1 if a transcript could not be captured."""
        return int(bool(self.failures))


def capture(
    context: Context,
    transcript: str,
    *,
    session: str = "",
    host: Annotated[str, KINDS] = "",
    end: bool = False,
    dry_run: bool = False,
) -> CaptureReport | FolderReport:
    """Read an agent's transcript, or a directory of them, into sessions.

    Formats:
        agents      {AGENT_FORMATS}: the transcript of that agent
        specstory   SpecStory's markdown, of any agent
        histories   claude-history, codex-history: the prompts in history.jsonl
        chat        JSON lines with role and content
        aider       aider's chat history
        plain       markdown or text

    It keeps who said what, which tools ran, and what failed. Only what a user typed counts as their
    word. Secrets are cut out first. Repeating it takes only what is new.

    Example:
        memtool capture ~/.claude/projects/-home-ada-shop/0f5c.jsonl
        memtool capture .specstory/history
        opencode export ses_6f3a | memtool capture -

    Args:
        transcript: the file or directory, or - to read it from stdin
        session: the session to add to; of a history, the one to take
        host: the format, if it is not recognised
        end: end the session afterwards
        dry_run: show what would be captured, write nothing
    """
    path = "" if transcript == "-" else os.path.join(context.caller.cwd, transcript)
    is_folder = os.path.isdir(path)
    if is_folder and session:
        raise MemtoolError(
            f"cannot capture {transcript} into one session: it is a folder",
            hint=f"memtool capture {shlex.quote(transcript)}",
            code="usage",
        )
    reports: list[CaptureReport] = []
    failures: list[CaptureFailure] = []
    files = foreign = 0
    for file in _list_files(path, failures) if is_folder else [transcript]:
        try:
            for source in _open_transcripts(context, file, host, session, is_folder=is_folder):
                report = _capture_one(context, source, end=end, dry_run=dry_run)
                reports.append(report.replace(path=file if is_folder else ""))
            files += 1
        except MemtoolError as error:
            if not is_folder:
                raise
            if error.code == FOREIGN:
                foreign += 1
            else:
                failures.append(CaptureFailure(file, error.code, error.message))
    if is_folder and not files and not failures:
        raise MemtoolError(
            f"{transcript} has no transcript",
            hint="name a directory of transcripts, such as .specstory/history",
            code="no-file",
        )
    if is_folder or len(reports) != 1:
        return FolderReport(transcript, files, foreign, tuple(reports), tuple(failures), dry_run)
    return reports[0]


def _capture_one(
    context: Context, source: Transcript, *, end: bool, dry_run: bool
) -> CaptureReport:
    """Capture a transcript into its session."""
    from memtool.sessions import capture, findings, lifecycle, manager, promote, retention

    sessions = store.open_sessions(context)

    def begin(id: str, reading: Reading) -> Session:
        if not dry_run:
            retention.refuse_full(sessions)
        agents = [message.agent for message in reading.messages if message.agent in AGENTS]
        agent = reading.host if reading.host in AGENT_FORMATS else next(iter(agents), "")
        title = next((message.text for message in reading.messages if message.role == "user"), "")
        started = next((message.moment for message in reading.messages if message.moment), 0)
        return lifecycle.begin_session(
            context, sessions, id=id, host=reading.host, agent=agent, title=title, started=started
        )

    with source.file, usage_log.audit(context, "capture", dry_run=dry_run) as act:
        done = capture.capture(sessions, source, begin, context.clock.now, dry_run=dry_run)
        act.subjects, act.detail = (done.session,), f"{done.host}, messages: {len(done.messages)}"
    context.notes.extend(done.notes)
    if done.host == PLAIN and {message.role for message in done.messages} == {"system"}:
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
        session=done.session if exists or done.messages or done.notes else "",
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


def render(done: CaptureReport | FolderReport, layout: Layout) -> str:
    """Return a line on the captured messages, and one for each kind that was left out."""
    if isinstance(done, FolderReport):
        return _render_folder(done, layout)
    rows = _describe(done)
    return "\n".join(line for row in rows for line in layout.wrap(row))


def _describe(done: CaptureReport) -> list[str]:
    would = "Would capture" if done.dry_run else "Captured"
    roles = ", ".join(f"{count:,} {role}" for role, count in done.roles.items())
    rows = [f"Nothing new of {done.host} for {done.session}"]
    if done.is_empty:
        rows = [f"No message in this transcript of {done.host}: it gives no session"]
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
    return rows


def _render_folder(done: FolderReport, layout: Layout) -> str:
    """Return the captures with new messages, the files that failed, and a line on all."""
    rows = [row for report in done.sessions if report.captured for row in _describe(report)]
    rows += [f"failed: {failure.path}: {failure.message}" for failure in done.failures]
    sessions = [report for report in done.sessions if not report.is_empty]
    messages = format_count(sum(report.captured for report in sessions), "message")
    parts = [f"{messages} {'to capture' if done.dry_run else 'captured'}"]
    parts.append(f"{format_count(len(sessions), 'session')} in {format_count(done.files, 'file')}")
    counts = {
        "without a message": len(done.sessions) - len(sessions),
        "not transcripts": done.foreign,
        "failed": len(done.failures),
    }
    parts += [f"{count:,} {what}" for what, count in counts.items() if count]
    rows.append(f"{done.path}: {', '.join(parts)}")
    return "\n".join(line for row in rows for line in layout.wrap(row))


def _list_files(folder: str, failures: list[CaptureFailure]) -> list[str]:
    """Return the files of a folder and those below it, sorted, without links and git's own.

    Folders that cannot be listed are added to `failures`.
    """

    def fail(error: OSError) -> None:
        failures.append(CaptureFailure(str(error.filename), "no-file", find_reason(error)))

    paths = []
    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if name != ".git"]
        paths += [os.path.join(place, name) for name in names if name.endswith(SUFFIXES)]
    return sorted(path for path in paths if not os.path.islink(path))


def _open_transcripts(
    context: Context, transcript: str, host: str, session: str, *, is_folder: bool
) -> list[Transcript]:
    """Open the sessions of a file; in a folder, a text without a known format is none.

    Raises:
        MemtoolError: it cannot be read, or is not a transcript.
    """
    from memtool.sessions.capture import Transcript
    from memtool.sessions.transcripts import reader

    tops = (context.repository.top, os.path.dirname(context.repository.common_dir))
    id_ = store.open_sessions(context).find_name(host or "session", session) if session else ""
    if transcript == "-":  # it is read twice
        path = ""
        file: BinaryIO = io.BytesIO(_filters.read_stdin(MAX_STDIN_BYTES))
    else:
        path = os.path.realpath(os.path.join(context.caller.cwd, transcript))
        file = reader.open_transcript(path)
    try:
        host = host or reader.find_host(file, path or "stdin")
        if is_folder and host == PLAIN:
            raise reader.not_transcript_error(path, "names no speakers in a known format")
        parts = reader.split_sessions(file, path or "stdin", tops, host=host, session=session)
    except MemtoolError:
        file.close()
        raise
    if parts is None:
        return [Transcript(file, path, tops, host, id_)]
    file.close()
    return [Transcript(part, path, tops, host) for part in parts]
