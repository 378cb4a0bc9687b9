"""The cache: data that can be rebuilt, and the one kind of cache file that is not a database.

Such a file starts with a line for its kind, the version of that kind and the byte order of the
machine, followed by one value. It ends with a seal: checksums of the content, and of its name and
folder, to detect files that were swapped.

Files are replaced atomically, so readers need no lock. A cache that is missing, damaged, of another
version or not writable costs time, but does not change answers: reading returns None, writing
returns a note, and neither raises OSError.
"""

from __future__ import annotations

import os
import sys
import time
from zlib import crc32

from memtool import tables, value
from memtool.errors import find_reason
from memtool.store import files
from memtool.store.files import TEMP_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

STALE_AGE_S = 3600
"""Age at which temporary files of killed writers are removed."""
_SEAL_BYTES = len(b"01234567 01234567\n")
"""Length of the checksums of content and name at the end of every file."""


HIT, READ, BUILT, DAMAGED = "hit", "read", "built", "damaged"
"""Events of a cache: used unchanged, updated, rebuilt, found damaged."""
_events: set[str] = set()


def note_event(event: str) -> None:
    """Record an event of a cache, for the statistics of the current answer."""
    _events.add(event)


def take_events() -> frozenset[str]:
    """Return the events in this process since the last call."""
    events = frozenset(_events)
    _events.clear()
    return events


class CorruptCacheError(Exception):
    """A part of the cache is damaged: it must be rebuilt."""

    def __init__(self, why: str) -> None:
        """Record the damage for the statistics, where repeated damage becomes visible."""
        super().__init__(why)
        note_event(DAMAGED)


def _build_header(kind: str) -> bytes:
    return f"memtool {kind} {sys.byteorder}\n".encode()


def seal(path: str, data: bytes) -> bytes:
    """Return the content of a cache file: the data and its seal."""
    return data + b"%08x %08x\n" % (crc32(data), _name_checksum(path))


def _name_checksum(path: str) -> int:
    """Return the checksum of the names of a file and its folder."""
    folder, name = os.path.split(path)
    return crc32(os.fsencode(os.path.join(os.path.basename(folder), name)))


def read(path: str, kind: str) -> bytes | None:
    """Return a value that `write` has stored; None if missing, damaged or of another kind."""
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
    magic = _build_header(kind)
    return data[len(magic) : -_SEAL_BYTES] if data.startswith(magic) else None


def _is_whole(path: str, data: bytes) -> bool:
    return data == seal(path, data[:-_SEAL_BYTES])


def find_damaged(path: str) -> list[str]:
    """Return the path in a list if the file is damaged or cannot be read, else an empty list."""
    if not os.path.lexists(path):
        return []
    try:
        with open(path, "rb") as file:
            return [] if _is_whole(path, file.read()) else [path]
    except OSError:
        return [path]


def write(folder: str, name: str, kind: str, value: bytes) -> str:
    """Store a value atomically; return a note if that fails, else an empty text."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        place = os.path.join(folder, name)
        if os.path.isdir(place):
            drop(place)
        files.write_private(folder, name, seal(place, _build_header(kind) + value))
    except OSError as error:
        return _describe_error(folder, error)
    sweep(folder)
    return ""


def _describe_error(folder: str, error: OSError) -> str:
    return f"{folder}: {find_reason(error)}"


def sweep(folder: str) -> None:
    """Remove temporary files of killed writers."""
    try:
        names = [name for name in os.listdir(folder) if name.startswith(TEMP_PREFIX)]
    except OSError:
        return
    now = time.time()
    for name in names:
        path = os.path.join(folder, name)
        try:
            is_stale = os.lstat(path).st_mtime < now - STALE_AGE_S
        except OSError:  # another process has removed or renamed it
            continue
        if is_stale:
            drop(path)


def drop(path: str) -> None:
    """Remove a file or folder of the cache with its content. Errors are ignored."""
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
    """Mark a file or folder of the cache as in use, so that it is not removed as unused."""
    try:
        os.utime(path)
    except OSError:
        return


def digest(*parts: str, size: int = 8) -> str:
    """Return the hexadecimal hash of texts without NUL; `size` is in bytes."""
    return value.digest("\0".join(parts).encode(errors="surrogatepass"), size)


def compute_code_version(folder_names: Collection[str], *settings: object) -> str:
    """Return a hash of everything but memories that derived data depends on.

    That is the code and the tables in some folders of the package, by size and modification time,
    and the given settings.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    rows = [repr(value) for value in settings]
    for folder_name in folder_names:
        folder = os.path.join(package, folder_name)
        data = os.path.join(folder, tables.FOLDER)
        entries = [*os.scandir(folder), *(os.scandir(data) if os.path.isdir(data) else ())]
        for entry in sorted(entries, key=lambda item: item.name):
            if entry.is_file():
                status = entry.stat()
                rows.append(f"{folder_name}/{entry.name} {status.st_size} {status.st_mtime_ns}")
    return digest(*rows)
