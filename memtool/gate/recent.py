"""Recent rows: what the census needs of memories that were committed after its table was made.

A file of the cache that only grows, one row a line, each with a checksum. A row follows from the
path and the bytes of a file, so it is true on every branch. A file that has grown too long, or
cannot be written, costs reading those memories again.
"""

from __future__ import annotations

import os
import zlib

from memtool.gate.sketches import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.gate.census import Stamp

MOST_BYTES = 1 << 18


def load(path: str, wanted: Iterable[Stamp]) -> dict[Stamp, Row]:
    """Return the rows that are wanted by path and blob; lines that are not whole are no rows."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return {}
    by_start = {tuple(line[9:].split(b"\0", 2)[:2]): line for line in lines}
    found = {}
    for name, oid in wanted:
        line = by_start.get((os.fsencode(name), oid.encode()), b"")
        if line and line[:9] == b"%08x " % zlib.crc32(line[9:]):
            found[name, oid] = _parsed(line[9:])
    return found


def add(path: str, rows: Iterable[Row]) -> None:
    """Add rows to a file, which is begun again where it has grown too long."""
    lines = [b"%08x %s\n" % (zlib.crc32(text), text) for text in map(_text, rows)]
    data = b"".join(line for line in lines if line.count(b"\n") == 1)  # a path may hold a line feed
    if not data:
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > MOST_BYTES:
            flags |= os.O_TRUNC
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)
    except OSError:
        return


def _text(row: Row) -> bytes:
    numbers = ",".join(f"{number:x}" for number in row.numbers)
    parts = (row.path, row.oid, row.id, row.status, f"{row.fingerprint:x}", numbers)
    return "\0".join((*parts, *row.supersedes)).encode(errors="surrogateescape")


def _parsed(text: bytes) -> Row:
    said = text.decode(errors="surrogateescape").split("\0")
    path, oid, id_, status, print_, numbers, *old = said
    signed = tuple(int(number, 16) for number in numbers.split(",") if number)
    return Row(id_, path, status, tuple(old), oid, int(print_, 16), signed)
