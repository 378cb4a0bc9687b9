"""The files of a segment: how they are laid out, joined, mapped and checked.

bm25s wrote three of them: `data` (its score of each term in each document, float32), `indices`
(the documents, int32) and `indptr` (where each term's postings begin, int64), each a `.npy` header
followed by raw numbers. `segment.bin`, the sidecar, has what the reader needs beside them: a header
of fixed size with a table of sections and its own checksum, then the sections.
"""

from __future__ import annotations

import mmap
import os
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

FORMAT = "5"
"""Changes whenever files of a segment, or of a state, are laid out in another way."""
FOLDER = "index"
"""Where the segments are, each in a folder of its own, below the cache directory."""
SIDECAR = "segment.bin"
ARRAYS: dict[str, tuple[str, str, Any]] = {
    "data": ("data.csc.index.npy", "f4", "f"),
    "indices": ("indices.csc.index.npy", "i4", "i"),
    "indptr": ("indptr.csc.index.npy", "i8", "q"),
}
"""bm25s's arrays: file name, type as numpy writes it, type as `memoryview` reads it."""
FILES = (SIDECAR, *(file for file, _kind, _code in ARRAYS.values()))
"""The files of an index; that of the memories (see `shelf`) lies beside them."""
HEADER_SIZE = 2048
MAGIC = f"memtool segment {FORMAT} {sys.byteorder}\n".encode()
SECTIONS: dict[str, Any] = {
    "terms": "B",
    "term_ends": "I",
    "tops": "f",
    "head_df": "I",
    "term_sums": "I",
    "tf": "I",
    "levels": "B",
    "seeds": "B",
    "lengths": "I",
    "head_lengths": "I",
    "keys": "B",
    "key_ends": "I",
    "document_sums": "I",
    "text_sums": "I",
    "texts": "B",
    "text_ends": "Q",
}
"""Sections of the sidecar and the type of their items. `ends` begin with a 0."""
MOST_LEVEL = 255
"""A posting's level is its score in parts of the top of its term, rounded up; 255 is the top."""
SEEDED = 64
"""The seed of a term is the level of its posting of that rank, 0 where it has fewer."""
IN_HEAD = 1 << 31
"""Set in a term frequency where the term stands in the title or the tags too."""
CHECKED = frozenset({"terms", "term_ends", "lengths"})
"""Sections that are checked as a whole, since a search touches many places of them."""


class Broken(Exception):
    """These files are not a whole segment of this version; they must be built anew."""


def opened(path: str) -> dict[str, memoryview]:
    """Map the files of a directory. Raises Broken, also where it or a file is missing."""
    try:
        return {name: mapped(os.path.join(path, name)) for name in FILES}
    except (OSError, ValueError) as error:
        raise Broken(str(error)) from None


def parted(files: Mapping[str, memoryview]) -> tuple[list[int], dict[str, Any]]:
    """Return the numbers of the header, and the arrays and sections by name. Raises Broken."""
    try:
        numbers, parts = _sections(files[SIDECAR])
        for name, (file, kind, code) in ARRAYS.items():
            parts[name] = _array(files[file], kind, code)
    except (KeyError, ValueError, TypeError) as error:
        raise Broken(str(error)) from None
    count, vocabulary, postings = numbers[0], len(parts["tops"]), len(parts["data"])
    expected = {
        "term_ends": vocabulary + 1,
        "head_df": vocabulary,
        "term_sums": vocabulary,
        "tf": postings,
        "levels": postings,
        "seeds": vocabulary,
        "indices": postings,
        "indptr": vocabulary + 1,
        "lengths": count,
        "head_lengths": count,
        "key_ends": count + 1,
        "document_sums": count,
        "text_sums": count,
        "text_ends": count + 1,
    }
    if any(len(parts[name]) != length for name, length in expected.items()):
        raise Broken("the sections do not fit together")
    return numbers, parts


def joined(numbers: Sequence[int], sections: Mapping[str, bytes]) -> bytes:
    """Return the sidecar: the header, with some numbers of the segment's own, and the sections."""
    ordered = {name: sections[name] for name in SECTIONS}
    return bind(MAGIC, numbers, ordered, SECTIONS.keys() - CHECKED)


def bind(
    magic: bytes,
    numbers: Sequence[int],
    sections: Mapping[str, bytes],
    guarded_apart: Collection[str] = (),
) -> bytes:
    """Return a file of sections: a header with their places and checksums, then their bytes.

    Those of which every part has a checksum of its own are never checked as a whole, and get none.
    """
    lines = [" ".join(map(str, numbers))]
    parts: list[bytes] = []
    start = HEADER_SIZE
    for name, raw in sections.items():
        padding = bytes(-len(raw) % 8)
        checksum = 0 if name in guarded_apart else zlib.crc32(raw)
        lines.append(f"{name} {start} {len(raw)} {checksum}")
        parts += (raw, padding)
        start += len(raw) + len(padding)
    header = (magic + "\n".join(lines).encode() + b"\n").ljust(HEADER_SIZE - 9)
    return b"".join([header, b"%08x\n" % zlib.crc32(header), *parts])


class Sections:
    """The sections of such a file by name, as arrays of the type that `kinds` gives.

    `[name]` checks a section as a whole, once, when it is first asked for. `unchecked` is for
    those that have checksums of their own.
    """

    def __init__(self, raw: memoryview, magic: bytes, kinds: Mapping[str, Any]) -> None:
        """Read the header. Raises Broken where it is not that of a whole file of this kind."""
        header = bytes(raw[:HEADER_SIZE])
        if len(header) < HEADER_SIZE or not header.startswith(magic):
            raise Broken("not a file of this version")
        if b"%08x\n" % zlib.crc32(header[:-9]) != header[-9:]:
            raise Broken("the header is damaged")
        lines = header[len(magic) : -9].decode().splitlines()
        self.numbers = [int(number) for number in lines[0].split()]
        self._raw: dict[str, tuple[memoryview, int]] = {}
        self._kinds = kinds
        self._known: dict[str, Any] = {}
        end = HEADER_SIZE
        for line in lines[1 : len(kinds) + 1]:
            name, start, size, checksum = line.split()
            self._raw[name] = (raw[int(start) : int(start) + int(size)], int(checksum))
            end = int(start) + int(size) + -int(size) % 8
        if len(raw) != end or self._raw.keys() != kinds.keys():
            raise Broken("the file is cut off, or longer than it was")

    def __getitem__(self, name: str) -> Any:
        """Return a section that is whole. Raises Broken."""
        found = self._known.get(name)
        if found is None:
            raw, checksum = self._raw[name]
            if zlib.crc32(raw) != checksum:
                raise Broken(f"the section {name} is damaged")
            found = self._known[name] = raw.cast(self._kinds[name])
        return found

    def unchecked(self, name: str) -> Any:
        """Return a section as it is."""
        return self._raw[name][0].cast(self._kinds[name])


def _sections(sidecar: memoryview) -> tuple[list[int], dict[str, Any]]:
    sections = Sections(sidecar, MAGIC, SECTIONS)
    found = {
        name: sections[name] if name in CHECKED else sections.unchecked(name) for name in SECTIONS
    }
    return sections.numbers, found


def term_sum(term: bytes, *parts: memoryview) -> int:
    """Return the checksum of a term and all that is stored for it."""
    found = zlib.crc32(term)
    for part in parts:
        found = zlib.crc32(part, found)
    return found


def document_sum(key: bytes, length: int, head_length: int) -> int:
    """Return the checksum of a document's key and of its two lengths."""
    return zlib.crc32(b"%d %d" % (length, head_length), zlib.crc32(key))


def mapped(path: str) -> memoryview:
    """Map a file. Raises OSError, or ValueError where it is empty."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
    finally:
        os.close(handle)


def _array(raw: memoryview, kind: str, code: Any) -> Any:
    """Return the numbers of a one-dimensional `.npy` file of version 1. Raises ValueError."""
    start = 10 + raw[8] + 256 * raw[9] if len(raw) > 10 else 0
    order = "<" if sys.byteorder == "little" else ">"
    numbers: Any = raw[start:].cast(code)
    shape = f"{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    if bytes(raw[:8]) != b"\x93NUMPY\x01\x00" or bytes(raw[10:start]).strip() != shape.encode():
        raise ValueError("an array has another shape or type")
    return numbers


def column(code: Any, numbers: Iterable[int]) -> bytes:
    """Return numbers as raw bytes of an array type."""
    from struct import pack  # only writers need it; `array` would import ten times as much

    row = list(numbers)
    return pack(f"{len(row)}{code}", *row)


def ends(code: Any, parts: Iterable[bytes]) -> bytes:
    """Return where parts end that are joined, beginning with 0, as raw bytes."""
    places = [0]
    for part in parts:
        places.append(places[-1] + len(part))
    return column(code, places)


def touch(path: str) -> None:
    """Say that a segment is in use."""
    try:  # noqa: SIM105  # contextlib would cost a tenth of an interpreter start
        os.utime(path)
    except OSError:
        pass
