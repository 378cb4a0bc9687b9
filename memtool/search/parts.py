"""Parts: a segment and overlays of what changed since, searched as one collection.

Every part answers with its own documents and the statistics of the whole, without those that are
dead. Since scores are made of integers alone, an answer does not depend on how documents are
spread over parts.
"""

from __future__ import annotations

from memtool.search import scoring
from memtool.search.scoring import Statistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memtool.search.overlay import Overlay
    from memtool.search.scoring import Hit, Question
    from memtool.search.segment import Segment
    from memtool.search.shelf import Shelf
    from memtool.store.tree import Record


class Part:
    """An index, the memories in it, and those that no longer count. Numbers begin at `first`."""

    def __init__(
        self, index: Segment | Overlay, shelf: Shelf, first: int, dead: frozenset[int]
    ) -> None:
        self.index = index
        self.shelf = shelf
        self.first = first
        self.dead = dead


class Parts:
    """The living documents of all parts; each has one number, and a path that no other has."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.count = sum(part.index.count - len(part.dead) for part in parts)
        self._records: dict[int, Record] = {}
        self._candidates: dict[int, tuple[bytes, int]] = {}
        self._length: tuple[int, int] | None = None
        self._df: dict[str, tuple[int, int]] = {}

    @property
    def read(self) -> int:
        """How many memories and texts were read so far, and are kept."""
        return max(len(self._records), len(self._candidates))

    def part(self, number: int) -> tuple[Part, int]:
        """Return where a document is: its part, and its number there."""
        for part in reversed(self.parts):
            if number >= part.first:
                return part, number - part.first
        raise IndexError(number)

    def path(self, number: int) -> str:
        """Return the path of a document. Raises CorruptCache."""
        part, local = self.part(number)
        return part.shelf.path(local)

    def record(self, number: int) -> Record:
        """Return a document as a record, the same one every time. Raises CorruptCache."""
        found = self._records.get(number)
        if found is None:
            part, local = self.part(number)
            found = self._records[number] = part.shelf.record(local)
        return found

    def text(self, number: int) -> bytes:
        """Return a document's text as terms. Raises CorruptCache."""
        return self._candidate(number)[0]

    def numbers_of(self, id_: str) -> list[int]:
        """Return the documents with an id, by path."""
        found = [
            part.first + local
            for part in self.parts
            for local in part.shelf.numbers_of(id_)
            if local not in part.dead
        ]
        return sorted(found, key=self.path) if len(found) > 1 else found

    def numbers_of_any(self, ids: Iterable[str]) -> set[int]:
        """Return the documents with one of some ids, quickly where these are superseded ones."""
        wanted = list(ids)
        found: set[int] = set()
        for part in self.parts:
            listed = part.shelf.targets
            for id_ in wanted:
                numbers = listed[id_] if id_ in listed else part.shelf.numbers_of(id_)
                found.update(part.first + local for local in numbers if local not in part.dead)
        return found

    def df(self, term: str) -> int:
        """Return the number of documents that hold a term."""
        return self._frequency(term)[0]

    def statistics(self, terms: Iterable[str]) -> Statistics:
        """Return the numbers of the collection for the terms of a question."""
        found = {term: self._frequency(term) for term in terms}
        length, head_length = self._lengths()
        return Statistics(
            self.count,
            length,
            head_length,
            {term: df for term, (df, _heads) in found.items() if df},
            {term: heads for term, (df, heads) in found.items() if df},
        )

    def holding_any(self, terms: Iterable[str]) -> set[int]:
        """Return the documents that hold one of some terms."""
        wanted = list(terms)
        found: set[int] = set()
        for part in self.parts:
            held: set[int] = set()
            held.update(*map(part.index.holding, wanted))
            held -= part.dead
            found = held if not part.first else found.union(part.first + n for n in held)
        return found

    def beginning(self, prefix: str, most: int) -> list[str]:
        """Return the first `most` terms that begin with a prefix, in sorted order."""
        found: set[str] = set()
        for part in self.parts:
            found.update(part.index.beginning(prefix, most, part.dead))
        return sorted(found)[:most]

    def best(
        self, weights: Mapping[str, float], limit: int, allowed: Callable[[int], bool]
    ) -> list[tuple[int, float]]:
        """Return the best documents by words, by score and then by path. Raises CorruptCache."""
        statistics = self.statistics(weights)
        found: list[tuple[int, float]] = []
        for part in self.parts:
            first = part.first
            best = part.index.best(weights, limit, _admitting(part, allowed), statistics)
            found += [(first + local, score) for local, score in best] if first else best
        if len(self.parts) > 1:
            found.sort(key=lambda one: (-one[1], self.path(one[0])))
        return found[: max(limit, 0)]

    def search(self, asked: Question, limit: int, allowed: Callable[[int], bool]) -> list[Hit]:
        """Return the best documents, by score and then by path; see `Segment.search`."""
        best = self.best(asked.weights, max(limit, scoring.CANDIDATES), allowed)
        return self.close(asked, best)[: max(limit, 0)]

    def close(self, asked: Question, best: list[tuple[int, float]]) -> list[Hit]:
        """Look closely at the best by words, and return them in order. Raises CorruptCache."""
        statistics = self.statistics(asked.weights)
        return scoring.closely(asked, statistics, best, self._candidate, self._order)

    def _candidate(self, number: int) -> tuple[bytes, int]:
        found = self._candidates.get(number)
        if found is None:
            part, local = self.part(number)
            found = self._candidates[number] = part.index.candidate(local)
        return found

    def _order(self, number: int) -> str | int:
        return self.path(number) if len(self.parts) > 1 else number

    def _frequency(self, term: str) -> tuple[int, int]:
        """Return in how many documents a term stands, and in how many heads."""
        known = self._df.get(term)
        if known is None:
            df = heads = 0
            for part in self.parts:
                held = part.index.statistics((term,))
                dead, dead_heads = part.index.among(term, part.dead) if part.dead else (0, 0)
                df += held.df.get(term, 0) - dead
                heads += held.head_df.get(term, 0) - dead_heads
            known = self._df[term] = (df, heads)
        return known

    def _lengths(self) -> tuple[int, int]:
        """Return how many terms all documents have, and how many of them in their heads."""
        if self._length is None:
            length = head_length = 0
            for part in self.parts:
                length += part.index.length
                head_length += part.index.head_length
                for local in part.dead:
                    own = part.index.lengths(local)
                    length -= own[0]
                    head_length -= own[1]
            self._length = (length, head_length)
        return self._length


def _admitting(part: Part, allowed: Callable[[int], bool]) -> Callable[[int], bool]:
    first, dead = part.first, part.dead
    if not first and not dead:
        return allowed
    return lambda local: local not in dead and allowed(first + local)
