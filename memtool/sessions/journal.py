"""Journals: files of JSON lines that only grow, in the git directory, for their owner alone.

A writer holds an exclusive lock, so that it knows where the file ends. A process that was killed
may leave half a line: the next writer moves it to a file next to the journal, and everything before
it is whole. Where the disk is full, the journal is what it was. Earlier versions moved older
messages of a session into compressed parts, each named by the numbers that it holds. These are read
as they are, and none is written; what is in the journal as well counts once.

Other private files are put in their place whole or not at all. No link is ever followed, and what
the operating system refuses becomes one sentence here.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager

from memtool.errors import MemtoolError, reason_of
from memtool.sessions.model import json_line, json_row
from memtool.store import files
from memtool.store.files import read_regular, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Self

FOLDER_MODE = 0o700
TORN_SUFFIX = ".torn"
"""Ends the name of the file, next to a journal, with the half lines that were cut off it."""
_APPEND = os.O_APPEND | os.O_CREAT
_BLOCK = 65_536


@contextmanager
def refused(path: str, done: str) -> Iterator[None]:
    """Raise what the operating system refuses as one MemtoolError; `done` is read or written."""
    try:
        yield
    except OSError as error:
        code = "disk"
        reason = reason_of(error)
        hint = "make it a file that you may read"
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
            code = "symlink"
            reason = "a link or something else that is no file is in the way"
            hint = "remove it; sessions never leave their directory"
        elif done == "written":
            reason += "; nothing was changed"
            hint = "free space or permissions, then run the same command again"
        if error.errno in (errno.EACCES, errno.EPERM):
            hint = files.chown_command(path) or hint
        raise MemtoolError(f"{path} cannot be {done}: {reason}", hint=hint, code=code) from None


def put(path: str, data: bytes) -> None:
    """Put a file in its place, whole and synced; one that is there gives way.

    Raises:
        MemtoolError: the disk refuses; what was there is there still.
    """
    folder, name = os.path.split(path)
    with refused(path, "written"):
        files.put(folder, name, data, is_lasting=True)


def append(path: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Append rows to a journal, all or none; return how many half lines were cut off before.

    Raises:
        MemtoolError: it cannot be written, and is what it was.
    """
    with Writer(path) as writer:
        writer.append(rows)
        return writer.torn


def read(path: str) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of a journal and how many of its lines are torn; no file has no rows.

    Raises:
        MemtoolError: it cannot be read.
    """
    with reading(path) as handle:
        return parse(whole(handle))


def parse(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the rows that bytes hold, and how many lines are none: torn, or somebody else's."""
    *lines, unfinished = data.split(b"\n")
    rows = [row for row in map(json_row, lines) if row is not None]
    return rows, len(lines) - len(rows) + bool(unfinished)


def write(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the lines of rows."""
    # A lone surrogate, which UTF-8 cannot hold, becomes the escape by which JSON writes it.
    return "".join(map(json_line, rows)).encode(errors="backslashreplace")


@contextmanager
def reading(path: str) -> Iterator[int | None]:
    """Hold a journal open and locked against writers; None where there is none.

    Raises:
        MemtoolError: it cannot be read, or is no regular file.
    """
    with refused(path, "read"):
        try:
            handle: int | None = _locked(path, os.O_RDONLY, is_shared=True)
        except FileNotFoundError:
            handle = None
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _locked(path: str, flags: int, *, is_shared: bool = False) -> int:
    """Open a regular file and lock it. Raises OSError."""
    handle, _status = files.open_plain(path, flags)
    try:
        files.lock(handle, is_shared=is_shared)
    except OSError:
        os.close(handle)
        raise
    return handle


def whole(handle: int | None) -> bytes:
    """Return everything that an open file holds, nothing where there is none."""
    if handle is None:
        return b""
    os.lseek(handle, 0, os.SEEK_SET)
    with open(handle, "rb", closefd=False) as file:
        return file.read()


def last_lines(handle: int, end: int, count: int = 1) -> bytes:
    """Return the last lines before a place at which a line ends, fewer where there are fewer."""
    start = end
    for _line in range(count):
        start = after_line_feed(handle, start - 1)
    return os.pread(handle, end - start, start)


def after_line_feed(handle: int, end: int) -> int:
    """Return the place after the last line feed before `end`, 0 for none."""
    while end > 0:
        start = max(0, end - _BLOCK)
        found = os.pread(handle, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


class Writer:
    """A journal opened for writing: locked against all others, and mended at its end.

    `size` is its bytes, `torn` how many half lines were cut off it when it was opened. Every
    method raises MemtoolError where the disk refuses.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.torn = 0
        with refused(path, "written"):
            self.handle = _locked(path, os.O_RDWR | _APPEND)
            try:
                self.size = os.fstat(self.handle).st_size
                self._mend()
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
        with refused(self.path, "written"):
            try:
                write_all(self.handle, data)
            except OSError:
                os.ftruncate(self.handle, self.size)
                raise
        self.size += len(data)

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        with refused(self.path, "written"):
            os.fsync(self.handle)

    def whole(self) -> bytes:
        """Return all lines."""
        return whole(self.handle)

    def last(self, count: int = 1) -> bytes:
        """Return the last lines, fewer where there are fewer."""
        return last_lines(self.handle, self.size, count)

    def clear(self) -> None:
        """Remove all lines, which are stored elsewhere by now."""
        with refused(self.path, "written"):
            os.ftruncate(self.handle, 0)
        self.size = 0

    def _mend(self) -> None:
        """Cut off what follows the last line feed, once it is in the file of half lines."""
        end = after_line_feed(self.handle, self.size)
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
MOST_PART_BYTES = 1 << 30
"""What a part may hold when it is opened; no session is as large."""
_STEP = 1024


def parts(folder: str) -> list[str]:
    """Return the paths of a session's compressed parts in order.

    Raises:
        MemtoolError: they cannot be listed.
    """
    with refused(folder, "read"):
        paths = [os.path.join(folder, name) for name in filter(_PART.fullmatch, os.listdir(folder))]
    return sorted(paths, key=last_number)


def last_number(part: str) -> int:
    """Return the number of the last message in a part."""
    return int(part.removesuffix(".jsonl.gz").rpartition("-")[2])


def opened(part: str) -> bytes:
    """Return the lines of a part; of a damaged one those before the damage.

    Raises:
        MemtoolError: it cannot be read.
    """
    import zlib

    with refused(part, "read"):
        packed = read_regular(part)
    unpacker = zlib.decompressobj(wbits=31)  # 31: in the form of gzip
    pieces: list[bytes] = []
    room = MOST_PART_BYTES
    for at in range(0, len(packed), _STEP):
        try:
            pieces.append(unpacker.decompress(packed[at : at + _STEP], room))
        except zlib.error:
            break
        room -= len(pieces[-1])
        if room <= 0:
            break
    return b"".join(pieces)
