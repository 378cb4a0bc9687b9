"""Retrieval: scores the memories of a tree by words, and passes scores along their lineage.

The words of a superseded memory count for the heads that replace it. A head takes the better of its
own score and that of the memory it replaces, so that a correction which dropped the old words is
still found by them. If its own words match too, 0.3 of the lesser score is added. On the tuning
questions that cite a replaced PEP, this puts the current one among the best five in .771 of them
(0.1: .771, the better score alone: .750); recall@5 on all questions about PEPs is .705 with each.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from itertools import groupby

from memtool.index import scoring
from memtool.index.scoring import Question, content_terms, query_coverage
from memtool.index.text import SELF_DESCRIBING, to_plain_terms
from memtool.memory.lifecycle import PRESETS
from memtool.memory.trust import TRUST_LEVELS
from memtool.memory.visibility import PRIVATE
from memtool.search import expansion, ranking
from memtool.search.effort import FULL, Effort
from memtool.search.features import NO_MOVES, CurrentDocuments, Facts, Moves, explain_hidden
from memtool.search.named_ids import NAMED, find_mentions, find_named
from memtool.search.ranking import RankingContext
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
    from memtool.store.provenance import TrustLevels
    from memtool.store.tree import Record

    Test = Callable[[Record], bool]

    Refusal = Callable[[Record], str]

    Order = Callable[["Hit"], tuple[float | str, ...]]

    Rerank = Callable[[Sequence["Hit"]], Sequence["Hit"]]
    """Takes the best hits by score, at most as many as may be shown, and returns them in order."""

    class Matcher(Protocol):
        """Finds memories of a catalog by number, in another way than by words."""

        @property
        def state(self) -> str:
            """PARTIAL or WHOLE: whether some or all memories were compared."""

        def weigh(self, coverage: float) -> float:
            """Return what the best match gains, if the best by words has 1 and this coverage."""

        def matches(self, allowed: Callable[[int], bool]) -> Sequence[int]:
            """Return the allowed documents that match, even without a word of the query."""

        def add(
            self, scores: Mapping[int, float], matches: Sequence[int], coverage: float
        ) -> dict[int, float]:
            """Return scores (1 for the best by words) plus what this matcher adds.

            `coverage` is the share of the question that the best match by words contains.
            """

        def measure(self, number: int) -> float:
            """Return how well a document matches, up to 1; 0 if that is unknown."""

        def is_answer(self, number: int) -> bool:
            """Return whether a document is an answer, whatever words it contains."""

        def details(self, number: int) -> Mapping[str, float]:
            """Return result fields for a document, such as how well it matches."""


PARTIAL, WHOLE, OFF = "partial", "full", "off"
"""Whether the meanings of some, all or no memories were compared with the question."""

LESSER_SCORE_SHARE = 0.3
"""Share of the lesser score that is added, of a head's own score and that of what it replaces."""

MAX_TERMS = 64
"""Terms of a question that are looked up; of a longer text, the most informative ones."""


class Hit:
    """A memory that a search found.

    `raw` is its score by words. `through` is the id of the superseded memory that earned this
    score; empty if its own words did. `score` is the product of `factors`, the first of which is
    `relevance`; both are set by `weigh`. `terms` are the query terms that it contains, sorted.
    `details` are result fields from matchers. `related` is the id of the better hit that it is
    related to, if it was looked up only because of that.

    The record is opened on first use, because few of many hits are shown.
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
        "topic",
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
        self.topic: frozenset[bytes] = frozenset()
        self.details: dict[str, Any] = {}
        self._open = opening
        self._record: Record | None = None

    @property
    def record(self) -> Record:
        """The memory, opened on first use."""
        if self._record is None:
            self._record = self._open(self.number)
        return self._record

    def __lt__(self, other: Hit) -> bool:
        """Order hits of equal score by id and path."""
        mine, theirs = self.record, other.record
        return (mine.id, mine.path) < (theirs.id, theirs.path)

    def __eq__(self, other: object) -> bool:
        """Compare what was found, by the same words and factors."""
        compared = ("record", "score", "factors", "terms", "through", "related", "details")
        return type(other) is Hit and all(getattr(self, n) == getattr(other, n) for n in compared)

    __hash__ = None  # type: ignore[assignment]  # it changes from stage to stage

    def weigh(self, relevance: float, factors: Mapping[str, float]) -> None:
        """Set the score to the product of the relevance and the ranking factors."""
        self.factors = {"relevance": relevance, **factors}
        self.score = math.prod(self.factors.values())


def sort_by_relevance(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits, most relevant first.

    Equals are sorted apart: as parts of a tuple, they would be compared whole, with their texts.
    """
    ordered = sorted(hits, key=_by_relevance)
    return [hit for _raw, equals in groupby(ordered, key=_by_relevance) for hit in sorted(equals)]


def _by_relevance(hit: Hit) -> float:
    return -hit.raw


def parse_questions(scope: Scope, text: str) -> tuple[Question, Question]:
    """Return a text's literal question, and the same question expanded by aliases."""
    literal_question = scoring.parse_question(text, scope.language)
    weights = expansion.expand(literal_question.weights, scope.aliases, scope.language)
    return literal_question, literal_question.replace(weights=weights)


class Retriever:
    """Searches the index of a catalog. The index counts memories by number, the caller by path."""

    def __init__(
        self,
        facts: Facts,
        matchers: Sequence[Matcher] = (),
        literal_question: Question | None = None,
    ) -> None:
        """Take the matchers, which need the question without aliases and near words."""
        self.facts = facts
        self.matchers = matchers
        self._literal_question = literal_question
        self.coverage: float | None = None
        """The share of the first question that the best match by words contains."""
        self.catalog = facts.catalog
        self.index = facts.index
        self._plain: dict[int, bytes] = {}

    def with_near_words(self, question: Question) -> Question:
        """Return a question of bounded size, with near words for those not in the index."""
        index = self.index
        if not all(map(index.df, content_terms(question))):
            weights = expansion.with_near_words(question.weights, index.df, index.find_terms)
            question = question.replace(weights=weights)
        return self.narrow(question)

    def narrow(self, question: Question) -> Question:
        """Return a question of bounded size: the terms most informative in this tree."""
        if len(question.weights) <= MAX_TERMS:
            return question
        count = self.index.count
        worth = {
            term: weight * scoring.idf(count, df)
            for term, weight in question.weights.items()
            if (df := self.index.df(term))
        }
        chosen_terms = set(sorted(worth, key=lambda term: (-worth[term], term))[:MAX_TERMS])
        return Question(
            {term: weight for term, weight in question.weights.items() if term in chosen_terms},
            {
                pair: weight
                for pair, weight in question.pairs.items()
                if chosen_terms.issuperset(pair)
            },
        )

    def rank(
        self, question: Question, test: Test, limit: int | None = None
    ) -> tuple[list[Hit], int]:
        """Return the best `limit` hits by score and then by id, and the number of all hits.

        A hit satisfies the test, and contains an informative word or is found by a matcher. The
        best are scored closely, the others by words alone. Ties at the limit are broken by path.
        """
        record = self.catalog.record
        holding = self._find_holding(question, test)
        superseded = holding & self._find_superseded()
        heads = {
            self._number(head)
            for number in superseded
            for head in self.facts.heads(record(number))
            if test(head)
        }
        linked = superseded | (heads & holding)
        # Scores within a lineage are joined, so each of these may lead to a hit listed already.
        wanted = len(holding) if limit is None else limit + len(linked)
        scores = (
            self._compute_scores(question, wanted, holding.__contains__, linked) if holding else {}
        )
        hits = self._pass_to_heads(scores, test)
        shown = {number for number in superseded if test(record(number))}
        hidden = {n for n in shown | heads if n in superseded or n not in holding}
        return hits[:limit], len(holding) - len(superseded) + len(hidden)

    def find_best(
        self, question: Question, limit: int, test: Test, refuses: Refusal | None = None
    ) -> list[Hit]:
        """Return about `limit` of the best hits, best first, all scored closely.

        Refused memories take no place among them.
        """
        admitted = self._build_filter(test)
        if refuses is None:
            return self._pass_to_heads(self._score_closely(question, limit, admitted), test)

        superseded = self._find_superseded()

        def may_be_shown(record: Record) -> bool:
            return test(record) and not refuses(record)

        def counts(number: int) -> bool:
            if not admitted(number):
                return False
            record = self.catalog.record(number)
            if number not in superseded:
                return not refuses(record)
            return may_be_shown(record) or any(map(may_be_shown, self.facts.heads(record)))

        return self._pass_to_heads(self._score_closely(question, limit, counts), may_be_shown)

    def _score_closely(
        self, question: Question, limit: int, allowed: Callable[[int], bool]
    ) -> dict[int, float]:
        """Return the scores of the best `limit` allowed documents."""
        scores = self._compute_scores(question, limit, allowed)
        return dict(scoring.sort_hits(list(scores.items()), self.index.path)[:limit])

    def matched_text(self, hit: Hit) -> bytes:
        """Return the text whose words matched: the hit's own, or that of the memory it replaces."""
        if hit.number in self._plain:
            return self._plain[hit.number]
        if hit.through:
            return self.facts.text(self.catalog.get(hit.through) or hit.record)
        return self.index.text(hit.number)

    def discount(self, hit: Hit, question: Question) -> None:
        """Ignore words that a memory only claims about itself, such as tags, and not in its text.

        The score is scaled to the share that its other words earn.
        """
        record = hit.record
        if hit.through:
            record = self.catalog.get(hit.through) or record
        if SELF_DESCRIBING.isdisjoint(record.memory.fields):
            return
        whole, plain = self.matched_text(hit), to_plain_terms(record, self.facts.language)
        statistics = self.index.statistics(question.weights)
        gained = scoring.max_term_scores(question.weights, statistics)
        score = scoring.score_text(whole, gained, statistics)
        if score:
            hit.raw *= min(1.0, scoring.score_text(plain, gained, statistics) / score)
        self._plain[hit.number] = plain

    def measure_quality(self, literal_question: Question, question: Question, best: Hit) -> float:
        """Return how much of a question a hit answers, 0 to 1.

        That is the share that it contains (see `scoring.query_coverage`), or how near a matcher
        finds it, whichever is more.
        """
        coverage = query_coverage(
            literal_question, question, self.matched_text(best), self.index.count, self.index.df
        )
        return max(coverage, *(matcher.measure(best.number) for matcher in self.matchers), 0.0)

    def _number(self, record: Record) -> int:
        number = self.catalog.find_number(record)
        assert number is not None
        return number

    def _find_holding(self, question: Question, test: Test) -> set[int]:
        """Return the eligible documents with an informative word, and those that matchers find."""
        holding = self.index.find_containing(content_terms(question))
        for matcher in self.matchers:
            holding.update(matcher.matches(self._build_filter(test)))
        current = self._find_current(test)
        if current is None:
            return set(filter(self._build_filter(test), holding))
        olds = holding & current.superseded
        current_holding = current.select(holding)
        current_holding.update(filter(self._build_filter(test), olds))
        return current_holding

    def _find_current(self, test: Test) -> CurrentDocuments | None:
        """Return the precomputed set if the test only asks for current memories."""
        return self.facts.build_current() if test == self.facts.is_current else None

    def _find_superseded(self) -> set[int]:
        """Return the numbers of the superseded memories."""
        newer = self.facts.lineage.superseded_by
        return self.catalog.find_numbers(newer) if newer else set()

    def _compute_scores(
        self,
        question: Question,
        limit: int,
        allowed: Callable[[int], bool],
        linked: Collection[int] = (),
    ) -> dict[int, float]:
        """Return the scores of the best allowed documents, and of those in `linked`.

        The best are scored closely, the others by words alone; matchers add to both.
        """
        matches = [matcher.matches(allowed) for matcher in self.matchers]
        best = self.index.find_best(question.weights, max(limit, scoring.MAX_RERANKED), allowed)
        linked_only = set(linked).union(*matches).difference(number for number, _score in best)
        linked_hits = (
            self.index.find_best(question.weights, len(linked_only), linked_only.__contains__)
            if linked_only
            else []
        )
        highest = max((score for _number, score in best), default=1.0)
        scores = {number: score / highest for number, score in best + linked_hits}
        scores.update(self.index.rerank(question, best[: scoring.MAX_RERANKED]))
        scores = self._thread_scores(question, best, scores, allowed)
        if not self.matchers:
            return scores
        coverage = self._measure_coverage(question, scores)
        if self.coverage is None:
            self.coverage = coverage
        for matcher, numbers in zip(self.matchers, matches, strict=True):
            scores = matcher.add(scores, numbers, coverage)
        return scores

    def _measure_coverage(self, question: Question, scores: Mapping[int, float]) -> float:
        """Return the share of a question that the best of these documents contains; 0 of none."""
        best = max(scores, key=scores.__getitem__, default=None)
        if best is None:
            return 0.0
        text = self.index.text(best)
        literal = self._literal_question or question
        return query_coverage(literal, question, text, self.index.count, self.index.df)

    def _thread_scores(
        self,
        question: Question,
        best: Sequence[tuple[int, float]],
        scores: dict[int, float],
        allowed: Callable[[int], bool],
    ) -> dict[int, float]:
        """Return scores with those that memories of one thread pass to each other."""
        if not self.catalog.index.has_threads:
            return scores
        from memtool.search.threads import Threads  # most repositories have none

        def score_by_words(numbers: set[int]) -> dict[int, float]:
            wanted = set(filter(allowed, numbers)).__contains__
            hits = self.index.find_best(question.weights, len(numbers), wanted)
            return {number: score / best[0][1] for number, score in hits}

        first = [number for number, _score in best[: scoring.MAX_RERANKED]]
        threads = Threads(self.catalog.index)
        return threads.propagate_scores(first, scores, score_by_words, self.facts.level_of)

    def _build_filter(self, test: Test) -> Callable[[int], bool]:
        """Return a filter of documents that satisfy a test, or lead to one that does."""
        decisions: dict[int, bool] = {}
        heads: dict[str, bool] = {}  # thousands may lead to one
        current = self._find_current(test)
        if current is not None and not current.superseded:
            return current

        def passes(head: Record) -> bool:
            if head.path not in heads:
                heads[head.path] = test(head)
            return heads[head.path]

        def is_admitted(number: int) -> bool:
            if current is not None and number not in current.superseded:
                return current(number)
            is_admitted = decisions.get(number)
            if is_admitted is None:
                record = self.catalog.record(number)
                is_admitted = decisions[number] = test(record) or any(
                    map(passes, self.facts.heads(record))
                )
            return is_admitted

        return is_admitted

    def _pass_to_heads(self, scores: Mapping[int, float], test: Test) -> list[Hit]:
        """Return the hits in order, with the heads that replace superseded ones.

        Everything with a score was admitted, so each head in it satisfies the test.
        """
        superseded = self._find_superseded()
        passed_on = {
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
                passed_on[number] = Hit(number, score, self.catalog.record)
            for head in self.facts.heads(old):
                number = self._number(head)
                earlier = passed.get(number)
                if test(head) and (earlier is None or earlier.raw < score):
                    passed[number] = Hit(number, score, self.catalog.record, old.id)
        for number, hit in passed.items():
            own = passed_on.get(number)
            if own is None or own.raw < hit.raw:
                hit.raw += LESSER_SCORE_SHARE * own.raw if own else 0.0
                passed_on[number] = hit
            else:
                own.raw += LESSER_SCORE_SHARE * hit.raw
        return sort_by_relevance(passed_on.values())


LOCAL = TRUST_LEVELS[0]
UNRANKED_RELEVANCE = 0.1
"""Relevance of a match from an alternative without words, if others are ranked by words."""


class Scope(Value):
    """What to search, as of when, and with which settings.

    `origins` is called only if a filter or factor needs it. `lineage` is the tree's own unless
    another is passed, such as one pruned by trust. `accesses` counts how often ids were shown,
    `settled_accesses` how often before today. The ranking uses the latter only if
    search.access_boost or decay.preset asks for it, and never if `is_replay`: the search is of
    another moment or revision, or a measurement. `companions` returns the files that usually change
    together with those that are open. `effort` bounds how much is examined. `rerank` replaces the
    setting search.rerank. `matchers` find memories in other ways than by words.

    `trust` returns the level of a record, and `best_trust` is the highest level that unsigned
    memories have here. `refuses` returns why a memory may not be shown, empty if it may; refused
    memories are not searched further. `withholds` are the privacy labels that hide a memory, None
    if stale digests are not hidden either.
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
    trust: TrustLevels | None = None
    refuses: Refusal | None = None
    best_trust: str = "committed"
    withholds: Collection[str] | None = None
    drift: DriftWitness | None = None

    @property
    def language(self) -> str:
        """The search language, for words in Latin letters."""
        return self.config.text("search.language")

    def facts(self) -> Facts:
        """Return fresh facts about the tree."""
        own = self.origins, self.lineage, self.language, self.trust, self.withholds, self.drift
        return Facts(self.tree, self.now, *own)


class MissedMemory(Value):
    """A memory that was not found, and the reason, in one clause."""

    record: Record
    reason: str


class SearchResult(Value):
    """Hits in order. `total` counts them before the limit; `notes` are for the user.

    If explained, `missed` lists memories that were left out for one reason only. `expired` counts
    those left out for their age alone. `is_degraded` means that less was examined because this
    machine is slow.

    `further` are the next hits by score that are not answers, if answers were asked for.

    `semantic` is PARTIAL, WHOLE or OFF. With a matcher, `coverage` is the share of the question
    that the best match by words contains, and `weight` what the nearest memory gains because of it.
    """

    hits: tuple[Hit, ...]
    total: int
    notes: tuple[str, ...] = ()
    missed: tuple[MissedMemory, ...] = ()
    expired: int = 0
    is_degraded: bool = False
    further: tuple[Hit, ...] = ()
    semantic: str = OFF
    coverage: float | None = None
    weight: float | None = None

    def with_meaning(self, scope: Scope, reader: Retriever | None) -> SearchResult:
        """Return the result with what the first matcher of a scope has done."""
        if not scope.matchers:
            return self
        matcher = scope.matchers[0]
        coverage = (reader.coverage if reader is not None else None) or 0.0
        weight = matcher.weigh(coverage)
        return self.replace(semantic=matcher.state, coverage=coverage, weight=weight)


def by_score(hit: Hit) -> tuple[float | str, ...]:
    """Sort by score, best first, then by id."""
    return (-hit.score, hit.record.id, hit.record.path)


def search_query(
    scope: Scope, query: Query, limit: int, order: Order = by_score, *, explain: bool = False
) -> SearchResult:
    """Find the memories that satisfy a query; `order` sorts them before `limit` cuts.

    A query without words finds all memories that its filters admit, at relevance 1. When sorting by
    score, only the most relevant are weighed against each other; the others follow by relevance.

    Raises:
        MemtoolError: a filter has a bad value.
    """
    search = _QuerySearch(scope, query, limit, order)
    relevant, total = search.find_relevant()
    hits = search.sort(relevant)
    if order is by_score:
        hits = put_committed_first(hits, scope.trust)
    ordered = search.add_named(hits)
    if total <= len(relevant):
        total += len(ordered) - len(hits)
    shown = ordered[: max(0, limit)]
    for hit in shown:
        search.complete(hit)
    return SearchResult(
        tuple(shown),
        total,
        search.collect_notes(),
        search.find_missed() if explain else (),
        count_expired(search.facts, query, search.question),
        is_degraded=scope.effort.is_narrow,
    ).with_meaning(scope, search.reader)


class _QuerySearch:
    """The state of one search.

    With `is_by_words`, memories are found by words in the index only. `literal_question` has the
    query's own words, `question` adds aliases and near words.
    """

    def __init__(self, scope: Scope, query: Query, limit: int, order: Order) -> None:
        self.scope = scope
        self.query = query
        self.limit = limit
        self.order = order
        self.facts = scope.facts()
        self.is_by_words = query.is_by_words
        self.test: Test = self.facts.is_current
        if not (self.is_by_words and query.is_plain):
            from memtool.search import filters  # plain words need no filters

            self.test = filters.build_matcher(query, self.facts, words_match=self.is_by_words)
        self.text = "\n".join(query.words)
        self.literal_question, self.question = parse_questions(scope, self.text)
        self.reader: Retriever | None = None
        if content_terms(self.question):
            self.reader = Retriever(self.facts, scope.matchers, self.literal_question)
            self.question = self.reader.with_near_words(self.question)
        self.has_named = False
        self.is_crowded = False
        """Whether there are so many uncommitted files that they may push out others."""
        self.quality = 1.0
        """How much of the question the best hit by words answers."""

    @property
    def is_best_enough(self) -> bool:
        """Whether only the best hits are needed, because nothing but the score orders them."""
        return self.is_by_words and self.order is by_score

    def find_relevant(self) -> tuple[list[Hit], int]:
        """Return what satisfies the query, most relevant first, and the total number."""
        ranked: list[Hit] = []
        total = 0
        if self.reader is not None:
            limit = max(self.limit, self.scope.effort.weighed) if self.is_best_enough else None
            ranked, total = self._rank(limit)
            if ranked:
                self.quality = self.reader.measure_quality(
                    self.literal_question, self.question, ranked[0]
                )
        if not self.is_by_words:
            ranked = sort_by_relevance([*ranked, *self._without_words(ranked)])
        return ranked, max(total, len(ranked))

    def _rank(self, limit: int | None) -> tuple[list[Hit], int]:
        """Return hits by words, of which most are committed if there are so many."""
        assert self.reader is not None
        ranked, total = self.reader.rank(self.question, self.test, limit)
        if limit is None or not is_crowded(ranked[:limit], self.scope.trust):
            return ranked, total
        self.is_crowded = True
        every, total = self.reader.rank(self.question, self.test)
        return put_committed_first(every, self.scope.trust), total

    def _without_words(self, ranked: Sequence[Hit]) -> list[Hit]:
        """Return matches in addition to the memories that are ranked by the query's words."""
        paths = {hit.record.path for hit in ranked}
        records = [
            record
            for record in self.scope.tree.records
            if record.path not in paths and self.test(record)
        ]
        return [Hit(place, 0.0, records.__getitem__) for place in range(len(records))]

    def sort(self, relevant: Sequence[Hit]) -> list[Hit]:
        """Return the hits in order: those weighed closely, then the others."""
        limit = self.scope.effort.weighed if self.order is by_score else len(relevant)
        floor = UNRANKED_RELEVANCE * self.quality if self.question.weights else 1.0
        best = relevant[0].raw / self.quality if relevant else 0.0
        self.context = context = build_context(self.scope, self.text, (), relevant[:limit])
        if self.is_best_enough and not self.is_crowded:
            first = _find_best_hits(relevant[:limit], best, self.facts, context, max(1, self.limit))
        else:
            first = sorted(
                weigh(relevant[:limit], best, self.facts, context, floor), key=self.order
            )
        return first + weigh(relevant[limit : self.limit], best, self.facts, context, floor)

    def add_named(self, hits: list[Hit]) -> list[Hit]:
        """Return the hits with the memories that the words name, first if the score orders them."""
        if not self.is_by_words:
            return hits
        mentions = find_mentions(" ".join(self.query.words))
        named = find_named(mentions, self.facts, self.test)
        self.has_named = bool(named)
        if not named:
            return hits
        hits = put_named_first(hits, named, self.facts, self.context)
        return hits if self.order is by_score else sorted(hits, key=self.order)

    def complete(self, hit: Hit) -> None:
        """Add the matched terms, and the details of each matcher, to a hit that is shown."""
        text = self.facts.text(hit.record)
        terms = sorted(self.question.weights)
        hit.terms = tuple(term for term in terms if b" %b " % term.encode() in text)
        for matcher in self.scope.matchers:
            number = self.scope.tree.find_number(hit.record)
            hit.details |= {} if number is None else matcher.details(number)

    def collect_notes(self) -> tuple[str, ...]:
        """Return notes for the user."""
        notes: list[str] = []
        if self.reader is not None:
            notes += filter(None, [self.reader.index.note])
        elif self.question.weights and not self.has_named:
            notes.append("these words are too common; quote them to search for them")
        return (*notes, *self.scope.effort.notes)

    def find_missed(self) -> tuple[MissedMemory, ...]:
        """Return memories that match but are hidden by their state, best first."""
        if self.reader is None or not self.is_by_words:
            return ()
        from memtool.search import filters  # only who asks pays for it

        is_hidden = filters.build_matcher(self.query, self.facts, words_match=True, is_hidden=True)
        hits = self.reader.find_best(self.question, MAX_MISSED, is_hidden)
        return tuple(list_hidden(hits, self.facts))


def count_expired(facts: Facts, query: Query, question: Question | None = None) -> int:
    """Return how many memories satisfy a query but are left out for their age alone.

    `question` has the words of the query, with aliases and near words, if it has words.
    """
    numbers = facts.find_expired()
    by_words = query.is_by_words and question is not None
    if question is not None and by_words and numbers:
        numbers &= Retriever(facts).index.find_containing(content_terms(question))
    if not numbers or (by_words and query.is_plain):
        return len(numbers)
    from memtool.search import filters  # most stores hold nothing that has expired

    test = filters.build_matcher(query, facts, words_match=by_words, is_hidden=True)
    return sum(map(test, map(facts.catalog.record, numbers)))


def find_records(scope: Scope, query: Query) -> list[Record]:
    """Return all records that satisfy a query, in the order of the tree (by id).

    Raises:
        MemtoolError: a filter has a bad value.
    """
    from memtool.search import filters

    test = filters.build_matcher(query, scope.facts())
    return [record for record in scope.tree.records if test(record)]


def find_moves(scope: Scope) -> Moves:
    """Return the renamed files, as far as they can be found in time."""
    return NO_MOVES if scope.drift is None else scope.drift.find_stored_moves(is_hurried=False)


def build_context(
    scope: Scope, text: str, files: tuple[str, ...], hits: Sequence[Hit]
) -> RankingContext:
    """Build the context for ranking: files, question, settings and witnesses."""
    config = scope.config
    access = config.number("search.access_boost")
    preset = config.text("decay.preset")
    context = ranking.parse_context(text, files).replace(
        fading=preset, trust=scope.trust, drift=scope.drift
    )
    if files and hits and scope.companions is not None:
        context = context.replace(companions=scope.companions(files))
    if files and hits:
        context = context.replace(moves=find_moves(scope))
    counted = scope.settled_accesses
    if not (access or PRESETS[preset].counts) or counted is None or scope.is_replay:
        return context
    return context.replace(accesses=lambda id_: counted((id_,))[id_], access=access)


def weigh(
    hits: Sequence[Hit], best: float, facts: Facts, context: RankingContext, floor: float = 0.0
) -> list[Hit]:
    """Set the score of each hit from its relevance and all factors.

    Relevance is relative to `best`, the raw score of a match of all words, estimated from the
    quality of the best hit (see `measure_quality`). It is `floor` for a hit without a word.
    """
    context.expect([hit.record for hit in hits])
    for hit in hits:
        relevance = hit.raw / best if hit.raw > 0 else floor
        hit.weigh(relevance, ranking.weigh(hit.record, facts, context))
    return list(hits)


def put_named_first(
    hits: Sequence[Hit], named: Sequence[Record], facts: Facts, context: RankingContext
) -> list[Hit]:
    """Return the hits with named memories first, which score as much as the best of the others.

    So a named memory that has few of the words passes every threshold, and sets none for others.
    """
    numbers = [
        number for record in named if (number := facts.catalog.find_number(record)) is not None
    ]
    by_number = {hit.number: hit for hit in hits}
    others = [hit for hit in hits if hit.number not in numbers]
    best = max(others, key=lambda hit: hit.score, default=None)
    firsts = [by_number.get(number) or Hit(number, 0.0, facts.catalog.record) for number in numbers]
    relevance = 1.0 if best is None else best.factors["relevance"]
    weigh([hit for hit in firsts if not hit.factors], 1.0, facts, context, relevance)
    for hit in firsts:
        own = hit.score
        if best is not None and (own < best.score or hit.number not in by_number):
            hit.score = best.score
        hit.factors[NAMED] = hit.score / own if own else 1.0
    return [*firsts, *others]


PLACES, MAX_LOCAL = 5, 2
"""Of each five hits two may be files that nobody has committed, while others wait."""
LOCAL_SHARE = 1 / (1 + ranking.RECENCY_GAIN)
"""How much of the score of an uncommitted file counts: until a commit its date is its own word."""


def is_crowded(hits: Sequence[Hit], trust: TrustLevels | None) -> bool:
    """Return whether so many of the hits are not committed that they may push out others."""
    if trust is None:
        return False
    trust.prefetch([hit.record for hit in hits])
    return sum(trust(hit.record) == LOCAL for hit in hits) > MAX_LOCAL


def put_committed_first(hits: Sequence[Hit], trust: TrustLevels | None) -> list[Hit]:
    """Return the hits with the uncommitted ones behind committed ones that are about as good.

    Anybody who can write a file can fill it with the words of every question, so a few of them at
    most are among the first, however well they fit.
    """
    if trust is None:
        return list(hits)
    trust.prefetch([hit.record for hit in hits])
    local = deque(hit for hit in hits if trust(hit.record) == LOCAL)
    committed = deque(hit for hit in hits if trust(hit.record) != LOCAL)
    ordered: list[Hit] = []
    count = 0
    while local and committed:
        if len(ordered) % PLACES == 0:
            count = 0
        is_better = _worth(local[0]) * LOCAL_SHARE > _worth(committed[0])
        is_local = is_better and count < MAX_LOCAL
        ordered.append((local if is_local else committed).popleft())
        count += is_local
    return [*ordered, *local, *committed]


def _worth(hit: Hit) -> float:
    """Return the score of a hit, or its score by words where it is not weighed yet."""
    return hit.score or hit.raw


HITS_PER_BATCH = 10
"""Hits that are opened together, because git is queried once for all of them."""


def _find_best_hits(
    hits: Sequence[Hit], best: float, facts: Facts, context: RankingContext, limit: int
) -> list[Hit]:
    """Return at least `limit` best hits in order; hits that cannot be among them stay unopened."""
    if len(hits) <= limit:
        return sorted(weigh(hits, best, facts, context), key=by_score)
    weigher = ranking.Weigher(facts.catalog.index, facts, context)
    reach = [
        (hit.raw / best * weigher.maximum(hit.number), place) for place, hit in enumerate(hits)
    ]
    reach.sort(reverse=True)
    best_hits: list[Hit] = []
    scores: list[float] = []
    for number, (highest, place) in enumerate(reach):
        if len(scores) >= limit and highest < scores[-limit]:
            break
        if number % HITS_PER_BATCH == 0:
            ahead = reach[number : number + HITS_PER_BATCH]
            context.expect([hits[next_place].record for _highest, next_place in ahead])
        hit = hits[place]
        hit.weigh(hit.raw / best, weigher.weigh(hit.number, hit.record))
        insort(scores, hit.score)
        best_hits.append(hit)
    return sorted(best_hits, key=by_score)


MAX_MISSED = 15
"""Memories that are listed for one kind of reason."""


def list_hidden(hits: Iterable[Hit], facts: Facts) -> list[MissedMemory]:
    """Return the hidden hits with their reasons, but not private ones."""
    return [
        MissedMemory(hit.record, explain_hidden(hit.record, facts))
        for hit in hits
        if PRIVATE not in facts.find_hiding_states(hit.record)
    ]
