"""Journals: append-only files of JSON lines in the git directory, readable by their owner alone.

A writer holds an exclusive lock, so it knows where the file ends. A killed process may leave half a
line: the next writer moves it to a file next to the journal, and everything before it stays intact.
If the disk is full, the journal is unchanged. Earlier versions moved older messages of a session
into compressed parts, each named by the numbers of its messages. Parts are still read but never
written; messages that are also in the journal count once.

Other private files are written whole or not at all. Links are never followed. Errors of the
operating system become one message here.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager

from memtool.errors import MemtoolError, find_reason
from memtool.sessions.model import parse_json_row, to_json_line
from memtool.store import files
from memtool.store.files import read_regular, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Self

FOLDER_MODE = 0o700
TORN_SUFFIX = ".torn"
"""Suffix of the file, next to a journal, that holds the half lines cut from it."""
_APPEND = os.O_APPEND | os.O_CREAT
_BLOCK = 65_536


@contextmanager
def explain_errors(path: str, done: str) -> Iterator[None]:
    """Turn an OSError into a MemtoolError; `done` is `read` or `written`."""
    try:
        yield
    except OSError as error:
        code = "disk"
        reason = find_reason(error)
        hint = "make it a readable file"
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
            code = "symlink"
            reason = "a link or something else that is no file is in the way"
            hint = "remove it, since links are not followed"
        elif done == "written":
            reason += "; nothing was changed"
            hint = "free space or fix the permissions, then run the command again"
        if error.errno in (errno.EACCES, errno.EPERM):
            hint = files.build_chown_command(path) or hint
        raise MemtoolError(f"{path} cannot be {done}: {reason}", hint=hint, code=code) from None


def write_file(path: str, data: bytes) -> None:
    """Write a file whole and synced, replacing any earlier one.

    Raises:
        MemtoolError: it cannot be written; the earlier file is unchanged.
    """
    folder, name = os.path.split(path)
    with explain_errors(path, "written"):
        files.write_private(folder, name, data, is_lasting=True)


def append(path: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Append rows to a journal, all or none; return how many half lines were cut off first.

    Raises:
        MemtoolError: it cannot be written; the journal is unchanged.
    """
    with Writer(path) as writer:
        writer.append(rows)
        return writer.torn


def read(path: str) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of a journal and its number of torn lines; a missing file has no rows.

    Raises:
        MemtoolError: it cannot be read.
    """
    with open_for_reading(path) as handle:
        return parse(read_whole(handle))


def parse(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the rows in the bytes, and the number of lines that are not rows."""
    *lines, unfinished = data.split(b"\n")
    rows = [row for row in map(parse_json_row, lines) if row is not None]
    return rows, len(lines) - len(rows) + bool(unfinished)


def write(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Format rows as lines."""
    # UTF-8 cannot encode a lone surrogate: it is written as its JSON escape.
    return "".join(map(to_json_line, rows)).encode(errors="backslashreplace")


@contextmanager
def open_for_reading(path: str) -> Iterator[int | None]:
    """Hold a journal open and locked against writers; None if it does not exist.

    Raises:
        MemtoolError: it cannot be read, or is not a regular file.
    """
    with explain_errors(path, "read"):
        try:
            handle: int | None = _open_locked(path, os.O_RDONLY, is_shared=True)
        except FileNotFoundError:
            handle = None
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _open_locked(path: str, flags: int, *, is_shared: bool = False) -> int:
    """Open a regular file and lock it. Raises OSError."""
    handle, _status = files.open_plain(path, flags)
    try:
        files.lock(handle, is_shared=is_shared)
    except OSError:
        os.close(handle)
        raise
    return handle


def read_whole(handle: int | None) -> bytes:
    """Read an open file from its start; empty for None."""
    if handle is None:
        return b""
    os.lseek(handle, 0, os.SEEK_SET)
    with open(handle, "rb", closefd=False) as file:
        return file.read()


def read_last_lines(handle: int, end: int, count: int = 1) -> bytes:
    """Return the last `count` lines before `end`, or fewer. A line must end at `end`."""
    start = end
    for _line in range(count):
        start = find_line_start(handle, start - 1)
    return os.pread(handle, end - start, start)


def find_line_start(handle: int, end: int) -> int:
    """Return the offset after the last line feed before `end`, 0 if there is none."""
    while end > 0:
        start = max(0, end - _BLOCK)
        last_feed = os.pread(handle, end - start, start).rfind(b"\n")
        if last_feed >= 0:
            return start + last_feed + 1
        end = start
    return 0


class Writer:
    """A journal open for writing, locked against all others and repaired at its end.

    `size` is in bytes; `torn` is the number of half lines that were cut off when it was opened.
    Every method raises MemtoolError if the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.torn = 0
        with explain_errors(path, "written"):
            self.handle = _open_locked(path, os.O_RDWR | _APPEND)
            try:
                self.size = os.fstat(self.handle).st_size
                self._cut_torn_tail()
            except OSError:
                os.close(self.handle)
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_reason: object) -> None:
        os.close(self.handle)

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows, all or none."""
        self.write(write(rows))

    def write(self, data: bytes) -> None:
        """Append whole lines, all or none."""
        with explain_errors(self.path, "written"):
            try:
                write_all(self.handle, data)
            except OSError:
                os.ftruncate(self.handle, self.size)
                raise
        self.size += len(data)

    def sync(self) -> None:
        """Sync all data to the disk."""
        with explain_errors(self.path, "written"):
            os.fsync(self.handle)

    def read_whole(self) -> bytes:
        """Return all lines."""
        return read_whole(self.handle)

    def read_last(self, count: int = 1) -> bytes:
        """Return the last `count` lines, or fewer."""
        return read_last_lines(self.handle, self.size, count)

    def clear(self) -> None:
        """Remove all lines. Only call it once they are stored elsewhere."""
        with explain_errors(self.path, "written"):
            os.ftruncate(self.handle, 0)
        self.size = 0

    def _cut_torn_tail(self) -> None:
        """Move anything after the last line feed to the file of half lines."""
        end = find_line_start(self.handle, self.size)
        if end == self.size:
            return
        half = os.pread(self.handle, self.size - end, end)
        aside = files.open_file(self.path + TORN_SUFFIX, os.O_WRONLY | _APPEND)
        try:
            write_all(aside, half + b"\n")
        finally:
            os.close(aside)
        os.ftruncate(self.handle, end)
        self.size = end
        self.torn = 1


_PART = re.compile(r"messages-(\d+)-(\d+)\.jsonl\.gz", re.ASCII)
MAX_PART_BYTES = 1 << 30
"""Maximum size of a part when decompressed; no session is this large."""
_STEP = 1024


def list_parts(folder: str) -> list[str]:
    """Return the paths of a session's compressed parts, in order.

    Raises:
        MemtoolError: they cannot be listed.
    """
    with explain_errors(folder, "read"):
        paths = [os.path.join(folder, name) for name in filter(_PART.fullmatch, os.listdir(folder))]
    return sorted(paths, key=find_last_number)


def find_last_number(part: str) -> int:
    """Return the number of the last message in a part."""
    return int(part.removesuffix(".jsonl.gz").rpartition("-")[2])


def read_part(part: str) -> bytes:
    """Return the lines of a part; if it is damaged, only those before the damage.

    Raises:
        MemtoolError: it cannot be read.
    """
    import zlib

    with explain_errors(part, "read"):
        packed = read_regular(part)
    unpacker = zlib.decompressobj(wbits=31)  # 31: in the form of gzip
    pieces: list[bytes] = []
    room = MAX_PART_BYTES
    for at in range(0, len(packed), _STEP):
        try:
            pieces.append(unpacker.decompress(packed[at : at + _STEP], room))
        except zlib.error:
            break
        room -= len(pieces[-1])
        if room <= 0:
            break
    return b"".join(pieces)
