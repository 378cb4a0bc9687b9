"""Parts: the older messages of a session, compressed, each named by the numbers that it holds.

Whoever compresses holds the lock of the journal, and empties it only when the part is on the disk.
If it is killed between, messages stand in both; the name of the part says which ones.
"""

from __future__ import annotations

import os

from memtool.sessions import private
from memtool.sessions.private import refusal
from memtool.store.files import read_regular
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.sessions.journal import Writer

PREFIX = "messages-"
SUFFIX = ".jsonl.gz"
MOST_BYTES = 1 << 30
"""What a part may hold when it is opened; no session is as large."""


_STEP = 1024


class Part(Value):
    """A compressed part, with the first and last number in it and its bytes on disk."""

    path: str
    first: int
    last: int
    size: int


def parts(folder: str) -> list[Part]:
    """Return the parts of a session in order. Raises MemtoolError if they cannot be listed."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                numbers = _numbers(entry.name)
                if numbers is not None:
                    size = entry.stat(follow_symlinks=False).st_size
                    found.append(Part(entry.path, *numbers, size))
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
    private.put(os.path.join(folder, f"{PREFIX}{first:07}-{last:07}{SUFFIX}"), data)
    try:
        writer.clear()
    except OSError as error:
        raise refusal(writer.path, "written", error) from None


def opened(part: Part) -> bytes:
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
        return unpacker.decompress(packed, MOST_BYTES)
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
    if not (name.startswith(PREFIX) and name.endswith(SUFFIX)):
        return None
    first, _dash, last = name[len(PREFIX) : -len(SUFFIX)].partition("-")
    if not (first.isascii() and last.isascii() and first.isdigit() and last.isdigit()):
        return None
    return int(first), int(last)
