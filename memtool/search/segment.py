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

from _bisect import bisect_left
from zlib import crc32

from memtool.search import layout, scoring
from memtool.search.layout import IN_HEAD, Broken, document_sum, term_sum
from memtool.search.scoring import Hit, Question, Statistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Self

_MOST_FOUND = 1 << 14
_MANY = 4_096
"""Of so many documents the least of the best is looked for; sorting more takes milliseconds."""
_FEW = 512
"""What the best of so many have is looked for first, so that few of the others are sorted."""
_TF = IN_HEAD - 1
_NEVER = float("-inf")
"""The sum of a document that is not allowed: whatever is added, it stays the least."""
_SLACK = 1.0 + 1e-5
"""float32 sums differ from exact ones by less than this factor."""


class Segment:
    """An index of documents, numbered from 0 in the order of their keys."""

    def __init__(self, files: Mapping[str, memoryview]) -> None:
        """Check and take the files of a segment, by name. Raises Broken."""
        numbers, self._section = layout.parted(files)
        self.count, self.length, self.head_length = numbers
        self._data, self._indices = self._section["data"], self._section["indices"]
        self._found: dict[str, tuple[int, int, int] | None] = {}
        self.touched = 0
        """How many postings were looked at so far, which is what a question costs."""

    @classmethod
    def open(cls, path: str) -> Self:
        """Map the files of a directory. Raises Broken, also where it or a file is missing."""
        return cls(layout.opened(path))

    def key(self, number: int) -> str:
        """Return the key of a document. Raises Broken."""
        raw = self._key(number)
        lengths = self.lengths(number)
        if document_sum(raw, *lengths) != self._section["document_sums"][number]:
            raise Broken(f"document {number} is damaged")
        return raw.decode(errors="surrogatepass")

    def lengths(self, number: int) -> tuple[int, int]:
        """Return how many terms a document has, and how many of them in its head."""
        return self._section["lengths"][number], self._section["head_lengths"][number]

    def number(self, key: str) -> int | None:
        """Return the number of the document with a key, None where there is none."""
        at = bisect_left(range(self.count), key, key=self.key)
        return at if at < self.count and self.key(at) == key else None

    def text(self, number: int) -> bytes:
        """Return a document's text as terms; see `scoring.searchable`. Raises Broken."""
        ends = self._section["text_ends"]
        text = bytes(self._section["texts"][ends[number] : ends[number + 1]])
        if crc32(text) != self._section["text_sums"][number]:
            raise Broken(f"the text of document {number} is damaged")
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
        """Return the numbers of the documents that hold a term, ascending. Raises Broken."""
        at = self._postings(term)
        if at is None:
            return ()
        self.touched += at[2] - at[1]
        return self._indices[at[1] : at[2]]  # type: ignore[no-any-return]  # an array of them

    def holding_any(self, terms: Iterable[str]) -> set[int]:
        """Return the numbers of the documents that hold one of some terms. Raises Broken."""
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
        any candidate has. Raises Broken.
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
        """Look closely at the best by words, and return them in order. Raises Broken."""
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

        Sums of bm25s's scores choose finalists. Terms come by what they can add at most. Once the
        rest cannot lift a new document among the best, only those are taken up whose score by the
        present term alone is high enough, and finally none. Whether a document is allowed is
        asked only about those whose sum is among the best.
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
            if end - start > 2 * min(len(sums), _MANY) and reached > remaining - bound:
                best = _least_of_best(sums, limit, is_allowed, best)
            floor = best / spread
            if floor > remaining:
                least = floor - remaining
                sums = {number: score for number, score in sums.items() if score >= least}
            remaining -= bound
            reached += bound
            self._add(sums, factor, start, end, (floor - remaining) / factor, bound / factor)
        best = _least_of_best(sums, limit, is_allowed, best)
        if best > 0.0 and len(sums) > _MANY:  # only some were looked at for it
            sums = {number: score for number, score in sums.items() if score >= best / spread}
            best = _least_of_best(sums, limit, is_allowed, best, len(sums))
        floor = best / spread
        finalists = [number for number, score in sums.items() if score >= floor]
        exact = self._exact(
            filter(is_allowed, finalists), scoring.gains(weights, statistics), statistics
        )
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

    def _add(
        self, sums: dict[int, float], factor: float, start: int, end: int, least: float, top: float
    ) -> None:
        """Add a term to the sums; a document that has none needs a score of at least `least`."""
        indices, data = self._indices, self._data
        if least > top and len(sums) * 8 < end - start:
            self.touched += len(sums)
            for number in sums:
                at = bisect_left(indices, number, start, end)
                if at < end and indices[at] == number:
                    sums[number] += data[at] * factor
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
                    frequencies[term] = tf[place] & _TF
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


def _least_of_best(
    sums: dict[int, float],
    limit: int,
    allowed: Callable[[int], bool],
    known: float,
    most: int = _MANY,
) -> float:
    """Return a sum that the best so many allowed documents reach; 0.0 if there are fewer.

    It is the least of theirs among the `most` documents that came first: those of the terms that
    can add most. Of these, those among the best that are not allowed lose their sums. `known` is
    a sum that so many are known to reach.
    """
    size = limit
    while True:
        scores = [score for score, _at in zip(sums.values(), range(most))]  # noqa: B905
        few = sorted(scores[:_FEW], reverse=True)
        start = max(known, few[size - 1]) if len(few) >= size else known
        best = sorted([score for score in scores if score >= start], reverse=True)[:size]
        if len(best) < limit:
            return known
        least = best[-1]
        refused = [
            number
            for (number, score), _at in zip(sums.items(), range(most))  # noqa: B905
            if score >= least and not allowed(number)
        ]
        if not refused:
            return best[limit - 1]
        for number in refused:
            sums[number] = _NEVER
        size = max(limit, 2 * len(refused))
