"""Segments: a search index that never changes, read by the standard library alone.

bm25s built it (see `builder`, and `layout` for its files). Everything is mapped, and only what a
question touches is read.

bm25s's scores are made for the documents of this segment. Here they only tell how much a document
can score at most; what is returned is computed anew from integers and the statistics of the whole
collection, which may have changed since.

Every byte that can change an answer is guarded: header, terms and offsets when a segment is
opened, postings, keys and texts when they are touched. A segment that fails raises `CorruptCache`.
"""

from __future__ import annotations

import math
from _bisect import bisect_left
from itertools import compress
from zlib import crc32

from memtool.search import layout, scoring
from memtool.search.layout import (
    IN_HEAD,
    MOST_LEVEL,
    SEEDED,
    document_sum,
    term_sum,
)
from memtool.search.scoring import Hit, Question, Statistics
from memtool.store.cache import CorruptCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    Row = tuple[float, str, float, int, int, int]
    """The most that a term can add, the term, the factor of bm25s's scores, where its postings
    start and end, and its seed."""

_MOST_FOUND = 1 << 14
_TF = IN_HEAD - 1
_MARK = b"\1"
_LOOKED_UP = 64
"""Postings that may be spared for each look-up, which takes as long as five, often in vain."""
_SLACK = 1.0 + 1e-5
"""float32 sums differ from exact ones by less than this factor."""


class Segment:
    """An index of documents, numbered from 0 in the order of their keys."""

    def __init__(self, files: Mapping[str, memoryview]) -> None:
        """Check and take the files of a segment, by name. Raises CorruptCache."""
        numbers, self._section = layout.parted(files)
        self.count, self.length, self.head_length = numbers
        self._data, self._indices = self._section["data"], self._section["indices"]
        self._found: dict[str, tuple[int, int, int] | None] = {}
        self.touched = 0
        """How many postings were looked at so far, which is what a question costs."""

    @classmethod
    def open(cls, path: str) -> Self:
        """Map the files of a directory. Raises CorruptCache, also where it or a file is missing."""
        return cls(layout.opened(path))

    def key(self, number: int) -> str:
        """Return the key of a document. Raises CorruptCache."""
        raw = self._key(number)
        lengths = self.lengths(number)
        if document_sum(raw, *lengths) != self._section["document_sums"][number]:
            raise CorruptCache(f"document {number} is damaged")
        return raw.decode(errors="surrogatepass")

    def lengths(self, number: int) -> tuple[int, int]:
        """Return how many terms a document has, and how many of them in its head."""
        return self._section["lengths"][number], self._section["head_lengths"][number]

    def text(self, number: int) -> bytes:
        """Return a document's text as terms; see `scoring.searchable`. Raises CorruptCache."""
        ends = self._section["text_ends"]
        text = bytes(self._section["texts"][ends[number] : ends[number + 1]])
        if crc32(text) != self._section["text_sums"][number]:
            raise CorruptCache(f"the text of document {number} is damaged")
        return text

    def df(self, term: str) -> int:
        """Return the number of documents that hold a term."""
        at = self._postings(term)
        return at[2] - at[1] if at else 0

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

    def holding_any(self, terms: Iterable[str]) -> set[int]:
        """Return the numbers of the documents that hold one of some terms. Raises CorruptCache."""
        found: set[int] = set()
        return found.union(*map(self.holding, terms))

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

    def search(
        self,
        asked: Question,
        limit: int,
        allowed: Callable[[int], bool] | None = None,
        statistics: Statistics | None = None,
    ) -> list[Hit]:
        """Return the best documents, by descending score and then by key.

        `allowed` picks the documents that count; `statistics` are those of this segment if not
        given. Every hit shares a term with the question. A higher limit only adds hits at the
        end: those beyond the candidates have no component but their words, which is less than
        any candidate has. Raises CorruptCache.
        """
        if statistics is None:
            statistics = self.statistics(asked.weights)
        best = self.best(asked.weights, max(limit, scoring.CANDIDATES), allowed, statistics)
        return self.close(asked, best, statistics)[: max(limit, 0)]

    def close(
        self,
        asked: Question,
        best: list[tuple[int, float]],
        statistics: Statistics | None = None,
    ) -> list[Hit]:
        """Look closely at the best by words, and return them in order. Raises CorruptCache."""
        if statistics is None:
            statistics = self.statistics(asked.weights)
        return scoring.closely(asked, statistics, best, self.candidate)

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
        best = self._seed(rows, limit, is_allowed)
        reached = 0.0
        for bound, _term, factor, start, end, _seed in rows:
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
            seed = self._section["seeds"][index]
            rows.append((top * _SLACK, term, factor, start, end, seed))
        rows.sort(key=lambda row: (row[4] - row[3], row[1]))
        return rows

    def _seed(self, rows: list[Row], limit: int, is_allowed: Callable[[int], bool]) -> float:
        """Return a sum that so many allowed documents reach, 0.0 where none is known.

        It is that of documents with a high score by the one term of which these are the highest.
        """
        best = max(rows, key=lambda row: row[0] * (row[5] - 1))
        _bound, _term, factor, start, end, seed = best
        if limit > SEEDED or not seed:
            return 0.0
        sums: dict[int, float] = {}
        for number, score in self._marked(start, self._marks(start, end, seed)):
            if is_allowed(number):
                sums[number] = score * factor
                if len(sums) == SEEDED:
                    break
        if len(sums) < limit:
            return 0.0
        if sum(row[4] - row[3] for row in rows) > _LOOKED_UP * SEEDED * (len(rows) - 1):
            for row in rows:
                if row is not best:
                    self._look_up(sums, *row[2:5])
        return sorted(sums.values())[-limit]

    def _marks(self, start: int, end: int, least: int) -> bytes:
        """Return a byte for each posting, which is 1 where its level is at least so high, else 0.

        No object is made for a posting: this takes 2 ns each, and a loop 100.
        """
        levels = bytes(self._section["levels"][start:end])
        return levels.translate(bytes(least) + _MARK * (MOST_LEVEL + 1 - least))

    def _marked(self, start: int, marks: bytes) -> Iterator[tuple[int, float]]:
        """Yield document and score of each marked posting."""
        at = marks.find(_MARK)
        while at >= 0:
            self.touched += 1
            yield self._indices[start + at], self._data[start + at]
            at = marks.find(_MARK, at + 1)

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
        if least > 0.0 and len(sums) * 8 < end - start:
            self._look_up(sums, factor, start, end)
            if least <= top:
                marks = self._marks(start, end, math.ceil(least / top * MOST_LEVEL))
                marked = self._marked(start, marks)
                if marks.count(_MARK) * 8 > len(marks):  # then all at once is faster
                    self.touched += len(marks)
                    columns = (indices[start:end], data[start:end])
                    marked = zip(*(compress(one.tolist(), marks) for one in columns), strict=True)
                sums.update([(n, score * factor) for n, score in marked if n not in sums])
            return
        self.touched += end - start
        pairs = zip(indices[start:end], data[start:end], strict=True)
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
                    frequencies[term] = tf[place] & _TF
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
            self._section["seeds"][index : index + 1],
            self._indices[start:end],
            self._data[start:end],
            self._section["tf"][start:end],
            self._section["levels"][start:end],
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

    def _key(self, number: int) -> bytes:
        ends = self._section["key_ends"]
        return bytes(self._section["keys"][ends[number] : ends[number + 1]])
