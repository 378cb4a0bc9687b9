"""Finding: a query and a tree to the memories that satisfy it, best first; for prose see `prose`.

Relevance comes first, by words; the factors of `ranking` then order what is relevant. Equal scores
are ordered by id, so the same tree, question and time give the same hits in the same order.
"""

from __future__ import annotations

import math
from _bisect import insort_right as insort

from memtool.memory.lifecycle import Fading
from memtool.search import cutoffs, ranking, relevance
from memtool.search.catalog import StoredCatalog
from memtool.search.cutoffs import Cutoffs
from memtool.search.facts import Facts
from memtool.search.ranking import Situation
from memtool.search.relevance import Match, Reader, by_relevance
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memtool.memory.lineage import Lineage
    from memtool.search.explaining import Missed
    from memtool.search.presets import Rerank
    from memtool.search.query import Query
    from memtool.search.scoring import Question
    from memtool.store.config import Config
    from memtool.store.provenance import Origin
    from memtool.store.tree import Record, Tree

    Order = Callable[["Hit"], tuple[float | str, ...]]

UNRANKED = 0.1
"""Relevance of what an alternative without words admits, beside others that are ranked by words."""
WEIGHED = 60
"""How many of the most relevant that a query finds are ordered by all factors. The pairs, titles
and grams of half as many are looked at (`scoring.CANDIDATES`), and what has none of these is far
behind; 500 would cost three interpreter starts."""


class Scope(Value):
    """What is searched, and from when. `origins` is asked only if a filter or factor needs it.

    `lineage` is the tree's own unless another is given, such as one that trust has pruned. `clock`
    gives seconds for the time limit, without one there is none. `accesses` tells how often ids
    were shown; it is asked only where search.access or decay.accesses says so. `companions` tells
    which files change together with those that are open. `rerank` stands in for the setting
    search.rerank.
    """

    tree: Tree
    now: int
    config: Config
    aliases: dict[str, tuple[str, ...]]
    cache_dir: str
    origins: Callable[[], dict[str, Origin]]
    lineage: Lineage | None = None
    cutoffs: Cutoffs = cutoffs.USUAL
    clock: Callable[[], float] | None = None
    accesses: Callable[[Iterable[str]], Mapping[str, int]] | None = None
    companions: Callable[[tuple[str, ...]], tuple[str, ...]] | None = None
    rerank: Rerank | None = None

    def facts(self) -> Facts:
        """Return fresh facts about the tree."""
        return Facts(self.tree, self.now, self.config.categories, self.origins, self.lineage)


class Hit(Value):
    """A memory that was found. `score` is the product of `factors`, the first being `relevance`.

    `terms` are the terms of a query that it holds, sorted. `through` is the superseded memory
    whose words found it, empty where its own did. `related` is the better hit that it is related
    to, where it was looked for only because of that.
    """

    record: Record
    score: float
    factors: dict[str, float]
    terms: tuple[str, ...] = ()
    through: str = ""
    related: str = ""


class Found(Value):
    """Hits in order. `total` counts them before the limit; `notes` is what the user should hear.

    `missed` is what would have been found but for one reason, where that was asked for.
    """

    hits: tuple[Hit, ...]
    total: int
    notes: tuple[str, ...] = ()
    missed: tuple[Missed, ...] = ()


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
    return undamaged(scope.tree, lambda: _search_query(scope, query, limit, order, explain=explain))


def undamaged(tree: Tree, ask: Callable[[], Found]) -> Found:
    """Ask a tree; once more if what is stored of it turned out to be damaged on the way."""
    return tree.whole(lambda _parts: ask()) if isinstance(tree, StoredCatalog) else ask()


def _search_query(scope: Scope, query: Query, limit: int, order: Order, *, explain: bool) -> Found:
    facts = scope.facts()
    by_words = query.is_simple and query.has_words
    test: Callable[[Record], bool] = facts.is_current
    if not (by_words and query.is_plain):
        from memtool.search import matching  # plain words need no filters

        test = matching.matcher(query, facts, words_match=by_words)
    asked = relevance.question("\n".join(query.words), scope.aliases)
    ranked: list[Match] = []
    total = 0
    most = min(scope.cutoffs.candidates, WEIGHED)
    notes: list[str] = []
    missed: tuple[Missed, ...] = ()
    if relevance.telling(asked):
        reader = Reader(facts, scope.cache_dir)
        asked = readable(asked, reader)
        if by_words and order is by_score:
            ranked, total = reader.ranked(asked, test, max(limit, most))
        else:
            ranked = reader.all(asked, test)
        notes = list(filter(None, [reader.note]))
        if explain and by_words:
            from memtool.search import matching  # only who asks pays for it
            from memtool.search.explaining import missed_in_query

            missed = missed_in_query(reader, asked, matching.hidden_matcher(query, facts))
    elif asked.weights:
        notes = ["such words stand everywhere; quote them to find them as they are"]
    if not by_words:
        known = {match.record.path for match in ranked}
        others = [one for one in scope.tree.records if one.path not in known and test(one)]
        beside = (Match(place, 0.0, others.__getitem__) for place in range(len(others)))
        ranked = by_relevance([*ranked, *beside])
    most = most if order is by_score else len(ranked)
    floor = UNRANKED if asked.weights else 1.0
    at = situation(scope, "\n".join(query.words), (), ranked[:most])
    best = ranked[0].raw if ranked else 0.0
    if by_words and order is by_score:
        hits = best_hits(ranked[:most], best, facts, at, max(1, limit))
    else:
        hits = sorted((hit_of(match, best, facts, at, floor) for match in ranked[:most]), key=order)
    hits += [hit_of(match, best, facts, at, floor) for match in ranked[most:limit]]
    shown = [_with_terms(hit, facts, asked) for hit in hits[: max(0, limit)]]
    return Found(tuple(shown), max(total, len(ranked)), tuple(notes), missed)


def select(scope: Scope, query: Query) -> list[Record]:
    """Return all records that satisfy a query, in the order of the tree (by id).

    Raises:
        MemtoolError: a filter cannot take its value.
    """
    from memtool.search import matching

    test = matching.matcher(query, scope.facts())
    return [record for record in scope.tree.records if test(record)]


def readable(asked: Question, reader: Reader) -> Question:
    """Return a question of bounded size, with near words for those that stand nowhere."""
    if not all(map(reader.df, relevance.telling(asked))):
        from memtool.search import fuzzy  # only for words that stand nowhere

        weights = fuzzy.expand(asked.weights, reader.df, reader.beginning)
        asked = asked.replace(weights=weights)
    return reader.narrowed(asked)


def situation(
    scope: Scope, text: str, files: tuple[str, ...], matches: Sequence[Match]
) -> Situation:
    """Return what is asked beside the words, for memories that may be found."""
    config = scope.config
    access = config.number("search.access")
    is_counting = bool(config.setting("decay.accesses"))
    fading = Fading(config.text("decay.formula"), config.number("decay.half_life_days"))
    at = ranking.situation(text, files).replace(fading=fading)
    if files and matches and scope.companions is not None:
        at = at.replace(companions=scope.companions(files))
    if not (access or is_counting) or scope.accesses is None:
        return at
    found = scope.accesses([match.record.id for match in matches])
    return at.replace(accesses=found, access=access, is_counting=is_counting)


def hit_of(match: Match, best: float, facts: Facts, at: Situation, floor: float = 0.0) -> Hit:
    """Turn a match into a hit: relevance beside the best, or the floor where no word was found."""
    relevant = match.raw / best if match.raw > 0 else floor
    return _hit(match, relevant, ranking.weigh(match.record, facts, at))


def _hit(match: Match, relevance: float, weighed: dict[str, float]) -> Hit:
    factors = {"relevance": relevance} | weighed
    return Hit(match.record, math.prod(factors.values()), factors, (), match.through)


def best_hits(
    matches: Sequence[Match], best: float, facts: Facts, at: Situation, most: int
) -> list[Hit]:
    """Return the best hits in order, `most` at least; what cannot be one of them is not opened."""
    tree = facts.tree
    if len(matches) <= most or not isinstance(tree, StoredCatalog):
        return sorted((hit_of(match, best, facts, at) for match in matches), key=by_score)
    scales = ranking.Scales(tree.parts, facts, at)
    reach = [
        (match.raw / best * scales.most(match.number), place) for place, match in enumerate(matches)
    ]
    reach.sort(reverse=True)
    hits: list[Hit] = []
    scores: list[float] = []
    for highest, place in reach:
        if len(scores) >= most and highest < scores[-most]:
            break
        match = matches[place]
        hit = _hit(match, match.raw / best, scales.weigh(match.number, match.record))
        insort(scores, hit.score)
        hits.append(hit)
    return sorted(hits, key=by_score)


def _with_terms(hit: Hit, facts: Facts, asked: Question) -> Hit:
    text = facts.text(hit.record)
    held = (term for term in sorted(asked.weights) if b" %b " % term.encode() in text)
    return hit.replace(terms=tuple(held))
