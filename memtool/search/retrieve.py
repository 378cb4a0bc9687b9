"""Relevance: what the index says about the records of a tree, and what lineage makes of it.

The words of a superseded memory count for the heads that it leads to: a head takes the better of
its own score and that of what it replaces, so that a correction which dropped the old words is
found by them; and a tenth of the lesser beside it, where its own words answer, too. So old words
never give it more than the old memory's own score. On the tuning questions that cite a replaced
PEP this has the current one among the best five in .771 of them, the better score alone in .750,
at recall@5 .7048 and .7011 on all questions about PEPs; with no old words it is .750 and .7011.
"""

from __future__ import annotations

import math
from bisect import insort

from memtool.index import scoring
from memtool.index.scoring import Question, held, telling
from memtool.index.text import SELF_DESCRIBING, plain_text
from memtool.memory.visibility import PRIVATE
from memtool.search import expansion, ranking
from memtool.search.effort import FULL, Effort
from memtool.search.features import Current, Facts, why_hidden
from memtool.search.ranking import Situation
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from memtool.index.reader import Catalog
    from memtool.memory.lineage import Lineage
    from memtool.memory.trust import Origin
    from memtool.search.drift import DriftWitness
    from memtool.search.query import Query
    from memtool.store.config import Config
    from memtool.store.tree import Record

    Test = Callable[[Record], bool]

    Refusal = Callable[[Record], str]

    Order = Callable[["Hit"], tuple[float | str, ...]]

    Rerank = Callable[[Sequence["Hit"]], Sequence["Hit"]]
    """Gets the best hits by score, at most as many as may be shown, and gives them in order."""

    class Matcher(Protocol):
        """Finds memories of a catalog by number, in another way than by words."""

        def matches(self, allowed: Callable[[int], bool]) -> Sequence[int]:
            """Return the allowed documents that match though they may hold no word."""

        def add(self, scores: Mapping[int, float], matches: Sequence[int]) -> dict[int, float]:
            """Return scores, 1 for the best by words, with what this adds to them."""

        def details(self, number: int) -> Mapping[str, float]:
            """Return fields of the result for a document, such as how well it matches."""


BOTH = 0.1
"""What the lesser of two scores adds: a head's own, and that of what it replaces."""

MOST_TERMS = 64
"""Most terms of a question that are looked up: of a longer text those that tell most."""


class Hit:
    """A memory that was found, from the first look to the last.

    `raw` is its score by words, to which `through` is the superseded memory that earned it, empty
    where its own words did. `score` is the product of `factors`, the first being `relevance`; both
    are there once it is weighed. `terms` are the terms of a query that it holds, sorted; `details`
    what matchers tell of it beside, by field of the result. `related` is the better hit that it is
    related to, where it was looked for only because of that.

    Its record is opened when it is asked for: of many hits few are shown.
    """

    __slots__ = (
        "_open",
        "_record",
        "details",
        "factors",
        "number",
        "raw",
        "related",
        "score",
        "terms",
        "through",
    )

    def __init__(
        self, number: int, raw: float, opening: Callable[[int], Record], through: str = ""
    ) -> None:
        self.number = number
        self.raw = raw
        self.through = through
        self.score = 0.0
        self.factors: dict[str, float] = {}
        self.terms: tuple[str, ...] = ()
        self.related = ""
        self.details: dict[str, Any] = {}
        self._open = opening
        self._record: Record | None = None

    @property
    def record(self) -> Record:
        """The memory, opened when it is first asked for."""
        if self._record is None:
            self._record = self._open(self.number)
        return self._record

    def __lt__(self, other: Hit) -> bool:
        """Tell which of two comes first whose scores are equal."""
        mine, theirs = self.record, other.record
        return (mine.id, mine.path) < (theirs.id, theirs.path)

    def __eq__(self, other: object) -> bool:
        """Tell whether two searches found the same memory by the same words and factors."""
        told = ("record", "score", "factors", "terms", "through", "related", "details")
        return type(other) is Hit and all(getattr(self, n) == getattr(other, n) for n in told)

    __hash__ = None  # type: ignore[assignment]  # it changes from stage to stage

    def weigh(self, relevance: float, factors: Mapping[str, float]) -> None:
        """Let the relevance and the factors of the ranking make the score."""
        self.factors = {"relevance": relevance, **factors}
        self.score = math.prod(self.factors.values())


def by_relevance(hits: Iterable[Hit]) -> list[Hit]:
    """Return hits, the most relevant first."""
    return sorted(hits, key=lambda hit: (-hit.raw, hit))


def questions(scope: Scope, text: str) -> tuple[Question, Question]:
    """Return what a text says, and the same with what aliases make of its words."""
    said = scoring.question(text, scope.language)
    weights = expansion.expand(said.weights, scope.aliases, scope.language)
    return said, said.replace(weights=weights)


class Retriever:
    """The index of a catalog, asked about its memories by number; these go by path."""

    def __init__(self, facts: Facts, matchers: Sequence[Matcher] = ()) -> None:
        self.facts = facts
        self.matchers = matchers
        self.catalog = facts.catalog
        self.index = facts.index
        self._plain: dict[int, bytes] = {}

    def readable(self, asked: Question) -> Question:
        """Return a question of bounded size, with near words for those that stand nowhere."""
        index = self.index
        if not all(map(index.df, telling(asked))):
            weights = expansion.with_near_words(asked.weights, index.df, index.beginning)
            asked = asked.replace(weights=weights)
        return self.narrowed(asked)

    def narrowed(self, asked: Question) -> Question:
        """Return a question of bounded size: the terms of this tree that tell most in it."""
        if len(asked.weights) <= MOST_TERMS:
            return asked
        count = self.index.count
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

    def ranked(self, asked: Question, test: Test, most: int | None = None) -> tuple[list[Hit], int]:
        """Return the best `most` of all hits, by score and then by id, and how many there are.

        A hit satisfies a test, and holds a telling word or is found by a matcher. The best are
        scored closely, the rest by their words alone. Which of several with one score are the last
        of them goes by path.
        """
        record = self.catalog.record
        holding = self._holding(asked, test)
        superseded = holding & self._superseded()
        heads = {
            self._number(head)
            for number in superseded
            for head in self.facts.heads(record(number))
            if test(head)
        }
        linked = superseded | (heads & holding)
        # Scores of one lineage are joined: each of these may lead to a hit that is known already.
        wanted = len(holding) if most is None else most + len(linked)
        scores = self._scores(asked, wanted, holding.__contains__, linked) if holding else {}
        hits = self._passed_on(scores, test)
        shown = {number for number in superseded if test(record(number))}
        others = {n for n in shown | heads if n in superseded or n not in holding}
        return hits[:most], len(holding) - len(superseded) + len(others)

    def best(
        self, asked: Question, most: int, test: Test, refuses: Refusal | None = None
    ) -> list[Hit]:
        """Return about as many of the best hits, the best first, all scored closely.

        What is refused is as if it were not there: it takes no place among them.
        """
        admitted = self._admitted(test)
        if refuses is None:
            return self._passed_on(self._closely(asked, most, admitted), test)

        superseded = self._superseded()

        def may_be_shown(record: Record) -> bool:
            return test(record) and not refuses(record)

        def counts(number: int) -> bool:
            if not admitted(number):
                return False
            record = self.catalog.record(number)
            if number not in superseded:
                return not refuses(record)
            return may_be_shown(record) or any(map(may_be_shown, self.facts.heads(record)))

        return self._passed_on(self._closely(asked, most, counts), may_be_shown)

    def _closely(
        self, asked: Question, most: int, allowed: Callable[[int], bool]
    ) -> dict[int, float]:
        """Return the scores of the best so many of the allowed documents."""
        scores = self._scores(asked, most, allowed)
        return dict(scoring.ranked(list(scores.items()), self.index.path)[:most])

    def text(self, hit: Hit) -> bytes:
        """Return the text whose words found a hit: its own, or that of what it replaces."""
        if hit.number in self._plain:
            return self._plain[hit.number]
        if hit.through:
            return self.facts.text(self.catalog.get(hit.through) or hit.record)
        return self.index.text(hit.number)

    def discount(self, hit: Hit, asked: Question) -> None:
        """Let nothing count of a hit that a memory says of itself, and in no word of its text.

        What is left of its score is the share that its words have without that.
        """
        record = hit.record
        if hit.through:
            record = self.catalog.get(hit.through) or record
        if SELF_DESCRIBING.isdisjoint(record.memory.fields):
            return
        whole, plain = self.text(hit), plain_text(record, self.facts.language)
        statistics = self.index.statistics(asked.weights)
        gained = scoring.gains(asked.weights, statistics)
        score = scoring.text_score(whole, gained, statistics)
        if score:
            hit.raw *= min(1.0, scoring.text_score(plain, gained, statistics) / score)
        self._plain[hit.number] = plain

    def held(self, said: Question, asked: Question, best: Hit) -> float:
        """Return what a hit holds of a question, see `held`."""
        return held(said, asked, self.text(best), self.index.count, self.index.df)

    def _number(self, record: Record) -> int:
        found = self.catalog.number_of(record)
        assert found is not None
        return found

    def _holding(self, asked: Question, test: Test) -> set[int]:
        """Return the documents that count and hold a telling word, or that a matcher finds."""
        held = self.index.holding_any(telling(asked))
        for matcher in self.matchers:
            held.update(matcher.matches(self._admitted(test)))
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
        return self.catalog.numbers_of(newer) if newer else set()

    def _scores(
        self,
        asked: Question,
        most: int,
        allowed: Callable[[int], bool],
        linked: Collection[int] = (),
    ) -> dict[int, float]:
        """Return the scores of the best allowed documents, and of those in `linked`.

        The best are scored closely, the rest by words alone; matchers add to both.
        """
        matches = [matcher.matches(allowed) for matcher in self.matchers]
        best = self.index.best(asked.weights, max(most, scoring.CANDIDATES), allowed)
        others = set(linked).union(*matches).difference(number for number, _score in best)
        beside = self.index.best(asked.weights, len(others), others.__contains__) if others else []
        highest = max((score for _number, score in best), default=1.0)
        scores = {number: score / highest for number, score in best + beside}
        scores.update(self.index.close(asked, best[: scoring.CANDIDATES]))
        scores = self._lent(asked, best, scores, allowed)
        for matcher, numbers in zip(self.matchers, matches, strict=True):
            scores = matcher.add(scores, numbers)
        return scores

    def _lent(
        self,
        asked: Question,
        best: Sequence[tuple[int, float]],
        scores: dict[int, float],
        allowed: Callable[[int], bool],
    ) -> dict[int, float]:
        """Return scores with what memories of one thread lend those that are looked at closely."""
        if not self.catalog.index.has_threads:
            return scores
        from memtool.search.threads import Threads  # most repositories have none

        def by_words(numbers: set[int]) -> dict[int, float]:
            wanted = set(filter(allowed, numbers)).__contains__
            found = self.index.best(asked.weights, len(numbers), wanted)
            return {number: score / best[0][1] for number, score in found}

        first = [number for number, _score in best[: scoring.CANDIDATES]]
        threads = Threads(self.catalog.index)
        return threads.lend(first, scores, by_words, self.facts.level_of)

    def _admitted(self, test: Test) -> Callable[[int], bool]:
        """Return which documents count: those that satisfy a test, or lead to one that does."""
        known: dict[int, bool] = {}
        heads: dict[str, bool] = {}  # thousands may lead to one
        current = self._current(test)
        if current is not None and not current.superseded:
            return current

        def passes(head: Record) -> bool:
            if head.path not in heads:
                heads[head.path] = test(head)
            return heads[head.path]

        def admitted(number: int) -> bool:
            if current is not None and number not in current.superseded:
                return current(number)
            found = known.get(number)
            if found is None:
                record = self.catalog.record(number)
                found = known[number] = test(record) or any(map(passes, self.facts.heads(record)))
            return found

        return admitted

    def _passed_on(self, scores: Mapping[int, float], test: Test) -> list[Hit]:
        """Return the hits in order, with the heads that superseded ones lead to.

        All that have a score were admitted, so that those which are heads satisfy the test.
        """
        superseded = self._superseded()
        found = {
            number: Hit(number, score, self.catalog.record)
            for number, score in scores.items()
            if number not in superseded
        }
        passed: dict[int, Hit] = {}
        olds = [
            (self.catalog.record(number), score)
            for number, score in scores.items()
            if number in superseded
        ]
        for old, score in sorted(olds, key=lambda scored: scored[0].path):
            if test(old):
                number = self._number(old)
                found[number] = Hit(number, score, self.catalog.record)
            for head in self.facts.heads(old):
                number = self._number(head)
                known = passed.get(number)
                if test(head) and (known is None or known.raw < score):
                    passed[number] = Hit(number, score, self.catalog.record, old.id)
        for number, hit in passed.items():
            own = found.get(number)
            if own is None or own.raw < hit.raw:
                hit.raw += BOTH * own.raw if own else 0.0
                found[number] = hit
            else:
                own.raw += BOTH * hit.raw
        return by_relevance(found.values())


UNRANKED = 0.1
"""Relevance of what an alternative without words admits, beside others that are ranked by words."""


class Scope(Value):
    """What is searched, and from when. `origins` is asked only if a filter or factor needs it.

    `lineage` is the tree's own unless another is given, such as one that trust has pruned.
    `accesses` tells how often ids were shown, `settled_accesses` how often they had been before
    today. The ranking asks the latter only where search.access or decay.preset says so, and never
    for what `is_replay`: asked of another moment or revision, or to be measured. `companions` tells
    which files change together with those that are open. `effort` is how much is looked at.
    `rerank` stands in for the setting search.rerank. `matchers` find what answers a query in other
    ways than by its words.

    `trust` tells the level of a record, and `best_trust` the highest that memories without a
    signature have here. `refuses` tells why one may not be shown at all, empty where it may: what
    is refused is looked for no further. `withholds` are the labels of privacy that hide a memory,
    None where stale digests are not hidden either.
    """

    tree: Catalog
    now: int
    config: Config
    aliases: dict[str, tuple[str, ...]]
    origins: Callable[[], dict[str, Origin]]
    lineage: Lineage | None = None
    accesses: Callable[[Iterable[str]], Mapping[str, int]] | None = None
    settled_accesses: Callable[[Iterable[str]], Mapping[str, int]] | None = None
    companions: Callable[[tuple[str, ...]], tuple[str, ...]] | None = None
    rerank: Rerank | None = None
    effort: Effort = FULL
    is_replay: bool = False
    matchers: tuple[Matcher, ...] = ()
    trust: Callable[[Record], str] | None = None
    refuses: Refusal | None = None
    best_trust: str = "committed"
    withholds: Collection[str] | None = None
    drift: DriftWitness | None = None

    @property
    def language(self) -> str:
        """The language of words in Latin letters."""
        return self.config.text("search.language")

    def facts(self) -> Facts:
        """Return fresh facts about the tree."""
        own = self.origins, self.lineage, self.language, self.trust, self.withholds, self.drift
        return Facts(self.tree, self.now, *own)


class Missed(Value):
    """A memory that was not found, and why, in one clause."""

    record: Record
    reason: str


class Found(Value):
    """Hits in order. `total` counts them before the limit; `notes` is what the user should hear.

    `missed` is what would have been found but for one reason, where that was asked for; `expired`
    counts what was left out for its age alone; `is_degraded` tells that less was looked at, since
    this machine is slow.
    """

    hits: tuple[Hit, ...]
    total: int
    notes: tuple[str, ...] = ()
    missed: tuple[Missed, ...] = ()
    expired: int = 0
    is_degraded: bool = False


def by_score(hit: Hit) -> tuple[float | str, ...]:
    """Sort key: the best score first, then by id."""
    return (-hit.score, hit.record.id, hit.record.path)


def search_query(
    scope: Scope, query: Query, limit: int, order: Order = by_score, *, explain: bool = False
) -> Found:
    """Find what satisfies a query; `order` sorts all of it before the limit cuts.

    A query without words finds everything that its filters admit, at relevance 1. By score, what
    is not among the most relevant stands behind these, as relevant as it is.

    Raises:
        MemtoolError: a filter cannot take its value.
    """
    search = _QuerySearch(scope, query, limit, order)
    relevant, total = search.relevant()
    shown = search.ordered(relevant)[: max(0, limit)]
    for hit in shown:
        search.complete(hit)
    return Found(
        tuple(shown),
        total,
        search.notes(),
        search.missed() if explain else (),
        count_expired(search.facts, query, search.asked),
        is_degraded=scope.effort.is_narrow,
    )


class _QuerySearch:
    """One query being answered.

    `by_words` tells that its words are looked up in the index, and nothing else finds memories.
    `said` are these words, `asked` with what aliases and near words add.
    """

    def __init__(self, scope: Scope, query: Query, limit: int, order: Order) -> None:
        self.scope = scope
        self.query = query
        self.limit = limit
        self.order = order
        self.facts = scope.facts()
        self.by_words = query.is_by_words
        self.test: Test = self.facts.is_current
        if not (self.by_words and query.is_plain):
            from memtool.search import filters  # plain words need no filters

            self.test = filters.matcher(query, self.facts, words_match=self.by_words)
        self.text = "\n".join(query.words)
        self.said, self.asked = questions(scope, self.text)
        self.reader: Retriever | None = None
        if telling(self.asked):
            self.reader = Retriever(self.facts, scope.matchers)
            self.asked = self.reader.readable(self.asked)
        self.quality = 1.0
        """What the best hit by words holds of the question."""

    @property
    def is_best_enough(self) -> bool:
        """Whether only the best hits are looked for, since nothing but the score orders them."""
        return self.by_words and self.order is by_score

    def relevant(self) -> tuple[list[Hit], int]:
        """Return what satisfies the query, the most relevant first, and how much there is."""
        ranked: list[Hit] = []
        total = 0
        if self.reader is not None:
            most = max(self.limit, self.scope.effort.weighed) if self.is_best_enough else None
            ranked, total = self.reader.ranked(self.asked, self.test, most)
            if ranked:
                self.quality = self.reader.held(self.said, self.asked, ranked[0])
        if not self.by_words:
            ranked = by_relevance([*ranked, *self._without_words(ranked)])
        return ranked, max(total, len(ranked))

    def _without_words(self, ranked: Sequence[Hit]) -> list[Hit]:
        """Return what satisfies the query beside the memories that are ranked by its words."""
        known = {hit.record.path for hit in ranked}
        others = [
            one for one in self.scope.tree.records if one.path not in known and self.test(one)
        ]
        return [Hit(place, 0.0, others.__getitem__) for place in range(len(others))]

    def ordered(self, relevant: Sequence[Hit]) -> list[Hit]:
        """Return hits in order: those that are looked at closely, and then the others."""
        most = self.scope.effort.weighed if self.order is by_score else len(relevant)
        floor = UNRANKED * self.quality if self.asked.weights else 1.0
        best = relevant[0].raw / self.quality if relevant else 0.0
        at = situation(self.scope, self.text, (), relevant[:most])
        if self.is_best_enough:
            first = _best_hits(relevant[:most], best, self.facts, at, max(1, self.limit))
        else:
            first = sorted(weighed(relevant[:most], best, self.facts, at, floor), key=self.order)
        return first + weighed(relevant[most : self.limit], best, self.facts, at, floor)

    def complete(self, hit: Hit) -> None:
        """Tell of a hit that is shown which terms it holds, and what matchers know of it."""
        text = self.facts.text(hit.record)
        asked = sorted(self.asked.weights)
        hit.terms = tuple(term for term in asked if b" %b " % term.encode() in text)
        for matcher in self.scope.matchers:
            number = self.scope.tree.number_of(hit.record)
            hit.details |= {} if number is None else matcher.details(number)

    def notes(self) -> tuple[str, ...]:
        """Return what the user should hear."""
        notes: list[str] = []
        if self.reader is not None:
            notes += filter(None, [self.reader.index.note])
        elif self.asked.weights:
            notes.append("such words stand everywhere; quote them to find them as they are")
        return (*notes, *self.scope.effort.notes)

    def missed(self) -> tuple[Missed, ...]:
        """Return what satisfies the query but is left out for the state it is in, best first."""
        if self.reader is None or not self.by_words:
            return ()
        from memtool.search import filters  # only who asks pays for it

        is_hidden = filters.matcher(self.query, self.facts, words_match=True, is_hidden=True)
        found = self.reader.best(self.asked, MOST_MISSED, is_hidden)
        return tuple(hidden(found, self.facts))


def count_expired(facts: Facts, query: Query, asked: Question | None = None) -> int:
    """Return how many memories satisfy a query and are left out for their age alone.

    `asked` are the words of the query with what aliases and near words add, if it has words.
    """
    numbers = facts.expired()
    by_words = query.is_by_words and asked is not None
    if asked is not None and by_words and numbers:
        numbers &= Retriever(facts).index.holding_any(telling(asked))
    if not numbers or (by_words and query.is_plain):
        return len(numbers)
    from memtool.search import filters  # most stores hold nothing that has expired

    test = filters.matcher(query, facts, words_match=by_words, is_hidden=True)
    return sum(map(test, map(facts.catalog.record, numbers)))


def select(scope: Scope, query: Query) -> list[Record]:
    """Return all records that satisfy a query, in the order of the tree (by id).

    Raises:
        MemtoolError: a filter cannot take its value.
    """
    from memtool.search import filters

    test = filters.matcher(query, scope.facts())
    return [record for record in scope.tree.records if test(record)]


def situation(scope: Scope, text: str, files: tuple[str, ...], hits: Sequence[Hit]) -> Situation:
    """Return what is asked beside the words, for memories that may be found."""
    config = scope.config
    access = config.number("search.access")
    is_counting = ranking.is_counting(config)
    at = ranking.situation(text, files).replace(
        fading=ranking.fading_of(config), trust=scope.trust, drift=scope.drift
    )
    if files and hits and scope.companions is not None:
        at = at.replace(companions=scope.companions(files))
    counted = scope.settled_accesses
    if not (access or is_counting) or counted is None or scope.is_replay:
        return at
    return at.replace(
        accesses=lambda id_: counted((id_,))[id_], access=access, is_counting=is_counting
    )


def weighed(
    hits: Sequence[Hit], best: float, facts: Facts, at: Situation, floor: float = 0.0
) -> list[Hit]:
    """Weigh hits: relevance beside `best`, or the floor where no word was found, and all factors.

    `best` is the raw score that a match of all words would have, as `held` measures the best one.
    """
    for hit in hits:
        relevance = hit.raw / best if hit.raw > 0 else floor
        hit.weigh(relevance, ranking.weigh(hit.record, facts, at))
    return list(hits)


def _best_hits(
    hits: Sequence[Hit], best: float, facts: Facts, at: Situation, most: int
) -> list[Hit]:
    """Return the best hits in order, `most` at least; what cannot be one of them is not opened."""
    if len(hits) <= most:
        return sorted(weighed(hits, best, facts, at), key=by_score)
    weigher = ranking.Weigher(facts.catalog.index, facts, at)
    reach = [(hit.raw / best * weigher.most(hit.number), place) for place, hit in enumerate(hits)]
    reach.sort(reverse=True)
    if at.drift is not None:  # the first ones are opened in any case
        at.drift.expect([hits[place].record for _highest, place in reach[:most]])
    found: list[Hit] = []
    scores: list[float] = []
    for highest, place in reach:
        if len(scores) >= most and highest < scores[-most]:
            break
        hit = hits[place]
        hit.weigh(hit.raw / best, weigher.weigh(hit.number, hit.record))
        insort(scores, hit.score)
        found.append(hit)
    return sorted(found, key=by_score)


MOST_MISSED = 15
"""Memories that are named for one kind of reason."""


def hidden(hits: Iterable[Hit], facts: Facts) -> list[Missed]:
    """Return hits that a search leaves out, each with the reason; private ones are not named."""
    return [
        Missed(hit.record, why_hidden(hit.record, facts))
        for hit in hits
        if PRIVATE not in facts.hidden(hit.record)
    ]
