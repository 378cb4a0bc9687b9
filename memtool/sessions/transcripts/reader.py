"""The reader of transcripts: it detects the format and returns the new messages.

This module owns how a file is read on from the end of the last reading, and what is removed from
every message. If the caller does not name the host, the content decides.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import stat

from memtool.errors import MemtoolError
from memtool.sessions.model import Message, parse_json, parse_json_row
from memtool.sessions.transcripts import markup
from memtool.sessions.transcripts.formats import FORMATS
from memtool.sessions.transcripts.markup import TranscriptContext
from memtool.sessions.transcripts.turns import with_origins
from memtool.store.files import explaining_errors, open_file
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO

    from memtool.sessions.transcripts.formats import ReadDatabase

KINDS = tuple(FORMATS)
"""All kinds of transcripts that can be read."""
DOCUMENT = "document"
"""The kind of JSON that spans more than its first line."""
MAX_BYTES = 512 << 20
MAX_LINE = 32 << 20
MAX_DOCUMENT = 64 << 20
_SQLITE = b"SQLite format 3\0"
_START = 1 << 18
"""Bytes read to detect the format."""
_ROUGH = 400_000
"""Maximum characters of a message; only both ends of a longer one are read."""
_SAMPLE = 512
"""Bytes at the start of the file and before the mark that must be unchanged."""


class Mark(Value):
    """Where a reading of a transcript ended, and the state to go on from there."""

    host: str = ""
    offset: int = 0
    start: str = ""
    """Hash of the first bytes of the file."""
    behind: str = ""
    """Hash of the bytes before the offset."""
    context: Mapping[str, Any] | None = None


class Reading(Value):
    """The result of a reading: messages without numbers, and the count of broken lines."""

    host: str
    session: str
    messages: tuple[Message, ...]
    broken: int
    is_new: bool
    """Whether the transcript was read from its start."""
    mark: Mark

    @property
    def is_copy(self) -> bool:
        """Whether the host has a transcript of its own of this session."""
        return FORMATS[self.host].is_copy


def open_transcript(path: str) -> BinaryIO:
    """Open a transcript. Raises MemtoolError if it is not a readable file."""
    hint = "memtool capture PATH"
    with explaining_errors(f"{path} cannot be read", hint, "no-file"):
        handle = open_file(path, follows=True)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        os.close(handle)
        what = "is no regular file" if not stat.S_ISREG(status.st_mode) else "is too large"
        raise MemtoolError(
            f"{path} {what}", hint="name a transcript of an agent, or a text", code="no-file"
        )
    return os.fdopen(handle, "rb")


def read(
    file: BinaryIO,
    path: str,
    tops: Sequence[str],
    *,
    host: str = "",
    session: str = "",
    mark: Mark | None = None,
) -> Reading:
    """Read a transcript from a mark on, or from the start if the file is another one by now.

    `session` names the session to read if the file contains several.

    Raises:
        MemtoolError: the file is not of the given host, or of no known host.
    """
    if _read_sample(file, 0).startswith(_SQLITE):
        context = TranscriptContext(tops)
        writer, read_database = _find_database_reader(path)
        row = read_database(path, session, tops)
        return _build_whole(writer, context, FORMATS[writer].read(row, context))
    began = mark if mark is not None and _is_same(file, mark) else Mark()
    context = TranscriptContext(tops, began.context)
    if not began.offset:
        first = _read_beginning(file)
        host = host or detect_host(first, path)
        if host in FORMATS and FORMATS[host].is_text:
            return _read_text(file, path, host, context)
        if is_document(first):
            return _read_document(file, path, host, context)
    return _read_lines(file, path, host or began.host, context, began.offset)


def find_host(file: BinaryIO, path: str) -> str:
    """Detect the host of a file by its first lines. Raises MemtoolError as `detect_host` does."""
    first = _read_beginning(file)
    is_database = first.startswith(_SQLITE)
    return _find_database_reader(path)[0] if is_database else detect_host(first, path)


def _find_database_reader(path: str) -> tuple[str, ReadDatabase]:
    """Return the format that is in a database, and the function that reads a session there."""
    for name, form in FORMATS.items():
        if form.read_database is not None:
            return name, form.read_database
    raise not_transcript_error(path, "is a database")


def split_sessions(
    file: BinaryIO, path: str, tops: Sequence[str], *, host: str, session: str = ""
) -> list[BinaryIO] | None:
    """Return the lines of each session of a file that holds several; None for any other file.

    Only sessions of these worktrees are returned, by the directory in which they ran, or all if
    the file itself is in one of them. `session` names one to return wherever it ran.

    Raises:
        MemtoolError: the file holds no such session.
    """
    form = FORMATS.get(host)
    if form is None or not form.session_key:
        return None
    context = TranscriptContext(tops)
    is_inside = context.is_inside(path)
    lines: dict[str, list[bytes]] = {}
    name = ""
    file.seek(0)
    while line := file.readline(MAX_LINE):
        row = _parse_row(line)
        if row is not None:
            native_id, directory = row.get(form.session_key, ""), row.get(form.directory_key)
            is_ours = is_inside or (isinstance(directory, str) and context.is_inside(directory))
            is_chosen = native_id == session if session else is_ours
            name = native_id if is_chosen and isinstance(native_id, str) else _LEFT_OUT
        lines.setdefault(name, []).append(line)
    lines.pop(_LEFT_OUT, None)
    if not lines:
        what = f"no session {session}" if session else "no session that ran in this repository"
        place = shlex.quote(path) if os.path.isabs(path) else "-"
        raise MemtoolError(
            f"{path} has {what}", hint=f"memtool capture {place} --session ID", code="no-session"
        )
    return [io.BytesIO(b"".join(rows)) for rows in lines.values()]


_LEFT_OUT = "\0"
"""Collects the lines of other sessions."""


def detect_host(start: bytes, path: str) -> str:
    """Detect the host by a transcript's first lines; `plain` for a text.

    A document that spans several lines is `document`; its keys are checked later.

    Raises:
        MemtoolError: it is empty, binary, or JSON of an unknown format.
    """
    if not start.strip():
        raise not_transcript_error(path, "is empty")
    if b"\0" in start:
        start = _without_binary(start, path)
    if is_document(start):
        return DOCUMENT
    rows, are_most = _parse_rows(start)
    return _choose_host(rows, path) if are_most else _choose_text(start)


def _without_binary(start: bytes, path: str) -> bytes:
    """Drop binary lines. Raises MemtoolError if most lines are binary."""
    lines = [line for line in start.split(b"\n") if line.strip()]
    text_lines = [line for line in lines if b"\0" not in line]
    text = b"\n".join(text_lines)
    is_text = _parse_rows(text)[1] or "\ufffd" not in text.decode(errors="replace")
    if len(text_lines) * 2 < len(lines) or not text_lines or not is_text:
        raise not_transcript_error(path, "is not text")
    return text


def is_document(start: bytes) -> bool:
    """Return whether a file is a JSON document that spans several lines."""
    first = start.lstrip().partition(b"\n")[0].rstrip()
    return first[:1] in (b"{", b"[") and _parse_row(first) is None and not _parse_rows(start)[1]


def _parse_rows(start: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the lines that are JSON objects, and whether they are at least half of all lines."""
    lines = [line for line in start.split(b"\n") if line.strip()]
    rows = [row for row in map(_parse_row, lines) if row is not None]
    return rows, bool(rows) and len(rows) * 2 >= len(lines)


def _choose_host(rows: Sequence[Mapping[str, Any]], path: str) -> str:
    """Return the host whose format most rows match. Raises MemtoolError if none matches."""
    formats = {name: row for name, row in FORMATS.items() if not row.is_text}
    counts = {name: sum(map(row.knows, rows)) for name, row in formats.items()}
    host = max(counts, key=lambda name: counts[name])
    if not counts[host]:
        raise not_transcript_error(path, "is JSON, but not a known transcript")
    return host


def _choose_text(start: bytes) -> str:
    rows = split_rows(start)
    return next(name for name, row in FORMATS.items() if row.is_text and row.knows(rows))


def split_rows(text: bytes) -> list[str]:
    """Return the lines of a text."""
    return text.decode(errors="replace").replace("\r\n", "\n").split("\n")


def _parse_row(line: bytes) -> dict[str, Any] | None:
    """Parse a line as a JSON object; None if it is not one.

    Invalid bytes, which a tool may print, are replaced.
    """
    row = parse_json_row(line)
    return parse_json_row(line.decode(errors="replace")) if row is None else row


def not_transcript_error(path: str, what: str) -> MemtoolError:
    """Return the error for a file that is not a transcript."""
    return MemtoolError(
        f"{path} {what}",
        hint=f"known formats: {', '.join(FORMATS)}",
        code="foreign-transcript",
    )


def _read_lines(
    file: BinaryIO, path: str, host: str, context: TranscriptContext, offset: int
) -> Reading:
    """Read JSON lines from an offset on; an incomplete last line is left for later."""
    form = FORMATS[host]
    messages: list[Message] = []
    readable = broken = 0
    at = offset
    file.seek(at)
    while line := file.readline(MAX_LINE):
        row = _parse_row(line) if line.strip() else {}
        broken += row is None
        if row is None and not line.endswith(b"\n") and len(line) < MAX_LINE:
            break  # still being written, or torn
        at += len(line)
        if row:
            context.line += 1
            readable += form.knows(row)
            messages += form.read(row, context)
    if not (offset or readable):
        raise not_transcript_error(path, f"is not a transcript of {host}")
    start, behind = _read_sample(file, 0)[:at], _read_before(file, at)
    whole = _build_whole(host, context, messages)
    mark = Mark(host, at, digest(start), digest(behind), context.state())
    return whole.replace(broken=broken, is_new=not offset, mark=mark)


def _read_text(file: BinaryIO, path: str, host: str, context: TranscriptContext) -> Reading:
    """Read a text as a whole, without its binary lines."""
    lines = _read_all(file, path).split(b"\n")
    text_lines = [line for line in lines if b"\0" not in line]
    messages = FORMATS[host].read(split_rows(b"\n".join(text_lines)), context)
    whole = _build_whole(host, context, with_origins(messages))
    return whole.replace(broken=len(lines) - len(text_lines))


def _read_document(file: BinaryIO, path: str, host: str, context: TranscriptContext) -> Reading:
    """Read a JSON document, an object or a list of objects; the keys show the host."""
    data = _read_all(file, path)
    parsed = parse_json(data)
    is_torn = not isinstance(parsed, dict | list)
    if is_torn:
        parsed = parse_before_tear(data.decode(errors="replace"))
    if not isinstance(parsed, dict | list):
        raise not_transcript_error(
            path, "is cut off or damaged: it starts as JSON, but is not valid JSON"
        )
    rows = (
        [row for row in parsed if isinstance(row, dict)] if isinstance(parsed, list) else [parsed]
    )
    writer = _choose_host(rows, path)
    if host not in (DOCUMENT, writer):
        raise not_transcript_error(path, f"is not a transcript of {host}")
    messages: list[Message] = []
    for row in rows:
        context.line += 1
        messages += FORMATS[writer].read(row, context)
    return _build_whole(writer, context, messages).replace(broken=int(is_torn))


_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+(?P<quote>"?)|[\[\]{}]', re.DOTALL)
"""Strings and brackets of JSON; an unterminated string is the last match."""


def parse_before_tear(text: str) -> Any:
    """Parse a JSON document that was cut off, up to its last complete message.

    A message is an item of the top list, or of a list directly inside the top object. None if there
    is no such item, or the text is damaged in another way.
    """
    open_: list[str] = []
    end, closing = 0, ""
    for match in _STRUCTURE.finditer(text):
        sign = match[0]
        if sign[0] == '"':
            if not match["quote"]:
                break
        elif sign in "[{":
            open_.append("]" if sign == "[" else "}")
        elif not open_ or open_.pop() != sign:
            return None
        elif 0 < len(open_) < 3 and open_[-1] == "]":
            end, closing = match.end(), "".join(reversed(open_))
    return parse_json(text[:end] + closing) if end else None


def _build_whole(host: str, context: TranscriptContext, messages: Iterable[Message]) -> Reading:
    """Build the reading of a format that is always read from its start.

    A message that is written again, with the same origin, replaces the first one.
    """
    by_origin = {message.origin: message for message in clear_own_text(messages, context)}
    return Reading(host, context.session, tuple(by_origin.values()), 0, is_new=True, mark=Mark())


def clear_own_text(messages: Iterable[Message], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages without text written by memtool, and without colours.

    A prompt of memtool's own is left out with all answers, until a person types again.
    """
    for message in messages:
        if message.role == "user":
            context.is_asked = markup.is_asked(message.text)
        if context.is_asked:
            continue
        if message.role == "tool" and markup.is_own_call(message):
            continue
        text = message.text
        if len(text) > _ROUGH:
            half = _ROUGH // 2
            text = f"{text[:half]}\n[… {len(text) - _ROUGH:,} characters …]\n{text[-half:]}"
        text = markup.without_own(markup.without_colours(text)).strip("\n")
        if text.strip() or message.tool:
            yield message if text == message.text else message.replace(text=text)


def _read_all(file: BinaryIO, path: str) -> bytes:
    file.seek(0)
    data = file.read(MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        raise MemtoolError(
            f"{path} is longer than {MAX_DOCUMENT >> 20} MB",
            hint="split it",
            code="too-large",
        )
    return data


def _is_same(file: BinaryIO, mark: Mark) -> bool:
    """Return whether a mark belongs to this file, which may have grown since."""
    if not mark.offset or file.seek(0, os.SEEK_END) < mark.offset:
        return False
    start = _read_sample(file, 0)[: mark.offset]
    return mark.start == digest(start) and mark.behind == digest(_read_before(file, mark.offset))


def _read_beginning(file: BinaryIO) -> bytes:
    """Return the first complete lines of a file."""
    file.seek(0)
    start = file.read(_START)
    if len(start) < _START:
        return start
    if b"\n" not in start:
        start += file.readline(MAX_LINE)
    return start[: start.rfind(b"\n") + 1] or start


def _read_before(file: BinaryIO, offset: int) -> bytes:
    start = max(0, offset - _SAMPLE)
    return _read_sample(file, start)[: offset - start]


def _read_sample(file: BinaryIO, at: int) -> bytes:
    file.seek(at)
    return file.read(_SAMPLE)
