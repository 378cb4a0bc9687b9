"""Relevance: what the index says about the records of a tree, and what lineage makes of it.

The words of a superseded memory count for the heads that it leads to: a head takes the better of
its own score and that of what it replaces, so that a correction which dropped the old words is
found by them; and a tenth of the lesser beside it, where its own words answer, too. So old words
never give it more than the old memory's own score. On the tuning questions that cite a replaced
PEP this has the current one among the best five in .771 of them, the better score alone in .750,
at recall@5 .7048 and .7011 on all questions about PEPs; with no old words it is .750 and .7011.
"""

from __future__ import annotations

from _bisect import bisect_left

from memtool.search import aliases, scoring
from memtool.search.catalog import Catalog, StoredCatalog
from memtool.search.facts import Current, Facts, fields
from memtool.search.scoring import Document, Question
from memtool.search.terms import is_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import TypeVar

    from memtool.search.cache import Index
    from memtool.search.parts import Parts
    from memtool.search.segment import Segment
    from memtool.store.tree import Record

    Test = Callable[[Record], bool]
    Answer = TypeVar("Answer")

BOTH = 0.1
"""What the lesser of two scores adds: a head's own, and that of what it replaces."""
MOST_TERMS = 64
"""Most terms of a question that are looked up: of a longer text those that tell most."""


class Match:
    """A memory and its score by words; `through` is the superseded memory that earned it.

    Its record is opened when it is asked for: of many matches few are shown.
    """

    __slots__ = ("_open", "number", "raw", "record", "through")
    record: Record

    def __init__(
        self, number: int, raw: float, opening: Callable[[int], Record], through: str = ""
    ) -> None:
        self.number = number
        self.raw = raw
        self.through = through
        self._open = opening

    def __getattr__(self, name: str) -> Record:
        """Fill the slot of `record`, which stands empty so far."""
        if name != "record":
            raise AttributeError(name)
        found = self.record = self._open(self.number)
        return found

    def __lt__(self, other: Match) -> bool:
        """Tell which of two comes first whose scores are equal."""
        mine, theirs = self.record, other.record
        return (mine.id, mine.path) < (theirs.id, theirs.path)


def by_relevance(matches: Iterable[Match]) -> list[Match]:
    """Return matches, the most relevant first."""
    return sorted(matches, key=lambda match: (-match.raw, match))


def question(text: str, known: aliases.Aliases) -> Question:
    """Read a question, and add what aliases make of its words."""
    asked = scoring.question(text)
    return asked.replace(weights=aliases.expand(asked.weights, known))


def telling(asked: Question) -> dict[str, float]:
    """Return the terms of a question that are no stop words, with their weights."""
    return {term: weight for term, weight in asked.weights.items() if not is_stop(term)}


class Reader:
    """The index of a tree. Its documents have numbers; those of a whole tree go by path.

    Who opens what it finds does it within `StoredCatalog.whole`, as a damaged memory may be met.
    """

    def __init__(self, facts: Facts, cache_dir: str) -> None:
        self.facts = facts
        self.index = self
        tree = facts.tree
        self.records = tree.records
        self._catalog = tree if isinstance(tree, StoredCatalog) else None
        self._held: Index | None = None
        self._records: list[Record] = []
        if self._catalog is None:
            from memtool.search.cache import built_index, open_index  # not needed for a worktree

            self._records = sorted(tree.records, key=lambda record: record.path)
            documents = (Document(record.path, fields(record)) for record in self._records)
            if isinstance(tree, Catalog) and not tree.is_cached:
                self._held = built_index(documents)
            else:
                identity = [(record.path, record.oid) for record in self._records]
                self._held = open_index(cache_dir, lambda: documents, identity)

    @property
    def note(self) -> str:
        """What the user should hear about the index, empty if there is nothing to say."""
        return self._held.note if self._held is not None else ""

    @property
    def count(self) -> int:
        """The number of documents."""
        return self._ask(lambda index: index.count)

    def df(self, term: str) -> int:
        """Return the number of documents that hold a term."""
        return self._ask(lambda index: index.df(term))

    def beginning(self, prefix: str, most: int) -> list[str]:
        """Return the first `most` terms that begin with a prefix, in sorted order."""
        return self._ask(lambda index: index.beginning(prefix, most))

    def narrowed(self, asked: Question) -> Question:
        """Return a question of bounded size: the terms of this tree that tell most in it."""
        if len(asked.weights) <= MOST_TERMS:
            return asked
        count = self.count
        worth = {
            term: weight * scoring.idf(count, found)
            for term, weight in asked.weights.items()
            if (found := self.df(term))
        }
        kept = set(sorted(worth, key=lambda term: (-worth[term], term))[:MOST_TERMS])
        return Question(
            {term: weight for term, weight in asked.weights.items() if term in kept},
            {pair: weight for pair, weight in asked.pairs.items() if kept.issuperset(pair)},
        )

    def all(self, asked: Question, test: Test) -> list[Match]:
        """Return every match, the best first: what satisfies a test and holds a telling word.

        The best of it is scored closely, the rest by its words alone.
        """
        return self._ask(lambda index: self._all(index, asked, test))

    def ranked(self, asked: Question, test: Test, most: int) -> tuple[list[Match], int]:
        """Return the best `most` of all matches, by score and then by id, and how many there are.

        Which of several with one score are the last of them goes by path.
        """
        return self._ask(lambda index: self._ranked(index, asked, test, most))

    def best(self, asked: Question, most: int, test: Test) -> list[Match]:
        """Return about as many of the best matches, the best first, all scored closely."""

        def ask(index: Parts | Segment) -> list[Match]:
            hits = index.search(asked, most, self._admitted(test))
            return self._passed_on({number: score for number, score, _parts in hits}, test)

        return self._ask(ask)

    def text(self, match: Match) -> bytes:
        """Return the text whose words found a match: its own, or that of what it replaces."""
        if match.through:
            return self.facts.text(self.facts.tree.by_id.get(match.through, match.record))
        if self._catalog is not None:
            return self._catalog.parts.text(match.number)
        return self.facts.text(match.record)

    def _ask(self, ask: Callable[[Parts | Segment], Answer]) -> Answer:
        """Ask the index, again if it turns out to be damaged and was made anew."""
        if self._catalog is not None:
            return self._catalog.whole(ask)
        assert self._held is not None
        return self._held.whole(ask)

    def _number(self, record: Record) -> int:
        known = self._catalog.number_of(record) if self._catalog else None
        if known is not None:
            return known
        return bisect_left(self._records, record.path, key=lambda one: one.path)

    def _record(self, number: int) -> Record:
        return self._catalog.record(number) if self._catalog else self._records[number]

    def _all(self, index: Parts | Segment, asked: Question, test: Test) -> list[Match]:
        holding = self._holding(index, asked, test)
        return self._passed_on(self._scores(index, asked, holding, len(holding)), test)

    def _ranked(
        self, index: Parts | Segment, asked: Question, test: Test, most: int
    ) -> tuple[list[Match], int]:
        holding = self._holding(index, asked, test)
        superseded = holding & self._superseded()
        heads = {
            self._number(head)
            for number in superseded
            for head in self.facts.heads(self._record(number))
            if test(head)
        }
        linked = superseded | (heads & holding)
        # Scores of one lineage are joined: each of these may lead to a match that is known already.
        scores = self._scores(index, asked, holding, most + len(linked), linked)
        matches = self._passed_on(scores, test)
        shown = {number for number in superseded if test(self._record(number))}
        others = {n for n in shown | heads if n in superseded or n not in holding}
        return matches[:most], len(holding) - len(superseded) + len(others)

    def _holding(self, index: Parts | Segment, asked: Question, test: Test) -> set[int]:
        """Return the documents that count and hold a telling word."""
        held = index.holding_any(telling(asked))
        current = self._current(test)
        if current is None:
            return set(filter(self._admitted(test), held))
        olds = held & current.superseded
        found = current.among(held)
        found.update(filter(self._admitted(test), olds))
        return found

    def _current(self, test: Test) -> Current | None:
        """Return the quick answer to a test that only asks for what is current."""
        return self.facts.current() if test == self.facts.is_current else None

    def _superseded(self) -> set[int]:
        """Return the numbers of the memories that are no heads."""
        newer = self.facts.lineage.superseded_by
        if not newer:
            return set()
        if self._catalog is not None:
            return self._catalog.numbers_of(newer)
        return {number for number, record in enumerate(self._records) if record.id in newer}

    def _scores(
        self,
        index: Parts | Segment,
        asked: Question,
        holding: set[int],
        most: int,
        linked: Collection[int] = (),
    ) -> dict[int, float]:
        """Return the scores of the best documents, and of those in `linked`.

        The best are scored closely, the rest by words alone.
        """
        if not holding:
            return {}
        best = index.best(asked.weights, max(most, scoring.CANDIDATES), holding.__contains__)
        beside = index.best(asked.weights, len(linked), linked.__contains__) if linked else []
        highest = max((score for _number, score in best), default=1.0)
        scores = {number: score / highest for number, score in best + beside}
        close = index.close(asked, best[: scoring.CANDIDATES])
        scores.update((number, score) for number, score, _parts in close)
        return scores

    def _admitted(self, test: Test) -> Callable[[int], bool]:
        """Return which documents count: those that satisfy a test, or lead to one that does."""
        known: dict[int, bool] = {}
        current = self._current(test)
        if current is not None and not current.superseded:
            return current

        def admitted(number: int) -> bool:
            if current is not None and number not in current.superseded:
                return current(number)
            found = known.get(number)
            if found is None:
                record = self._record(number)
                found = known[number] = test(record) or any(map(test, self.facts.heads(record)))
            return found

        return admitted

    def _passed_on(self, scores: Mapping[int, float], test: Test) -> list[Match]:
        """Return the matches in order, with the heads that superseded ones lead to.

        All that have a score were admitted, so that those which are heads satisfy the test.
        """
        superseded = self._superseded()
        found = {
            number: Match(number, score, self._record)
            for number, score in scores.items()
            if number not in superseded
        }
        passed: dict[int, Match] = {}
        olds = [(self._record(number), score) for number, score in scores.items()
                if number in superseded]  # fmt: skip
        for old, score in sorted(olds, key=_by_path):
            if test(old):
                number = self._number(old)
                found[number] = Match(number, score, self._record)
            for head in self.facts.heads(old):
                number = self._number(head)
                known = passed.get(number)
                if test(head) and (known is None or known.raw < score):
                    passed[number] = Match(number, score, self._record, old.id)
        for number, match in passed.items():
            own = found.get(number)
            if own is None or own.raw < match.raw:
                match.raw += BOTH * own.raw if own else 0.0
                found[number] = match
            else:
                own.raw += BOTH * match.raw
        return by_relevance(found.values())


def _by_path(scored: tuple[Record, float]) -> str:
    return scored[0].path
