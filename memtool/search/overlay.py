"""Overlays: an index of few documents, searched by reading all of them.

It answers like a `Segment` of the same documents, so that what changed since a segment was built
can be searched beside it.
"""

from __future__ import annotations

from memtool.search import layout, scoring
from memtool.search.layout import IN_HEAD
from memtool.search.scoring import Statistics
from memtool.store import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

KIND = f"overlay {layout.FORMAT}"
SECTIONS: dict[str, Any] = {"texts": "B", "ends": "Q"}


class Overlay:
    """Documents as terms (see `scoring.searchable`), numbered as they were given."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._texts = texts
        self._lengths = [(len(text.split()), len(scoring.head_of(text))) for text in texts]
        self.count = len(texts)
        self.length = sum(length for length, _head in self._lengths)
        self.head_length = sum(head for _length, head in self._lengths)
        self._found: dict[str, dict[int, int]] = {}

    def lengths(self, number: int) -> tuple[int, int]:
        """Return how many terms a document has, and how many of them in its head."""
        return self._lengths[number]

    def text(self, number: int) -> bytes:
        """Return a document's text as terms."""
        return self._texts[number]

    def candidate(self, number: int) -> tuple[bytes, int]:
        """Return what a closer look needs: a document's text as terms, and its length."""
        return self._texts[number], self._lengths[number][0]

    def statistics(self, terms: Iterable[str]) -> Statistics:
        """Return the numbers of these documents for the terms of a question."""
        found = {term: self._frequencies(term) for term in terms}
        return Statistics(
            self.count,
            self.length,
            self.head_length,
            {term: len(held) for term, held in found.items() if held},
            {term: sum(tf >= IN_HEAD for tf in held.values()) for term, held in found.items()},
        )

    def holding(self, term: str) -> Sequence[int]:
        """Return the numbers of the documents that hold a term, ascending."""
        return list(self._frequencies(term))

    def among(self, term: str, numbers: Collection[int]) -> tuple[int, int]:
        """Return how many of some documents hold a term, and how many of these in the head."""
        held = [tf for number, tf in self._frequencies(term).items() if number in numbers]
        return len(held), sum(tf >= IN_HEAD for tf in held)

    def beginning(self, prefix: str, most: int, dead: frozenset[int] = frozenset()) -> list[str]:
        """Return the first `most` terms that begin with a prefix, in sorted order.

        A term that stands in dead documents alone is none.
        """
        raw = prefix.encode()
        living = [text for number, text in enumerate(self._texts) if number not in dead]
        held = {term for text in living for term in text.split() if term.startswith(raw)}
        return [term.decode() for term in sorted(held)[:most]]

    def best(
        self,
        weights: Mapping[str, float],
        limit: int,
        allowed: Callable[[int], bool] | None,
        statistics: Statistics,
    ) -> list[tuple[int, float]]:
        """Return the best documents by BM25 over words alone; equal scores go by number."""
        gained = scoring.gains(weights, statistics)
        held: dict[int, dict[str, int]] = {}
        for term in gained:
            for number, tf in self._frequencies(term).items():
                held.setdefault(number, {})[term] = tf & ~IN_HEAD
        found = []
        for number, frequencies in held.items():
            if allowed is None or allowed(number):
                length = self._lengths[number][0]
                against = scoring.damping(length, statistics.count, statistics.length)
                score = scoring.bm25(gained, frequencies, against)
                if score > 0.0:
                    found.append((number, score))
        found.sort(key=lambda one: (-one[1], one[0]))
        return found[: max(limit, 0)]

    def _frequencies(self, term: str) -> dict[int, int]:
        """Return how often a term stands in each document that holds it, heads marked."""
        known = self._found.get(term)
        if known is None:
            raw = term.encode()
            spaced = b" %b " % raw
            known = self._found[term] = {
                number: text.split().count(raw)
                | (IN_HEAD if raw in scoring.head_of(text) else 0)
                for number, text in enumerate(self._texts)
                if spaced in text
            }  # fmt: skip
        return known


def pack(texts: Sequence[bytes]) -> bytes:
    """Return the bytes that keep the texts of an overlay."""
    return cache.pack(KIND, [], {"texts": b"".join(texts), "ends": layout.ends("Q", texts)})


def unpack(raw: memoryview) -> list[bytes]:
    """Return the texts of an overlay. Raises CorruptCache."""
    sections = cache.Sections(raw, KIND, SECTIONS)
    texts, ends = sections["texts"], sections["ends"]
    return [bytes(texts[ends[n] : ends[n + 1]]) for n in range(len(ends) - 1)]
