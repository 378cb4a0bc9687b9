"""The cache: what can be rebuilt, and the one small kind of file that is not a database.

Such a file holds one value behind a line with its kind, the version of that kind and the byte order
of the machine. It ends in a seal: the checksum of all before it, and that of its own name with the
folder that it lies in, so that one which was swapped with another is found.

A file is replaced in one step, so readers need no lock: they see the old bytes or the new ones. A
cache that is missing, damaged, of another version or not writable costs time, never the answer:
reading returns None, writing returns a note, and neither raises OSError.
"""

from __future__ import annotations

import os
import sys
import time
from zlib import crc32

from memtool import tables, value
from memtool.errors import reason_of
from memtool.store import files
from memtool.store.files import TEMP_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

STALE_S = 3600
"""Age at which what a killed writer left behind is removed."""
_SEAL_BYTES = len(b"01234567 01234567\n")
"""Bytes of the checksums of the content and of the name that every file ends with."""


HIT, READ, BUILT, DAMAGED = "hit", "read", "built", "damaged"
"""What may happen to a cache: used as it is, brought up to date, made anew, found damaged."""
_events: set[str] = set()


def note_event(event: str) -> None:
    """Note what happened to a cache, for the statistics of the answer that is being made."""
    _events.add(event)


def take_events() -> frozenset[str]:
    """Return what happened since the last time that somebody asked, in this process."""
    found = frozenset(_events)
    _events.clear()
    return found


class CorruptCache(Exception):
    """A part of the cache is damaged: it must be rebuilt."""

    def __init__(self, why: str) -> None:
        """Note damage, which somebody should hear of when it comes again and again."""
        super().__init__(why)
        note_event(DAMAGED)


def _magic(kind: str) -> bytes:
    return f"memtool {kind} {sys.byteorder}\n".encode()


def sealed(path: str, data: bytes) -> bytes:
    """Return the bytes of a file as they lie at a path: with a seal at their end."""
    return data + b"%08x %08x\n" % (crc32(data), _name_sum(path))


def _name_sum(path: str) -> int:
    """Return the checksum of a file's name and of that of its folder."""
    folder, name = os.path.split(path)
    return crc32(os.fsencode(os.path.join(os.path.basename(folder), name)))


def read(path: str, kind: str) -> bytes | None:
    """Return a value as it was kept by `keep`; None for nothing that is whole."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError:
        data = b""
    if not _is_whole(path, data):
        note_event(DAMAGED)
        return None
    magic = _magic(kind)
    return data[len(magic) : -_SEAL_BYTES] if data.startswith(magic) else None


def _is_whole(path: str, data: bytes) -> bool:
    return data == sealed(path, data[:-_SEAL_BYTES])


def damages(path: str) -> list[str]:
    """Return a file if it is not what was written, or cannot be read."""
    if not os.path.lexists(path):
        return []
    try:
        with open(path, "rb") as file:
            return [] if _is_whole(path, file.read()) else [path]
    except OSError:
        return [path]


def keep(folder: str, name: str, kind: str, value: bytes) -> str:
    """Put a value in its place in one step; return a note if that is impossible, else nothing."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        place = os.path.join(folder, name)
        if os.path.isdir(place):
            drop(place)
        files.put(folder, name, sealed(place, _magic(kind) + value))
    except OSError as error:
        return _note(folder, error)
    sweep(folder)
    return ""


def _note(folder: str, error: OSError) -> str:
    return f"{folder}: {reason_of(error)}"


def sweep(folder: str) -> None:
    """Remove what killed writers left behind."""
    try:
        names = [name for name in os.listdir(folder) if name.startswith(TEMP_PREFIX)]
    except OSError:
        return
    now = time.time()
    for name in names:
        path = os.path.join(folder, name)
        try:
            is_stale = os.lstat(path).st_mtime < now - STALE_S
        except OSError:  # another process sweeps as well, or has moved its file to its place
            continue
        if is_stale:
            drop(path)


def drop(path: str) -> None:
    """Remove a file of the cache, or a folder with what is in it, as far as that is possible."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            for name in os.listdir(path):
                drop(os.path.join(path, name))
            os.rmdir(path)
        else:
            os.unlink(path)
    except OSError:
        return


def touch(path: str) -> None:
    """Note that a file or a folder of the cache is in use, so that `sweep` lets it stay."""
    try:
        os.utime(path)
    except OSError:
        return


def digest(*parts: str, size: int = 8) -> str:
    """Return a hash of some texts without NUL, of so many bytes, in hexadecimal."""
    return value.digest("\0".join(parts).encode(errors="surrogatepass"), size)


def code_version(rooms: Collection[str], *given: object) -> str:
    """Return a hash of what an answer depends on, apart from the files it is made of.

    That is the code and the tables in some rooms of the package, by size and time, and the settings
    `given`.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    rows = [repr(one) for one in given]
    for room in rooms:
        folder = os.path.join(package, room)
        data = os.path.join(folder, tables.FOLDER)
        entries = [*os.scandir(folder), *(os.scandir(data) if os.path.isdir(data) else ())]
        for entry in sorted(entries, key=lambda item: item.name):
            if entry.is_file():
                status = entry.stat()
                rows.append(f"{room}/{entry.name} {status.st_size} {status.st_mtime_ns}")
    return digest(*rows)
