"""Postings: a segment of the search index, which never changes, read by the standard library alone.

bm25s built it (see `build`). It wrote three of its files: `data` (the score of each term in each
document, float32), `indices` (the documents, int32) and `indptr` (where each term's postings begin,
int64), each a `.npy` header followed by raw numbers. `segment.bin` has what the reader needs beside
them: a header of fixed size with a table of sections and its own checksum, then the sections.
Everything is mapped, and only what a question touches is read.

bm25s's scores are made for the documents of this segment. Here they only tell how much a document
can score at most; what is returned is computed from integers and the statistics of the whole
collection, which may have changed since.

Every byte that can change an answer is guarded: header, terms and offsets when a segment is
opened, postings, keys and texts when they are touched. A segment that fails raises `CorruptCache`.
"""

from __future__ import annotations

import os
import sys
import zlib
from bisect import bisect_left
from zlib import crc32

from memtool.index import scoring
from memtool.index.scoring import Statistics
from memtool.store import cache
from memtool.store.cache import CorruptCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any, Self

    Row = tuple[float, str, float, int, int]
    """The most that a term can add, the term, the factor of bm25s's scores, and where its postings
    start and end."""


FORMAT = "11"
"""Changes whenever files of a segment, or of a manifest, are laid out in another way."""

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
"""The files of an index; that of the memories (see `stored_fields`) lies beside them."""


MOST_TF = 127
"""A term counts at most so often in one document; more would add less than a hundredth."""
IN_HEAD = 1 << 7
"""Set in a term frequency where the term is in the title or the tags too."""
CHECKED = frozenset({"terms", "term_ends", "lengths", "head_lengths", "dictionary"})
"""Sections that are checked as a whole, since a search touches many places of them."""
KIND = f"segment {FORMAT}"

SECTIONS: dict[str, Any] = {
    "terms": "B",
    "term_ends": "I",
    "tops": "f",
    "head_df": "I",
    "term_sums": "I",
    "tf": "B",
    "lengths": "I",
    "head_lengths": "I",
    "text_sums": "I",
    "texts": "B",
    "text_ends": "Q",
    "dictionary": "B",
}
"""Sections of the sidecar and the type of their items. `ends` begin with a 0."""


def parted(files: Mapping[str, memoryview]) -> tuple[list[int], dict[str, Any]]:
    """Return the header's numbers, and arrays and sections by name. Raises CorruptCache."""
    try:
        sections = cache.Sections(files[SIDECAR], KIND, SECTIONS)
        parts = {
            name: sections[name] if name in CHECKED else sections.unchecked(name)
            for name in SECTIONS
        }
        numbers = sections.numbers
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
        "indices": postings,
        "indptr": vocabulary + 1,
        "lengths": count,
        "head_lengths": count,
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


def term_sum(term: bytes, *parts: memoryview) -> int:
    """Return the checksum of a term and all that is stored for it."""
    found = zlib.crc32(term)
    for part in parts:
        found = zlib.crc32(part, found)
    return found


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


MOST_DICTIONARY = 8_192
"""Bytes of the words that texts are compressed by."""
_MOST_FOUND = 1 << 14


_SLACK = 1.0 + 1e-5
"""float32 sums differ from exact ones by less than this factor."""


class Segment:
    """An index of documents, numbered from 0 in the order of their keys."""

    def __init__(self, files: Mapping[str, memoryview]) -> None:
        """Check and take the files of a segment, by name. Raises CorruptCache."""
        numbers, self._section = parted(files)
        self.count, self.length, self.head_length = numbers
        self._data, self._indices = self._section["data"], self._section["indices"]
        self._dictionary = bytes(self._section["dictionary"])
        self._found: dict[str, tuple[int, int, int] | None] = {}
        self.touched = 0
        """How many postings were looked at so far, which is what a question costs."""

    @classmethod
    def open(cls, path: str) -> Self:
        """Map the files of a directory. Raises CorruptCache, also where it or a file is missing."""
        return cls({name: cache.mapped(os.path.join(path, name)) for name in FILES})

    def lengths(self, number: int) -> tuple[int, int]:
        """Return how many terms a document has, and how many of them in its head."""
        return self._section["lengths"][number], self._section["head_lengths"][number]

    def text(self, number: int) -> bytes:
        """Return a document's text as terms; see `scoring.searchable`. Raises CorruptCache."""
        ends = self._section["text_ends"]
        packed = bytes(self._section["texts"][ends[number] : ends[number + 1]])
        if crc32(packed) != self._section["text_sums"][number]:
            raise CorruptCache(f"the text of document {number} is damaged")
        return inflated(packed, self._dictionary)

    def statistics(self, terms: Iterable[str]) -> Statistics:
        """Return the numbers of this segment for the terms of a question."""
        at = {term: self._postings(term) for term in terms}
        return Statistics(
            self.count,
            self.length,
            self.head_length,
            {term: found[2] - found[1] for term, found in at.items() if found},
            {term: self._section["head_df"][found[0]] for term, found in at.items() if found},
        )

    def holding(self, term: str) -> Sequence[int]:
        """Return the numbers of the documents that hold a term, ascending. Raises CorruptCache."""
        at = self._postings(term)
        if at is None:
            return ()
        self.touched += at[2] - at[1]
        return self._indices[at[1] : at[2]]  # type: ignore[no-any-return]  # an array of them

    def among(self, term: str, numbers: Collection[int]) -> tuple[int, int]:
        """Return how many of some documents hold a term, and how many of these in the head."""
        at = self._postings(term)
        if at is None:
            return 0, 0
        _index, start, end = at
        tf = self._section["tf"]
        if len(numbers) > end - start:
            pairs = zip(self._indices[start:end], tf[start:end], strict=True)
            held = [frequency for number, frequency in pairs if number in numbers]
            return len(held), sum(frequency >= IN_HEAD for frequency in held)
        count = heads = 0
        for number in numbers:
            place = bisect_left(self._indices, number, start, end)
            if place < end and self._indices[place] == number:
                count += 1
                heads += tf[place] >= IN_HEAD
        return count, heads

    def candidate(self, number: int) -> tuple[bytes, int]:
        """Return what a closer look needs: a document's text as terms, and its length."""
        return self.text(number), self._section["lengths"][number]

    def best(
        self,
        weights: Mapping[str, float],
        limit: int,
        allowed: Callable[[int], bool] | None = None,
        statistics: Statistics | None = None,
    ) -> list[tuple[int, float]]:
        """Return the best documents by BM25 over words alone, with their exact scores.

        Sums of bm25s's scores choose finalists. Rare terms come first. Once the rest cannot lift a
        new document among the best, only those are taken up whose score by the present term alone
        is high enough, and finally none. Whether a document is allowed is asked only about those
        whose sum is among the best.
        """
        if statistics is None:
            statistics = self.statistics(weights)
        rows = self._rows(weights, statistics)
        if not rows or limit < 1:
            return []
        spread = self._spread(statistics)
        asked: dict[int, bool] = {}

        def is_allowed(number: int) -> bool:
            known = asked.get(number)
            if known is None:
                known = asked[number] = allowed is None or allowed(number)
            return known

        remaining = sum(row[0] for row in rows)
        sums: dict[int, float] = {}
        best = reached = 0.0
        for bound, _term, factor, start, end in rows:
            # Looking for it must be less work than what it spares, if it can spare any.
            if end - start > 2 * min(len(sums), scoring.MANY) and reached > remaining - bound:
                best = scoring.least_of_best(sums, limit, is_allowed, best)
            floor = best / spread
            if floor > remaining:
                least = floor - remaining
                sums = {number: score for number, score in sums.items() if score >= least}
            remaining -= bound
            reached += bound
            self._add(sums, factor, start, end, (floor - remaining) / factor, bound / factor)
        best = scoring.least_of_best(sums, limit, is_allowed, best)
        if best > 0.0 and len(sums) > scoring.MANY:  # only some were looked at for it
            sums = {number: score for number, score in sums.items() if score >= best / spread}
            best = scoring.least_of_best(sums, limit, is_allowed, best, len(sums))
        floor = best / spread
        finalists = [number for number, score in sums.items() if score >= floor]
        exact = self._exact(
            filter(is_allowed, finalists), scoring.gains(weights, statistics), statistics
        )
        exact.sort(key=lambda found: (-found[1], found[0]))
        return [found for found in exact[:limit] if found[1] > 0.0]

    def _rows(self, weights: Mapping[str, float], statistics: Statistics) -> list[Row]:
        """Return a row for each term that adds anything, those with the fewest postings first."""
        rows = []
        for term, weight in weights.items():
            at = self._postings(term)
            if at is None or weight <= 0.0 or not statistics.df.get(term):
                continue
            index, start, end = at
            own = scoring.idf(self.count, end - start)
            factor = weight * scoring.idf(statistics.count, statistics.df[term]) / own
            top = factor * self._section["tops"][index]
            rows.append((top * _SLACK, term, factor, start, end))
        rows.sort(key=lambda row: (row[4] - row[3], row[1]))
        return rows

    def _spread(self, statistics: Statistics) -> float:
        """Return by which factor two sums may compare otherwise than the exact scores do.

        bm25s's scores hold this segment's average length. With another average, a damping
        changes by at most the ratio of the two, and so does a score.
        """
        mine = self.length * statistics.count
        theirs = statistics.length * self.count
        return max(mine, theirs) / max(1, min(mine, theirs)) * _SLACK

    def _add(
        self, sums: dict[int, float], factor: float, start: int, end: int, least: float, top: float
    ) -> None:
        """Add a term to the sums; a document that has none needs a score of at least `least`."""
        indices, data = self._indices, self._data
        if least > top and len(sums) * 8 < end - start:
            self._look_up(sums, factor, start, end)
            return
        self.touched += end - start
        pairs = zip(indices[start:end].tolist(), data[start:end].tolist(), strict=True)
        if not sums:
            sums.update({number: score * factor for number, score in pairs if score >= least})
            return
        for number, score in pairs:
            if number in sums:
                sums[number] += score * factor
            elif score >= least:
                sums[number] = score * factor

    def _look_up(self, sums: dict[int, float], factor: float, start: int, end: int) -> None:
        """Add a term to those of the documents with a sum that hold it."""
        indices, data = self._indices, self._data
        self.touched += len(sums)
        for number in sums:
            at = bisect_left(indices, number, start, end)
            if at < end and indices[at] == number:
                sums[number] += data[at] * factor

    def _exact(
        self, numbers: Iterable[int], gained: Mapping[str, float], statistics: Statistics
    ) -> list[tuple[int, float]]:
        """Return the scores of documents, from integers and in sorted order of the terms."""
        places = [(term, at) for term in gained if (at := self._postings(term))]
        indices, tf, lengths = self._indices, self._section["tf"], self._section["lengths"]
        found = []
        for number in numbers:
            frequencies = {}
            for term, (_index, start, end) in places:
                place = bisect_left(indices, number, start, end)
                if place < end and indices[place] == number:
                    frequencies[term] = tf[place] & MOST_TF
            against = scoring.damping(lengths[number], statistics.count, statistics.length)
            found.append((number, scoring.bm25(gained, frequencies, against)))
        return found

    def _postings(self, term: str) -> tuple[int, int, int] | None:
        """Return a term's number and where its postings start and end. Raises CorruptCache."""
        if term not in self._found:
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            self._found[term] = self._checked_postings(term.encode())
        return self._found[term]

    def _checked_postings(self, term: bytes) -> tuple[int, int, int] | None:
        vocabulary = len(self._section["tops"])
        index = bisect_left(range(vocabulary), term, key=self._term)
        if index == vocabulary or self._term(index) != term:
            return None
        start, end = self._section["indptr"][index], self._section["indptr"][index + 1]
        guarded = term_sum(
            term,
            self._section["head_df"][index : index + 1],
            self._section["tops"][index : index + 1],
            self._indices[start:end],
            self._data[start:end],
            self._section["tf"][start:end],
        )
        if (
            not 0 <= start < end <= len(self._indices)
            or guarded != self._section["term_sums"][index]
        ):
            raise CorruptCache(f"the postings of {term!r} are damaged")
        return index, start, end

    def beginning(self, prefix: str, most: int, dead: frozenset[int] = frozenset()) -> list[str]:
        """Return the first `most` terms that begin with a prefix, in sorted order.

        A term that stands in dead documents alone is none.
        """
        wanted = prefix.encode()
        indptr = self._section["indptr"]
        vocabulary = len(self._section["tops"])
        index = bisect_left(range(vocabulary), wanted, key=self._term)
        found: list[str] = []
        while index < vocabulary and len(found) < most:
            term = self._term(index)
            if not term.startswith(wanted):
                break
            df = indptr[index + 1] - indptr[index]
            if df > len(dead) or not dead.issuperset(self.holding(term.decode())):
                found.append(term.decode())
            index += 1
        return found

    def _term(self, index: int) -> bytes:
        ends = self._section["term_ends"]
        return bytes(self._section["terms"][ends[index] : ends[index + 1]])


def deflated(texts: Sequence[bytes], words: Iterable[bytes]) -> tuple[bytes, list[bytes]]:
    """Return a dictionary of some words, the commonest first, and texts compressed by its help.

    Each text is compressed by itself, so that one is read without the others.
    """
    common: list[bytes] = []
    room = MOST_DICTIONARY
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        common.append(word)
    dictionary = b" ".join(reversed(common))  # what is near its end is cheapest to refer to
    start = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=dictionary)
    packed = []
    for text in texts:
        one = start.copy()
        packed.append(one.compress(text) + one.flush())
    return dictionary, packed


def inflated(packed: bytes, dictionary: bytes) -> bytes:
    """Return a text that `deflated` compressed. Raises CorruptCache."""
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS, dictionary).decompress(packed)
    except zlib.error as error:
        raise CorruptCache(str(error)) from None
