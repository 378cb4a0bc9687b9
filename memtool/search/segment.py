"""Segments: a search index that never changes, read by the standard library alone.

bm25s built it (see `builder`, and `layout` for its files). Everything is mapped, and only what a
question touches is read.

bm25s's scores are made for the documents of this segment. Here they only tell how much a document
can score at most; what is returned is computed anew from integers and the statistics of the whole
collection, which may have changed since.

Every byte that can change an answer is guarded: header, terms and offsets when a segment is
opened, postings, keys and texts when they are touched. A segment that fails raises `Broken`.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from heapq import nlargest

from memtool.search import layout, scoring
from memtool.search.layout import Broken, document_sum, term_sum
from memtool.search.scoring import Question, Statistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Self

_MOST_FOUND = 1 << 14
_SLACK = 1.0 + 1e-5
"""float32 sums differ from exact ones by less than this factor."""

Hit = tuple[int, float, dict[str, float]]
"""Document number, score, and the components that add up to it."""


class Segment:
    """An index of documents, numbered from 0 in the order of their keys."""

    def __init__(self, files: Mapping[str, memoryview]) -> None:
        """Check and take the files of a segment, by name. Raises Broken."""
        numbers, self._section = layout.parted(files)
        self.count, self.length, self.head_length = numbers
        self._data, self._indices = self._section["data"], self._section["indices"]
        self._found: dict[str, tuple[int, int, int] | None] = {}

    @classmethod
    def open(cls, path: str) -> Self:
        """Map the files of a directory. Raises Broken, also where it or a file is missing."""
        return cls(layout.opened(path))

    def key(self, number: int) -> str:
        """Return the key of a document. Raises Broken."""
        raw = self._key(number)
        length = self._section["lengths"][number]
        if document_sum(raw, length) != self._section["document_sums"][number]:
            raise Broken(f"document {number} is damaged")
        return raw.decode(errors="surrogatepass")

    def number(self, key: str) -> int | None:
        """Return the number of the document with a key, None where there is none."""
        at = bisect_left(range(self.count), key, key=self.key)
        return at if at < self.count and self.key(at) == key else None

    def text(self, number: int) -> bytes:
        """Return a document's text as terms; see `scoring.searchable`. Raises Broken."""
        ends = self._section["text_ends"]
        try:
            return zlib.decompress(self._section["texts"][ends[number] : ends[number + 1]])
        except zlib.error as error:
            raise Broken(str(error)) from None

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
        any candidate has. Raises Broken.
        """
        if statistics is None:
            statistics = self.statistics(asked.weights)
        best = self.best(asked.weights, max(limit, scoring.CANDIDATES), allowed, statistics)
        components = scoring.components(
            asked,
            statistics,
            [score for _number, score in best],
            [
                (self.text(number), self._section["lengths"][number])
                for number, _score in best[: scoring.CANDIDATES]
            ],
        )
        hits = [
            (number, sum(parts.values()), parts)
            for (number, _score), parts in zip(best, components, strict=True)
        ]
        hits.sort(key=lambda hit: (-hit[1], hit[0]))
        return hits[: max(limit, 0)]

    def best(
        self,
        weights: Mapping[str, float],
        limit: int,
        allowed: Callable[[int], bool] | None = None,
        statistics: Statistics | None = None,
    ) -> list[tuple[int, float]]:
        """Return the best documents by BM25 over words alone, with their exact scores.

        Sums of bm25s's scores choose finalists. Terms come by what they can add at most; once
        the rest cannot lift a new document among the best, only known ones are looked up.
        """
        if statistics is None:
            statistics = self.statistics(weights)
        rows = self._rows(weights, statistics)
        if not rows or limit < 1:
            return []
        spread = self._spread(statistics)
        remaining = sum(row[0] for row in rows)
        passed = 0.0
        sums: dict[int, float] = {}
        for bound, _term, factor, start, end in rows:
            floor = -1.0
            if len(sums) >= limit and passed >= remaining * spread:
                floor = nlargest(limit, sums.values())[-1] / spread - remaining
            if floor > 0.0:
                sums = {number: score for number, score in sums.items() if score >= floor}
                self._look_up(sums, factor, start, end)
            else:
                self._add_all(sums, factor, start, end, allowed)
            remaining -= bound
            passed += bound
        if len(sums) > limit:
            floor = nlargest(limit, sums.values())[-1] / spread
            sums = {number: score for number, score in sums.items() if score >= floor}
        exact = self._exact(sums, scoring.gains(weights, statistics), statistics)
        exact.sort(key=lambda found: (-found[1], found[0]))
        return [found for found in exact[:limit] if found[1] > 0.0]

    def _rows(
        self, weights: Mapping[str, float], statistics: Statistics
    ) -> list[tuple[float, str, float, int, int]]:
        """Return (most it can add, term, factor of bm25s's score, start, end), largest first."""
        rows = []
        for term, weight in weights.items():
            at = self._postings(term)
            if at is None or weight <= 0.0 or not statistics.df.get(term):
                continue
            index, start, end = at
            own = scoring.idf(self.count, end - start)
            factor = weight * scoring.idf(statistics.count, statistics.df[term]) / own
            rows.append((factor * self._section["tops"][index] * _SLACK, term, factor, start, end))
        rows.sort(key=lambda row: (-row[0], row[1]))
        return rows

    def _spread(self, statistics: Statistics) -> float:
        """Return by which factor two sums may compare otherwise than the exact scores do.

        bm25s's scores hold this segment's average length. With another average, a damping
        changes by at most the ratio of the two, and so does a score.
        """
        mine = self.length * statistics.count
        theirs = statistics.length * self.count
        return max(mine, theirs) / max(1, min(mine, theirs)) * _SLACK

    def _add_all(
        self,
        sums: dict[int, float],
        factor: float,
        start: int,
        end: int,
        allowed: Callable[[int], bool] | None,
    ) -> None:
        known = sums.get
        pairs = zip(self._indices[start:end], self._data[start:end], strict=True)
        if allowed is None:
            for number, score in pairs:
                sums[number] = known(number, 0.0) + score * factor
            return
        for number, score in pairs:
            if number in sums or allowed(number):
                sums[number] = known(number, 0.0) + score * factor

    def _look_up(self, sums: dict[int, float], factor: float, start: int, end: int) -> None:
        if end - start < 8 * len(sums):
            pairs = zip(self._indices[start:end], self._data[start:end], strict=True)
            for number, score in pairs:
                if number in sums:
                    sums[number] += score * factor
            return
        indices = self._indices
        for number in sums:
            at = bisect_left(indices, number, start, end)
            if at < end and indices[at] == number:
                sums[number] += self._data[at] * factor

    def _exact(
        self, numbers: Iterable[int], gained: Mapping[str, float], statistics: Statistics
    ) -> list[tuple[int, float]]:
        """Return the scores of documents, from integers and in sorted order of the terms."""
        places = [(term, at) for term in gained if (at := self._postings(term))]
        indices, tf, lengths = self._indices, self._section["tf"], self._section["lengths"]
        found = []
        for number in numbers:
            self.key(number)  # guards the length
            frequencies = {}
            for term, (_index, start, end) in places:
                place = bisect_left(indices, number, start, end)
                if place < end and indices[place] == number:
                    frequencies[term] = tf[place]
            against = scoring.damping(lengths[number], statistics.count, statistics.length)
            found.append((number, scoring.bm25(gained, frequencies, against)))
        return found

    def _postings(self, term: str) -> tuple[int, int, int] | None:
        """Return a term's number and where its postings start and end. Raises Broken."""
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
            raise Broken(f"the postings of {term!r} are damaged")
        return index, start, end

    def _term(self, index: int) -> bytes:
        ends = self._section["term_ends"]
        return bytes(self._section["terms"][ends[index] : ends[index + 1]])

    def _key(self, number: int) -> bytes:
        ends = self._section["key_ends"]
        return bytes(self._section["keys"][ends[number] : ends[number + 1]])
