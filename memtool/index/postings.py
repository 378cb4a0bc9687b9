"""Postings: in which memories each word is, how often, and what bm25s scores it.

The postings of a word are rows of the table `posting`, each for `CHUNK` numbers, so that a change
of a memory rewrites a small part of a common word's. `data` has three columns one behind the other:
the numbers (int32, ascending), bm25s's scores without the rarity of the word (float32), and how
often the word is in each (uint8, with `IN_HEAD` where it is in the title or the tags too).

bm25s's scores only tell how much a document can score at most. What is returned is computed from
whole numbers and the statistics of the whole collection, which may have changed since.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from memtool.index import scoring
from memtool.index.scoring import MOST_TF, Statistics
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from memtool.index.memories import MemoryRows
    from memtool.store.state import Rows

    Posting = tuple[float, int]
    """bm25s's score without the rarity, and how often, with `IN_HEAD`."""

CHUNK = 4_096
"""Numbers of memories whose postings of a word share a row."""
IN_HEAD = 1 << 7
"""Set in a term frequency where the term is in the title or the tags too."""
_NOT_IN_HEAD = bytes(range(IN_HEAD))
_AT_ONCE = 500
"""Terms that one statement names; SQLite takes 999 at least."""
_BYTES = 9
"""Bytes of one posting: int32, float32 and uint8."""
_MOST_KNOWN = 1 << 14
_SLACK = 1.0 + 1e-5
"""float32 sums differ from exact ones by less than this factor."""


class TermPostings(Value):
    """The postings of a term: numbers ascending, with the scores and frequencies beside them.

    `top` is the most that the score is, `heads` in how many heads the term is.
    """

    numbers: memoryview
    scores: memoryview
    frequencies: bytes
    heads: int
    top: float


class PostingRows:
    """The words of one index. What it returns raises CorruptCache where a row is damaged."""

    def __init__(self, rows: Rows, memories: MemoryRows) -> None:
        self._rows = rows
        self._memories = memories
        self._known: dict[str, TermPostings | None] = {}

    @cached_property
    def count(self) -> int:
        """How many documents there are."""
        return self._memories.count

    @cached_property
    def length(self) -> int:
        """How many terms all documents have."""
        return self._memories.number("length")

    @cached_property
    def head_length(self) -> int:
        """How many terms are in the titles and tags of all documents."""
        return self._memories.number("head_length")

    def lengths(self, number: int) -> tuple[int, int]:
        """Return how many terms a document has, and how many of them in its head."""
        row = self._memories.row(number)
        return row.length, row.head_length

    def statistics(self, terms: Iterable[str]) -> Statistics:
        """Return the numbers of this index for the terms of a question."""
        at = {term: found for term in terms if (found := self.postings(term)) is not None}
        return Statistics(
            self.count,
            self.length,
            self.head_length,
            {term: len(found.numbers) for term, found in at.items()},
            {term: found.heads for term, found in at.items()},
        )

    def holding(self, term: str) -> Sequence[int]:
        """Return the numbers of the documents that contain a term, ascending."""
        found = self.postings(term)
        return () if found is None else found.numbers

    def among(self, term: str, numbers: Collection[int]) -> tuple[int, int]:
        """Return how many of some documents contain a term, and how many of these in the head."""
        found = self.postings(term)
        if found is None:
            return 0, 0
        held = found.numbers
        if len(numbers) > len(held):
            pairs = zip(held, found.frequencies, strict=True)
            frequencies = [frequency for number, frequency in pairs if number in numbers]
            return len(frequencies), sum(frequency >= IN_HEAD for frequency in frequencies)
        count = heads = 0
        for number in numbers:
            place = bisect_left(held, number)
            if place < len(held) and held[place] == number:
                count += 1
                heads += found.frequencies[place] >= IN_HEAD
        return count, heads

    def candidate(self, number: int) -> tuple[bytes, int]:
        """Return what a closer look needs: a document's text as terms, and its length."""
        return self._memories.text(number), self.lengths(number)[0]

    def beginning(self, prefix: str, most: int, dead: Collection[int] = ()) -> list[str]:
        """Return the first `most` terms that begin with a prefix, in sorted order.

        A term that is in dead documents alone is none.
        """
        found: list[str] = []
        statement = "SELECT DISTINCT term FROM posting WHERE term >= ? ORDER BY term"
        for (term,) in self._rows.select(statement, prefix):
            if len(found) == most or not isinstance(term, str) or not term.startswith(prefix):
                break
            if not dead or not set(self.holding(term)) <= set(dead):
                found.append(term)
        return found

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
        terms = self._weighed(weights, statistics)
        if not terms or limit < 1:
            return []
        spread = self._spread(statistics)
        asked: dict[int, bool] = {}

        def is_allowed(number: int) -> bool:
            known = asked.get(number)
            if known is None:
                known = asked[number] = allowed is None or allowed(number)
            return known

        remaining = sum(term.bound for term in terms)
        sums: dict[int, float] = {}
        best = reached = 0.0
        for term in terms:
            # Looking for it must be less work than what it spares, if it can spare any.
            size = len(term.postings.numbers)
            if size > 2 * min(len(sums), scoring.MANY) and reached > remaining - term.bound:
                best = scoring.least_of_best(sums, limit, is_allowed, best)
            floor = best / spread
            if floor > remaining:
                least = floor - remaining
                sums = {number: score for number, score in sums.items() if score >= least}
            remaining -= term.bound
            reached += term.bound
            _add(sums, term, (floor - remaining) / term.factor)
        best = scoring.least_of_best(sums, limit, is_allowed, best)
        if best > 0.0 and len(sums) > scoring.MANY:  # only some were looked at for it
            sums = {number: score for number, score in sums.items() if score >= best / spread}
            best = scoring.least_of_best(sums, limit, is_allowed, best, len(sums))
        floor = best / spread
        finalists = [number for number, score in sums.items() if score >= floor]
        exact = self._exact(
            list(filter(is_allowed, finalists)), scoring.gains(weights, statistics), statistics
        )
        return scoring.ranked(exact, self._memories.path)[:limit]

    def _weighed(
        self, weights: Mapping[str, float], statistics: Statistics
    ) -> list[WeighedPostings]:
        """Return the postings of each term that adds anything, those with the fewest first."""
        found = []
        for term, weight in weights.items():
            postings = self.postings(term)
            if postings is None or weight <= 0.0 or not statistics.df.get(term):
                continue
            factor = weight * scoring.idf(statistics.count, statistics.df[term])
            bound = factor * postings.top * _SLACK
            found.append(WeighedPostings(term, postings, factor, bound))
        found.sort(key=lambda one: (len(one.postings.numbers), one.term))
        return found

    def _spread(self, statistics: Statistics) -> float:
        """Return by which factor two sums may compare otherwise than the exact scores do.

        bm25s's scores are made with the average length at the time. With another average, a damping
        changes by at most the ratio of the two, and so does a score. Of what was scored without any
        average nothing is known.
        """
        basis_count, basis_length = self._memories.basis
        if not basis_length:
            return math.inf
        mine, theirs = basis_length * statistics.count, statistics.length * basis_count
        return max(mine, theirs) / max(1, min(mine, theirs)) * _SLACK

    def _exact(
        self, numbers: list[int], gained: Mapping[str, float], statistics: Statistics
    ) -> list[tuple[int, float]]:
        """Return the scores of documents, from integers and in sorted order of the terms."""
        held = {term: found for term in gained if (found := self.postings(term)) is not None}
        exact = []
        self._memories.load(numbers)
        for number in numbers:
            frequencies = {}
            for term, found in held.items():
                place = bisect_left(found.numbers, number)
                if place < len(found.numbers) and found.numbers[place] == number:
                    frequencies[term] = found.frequencies[place] & MOST_TF
            against = scoring.damping(self.lengths(number)[0], statistics.count, statistics.length)
            score = scoring.bm25(gained, frequencies, against)
            if score > 0.0:
                exact.append((number, score))
        return exact

    def postings(self, term: str) -> TermPostings | None:
        """Return the postings of a term, None where no document contains it."""
        if term not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[term] = self._read(term)
        return self._known[term]

    def _read(self, term: str) -> TermPostings | None:
        columns: list[tuple[bytes, bytes, bytes]] = []
        heads, top = 0, 0.0
        row: Any
        for row in self._rows.some("posting", "term = ? ORDER BY chunk", term):
            heads += row[2]
            top = max(top, row[3])
            columns.append(parted(row[4]))
        if not columns:
            return None
        numbers, scores, frequencies = (
            columns[0] if len(columns) == 1 else map(b"".join, zip(*columns, strict=True))
        )
        rows: tuple[memoryview, Any] = memoryview(numbers).cast("i"), memoryview(scores).cast("f")
        return TermPostings(*rows, frequencies, heads, top)


class WeighedPostings(Value):
    """The postings of a term with the factor of their scores, and the most that it can add."""

    term: str
    postings: TermPostings
    factor: float
    bound: float


def _add(sums: dict[int, float], term: WeighedPostings, least: float) -> None:
    """Add a term to the sums; a document that has none needs a score of at least `least`."""
    numbers, scores, factor = term.postings.numbers, term.postings.scores, term.factor
    if least > term.bound / factor and len(sums) * 8 < len(numbers):
        for number in sums:
            at = bisect_left(numbers, number)
            if at < len(numbers) and numbers[at] == number:
                sums[number] += scores[at] * factor
        return
    pairs = zip(numbers.tolist(), scores.tolist(), strict=True)
    if not sums:
        sums.update({number: score * factor for number, score in pairs if score >= least})
        return
    for number, score in pairs:
        if number in sums:
            sums[number] += score * factor
        elif score >= least:
            sums[number] = score * factor


def parted(data: object) -> tuple[bytes, bytes, bytes]:
    """Return the columns of a row's data: numbers, scores, frequencies."""
    assert isinstance(data, bytes)
    count = len(data) // _BYTES
    return data[: 4 * count], data[4 * count : 8 * count], data[8 * count :]


def score_of(frequency: int, length: int, basis: tuple[int, int]) -> float:
    """Return the score of a term as bm25s makes it, without the term's rarity.

    `basis` is count and length of the collection that the scores of an index are made by.
    """
    frequency &= MOST_TF
    return frequency / (frequency + scoring.damping(length, *basis))


def postings_of(text: bytes, basis: tuple[int, int]) -> dict[str, Posting]:
    """Return the postings of a text as terms (see `scoring.searchable`)."""
    terms = text.decode().split()
    head = {term.decode() for term in scoring.head_of(text)}
    counts: dict[str, int] = {}
    for term in terms:
        counts[term] = counts.get(term, 0) + 1
    found = {}
    for term, count in counts.items():
        frequency = min(count, MOST_TF)
        score = score_of(frequency, len(terms), basis)
        found[term] = score, frequency | (IN_HEAD if term in head else 0)
    return found


def change(rows: Rows, changes: Mapping[str, Mapping[int, Posting | None]]) -> None:
    """Write what changed in the postings of some terms: by number the new one, None for none."""
    by_chunk: dict[int, dict[str, dict[int, Posting | None]]] = {}
    for term in sorted(changes):
        for number, posting in changes[term].items():
            by_chunk.setdefault(number // CHUNK, {}).setdefault(term, {})[number] = posting
    for chunk, by_term in sorted(by_chunk.items()):
        terms = list(by_term)
        for start in range(0, len(terms), _AT_ONCE):
            some = terms[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            where = f"term IN ({marks}) AND chunk = ?"
            held = {str(row[0]): row for row in rows.some("posting", where, *some, chunk)}
            changed = [_changed(held.get(term), term, chunk, by_term[term]) for term in some]
            rows.put_all("posting", (row for row in changed if row[4]))
            for row in changed:
                if not row[4]:
                    rows.remove("posting", *row[:2])


def _changed(
    row: Any, term: str, chunk: int, changes: Mapping[int, Posting | None]
) -> tuple[str, int, int, float, bytes]:
    """Return the row of a term and a chunk with some postings changed; no data is no row.

    The highest score stays what it was, unless a new one is higher: it is a bound.
    """
    data = spliced(b"" if row is None else row[4], changes)
    new = [posting[0] for posting in changes.values() if posting is not None]
    top = max(new if row is None else [row[3], *new], default=0.0)
    return term, chunk, len(parted(data)[2].translate(None, _NOT_IN_HEAD)), top, data


def spliced(data: object, changes: Mapping[int, Posting | None]) -> bytes:
    """Return a row's data with the postings of some numbers put in, replaced or taken out."""
    from array import array  # only writers need it

    columns = parted(data)
    numbers, scores = array("i", columns[0]), array("f", columns[1])
    frequencies = bytearray(columns[2])
    for number, posting in changes.items():
        place = bisect_left(numbers, number)
        is_held = place < len(numbers) and numbers[place] == number
        if is_held:
            del numbers[place], scores[place], frequencies[place]
        if posting is not None:
            numbers.insert(place, number)
            scores.insert(place, posting[0])
            frequencies.insert(place, posting[1])
    return b"".join((numbers, scores, frequencies))
