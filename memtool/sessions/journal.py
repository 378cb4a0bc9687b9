"""Journals: files of JSON lines that only grow, in the git directory, for their owner alone.

A writer holds an exclusive lock, so that it knows where the file ends. A process that was killed
may leave half a line: the next writer sets it aside in a file beside the journal, and everything
before it is whole. Where the disk is full, the journal is what it was. Older messages of a session
move into compressed parts, each named by the numbers that it holds: whoever compresses holds the
lock, and empties the journal only when the part is on the disk. If it is killed between, messages
are in both; the name of the part says which ones.

Other private files are put in their place whole or not at all. No link is ever followed, and what
the operating system refuses becomes one sentence here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from memtool.errors import MemtoolError
from memtool.store.files import TEMP_PREFIX, read_regular
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Self

FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How every file here is opened: no link is followed, and no pipe waited for."""
FILE_MODE = 0o600
STALE_S = 86_400
FOLDER_MODE = 0o700


def put(path: str, data: bytes) -> None:
    """Put a file in its place, whole and synced; one that is there gives way.

    Raises:
        MemtoolError: the disk refuses; what was there is there still.
    """
    folder, name = os.path.split(path)
    temp = os.path.join(folder, f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}-{name}")
    try:
        handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FLAGS, FILE_MODE)
        try:
            write_all(handle, data)
            os.fsync(handle)
            os.replace(temp, path)
        except BaseException:
            os.unlink(temp)
            raise
        finally:
            os.close(handle)
        sync_folder(folder)
        _sweep(folder)
    except OSError as error:
        raise refusal(path, "written", error) from None


def _sweep(folder: str) -> None:
    """Remove what writers that were killed left behind. Raises OSError."""
    import time

    now = time.time()
    with os.scandir(folder) as entries:
        for entry in entries:
            is_left = entry.name.startswith(TEMP_PREFIX) and entry.is_file(follow_symlinks=False)
            if is_left and now - entry.stat(follow_symlinks=False).st_mtime > STALE_S:
                os.unlink(entry.path)


def sync_folder(folder: str) -> None:
    """Wait until the names in a directory are on the disk. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all bytes, however often the system takes only some. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def refusal(path: str, done: str, error: OSError) -> MemtoolError:
    """Return what the operating system said as one sentence; `done` is read or written."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
        return MemtoolError(
            f"{path} cannot be {done}: a link or something else that is no file is in the way",
            hint="remove it; sessions never leave their directory",
            code="symlink",
        )
    reason = os.strerror(error.errno or 0)
    if done == "read":
        return MemtoolError(f"{path} cannot be read: {reason}",
                            hint="make it a file that you may read", code="disk")  # fmt: skip
    return MemtoolError(
        f"{path} cannot be written: {reason}; nothing was changed",
        hint="free space or permissions, then run the same command again",
        code="disk",
    )


TORN_SUFFIX = ".torn"
"""Ends the name of the file beside a journal that keeps the half lines that were cut off it."""
_BLOCK = 65_536


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
    handle = reading(path)
    if handle is None:
        return [], 0
    try:
        return parse(whole(handle))
    finally:
        os.close(handle)


def parse(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the rows that bytes hold, and how many lines are none: torn, or somebody else's."""
    import json

    rows = []
    torn = 0
    lines = data.split(b"\n")
    unfinished = lines.pop()
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            torn += 1
    return rows, torn + bool(unfinished)


def write(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the lines of rows."""
    import json

    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows]
    # A lone surrogate, which UTF-8 cannot hold, becomes the escape by which JSON writes it.
    return "".join(lines).encode(errors="backslashreplace")


def reading(path: str) -> int | None:
    """Open a journal with a lock against writers; None where there is none.

    Raises:
        MemtoolError: it cannot be read, or is no regular file.
    """
    try:
        handle = os.open(path, os.O_RDONLY | FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refusal(path, "read", error) from None
    _hold(handle, path, fcntl.LOCK_SH)
    return handle


def whole(handle: int) -> bytes:
    """Return everything that an open file holds."""
    os.lseek(handle, 0, os.SEEK_SET)
    pieces = []
    while piece := os.read(handle, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


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

    `size` is its bytes, `torn` how many half lines were cut off it when it was opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.torn = 0
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | FLAGS
            self.handle = os.open(path, flags, FILE_MODE)
        except OSError as error:
            raise refusal(path, "written", error) from None
        _hold(self.handle, path, fcntl.LOCK_EX)
        try:
            self.size = os.fstat(self.handle).st_size
            self._mend()
        except OSError as error:
            os.close(self.handle)
            raise refusal(path, "written", error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_reason: object) -> None:
        os.close(self.handle)

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows, all or none. Raises MemtoolError where the disk refuses."""
        self.write(write(rows))

    def write(self, data: bytes) -> None:
        """Append whole lines, all or none. Raises MemtoolError where the disk refuses."""
        try:
            write_all(self.handle, data)
        except OSError as error:
            os.ftruncate(self.handle, self.size)
            raise refusal(self.path, "written", error) from None
        self.size += len(data)

    def sync(self) -> None:
        """Wait until everything is on the disk. Raises OSError."""
        os.fsync(self.handle)

    def whole(self) -> bytes:
        """Return all lines."""
        return whole(self.handle)

    def last(self, count: int = 1) -> bytes:
        """Return the last lines, fewer where there are fewer."""
        return last_lines(self.handle, self.size, count)

    def clear(self) -> None:
        """Remove all lines, which are kept elsewhere by now. Raises OSError."""
        os.ftruncate(self.handle, 0)
        self.size = 0

    def _mend(self) -> None:
        """Cut off what follows the last line feed, once it stands in the file of half lines."""
        end = after_line_feed(self.handle, self.size)
        if end == self.size:
            return
        half = os.pread(self.handle, self.size - end, end)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | FLAGS
        aside = os.open(self.path + TORN_SUFFIX, flags, FILE_MODE)
        try:
            write_all(aside, half + b"\n")
        finally:
            os.close(aside)
        os.ftruncate(self.handle, end)
        self.size = end
        self.torn = 1


def _hold(handle: int, path: str, lock: int) -> None:
    """Lock an open file, if it is one. Closes it and raises MemtoolError if it is none."""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        fcntl.flock(handle, lock)
    except OSError as error:
        os.close(handle)
        raise refusal(path, "read" if lock == fcntl.LOCK_SH else "written", error) from None


PART_PREFIX = "messages-"
PART_SUFFIX = ".jsonl.gz"
MOST_PART_BYTES = 1 << 30
"""What a part may hold when it is opened; no session is as large."""
_STEP = 1024


class MessagesPart(Value):
    """A compressed part, with the first and last number in it and its bytes on disk."""

    path: str
    first: int
    last: int
    size: int


def parts(folder: str) -> list[MessagesPart]:
    """Return the parts of a session in order. Raises MemtoolError if they cannot be listed."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                numbers = _numbers(entry.name)
                if numbers is not None:
                    size = entry.stat(follow_symlinks=False).st_size
                    found.append(MessagesPart(entry.path, *numbers, size))
    except OSError as error:
        raise refusal(folder, "read", error) from None
    return sorted(found, key=lambda part: part.first)


def compress(folder: str, writer: Writer, first: int, last: int) -> None:
    """Move all lines of a journal into a part.

    Raises:
        MemtoolError: the disk refuses; the journal is what it was.
    """
    import zlib

    packer = zlib.compressobj(level=6, wbits=31)  # 31: in the form of gzip, without a date
    data = packer.compress(writer.whole()) + packer.flush()
    put(os.path.join(folder, f"{PART_PREFIX}{first:07}-{last:07}{PART_SUFFIX}"), data)
    try:
        writer.clear()
    except OSError as error:
        raise refusal(writer.path, "written", error) from None


def opened(part: MessagesPart) -> bytes:
    """Return the lines of a part; what is damaged ends it.

    Raises:
        MemtoolError: it cannot be read.
    """
    import zlib

    try:
        packed = read_regular(part.path)
    except OSError as error:
        raise refusal(part.path, "read", error) from None
    unpacker = zlib.decompressobj(wbits=31)
    try:
        return unpacker.decompress(packed, MOST_PART_BYTES)
    except zlib.error:
        return _salvaged(packed)


def _salvaged(packed: bytes) -> bytes:
    """Return what a damaged part still says before the place of the damage."""
    import zlib

    unpacker = zlib.decompressobj(wbits=31)
    pieces = []
    for at in range(0, len(packed), _STEP):
        try:
            pieces.append(unpacker.decompress(packed[at : at + _STEP]))
        except zlib.error:
            break
    return b"".join(pieces)


def _numbers(name: str) -> tuple[int, int] | None:
    if not (name.startswith(PART_PREFIX) and name.endswith(PART_SUFFIX)):
        return None
    first, _dash, last = name[len(PART_PREFIX) : -len(PART_SUFFIX)].partition("-")
    if not (first.isascii() and last.isascii() and first.isdigit() and last.isdigit()):
        return None
    return int(first), int(last)
