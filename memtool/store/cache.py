"""The cache: everything that can be rebuilt, in one file format and with one way to the disk.

A file holds named sections behind a header: a first line with its kind, the version of that kind
and the byte order of the machine; the size and the checksum of the rest of the header; numbers of
the kind's own; then the place, size and checksum of each section. Sections begin at multiples of
eight, so numbers in them are read in place. A section is checked once, when it is first asked for;
one whose rows have checksums of their own is not.

Every file ends in a seal: the checksum of all before it, and that of its own name with the folder
that it lies in. Who maps a file looks at its name only, so that one which was swapped with another
is found; `doctor` looks at the rest.

A file is replaced in one step, so readers need no lock: they see the old bytes or the new ones. A
cache that is missing, damaged, of another version or not writable costs time, never the answer:
reading raises `CorruptCache` or returns None, writing returns a note, and neither raises OSError.
"""

from __future__ import annotations

import mmap
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
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

STALE_S = 3600
"""Age at which what a killed writer left behind is removed."""
_SIZES = len(b"01234567 01234567\n")
"""Bytes of the second line: size and checksum of the rest of the header, in hexadecimal."""
_SEAL_BYTES = len(b"01234567 01234567\n")
"""Bytes of the checksums of the content and of the name that every file ends with."""
_VALUE = {"value": "B"}


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
    """A file of the cache is missing, damaged or of another version: it must be rebuilt."""

    def __init__(self, why: str) -> None:
        """Note damage, which somebody should hear of when it comes again and again."""
        super().__init__(why)
        if not isinstance(self, AbsentCache):
            note_event(DAMAGED)


class AbsentCache(CorruptCache):
    """A file of the cache is missing or of another version, which is nothing odd."""


def pack(
    kind: str,
    numbers: Sequence[int],
    sections: Mapping[str, bytes],
    unguarded: Collection[str] = (),
) -> bytes:
    """Return the bytes of a file. `kind` is a name and a version, such as `shelf 5`.

    Sections that are `unguarded` have checksums of their own inside and get none for the whole.
    """
    rows = [" ".join(map(str, numbers))]
    parts: list[bytes] = []
    start = 0
    for name, raw in sections.items():
        checksum = 0 if name in unguarded else crc32(raw)
        rows.append(f"{name} {start} {len(raw)} {checksum}")
        parts += (raw, bytes(-len(raw) % 8))
        start += len(raw) + -len(raw) % 8
    magic = _magic(kind)
    table = "\n".join(rows).encode() + b"\n"
    table += b" " * (-(len(magic) + _SIZES + len(table)) % 8)
    return b"".join([magic, b"%08x %08x\n" % (len(table), crc32(table)), table, *parts])


class Sections:
    """The sections of a file by name, as arrays of the type that `types` gives for each."""

    def __init__(self, raw: memoryview, kind: str, types: Mapping[str, Any]) -> None:
        """Read the header. Raises CorruptCache where it is not that of a whole file of a kind."""
        magic = _magic(kind)
        begin = len(magic) + _SIZES
        if bytes(raw[: len(magic)]) != magic or len(raw) < begin:
            raise AbsentCache(f"not a file of the kind {kind}")
        try:
            size, checksum = (int(part, 16) for part in bytes(raw[len(magic) : begin]).split())
        except ValueError:
            raise CorruptCache("the header is damaged") from None
        table = bytes(raw[begin : begin + size]) if size >= 0 else b""
        if len(table) != size or crc32(table) != checksum:
            raise CorruptCache("the header is damaged")
        first, *rows = table.decode().splitlines()
        self.numbers = [int(number) for number in first.split()]
        self._raw: dict[str, tuple[memoryview, int]] = {}
        self._types = types
        self._checked: dict[str, Any] = {}
        body = raw[begin + size :]
        end = 0
        for row in filter(str.strip, rows):
            name, start, length, own = row.split()
            self._raw[name] = (body[int(start) : int(start) + int(length)], int(own))
            end = int(start) + int(length) + -int(length) % 8
        if len(body) != end or self._raw.keys() != types.keys():
            raise CorruptCache("the file is cut off, or longer than it was")

    def __getitem__(self, name: str) -> Any:
        """Return a section that is whole. Raises CorruptCache."""
        found = self._checked.get(name)
        if found is None:
            raw, checksum = self._raw[name]
            if crc32(raw) != checksum:
                raise CorruptCache(f"the section {name} is damaged")
            found = self._checked[name] = raw.cast(self._types[name])
        return found

    def unchecked(self, name: str) -> Any:
        """Return a section as it is."""
        return self._raw[name][0].cast(self._types[name])


def _magic(kind: str) -> bytes:
    return f"memtool {kind} {sys.byteorder}\n".encode()


def sealed(path: str, data: bytes) -> bytes:
    """Return the bytes of a file as they lie at a path: with a seal at their end."""
    return data + b"%08x %08x\n" % (crc32(data), _name_sum(path))


def _name_sum(path: str) -> int:
    """Return the checksum of a file's name and of that of its folder."""
    folder, name = os.path.split(path)
    return crc32(os.fsencode(os.path.join(os.path.basename(folder), name)))


def mapped(path: str, *, is_whole: bool = False) -> memoryview:
    """Map a file, without its seal. Raises CorruptCache, also where it is missing.

    With `is_whole` all of its bytes are checked, which takes a millisecond for each megabyte.
    """
    raw = _mapped(path)
    data, seal = raw[:-_SEAL_BYTES], bytes(raw[-_SEAL_BYTES:])
    if seal[9:] != b"%08x\n" % _name_sum(path):
        raise CorruptCache(f"{path} is cut off, or is another file")
    if is_whole and seal[:9] != b"%08x " % crc32(data):
        raise CorruptCache(f"{path} is damaged")
    return data


def _mapped(path: str) -> memoryview:
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            return memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(handle)
    except FileNotFoundError as error:
        raise AbsentCache(str(error)) from None
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise CorruptCache(str(error)) from None


def damages(path: str) -> list[str]:
    """Return a file if it is not what was written, or cannot be read."""
    return [path] if os.path.lexists(path) and not _holds(path) else []


def _holds(path: str) -> bool:
    try:
        mapped(path, is_whole=True)
    except CorruptCache:
        return False
    return True


def read(path: str, kind: str) -> bytes | None:
    """Return one small value as it was kept by `keep`; None for nothing that is whole."""
    try:
        return bytes(Sections(mapped(path), kind, _VALUE)["value"])
    except CorruptCache:
        return None


def keep(folder: str, name: str, kind: str, value: bytes) -> str:
    """Keep one small value as a file; return a note as `write` does."""
    return write(folder, name, pack(kind, (), {"value": value}))


def write(folder: str, name: str, data: bytes) -> str:
    """Put a file in its place in one step; return a note where that is impossible, else nothing."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        place = os.path.join(folder, name)
        if os.path.isdir(place):
            drop(place)
        files.put(folder, name, sealed(place, data))
    except OSError as error:
        return _note(folder, error)
    sweep(folder)
    return ""


def _note(folder: str, error: OSError) -> str:
    return f"{folder}: {reason_of(error)}"


def sweep(folder: str) -> None:
    """Remove what killed writers left behind. Who has mapped a file keeps what they see."""
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
