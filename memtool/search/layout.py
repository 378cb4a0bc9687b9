"""The files of a segment: how they are laid out, joined, opened and checked.

bm25s wrote three of them: `data` (its score of each term in each document, float32), `indices`
(the documents, int32) and `indptr` (where each term's postings begin, int64), each a `.npy` header
followed by raw numbers. `segment.bin`, the sidecar, has what the reader needs beside them, as a
file of sections (see `store.cache`).
"""

from __future__ import annotations

import os
import sys
import zlib

from memtool.store import cache
from memtool.store.cache import CorruptCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

FORMAT = "6"
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
KIND = f"segment {FORMAT}"
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


def opened(path: str) -> dict[str, memoryview]:
    """Map the files of a directory. Raises CorruptCache, also where it or a file is missing."""
    return {name: cache.mapped(os.path.join(path, name)) for name in FILES}


def parted(files: Mapping[str, memoryview]) -> tuple[list[int], dict[str, Any]]:
    """Return the header's numbers, and arrays and sections by name. Raises CorruptCache."""
    try:
        numbers, parts = _sections(files[SIDECAR])
        for name, (file, kind, code) in ARRAYS.items():
            parts[name] = _array(files[file], kind, code)
    except (KeyError, ValueError, TypeError) as error:
        raise CorruptCache(str(error)) from None
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
        raise CorruptCache("the sections do not fit together")
    return numbers, parts


def joined(numbers: Sequence[int], sections: Mapping[str, bytes]) -> bytes:
    """Return the sidecar: the header, with some numbers of the segment's own, and the sections."""
    ordered = {name: sections[name] for name in SECTIONS}
    return cache.pack(KIND, numbers, ordered, SECTIONS.keys() - CHECKED)


def _sections(sidecar: memoryview) -> tuple[list[int], dict[str, Any]]:
    sections = cache.Sections(sidecar, KIND, SECTIONS)
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
