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
from memtool.index.analyzer import ENGLISH
from memtool.index.reader import Catalog, StoredCatalog
from memtool.index.scoring import Question, held, telling
from memtool.index.text import SELF_DESCRIBING, plain_text
from memtool.memory.visibility import PRIVATE
from memtool.search import expansion, ranking
from memtool.search.features import Current, Facts, why_hidden
from memtool.search.ranking import Situation
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from memtool.memory.lineage import Lineage
    from memtool.memory.trust import Origin
    from memtool.search.drift import DriftWitness
    from memtool.search.query import Query
    from memtool.store.config import Config
    from memtool.store.snapshot import Record, Tree

    Test = Callable[[Record], bool]

    Refusal = Callable[[Record], str]

    Order = Callable[["Hit"], tuple[float | str, ...]]

    Rerank = Callable[[Sequence["Hit"]], Sequence["Hit"]]
    """Gets the best hits by score, at most as many as may be shown, and gives them in order."""


BOTH = 0.1
"""What the lesser of two scores adds: a head's own, and that of what it replaces."""

MEANING = 0.5
"""What the memory that is nearest to a question by its meaning gains, beside 1.0 for the one that
is best by its words; others gain by their share of its cosine. So a full sentence model was added
when it was measured: recall@5 +.016 to +.028 over words alone. A sum of such scores was better
there than one of ranks, on all eight sets."""

NEAREST = 30
"""So many of the nearest are found though they share no word with the question ..."""

LEAST_COSINE = 0.3
"""... if they are so near; not measured, as it depends on the model."""

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


def question(text: str, known: expansion.Aliases, language: str = ENGLISH) -> Question:
    """Read a question, and add what aliases make of its words."""
    asked = scoring.question(text, language)
    return asked.replace(weights=expansion.expand(asked.weights, known, language))


class Retriever:
    """The index of a catalog, asked about its memories by number; these go by path.

    `cosines` tells how near each is to the question by its meaning; empty where words alone count.
    """

    def __init__(self, facts: Facts, cosines: Mapping[int, float] | None = None) -> None:
        assert isinstance(facts.tree, Catalog)
        self.facts = facts
        self.cosines = cosines or {}
        self.catalog = facts.tree
        self.index = facts.index
        self._plain: dict[int, bytes] = {}

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

    def all(self, asked: Question, test: Test) -> list[Match]:
        """Return every match, the best first: what satisfies a test and holds a telling word.

        The best of it is scored closely, the rest by its words alone. What is near by its meaning
        matches, too.
        """
        holding = self._holding(asked, test)
        return self._passed_on(self._scores(asked, holding, len(holding)), test)

    def ranked(self, asked: Question, test: Test, most: int) -> tuple[list[Match], int]:
        """Return the best `most` of all matches, by score and then by id, and how many there are.

        Which of several with one score are the last of them goes by path.
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
        # Scores of one lineage are joined: each of these may lead to a match that is known already.
        scores = self._scores(asked, holding, most + len(linked), linked)
        matches = self._passed_on(scores, test)
        shown = {number for number in superseded if test(record(number))}
        others = {n for n in shown | heads if n in superseded or n not in holding}
        return matches[:most], len(holding) - len(superseded) + len(others)

    def best(
        self, asked: Question, most: int, test: Test, refuses: Refusal | None = None
    ) -> list[Match]:
        """Return about as many of the best matches, the best first, all scored closely.

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
        if not self.catalog.parts.has_threads:
            hits = self.index.search(asked, most, allowed)
            return {number: score for number, score, _parts in hits}
        best = self.index.best(asked.weights, max(most, scoring.CANDIDATES), allowed)
        scores = {number: score / best[0][1] for number, score in best}
        close = self.index.close(asked, best[: scoring.CANDIDATES])
        scores.update((number, score) for number, score, _parts in close)
        scores = self._lent(asked, best, scores, allowed)
        first = sorted(scores, key=lambda number: (-scores[number], self.index.path(number)))
        return {number: scores[number] for number in first[:most]}

    def text(self, match: Match) -> bytes:
        """Return the text whose words found a match: its own, or that of what it replaces."""
        if match.number in self._plain:
            return self._plain[match.number]
        if match.through:
            return self.facts.text(self.catalog.by_id.get(match.through, match.record))
        return self.index.text(match.number)

    def discount(self, match: Match, asked: Question) -> None:
        """Let nothing count of a match that a memory says of itself, and in no word of its text.

        What is left of its score is the share that its words have without that.
        """
        record = match.record
        if match.through:
            record = self.catalog.by_id.get(match.through, record)
        if SELF_DESCRIBING.isdisjoint(record.memory.fields):
            return
        whole, plain = self.text(match), plain_text(record, self.facts.language)
        statistics = self.index.statistics(asked.weights)
        gained = scoring.gains(asked.weights, statistics)
        score = scoring.text_score(whole, gained, statistics)
        if score:
            match.raw *= min(1.0, scoring.text_score(plain, gained, statistics) / score)
        self._plain[match.number] = plain

    def held(self, said: Question, asked: Question, best: Match) -> float:
        """Return what a match holds of a question, see `held`."""
        return held(said, asked, self.text(best), self.index.count, self.index.df)

    def _number(self, record: Record) -> int:
        found = self.catalog.number_of(record)
        assert found is not None
        return found

    def _holding(self, asked: Question, test: Test) -> set[int]:
        """Return the documents that count and hold a telling word, or are near by meaning."""
        held = self.index.holding_any(telling(asked))
        if self.cosines:
            held.update(self._nearest(self._admitted(test)))
        current = self._current(test)
        if current is None:
            return set(filter(self._admitted(test), held))
        olds = held & current.superseded
        found = current.among(held)
        found.update(filter(self._admitted(test), olds))
        return found

    def _nearest(self, allowed: Callable[[int], bool]) -> list[int]:
        """Return the allowed documents that are nearest by meaning, with all that are as near."""
        found: list[int] = []
        for number in sorted(self.cosines, key=self.cosines.__getitem__, reverse=True):
            own = self.cosines[number]
            is_full = len(found) >= NEAREST and own < self.cosines[found[-1]]
            if own < LEAST_COSINE or is_full:
                break
            if allowed(number):
                found.append(number)
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
        holding: set[int],
        most: int,
        linked: Collection[int] = (),
    ) -> dict[int, float]:
        """Return the scores of the best documents, and of those in `linked`.

        The best are scored closely, the rest by words alone; meaning is added to both.
        """
        if not holding:
            return {}
        near = self._nearest(holding.__contains__) if self.cosines else []
        linked = {*linked, *near} if near else linked
        best = self.index.best(asked.weights, max(most, scoring.CANDIDATES), holding.__contains__)
        others = set(linked).difference(number for number, _score in best)
        beside = self.index.best(asked.weights, len(others), others.__contains__) if others else []
        highest = max((score for _number, score in best), default=1.0)
        scores = {number: score / highest for number, score in best + beside}
        close = self.index.close(asked, best[: scoring.CANDIDATES])
        scores.update((number, score) for number, score, _parts in close)
        scores = self._lent(asked, best, scores, holding.__contains__)
        if near:
            scores = dict.fromkeys(near, 0.0) | scores
            nearest = self.cosines[near[0]]
            for number in scores:
                scores[number] += MEANING * max(0.0, self.cosines[number]) / nearest
        return scores

    def _lent(
        self,
        asked: Question,
        best: Sequence[tuple[int, float]],
        scores: dict[int, float],
        allowed: Callable[[int], bool],
    ) -> dict[int, float]:
        """Return scores with what memories of one thread lend those that are looked at closely."""
        from memtool.search.threads import Threads  # most repositories have none

        def by_words(numbers: set[int]) -> dict[int, float]:
            wanted = set(filter(allowed, numbers)).__contains__
            found = self.index.best(asked.weights, len(numbers), wanted)
            return {number: score / best[0][1] for number, score in found}

        first = [number for number, _score in best[: scoring.CANDIDATES]]
        threads = Threads(self.catalog.parts)
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

    def _passed_on(self, scores: Mapping[int, float], test: Test) -> list[Match]:
        """Return the matches in order, with the heads that superseded ones lead to.

        All that have a score were admitted, so that those which are heads satisfy the test.
        """
        superseded = self._superseded()
        found = {
            number: Match(number, score, self.catalog.record)
            for number, score in scores.items()
            if number not in superseded
        }
        passed: dict[int, Match] = {}
        olds = [
            (self.catalog.record(number), score)
            for number, score in scores.items()
            if number in superseded
        ]
        for old, score in sorted(olds, key=lambda scored: scored[0].path):
            if test(old):
                number = self._number(old)
                found[number] = Match(number, score, self.catalog.record)
            for head in self.facts.heads(old):
                number = self._number(head)
                known = passed.get(number)
                if test(head) and (known is None or known.raw < score):
                    passed[number] = Match(number, score, self.catalog.record, old.id)
        for number, match in passed.items():
            own = found.get(number)
            if own is None or own.raw < match.raw:
                match.raw += BOTH * own.raw if own else 0.0
                found[number] = match
            else:
                own.raw += BOTH * match.raw
        return by_relevance(found.values())


UNRANKED = 0.1
"""Relevance of what an alternative without words admits, beside others that are ranked by words."""

WEIGHED = 60
"""How many of the most relevant that a query finds are ordered by all factors. The pairs, titles
and grams of half as many are looked at (`scoring.CANDIDATES`), and what has none of these is far
behind; 500 would cost three interpreter starts."""

WEIGHED_NARROW = 15
"""The same where answers were slow and the settings want less then."""

SLOW = "answers were slow of late, so less was looked at (search.degrade)"


class Scope(Value):
    """What is searched, and from when. `origins` is asked only if a filter or factor needs it.

    `lineage` is the tree's own unless another is given, such as one that trust has pruned. `clock`
    gives seconds for the time limit, without one there is none. `accesses` tells how often ids
    were shown, `settled_accesses` how often they had been before today. The ranking asks the latter
    only where search.access or decay.preset says so, and never for what `is_replay`: asked of
    another moment or revision, or to be measured. `companions` tells
    which files change together with those that are open. `rerank` stands in for the setting
    search.rerank. `cosines` tells how near memories are to the question by their meaning, by number
    in the index; only a query is answered by them.

    `trust` tells the level of a record, and `best_trust` the highest that memories without a
    signature have here. `refuses` tells why one may not be shown at all, empty where it may: what
    is refused is looked for no further. `withholds` are the labels of privacy that hide a memory,
    None where stale digests are not hidden either.

    `clock` and `is_narrow`, which has less looked at, are for the setting search.degrade alone:
    without it no answer depends on how fast a machine is.
    """

    tree: Tree
    now: int
    config: Config
    aliases: dict[str, tuple[str, ...]]
    origins: Callable[[], dict[str, Origin]]
    lineage: Lineage | None = None
    clock: Callable[[], float] | None = None
    accesses: Callable[[Iterable[str]], Mapping[str, int]] | None = None
    settled_accesses: Callable[[Iterable[str]], Mapping[str, int]] | None = None
    companions: Callable[[tuple[str, ...]], tuple[str, ...]] | None = None
    rerank: Rerank | None = None
    is_narrow: bool = False
    is_replay: bool = False
    cosines: Mapping[int, float] = {}
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
        categories, language = self.config.categories, self.language
        own = self.origins, self.lineage, language, self.trust, self.withholds, self.drift
        return Facts(self.tree, self.now, categories, *own)


class Hit(Value):
    """A memory that was found. `score` is the product of `factors`, the first being `relevance`.

    `terms` are the terms of a query that it holds, sorted; `cosine` how near it is to the query by
    its meaning, None where only words were searched. `through` is the superseded memory
    whose words found it, empty where its own did. `related` is the better hit that it is related
    to, where it was looked for only because of that.
    """

    record: Record
    score: float
    factors: dict[str, float]
    terms: tuple[str, ...] = ()
    through: str = ""
    related: str = ""
    cosine: float | None = None


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
    facts = scope.facts()
    by_words = query.is_simple and query.has_words
    test: Callable[[Record], bool] = facts.is_current
    if not (by_words and query.is_plain):
        from memtool.search import filters  # plain words need no filters

        test = filters.matcher(query, facts, words_match=by_words)
    said = scoring.question("\n".join(query.words), scope.language)
    asked = said.replace(weights=expansion.expand(said.weights, scope.aliases, scope.language))
    ranked: list[Match] = []
    quality = 1.0
    total = 0
    most = WEIGHED_NARROW if scope.is_narrow else WEIGHED
    notes: list[str] = []
    missed: tuple[Missed, ...] = ()
    if telling(asked):
        reader = Retriever(facts, scope.cosines)
        asked = readable(asked, reader)
        if by_words and order is by_score:
            ranked, total = reader.ranked(asked, test, max(limit, most))
        else:
            ranked = reader.all(asked, test)
        quality = reader.held(said, asked, ranked[0]) if ranked else 1.0
        notes = list(filter(None, [reader.index.note]))
        if explain and by_words:
            from memtool.search import filters  # only who asks pays for it

            missed = missed_in_query(
                reader, asked, filters.matcher(query, facts, words_match=True, is_hidden=True)
            )
    elif asked.weights:
        notes = ["such words stand everywhere; quote them to find them as they are"]
    if not by_words:
        known = {match.record.path for match in ranked}
        others = [one for one in scope.tree.records if one.path not in known and test(one)]
        beside = (Match(place, 0.0, others.__getitem__) for place in range(len(others)))
        ranked = by_relevance([*ranked, *beside])
    most = most if order is by_score else len(ranked)
    floor = UNRANKED * quality if asked.weights else 1.0
    at = situation(scope, "\n".join(query.words), (), ranked[:most])
    best = ranked[0].raw / quality if ranked else 0.0
    if by_words and order is by_score:
        hits = _best_hits(ranked[:most], best, facts, at, max(1, limit))
    else:
        found = (hit_of(match, best, facts, at, floor) for match in ranked[:most])
        hits = sorted(found, key=order)
    hits += [hit_of(match, best, facts, at, floor) for match in ranked[most:limit]]
    shown = [_with_terms(hit, facts, asked) for hit in hits[: max(0, limit)]]
    if scope.cosines:
        shown = [_with_cosine(hit, scope) for hit in shown]
    expired = count_expired(facts, query, asked)
    notes += [SLOW] if scope.is_narrow else []
    return Found(
        tuple(shown), max(total, len(ranked)), tuple(notes), missed, expired,
        is_degraded=scope.is_narrow,
    )  # fmt: skip


def count_expired(facts: Facts, query: Query, asked: Question | None = None) -> int:
    """Return how many memories satisfy a query and are left out for their age alone.

    `asked` are the words of the query with what aliases and near words add, if it has words.
    """
    numbers = facts.expired()
    by_words = query.is_simple and query.has_words and asked is not None
    if asked is not None and by_words and numbers:
        numbers &= Retriever(facts).index.holding_any(telling(asked))
    if not numbers or (by_words and query.is_plain):
        return len(numbers)
    assert isinstance(facts.tree, Catalog)
    from memtool.search import filters  # most stores hold nothing that has expired

    test = filters.matcher(query, facts, words_match=by_words, is_hidden=True)
    return sum(map(test, map(facts.tree.record, numbers)))


def select(scope: Scope, query: Query) -> list[Record]:
    """Return all records that satisfy a query, in the order of the tree (by id).

    Raises:
        MemtoolError: a filter cannot take its value.
    """
    from memtool.search import filters

    test = filters.matcher(query, scope.facts())
    return [record for record in scope.tree.records if test(record)]


def readable(asked: Question, reader: Retriever) -> Question:
    """Return a question of bounded size, with near words for those that stand nowhere."""
    index = reader.index
    if not all(map(index.df, telling(asked))):
        weights = expansion.with_near_words(asked.weights, index.df, index.beginning)
        asked = asked.replace(weights=weights)
    return reader.narrowed(asked)


def situation(
    scope: Scope, text: str, files: tuple[str, ...], matches: Sequence[Match]
) -> Situation:
    """Return what is asked beside the words, for memories that may be found."""
    config = scope.config
    access = config.number("search.access")
    is_counting = ranking.is_counting(config)
    at = ranking.situation(text, files).replace(
        fading=ranking.fading_of(config), trust=scope.trust, drift=scope.drift
    )
    if files and matches and scope.companions is not None:
        at = at.replace(companions=scope.companions(files))
    counted = scope.settled_accesses
    if not (access or is_counting) or counted is None or scope.is_replay:
        return at
    return at.replace(
        accesses=lambda id_: counted((id_,))[id_], access=access, is_counting=is_counting
    )


def hit_of(match: Match, best: float, facts: Facts, at: Situation, floor: float = 0.0) -> Hit:
    """Turn a match into a hit: relevance beside `best`, or the floor where no word was found.

    `best` is the raw score that a match of all words would have, as `held` measures the best one.
    """
    relevant = match.raw / best if match.raw > 0 else floor
    factors = {"relevance": relevant} | ranking.weigh(match.record, facts, at)
    return Hit(match.record, math.prod(factors.values()), factors, (), match.through)


def _best_hits(
    matches: Sequence[Match], best: float, facts: Facts, at: Situation, most: int
) -> list[Hit]:
    """Return the best hits in order, `most` at least; what cannot be one of them is not opened."""
    tree = facts.tree
    if len(matches) <= most or not isinstance(tree, StoredCatalog):
        return sorted((hit_of(match, best, facts, at) for match in matches), key=by_score)
    weigher = ranking.Weigher(tree.parts, facts, at)
    reach = [
        (match.raw / best * weigher.most(match.number), place)
        for place, match in enumerate(matches)
    ]
    reach.sort(reverse=True)
    if at.drift is not None:  # the first ones are opened in any case
        at.drift.expect([matches[place].record for _highest, place in reach[:most]])
    hits: list[Hit] = []
    scores: list[float] = []
    for highest, place in reach:
        if len(scores) >= most and highest < scores[-most]:
            break
        match = matches[place]
        factors = {"relevance": match.raw / best} | weigher.weigh(match.number, match.record)
        hit = Hit(match.record, math.prod(factors.values()), factors, (), match.through)
        insort(scores, hit.score)
        hits.append(hit)
    return sorted(hits, key=by_score)


def _with_terms(hit: Hit, facts: Facts, asked: Question) -> Hit:
    text = facts.text(hit.record)
    held = (term for term in sorted(asked.weights) if b" %b " % term.encode() in text)
    return hit.replace(terms=tuple(held))


def _with_cosine(hit: Hit, scope: Scope) -> Hit:
    assert isinstance(scope.tree, Catalog)
    number = scope.tree.number_of(hit.record)
    return hit if number is None else hit.replace(cosine=scope.cosines.get(number))


MOST_MISSED = 15
"""Memories that are named for one kind of reason."""


def missed_in_query(
    reader: Retriever, asked: Question, is_hidden: Callable[[Record], bool]
) -> tuple[Missed, ...]:
    """Return what satisfies a query but is left out for the state that it is in, best first."""
    found = reader.best(asked, MOST_MISSED, is_hidden)
    return tuple(hidden(found, reader.facts))


def hidden(matches: Iterable[Match], facts: Facts) -> list[Missed]:
    """Return matches that a search leaves out, each with the reason; private ones are not named."""
    return [
        Missed(match.record, why_hidden(match.record, facts))
        for match in matches
        if PRIVATE not in facts.hidden(match.record)
    ]
