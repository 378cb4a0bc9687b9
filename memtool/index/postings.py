"""Postings: which memories contain a term, how often, and the score that bm25s gives it.

The postings of a term are rows of the table `posting`, each for `CHUNK_SIZE` memory numbers. So
changing a memory rewrites only a small part of a common term's postings. `data` is three columns,
one after the other: the numbers (int32, ascending), bm25s's scores without the IDF of the term
(float32), and the term frequencies (uint8, with `IN_HEAD` if the term is in the title or tags too).

bm25s's scores only bound what a document can score. The returned scores are computed from integers
and the statistics of the whole collection, which may have changed since indexing.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from memtool.index import scoring
from memtool.index.scoring import MAX_TF, Statistics
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from memtool.index.memories import MemoryRows
    from memtool.store.state import Rows

    Posting = tuple[float, int]
    """bm25s's score without the IDF, and the term frequency with `IN_HEAD`."""

CHUNK_SIZE = 4_096
"""Memory numbers per row of postings."""
IN_HEAD = 1 << 7
"""Set in a term frequency if the term is in the title or tags too."""
_NOT_IN_HEAD = bytes(range(IN_HEAD))
# SQLite takes at least 999 parameters.
_MAX_TERMS_PER_STATEMENT = 500
_POSTING_BYTES = 9
"""int32, float32 and uint8."""
_MAX_CACHED_TERMS = 1 << 14
_FLOAT32_SLACK = 1.0 + 1e-5
"""float32 sums differ from exact ones by a smaller factor."""


class TermPostings(Value):
    """The postings of a term as parallel columns, numbers ascending.

    `top` is the highest score; `heads` is how many heads contain the term.
    """

    numbers: memoryview
    scores: memoryview
    frequencies: bytes
    heads: int
    top: float


class PostingRows:
    """The postings of one index. Each method raises CorruptCache if a row is damaged."""

    def __init__(self, rows: Rows, memories: MemoryRows) -> None:
        self._rows = rows
        self._memories = memories
        self._cached_postings: dict[str, TermPostings | None] = {}

    @cached_property
    def count(self) -> int:
        """The number of documents."""
        return self._memories.count

    @cached_property
    def length(self) -> int:
        """The number of terms in all documents, with repeats."""
        return self._memories.number("length")

    @cached_property
    def head_length(self) -> int:
        """The number of terms in the titles and tags of all documents."""
        return self._memories.number("head_length")

    def lengths(self, number: int) -> tuple[int, int]:
        """Return the number of terms of a document, and of its head."""
        row = self._memories.row(number)
        return row.length, row.head_length

    def statistics(self, terms: Iterable[str]) -> Statistics:
        """Return the statistics of this index for the terms of a query."""
        postings_by_term = {
            term: term_postings
            for term in terms
            if (term_postings := self.postings(term)) is not None
        }
        return Statistics(
            self.count,
            self.length,
            self.head_length,
            {term: len(term_postings.numbers) for term, term_postings in postings_by_term.items()},
            {term: term_postings.heads for term, term_postings in postings_by_term.items()},
        )

    def find_documents(self, term: str) -> Sequence[int]:
        """Return the numbers of the documents that contain a term, ascending."""
        term_postings = self.postings(term)
        return () if term_postings is None else term_postings.numbers

    def count_among(self, term: str, numbers: Collection[int]) -> tuple[int, int]:
        """Return how many of these documents contain a term, and how many of their heads do."""
        term_postings = self.postings(term)
        if term_postings is None:
            return 0, 0
        holders = term_postings.numbers
        if len(numbers) > len(holders):
            pairs = zip(holders, term_postings.frequencies, strict=True)
            frequencies = [frequency for number, frequency in pairs if number in numbers]
            return len(frequencies), sum(frequency >= IN_HEAD for frequency in frequencies)
        count = heads = 0
        for number in numbers:
            place = bisect_left(holders, number)
            if place < len(holders) and holders[place] == number:
                count += 1
                heads += term_postings.frequencies[place] >= IN_HEAD
        return count, heads

    def read_candidate(self, number: int) -> tuple[bytes, int]:
        """Return a document's text as terms and its length, for reranking."""
        return self._memories.text(number), self.lengths(number)[0]

    def find_terms(self, prefix: str, limit: int, dead: Collection[int] = ()) -> list[str]:
        """Return the first `limit` terms that begin with a prefix, sorted.

        Terms that only dead documents contain are left out.
        """
        terms: list[str] = []
        statement = "SELECT DISTINCT term FROM posting WHERE term >= ? ORDER BY term"
        for (term,) in self._rows.select(statement, prefix):
            if len(terms) == limit or not isinstance(term, str) or not term.startswith(prefix):
                break
            if not dead or not set(self.find_documents(term)) <= set(dead):
                terms.append(term)
        return terms

    def find_best(
        self,
        weights: Mapping[str, float],
        limit: int,
        is_allowed: Callable[[int], bool] | None = None,
        statistics: Statistics | None = None,
    ) -> list[tuple[int, float]]:
        """Return the best documents by BM25 over single terms, with their exact scores.

        Sums of bm25s's scores choose finalists, beginning with the rarest term. Once the remaining
        terms cannot lift a new document among the best, only documents with a high enough score
        for the current term are added, and finally none. `is_allowed` is only called for documents
        whose sum is among the best.
        """
        if statistics is None:
            statistics = self.statistics(weights)
        terms = self._weigh_terms(weights, statistics)
        if not terms or limit < 1:
            return []
        spread = self._find_spread(statistics)
        verdicts: dict[int, bool] = {}

        def check_allowed(number: int) -> bool:
            verdict = verdicts.get(number)
            if verdict is None:
                verdict = verdicts[number] = is_allowed is None or is_allowed(number)
            return verdict

        remaining = sum(term.bound for term in terms)
        sums: dict[int, float] = {}
        threshold = reachable = 0.0
        for term in terms:
            # Computing the threshold must cost less than the work that it can save.
            size = len(term.postings.numbers)
            if size > 2 * min(len(sums), scoring.MAX_SORTED) and reachable > remaining - term.bound:
                threshold = scoring.find_threshold(sums, limit, check_allowed, threshold)
            floor = threshold / spread
            if floor > remaining:
                min_sum = floor - remaining
                sums = {number: score for number, score in sums.items() if score >= min_sum}
            remaining -= term.bound
            reachable += term.bound
            _add_scores(sums, term, (floor - remaining) / term.factor)
        threshold = scoring.find_threshold(sums, limit, check_allowed, threshold)
        # The threshold is of a part of the documents only.
        if threshold > 0.0 and len(sums) > scoring.MAX_SORTED:
            sums = {number: score for number, score in sums.items() if score >= threshold / spread}
            threshold = scoring.find_threshold(sums, limit, check_allowed, threshold, len(sums))
        floor = threshold / spread
        finalists = [number for number, score in sums.items() if score >= floor]
        exact = self._score_exactly(
            list(filter(check_allowed, finalists)),
            scoring.max_term_scores(weights, statistics),
            statistics,
        )
        return scoring.sort_hits(exact, self._memories.path)[:limit]

    def _weigh_terms(
        self, weights: Mapping[str, float], statistics: Statistics
    ) -> list[WeighedPostings]:
        """Return the postings of each term that adds to the score, the shortest first."""
        weighed = []
        for term, weight in weights.items():
            postings = self.postings(term)
            if postings is None or weight <= 0.0 or not statistics.df.get(term):
                continue
            factor = weight * scoring.idf(statistics.count, statistics.df[term])
            bound = factor * postings.top * _FLOAT32_SLACK
            weighed.append(WeighedPostings(term, postings, factor, bound))
        weighed.sort(
            key=lambda term_postings: (len(term_postings.postings.numbers), term_postings.term)
        )
        return weighed

    def _find_spread(self, statistics: Statistics) -> float:
        """Return the factor by which two sums may differ and still have the other order exactly.

        bm25s's scores use the average length at indexing time. Another average changes the length
        norm of a document by at most the ratio of the two, and so its score. Infinite if the index
        was scored without an average.
        """
        basis_count, basis_length = self._memories.basis
        if not basis_length:
            return math.inf
        mine, theirs = basis_length * statistics.count, statistics.length * basis_count
        return max(mine, theirs) / max(1, min(mine, theirs)) * _FLOAT32_SLACK

    def _score_exactly(
        self, numbers: list[int], gains: Mapping[str, float], statistics: Statistics
    ) -> list[tuple[int, float]]:
        """Return the scores of documents, computed from integers in sorted order of the terms."""
        postings_by_term = {
            term: term_postings
            for term in gains
            if (term_postings := self.postings(term)) is not None
        }
        exact = []
        self._memories.load(numbers)
        for number in numbers:
            frequencies = {}
            for term, term_postings in postings_by_term.items():
                place = bisect_left(term_postings.numbers, number)
                if place < len(term_postings.numbers) and term_postings.numbers[place] == number:
                    frequencies[term] = term_postings.frequencies[place] & MAX_TF
            norm = scoring.length_norm(self.lengths(number)[0], statistics.count, statistics.length)
            score = scoring.bm25(gains, frequencies, norm)
            if score > 0.0:
                exact.append((number, score))
        return exact

    def postings(self, term: str) -> TermPostings | None:
        """Return the postings of a term, None if no document contains it."""
        if term not in self._cached_postings:
            if len(self._cached_postings) >= _MAX_CACHED_TERMS:
                self._cached_postings.clear()
            self._cached_postings[term] = self._read_postings(term)
        return self._cached_postings[term]

    def _read_postings(self, term: str) -> TermPostings | None:
        columns: list[tuple[bytes, bytes, bytes]] = []
        heads, top = 0, 0.0
        row: Any
        for row in self._rows.find("posting", "term = ? ORDER BY chunk", term):
            heads += row[2]
            top = max(top, row[3])
            columns.append(split_columns(row[4]))
        if not columns:
            return None
        numbers, scores, frequencies = (
            columns[0] if len(columns) == 1 else map(b"".join, zip(*columns, strict=True))
        )
        rows: tuple[memoryview, Any] = memoryview(numbers).cast("i"), memoryview(scores).cast("f")
        return TermPostings(*rows, frequencies, heads, top)


class WeighedPostings(Value):
    """The postings of a term, the factor of their scores, and the most that the term can add."""

    term: str
    postings: TermPostings
    factor: float
    bound: float


def _add_scores(sums: dict[int, float], term: WeighedPostings, min_score: float) -> None:
    """Add a term to the sums; a document without a sum needs a score of at least `min_score`."""
    numbers, scores, factor = term.postings.numbers, term.postings.scores, term.factor
    if min_score > term.bound / factor and len(sums) * 8 < len(numbers):
        for number in sums:
            at = bisect_left(numbers, number)
            if at < len(numbers) and numbers[at] == number:
                sums[number] += scores[at] * factor
        return
    pairs = zip(numbers.tolist(), scores.tolist(), strict=True)
    if not sums:
        sums.update({number: score * factor for number, score in pairs if score >= min_score})
        return
    for number, score in pairs:
        if number in sums:
            sums[number] += score * factor
        elif score >= min_score:
            sums[number] = score * factor


def split_columns(data: object) -> tuple[bytes, bytes, bytes]:
    """Return the columns of a row's data: numbers, scores, frequencies."""
    assert isinstance(data, bytes)
    count = len(data) // _POSTING_BYTES
    return data[: 4 * count], data[4 * count : 8 * count], data[8 * count :]


def compute_score(frequency: int, length: int, basis: tuple[int, int]) -> float:
    """Return the score of a term as bm25s computes it, without the term's IDF.

    `basis` is the count and length of the collection that the scores of the index are based on.
    """
    frequency &= MAX_TF
    return frequency / (frequency + scoring.length_norm(length, *basis))


def build_postings(text: bytes, basis: tuple[int, int]) -> dict[str, Posting]:
    """Return the postings of a text as terms (see `scoring.analyze_document`), by term."""
    terms = text.decode().split()
    head = {term.decode() for term in scoring.split_head(text)}
    counts: dict[str, int] = {}
    for term in terms:
        counts[term] = counts.get(term, 0) + 1
    postings = {}
    for term, count in counts.items():
        frequency = min(count, MAX_TF)
        score = compute_score(frequency, len(terms), basis)
        postings[term] = score, frequency | (IN_HEAD if term in head else 0)
    return postings


def write_changes(rows: Rows, changes: Mapping[str, Mapping[int, Posting | None]]) -> None:
    """Write changed postings, by term and document number; None removes one."""
    by_chunk: dict[int, dict[str, dict[int, Posting | None]]] = {}
    for term in sorted(changes):
        for number, posting in changes[term].items():
            by_chunk.setdefault(number // CHUNK_SIZE, {}).setdefault(term, {})[number] = posting
    for chunk, by_term in sorted(by_chunk.items()):
        terms = list(by_term)
        for start in range(0, len(terms), _MAX_TERMS_PER_STATEMENT):
            batch = terms[start : start + _MAX_TERMS_PER_STATEMENT]
            marks = ", ".join("?" * len(batch))
            where = f"term IN ({marks}) AND chunk = ?"
            rows_by_term = {str(row[0]): row for row in rows.find("posting", where, *batch, chunk)}
            new_rows = [
                _change_row(rows_by_term.get(term), term, chunk, by_term[term]) for term in batch
            ]
            rows.put_all("posting", (row for row in new_rows if row[4]))
            for row in new_rows:
                if not row[4]:
                    rows.remove("posting", *row[:2])


def _change_row(
    row: Any, term: str, chunk: int, changes: Mapping[int, Posting | None]
) -> tuple[str, int, int, float, bytes]:
    """Return the row of a term and a chunk with changed postings; empty data means no row.

    The highest score never falls, since it only is a bound.
    """
    data = splice(b"" if row is None else row[4], changes)
    new = [posting[0] for posting in changes.values() if posting is not None]
    top = max(new if row is None else [row[3], *new], default=0.0)
    return term, chunk, len(split_columns(data)[2].translate(None, _NOT_IN_HEAD)), top, data


def splice(data: object, changes: Mapping[int, Posting | None]) -> bytes:
    """Return a row's data with postings inserted, replaced or removed, by document number."""
    from array import array  # only writers need it

    columns = split_columns(data)
    numbers, scores = array("i", columns[0]), array("f", columns[1])
    frequencies = bytearray(columns[2])
    for number, posting in changes.items():
        place = bisect_left(numbers, number)
        is_present = place < len(numbers) and numbers[place] == number
        if is_present:
            del numbers[place], scores[place], frequencies[place]
        if posting is not None:
            numbers.insert(place, number)
            scores.insert(place, posting[0])
            frequencies.insert(place, posting[1])
    return b"".join((numbers, scores, frequencies))
