"""The reader of transcripts: which format a file has, and what is new in it, as messages.

It owns how a file is read on from where the last reading ended, and what is left out of every
message. Where nobody names the host, the content decides.
"""

from __future__ import annotations

import os
import re
import stat

from memtool.errors import MemtoolError
from memtool.sessions.model import Message, json_row, json_value
from memtool.sessions.transcripts import markup
from memtool.sessions.transcripts.formats import (
    FORMATS,
    opencode_document,
    read_opencode,
)
from memtool.sessions.transcripts.markup import TranscriptContext
from memtool.sessions.transcripts.plain_text import read_text
from memtool.store.files import open_file, refusing
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO

PLAIN = "plain"
KINDS = (*FORMATS, PLAIN)
"""Every kind of transcript that can be read."""
DOCUMENT = "document"
"""JSON that its first line does not hold whole."""
MOST_BYTES = 512 << 20
MOST_LINE = 32 << 20
MOST_DOCUMENT = 64 << 20
_SQLITE = b"SQLite format 3\0"
_START = 1 << 18
"""Bytes by which a format is recognised."""
_ROUGH = 400_000
"""Characters of a message that are looked through; of more only both ends are."""
_SAMPLE = 512
"""Bytes at the start, and before the place where a reading ended, that must be the same still."""


class Mark(Value):
    """Where a reading of a transcript ended, and what the next one needs to go on."""

    host: str = ""
    offset: int = 0
    start: str = ""
    """Hash of the first bytes."""
    behind: str = ""
    """Hash of the bytes before the offset."""
    context: Mapping[str, Any] | None = None


class Reading(Value):
    """What was read: messages without numbers, and lines that were broken."""

    host: str
    session: str
    messages: tuple[Message, ...]
    broken: int
    is_new: bool
    """Whether it was read from its beginning."""
    mark: Mark


def opened(path: str) -> BinaryIO:
    """Open a transcript. Raises MemtoolError where it is no file that can be read."""
    hint = "memtool capture PATH takes a transcript, - reads it from stdin"
    with refusing(f"{path} cannot be read", hint, "no-file"):
        handle = open_file(path, follows=True)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
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
    """Read a transcript on from a mark, from its beginning where it is another one by now.

    `session` names the one to read where there are several.

    Raises:
        MemtoolError: it is not of the host that was named, or of none that is known.
    """
    if _sample(file, 0).startswith(_SQLITE):
        context = TranscriptContext(tops)
        held = opencode_document(path, session, tops)
        return _whole("opencode", context, read_opencode(held, context))
    began = mark if mark is not None and _is_same(file, mark) else Mark()
    context = TranscriptContext(tops, began.context)
    if not began.offset:
        first = _first(file)
        host = host or detected(first, path)
        if host == PLAIN:
            rows = _all(file, path).split(b"\n")
            kept = [row for row in rows if b"\0" not in row]
            text = b"\n".join(kept).decode(errors="replace")
            whole = _whole(host, context, read_text(text))
            return whole.replace(broken=len(rows) - len(kept))
        if is_document(first):
            return _document(file, path, host, context)
    return _lines(file, path, host or began.host, context, began.offset)


def detected(start: bytes, path: str) -> str:
    """Return the host that a transcript is from, by its first lines; `plain` for a text.

    A document that its first line does not hold whole is `document`, and recognised by its keys.

    Raises:
        MemtoolError: it is empty, binary, or JSON that no host writes.
    """
    if not start.strip():
        raise foreign(path, "is empty")
    if b"\0" in start:
        start = _without_binary(start, path)
    if is_document(start):
        return DOCUMENT
    rows, are_most = _rows_of(start)
    return _host_of(rows, path) if are_most else PLAIN


def _without_binary(start: bytes, path: str) -> bytes:
    """Return lines without those that are no text. Raises MemtoolError where most are none."""
    lines = [line for line in start.split(b"\n") if line.strip()]
    kept = [line for line in lines if b"\0" not in line]
    text = b"\n".join(kept)
    is_text = _rows_of(text)[1] or "\ufffd" not in text.decode(errors="replace")
    if len(kept) * 2 < len(lines) or not kept or not is_text:
        raise foreign(path, "is no text")
    return text


def is_document(start: bytes) -> bool:
    """Tell whether a file is one of JSON that its first line does not hold whole."""
    first = start.lstrip().partition(b"\n")[0].rstrip()
    return first[:1] in (b"{", b"[") and _row_of(first) is None and not _rows_of(start)[1]


def _rows_of(start: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the JSON objects among some lines, and whether at least half of the lines are one."""
    lines = [line for line in start.split(b"\n") if line.strip()]
    rows = [row for row in map(_row_of, lines) if row is not None]
    return rows, bool(rows) and len(rows) * 2 >= len(lines)


def _host_of(rows: Sequence[Mapping[str, Any]], path: str) -> str:
    """Return the host whose format most rows have. Raises MemtoolError where none has."""
    known = {name: sum(map(knows, rows)) for name, (knows, _read) in FORMATS.items()}
    host = max(known, key=lambda name: known[name])
    if not known[host]:
        raise foreign(path, "is JSON, but no transcript that is known")
    return host


def _row_of(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, None where it holds none.

    A byte that is no text, as a tool may print it, costs only itself.
    """
    row = json_row(line)
    return json_row(line.decode(errors="replace")) if row is None else row


def foreign(path: str, what: str) -> MemtoolError:
    """Return the refusal of a file that is no transcript."""
    return MemtoolError(
        f"{path} {what}",
        hint=f"known are transcripts of {', '.join(FORMATS)}, SpecStory, aider, markdown and text",
        code="foreign-transcript",
    )


def _lines(
    file: BinaryIO, path: str, host: str, context: TranscriptContext, offset: int
) -> Reading:
    """Read lines of JSON from an offset on; what is no whole line yet is left for later."""
    knows, read_row = FORMATS[host]
    found: list[Message] = []
    known = broken = 0
    at = offset
    file.seek(at)
    while line := file.readline(MOST_LINE):
        row = _row_of(line) if line.strip() else {}
        broken += row is None
        if row is None and not line.endswith(b"\n") and len(line) < MOST_LINE:
            break  # its writer is not done with it, or never will be
        at += len(line)
        if row:
            context.line += 1
            known += knows(row)
            found += read_row(row, context)
    if not (offset or known):
        raise foreign(path, f"is no transcript of {host}")
    start, behind = _sample(file, 0)[:at], _before(file, at)
    whole = _whole(host, context, found)
    mark = Mark(host, at, digest(start), digest(behind), context.kept())
    return whole.replace(broken=broken, is_new=not offset, mark=mark)


def _document(file: BinaryIO, path: str, host: str, context: TranscriptContext) -> Reading:
    """Read a document, an object or a list of some; its keys say which host wrote it."""
    data = _all(file, path)
    held = json_value(data)
    is_torn = not isinstance(held, dict | list)
    if is_torn:
        held = before_tear(data.decode(errors="replace"))
    if not isinstance(held, dict | list):
        raise foreign(path, "is cut off or broken: it begins as JSON, and is none")
    rows = [row for row in held if isinstance(row, dict)] if isinstance(held, list) else [held]
    writer = _host_of(rows, path)
    if host not in (DOCUMENT, writer):
        raise foreign(path, f"is no transcript of {host}")
    found: list[Message] = []
    for row in rows:
        context.line += 1
        found += FORMATS[writer][1](row, context)
    return _whole(writer, context, found).replace(broken=int(is_torn))


_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+(?P<quote>"?)|[\[\]{}]', re.DOTALL)
"""The strings and brackets of JSON; a string without its end is the last of a text."""


def before_tear(text: str) -> Any:
    """Return what a document of JSON held before it was cut off, up to its last whole message.

    A message is an item of a list that is the document, or stands in it. None where the text
    holds no such item, or was damaged otherwise.
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
    return json_value(text[:end] + closing) if end else None


def _whole(host: str, context: TranscriptContext, messages: Iterable[Message]) -> Reading:
    """Return the reading of what is read from its beginning every time.

    A message that is written again, under the same origin, takes the place of the first one.
    """
    found = {one.origin: one for one in cleared(messages, context)}
    return Reading(host, context.session, tuple(found.values()), 0, is_new=True, mark=Mark())


def cleared(messages: Iterable[Message], context: TranscriptContext) -> Iterator[Message]:
    """Yield the messages without what memtool wrote itself, and without colours.

    What memtool asked is left out with all that was answered, until somebody types again.
    """
    for one in messages:
        if one.role == "user":
            context.is_asked = markup.is_asked(one.text)
        if context.is_asked:
            continue
        if one.role == "tool" and markup.is_own_call(one):
            continue
        text = one.text
        if len(text) > _ROUGH:
            half = _ROUGH // 2
            text = f"{text[:half]}\n[… {len(text) - _ROUGH:,} characters …]\n{text[-half:]}"
        text = markup.without_own(markup.without_colours(text)).strip("\n")
        if text.strip() or one.tool:
            yield one if text == one.text else one.replace(text=text)


def _all(file: BinaryIO, path: str) -> bytes:
    file.seek(0)
    data = file.read(MOST_DOCUMENT + 1)
    if len(data) > MOST_DOCUMENT:
        raise MemtoolError(
            f"{path} is longer than {MOST_DOCUMENT >> 20} MB",
            hint="split it, or name the transcript itself",
            code="too-large",
        )
    return data


def _is_same(file: BinaryIO, mark: Mark) -> bool:
    """Tell whether a file is the one that a mark was made in, with more at its end at most."""
    if not mark.offset or os.fstat(file.fileno()).st_size < mark.offset:
        return False
    start = _sample(file, 0)[: mark.offset]
    return mark.start == digest(start) and mark.behind == digest(_before(file, mark.offset))


def _first(file: BinaryIO) -> bytes:
    """Return the first lines of a file, without one that is cut off by the end of what is read."""
    file.seek(0)
    start = file.read(_START)
    if len(start) < _START:
        return start
    if b"\n" not in start:
        start += file.readline(MOST_LINE)
    return start[: start.rfind(b"\n") + 1] or start


def _before(file: BinaryIO, offset: int) -> bytes:
    start = max(0, offset - _SAMPLE)
    return _sample(file, start)[: offset - start]


def _sample(file: BinaryIO, at: int) -> bytes:
    file.seek(at)
    return file.read(_SAMPLE)
