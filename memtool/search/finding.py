"""Finding: a question and a tree to the memories that answer it, best first.

Relevance decides what is found, by words; the factors of `ranking` then order it. Equal scores are
ordered by id, so the same tree, question and time give the same hits in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from memtool.memory.lineage import Lineage
from memtool.search import matching, ranking, relevance, scoring
from memtool.search.facts import Facts
from memtool.search.query import Query
from memtool.search.relevance import Match, Reader
from memtool.search.scoring import Question
from memtool.store.config import Config
from memtool.store.provenance import Origin
from memtool.store.tree import Record, Tree
from memtool.value import Value

UNRANKED = 0.1
"""Relevance of what an alternative without words admits, beside others that are ranked by words."""

PROSE_SHARE = 0.3
"""Least share of a prompt's telling words, by how rare they are, that an answer must hold ..."""
PROSE_WORTH = 2.5
"""... or as much as so many words that stand nowhere in the tree, if that is less.

Chosen on the tuning prompts of three public sets of 700 to 1,500 documents, each also put to the
other two sets: of the relevant among the best ten 89 % pass, of a foreign prompt's best ten 19 %,
and 44 % of the foreign prompts find nothing. Other prompts were not tried.
"""
PROSE_COUNT = 100
"""How rare a word is cannot be seen in fewer memories; a smaller tree is taken to have so many."""


class Scope(Value):
    """What is searched, and from when. `origins` is asked only if a filter or factor needs it.

    `lineage` is the tree's own unless another is given, such as one that trust has pruned.
    """

    tree: Tree
    now: int
    config: Config
    aliases: dict[str, tuple[str, ...]]
    cache_dir: str
    origins: Callable[[], dict[str, Origin]]
    lineage: Lineage | None = None

    def facts(self) -> Facts:
        """Return fresh facts about the tree."""
        return Facts(self.tree, self.now, self.config.categories, self.origins, self.lineage)


class Hit(Value):
    """A memory that was found. `score` is the product of `factors`, the first being `relevance`.

    `terms` are the terms of the question that it holds, sorted. `through` is the superseded memory
    whose words found it, empty where its own did.
    """

    record: Record
    score: float
    factors: dict[str, float]
    terms: tuple[str, ...] = ()
    through: str = ""


class Found(Value):
    """Hits in order. `total` counts them before the limit; `notes` is what the user should hear."""

    hits: tuple[Hit, ...]
    total: int
    notes: tuple[str, ...] = ()


Order = Callable[[Hit], tuple[float | str, ...]]


def by_score(hit: Hit) -> tuple[float | str, ...]:
    """Sort key: the best score first, then by id."""
    return (-hit.score, hit.record.id, hit.record.path)


def search_query(scope: Scope, query: Query, limit: int, order: Order = by_score) -> Found:
    """Find what satisfies a query; `order` sorts all of it before the limit cuts.

    A query without words finds everything that its filters admit, at relevance 1.

    Raises:
        MemtoolError: a filter cannot take its value.
    """
    facts = scope.facts()
    by_words = query.is_simple and query.has_words
    test = matching.matcher(query, facts, words_match=by_words)
    asked = relevance.question("\n".join(query.words), scope.aliases)
    matches: dict[str, Match] = {}
    notes: tuple[str, ...] = ()
    if relevance.telling(asked):
        reader = Reader(facts, scope.cache_dir)
        matches = reader.all(reader.narrowed(asked), test)
        notes = tuple(filter(None, [reader.index.note]))
    elif asked.weights:
        notes = ("such words stand everywhere; quote them to find them as they are",)
    if not by_words:
        for record in scope.tree.records:
            if record.path not in matches and test(record):
                matches[record.path] = Match(record, 0.0)
    hits = _ranked(matches.values(), facts, UNRANKED if asked.weights else 1.0)
    shown = [_with_terms(hit, facts, asked) for hit in sorted(hits, key=order)[:limit]]
    return Found(tuple(shown), len(hits), notes)


def search_prose(scope: Scope, text: str, files: tuple[str, ...], limit: int) -> Found:
    """Find what answers a prompt or any other text, in which nothing is an operator.

    `files` are the paths that are open: what governs one of them gains a little. Only living heads
    are found, and only those that hold enough of what the text is about; there may be none. Where
    the text asks for nothing, what governs the files is found.
    """
    facts = scope.facts()
    asked = relevance.question(text, scope.aliases)
    notes: tuple[str, ...] = ()
    if relevance.telling(asked):
        reader = Reader(facts, scope.cache_dir)
        most = max(limit, scoring.CANDIDATES)
        narrowed = reader.narrowed(asked)
        matches = reader.best(narrowed, most, lambda record: not facts.hidden(record))
        answers = _answers(matches.values(), reader, scoring.question(text), narrowed)
        notes = tuple(filter(None, [reader.index.note]))
    else:
        near = [record for record in scope.tree.records if ranking.is_near(record, files)]
        answers = [Match(record, 1.0) for record in near if not facts.hidden(record)]
    hits = _ranked(answers, facts, 0.0, files)
    shown = [_with_terms(hit, facts, asked) for hit in sorted(hits, key=by_score)[:limit]]
    return Found(tuple(shown), len(hits), notes)


def select(scope: Scope, query: Query) -> list[Record]:
    """Return all records that satisfy a query, in the order of the tree (by id).

    Raises:
        MemtoolError: a filter cannot take its value.
    """
    test = matching.matcher(query, scope.facts())
    return [record for record in scope.tree.records if test(record)]


def _answers(
    matches: Iterable[Match], reader: Reader, said: Question, asked: Question
) -> list[Match]:
    """Keep the matches that hold enough of what a text says.

    Each telling word counts with its inverse document frequency, one that aliases add with half of
    it. Words that no memory holds count too: a text about something else is not answered by its
    small talk.
    """
    count = max(len(reader.records), PROSE_COUNT)

    def idf(term: str) -> float:
        return scoring.idf(count, reader.index.df(term))

    whole = sum(map(idf, relevance.telling(said)))
    least = min(PROSE_SHARE * whole, PROSE_WORTH * scoring.idf(count, 0))
    worth = {
        term: min(1.0, weight) * idf(term) for term, weight in relevance.telling(asked).items()
    }
    facts = reader.facts
    kept = []
    for match in matches:
        held = facts.terms(facts.tree.by_id.get(match.through, match.record))
        if sum(value for term, value in worth.items() if term in held) >= least:
            kept.append(match)
    return kept


def _ranked(
    matches: Iterable[Match], facts: Facts, floor: float, files: tuple[str, ...] = ()
) -> list[Hit]:
    """Turn matches into hits: relevance beside the best, or the floor where no word was found."""
    kept = list(matches)
    best = max((match.raw for match in kept), default=0.0)
    hits = []
    for match in kept:
        relevance = match.raw / best if match.raw > 0 else floor
        factors = {"relevance": relevance} | ranking.weigh(match.record, facts, files)
        score = math.prod(factors.values())
        hits.append(Hit(match.record, score, factors, (), match.through))
    return hits


def _with_terms(hit: Hit, facts: Facts, asked: Question) -> Hit:
    held = facts.terms(hit.record)
    return hit.replace(terms=tuple(sorted(term for term in asked.weights if term in held)))
