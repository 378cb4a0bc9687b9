"""Reading: a transcript from where an earlier reading ended, as messages without markup."""

from __future__ import annotations

import os
import stat

from memtool.errors import MemtoolError
from memtool.sessions.transcripts import database, formats, markup, opencode, plain
from memtool.sessions.transcripts.context import Context
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO

    from memtool.sessions.message import Message

MOST_BYTES = 512 << 20
MOST_LINE = 32 << 20
MOST_DOCUMENT = 64 << 20
_START = 1 << 18
"""Bytes by which a format is told."""
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
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise MemtoolError(
            f"{path} cannot be read: {os.strerror(error.errno or 0)}",
            hint="memtool capture PATH takes a transcript, - reads it from stdin",
            code="no-file",
        ) from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        os.close(handle)
        what = "is no regular file" if not stat.S_ISREG(status.st_mode) else "is too large"
        raise MemtoolError(f"{path} {what}", hint="name a transcript of an agent, or a text",
                           code="no-file")  # fmt: skip
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

    `session` says which one is meant where there are several.

    Raises:
        MemtoolError: it is not of the host that was named, or of none that is known.
    """
    if _sample(file, 0).startswith(database.MAGIC):
        context = Context(tops)
        held = database.document(path, session, tops)
        return _whole(opencode.AGENT, context, opencode.read(held, context))
    began = mark if mark is not None and _is_same(file, mark) else Mark()
    context = Context(tops, began.context)
    if not began.offset:
        first = _first(file)
        host = host or formats.detected(first, path)
        if host == formats.PLAIN:
            text = _all(file, path).decode(errors="replace")
            return _whole(host, context, plain.read(text))
        if formats.is_document(first):
            return _document(file, path, host, context)
    return _lines(file, path, host or began.host, context, began.offset)


def _lines(file: BinaryIO, path: str, host: str, context: Context, offset: int) -> Reading:
    """Read lines of JSON from an offset on."""
    lines = _Lines(file, offset)
    form = formats.BY_HOST[host]
    found: list[Message] = []
    known = 0
    for row in lines:
        context.line += 1
        known += form.knows(row)
        found += form.read(row, context)
    if not (offset or known):
        raise formats.foreign(path, f"is no transcript of {host}")
    read = _whole(host, context, found)
    start, behind = _sample(file, 0)[: lines.offset], _before(file, lines.offset)
    mark = Mark(host, lines.offset, digest(start), digest(behind), context.kept())
    return read.replace(broken=lines.broken, is_new=not offset, mark=mark)


def cleared(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages without what memtool wrote itself, and without colours."""
    for one in messages:
        if one.role == "tool" and markup.is_own_call(one):
            continue
        text = one.text if len(one.text) <= _ROUGH else _ends(one.text)
        text = markup.without_own(markup.without_colours(text)).strip("\n")
        if text.strip() or one.tool:
            yield one if text == one.text else one.replace(text=text)


def _by_origin(messages: Iterable[Message]) -> dict[str, Message]:
    """Return messages by origin: one that is written again takes the place that it had."""
    return {one.origin: one for one in messages}


class _Lines:
    """The JSON objects of a file from an offset on; what is no whole line yet is left for later."""

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self.file = file
        self.offset = offset
        self.broken = 0

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        self.file.seek(self.offset)
        while line := self.file.readline(MOST_LINE):
            row = formats.row_of(line) if line.strip() else {}
            if row is None and not line.endswith(b"\n") and len(line) < MOST_LINE:
                self.broken += 1  # its writer is not done with it, or never will be
                return
            self.offset += len(line)
            self.broken += row is None
            if row:
                yield row


def _document(file: BinaryIO, path: str, host: str, context: Context) -> Reading:
    """Read a document, which tells by its keys whose it is."""
    rows = formats.document(_all(file, path), path)
    form = formats.BY_HOST[formats.told_by(rows, path)]
    if host not in (formats.DOCUMENT, form.host):
        raise formats.foreign(path, f"is no transcript of {host}")
    found: list[Message] = []
    for row in rows:
        context.line += 1
        found += form.read(row, context)
    return _whole(form.host, context, found)


def _whole(host: str, context: Context, messages: Iterable[Message]) -> Reading:
    """Return the reading of what is read from its beginning every time."""
    found = tuple(_by_origin(cleared(messages)).values())
    return Reading(host, context.session, found, 0, is_new=True, mark=Mark())


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


def digest(data: bytes) -> str:
    """Return 16 hexadecimal digits that name some bytes."""
    from _blake2 import blake2b  # hashlib would import OpenSSL

    return blake2b(data, digest_size=8).hexdigest()


def _ends(text: str) -> str:
    half = _ROUGH // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters …]\n{text[-half:]}"
