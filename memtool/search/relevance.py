"""Relevance: what the index says about the records of a tree, and what lineage makes of it.

The words of a superseded memory count for the heads that it leads to: a head takes the better of
its own score and that of what it replaces, so that a correction which dropped the old words is
found by them. Of the rules that were measured it costs other questions least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from memtool.search import aliases, scoring
from memtool.search.cache import open_index
from memtool.search.facts import Facts, fields
from memtool.search.scoring import Document, Question
from memtool.search.terms import is_stop
from memtool.store.tree import Record
from memtool.value import Value

MOST_TERMS = 64
"""Most terms of a question that are looked up: of a longer text those that tell most."""


class Match(Value):
    """A record and its score by words; `through` is the superseded memory that earned it."""

    record: Record
    raw: float
    through: str = ""


Test = Callable[[Record], bool]


def question(text: str, known: aliases.Aliases) -> Question:
    """Read a question, and add what aliases make of its words."""
    asked = scoring.question(text)
    return asked.replace(weights=aliases.expand(asked.weights, known))


def telling(asked: Question) -> dict[str, float]:
    """Return the terms of a question that are no stop words, with their weights."""
    return {term: weight for term, weight in asked.weights.items() if not is_stop(term)}


class Reader:
    """The index of a tree. Its documents are numbered as the records are sorted by path."""

    def __init__(self, facts: Facts, cache_dir: str) -> None:
        self.facts = facts
        self.records = sorted(facts.tree.records, key=lambda record: record.path)
        self.index = open_index(
            cache_dir,
            lambda: [Document(record.path, fields(record)) for record in self.records],
            [(record.path, record.oid) for record in self.records],
        )

    def narrowed(self, asked: Question) -> Question:
        """Return a question of bounded size: the terms of this tree that tell most in it."""
        if len(asked.weights) <= MOST_TERMS:
            return asked
        count = len(self.records)
        worth = {
            term: weight * scoring.idf(count, found)
            for term, weight in asked.weights.items()
            if (found := self.index.df(term))
        }
        kept = set(sorted(worth, key=lambda term: (-worth[term], term))[:MOST_TERMS])
        return Question(
            {term: weight for term, weight in asked.weights.items() if term in kept},
            {pair: weight for pair, weight in asked.pairs.items() if kept.issuperset(pair)},
        )

    def all(self, asked: Question, test: Test) -> dict[str, Match]:
        """Return every match by path: what satisfies a test and holds a telling word.

        The best of it is scored closely, the rest by its words alone.
        """
        admitted = self._admitted(test)
        count = len(self.records)
        words = self._best(telling(asked), count, admitted)
        holding = {number for number, _score in words}
        if len(asked.weights) > len(telling(asked)):
            words = self._best(asked.weights, count, holding.__contains__)
        most = max((score for _number, score in words), default=1.0)
        scores = {number: score / most for number, score in words}
        close = self.index.search(asked, scoring.CANDIDATES, holding.__contains__)
        scores.update((number, score) for number, score, _parts in close)
        return self._passed_on(scores, test)

    def best(self, asked: Question, most: int, test: Test) -> dict[str, Match]:
        """Return about as many of the best matches by path, all scored closely."""
        hits = self.index.search(asked, most, self._admitted(test))
        return self._passed_on({number: score for number, score, _parts in hits}, test)

    def _best(
        self, weights: Mapping[str, float], limit: int, admitted: Callable[[int], bool]
    ) -> list[tuple[int, float]]:
        return self.index.whole(lambda held: held.best(weights, limit, admitted))

    def _admitted(self, test: Test) -> Callable[[int], bool]:
        """Return which documents count: those that satisfy a test, or lead to one that does."""

        @cache
        def admitted(number: int) -> bool:
            record = self.records[number]
            return test(record) or any(map(test, self.facts.heads(record)))

        return admitted

    def _passed_on(self, scores: Mapping[int, float], test: Test) -> dict[str, Match]:
        """Return the matches, with the heads that superseded ones lead to."""
        found: dict[str, Match] = {}
        for number, score in sorted(scores.items()):
            old = self.records[number]
            for record in (old, *self.facts.heads(old)):
                known = found.get(record.path)
                if test(record) and (known is None or known.raw < score):
                    through = "" if record is old else old.id
                    found[record.path] = Match(record, score, through)
        return found
