"""Ranking of candidates: memtool's own ranking, with statistics of the client's memories.

A backend chooses candidates by the statistics of its own index, which everyone with write access
can manipulate: in the prototype, a flood of hostile documents changed every order. So the final
order is computed here, for all backends, from the texts of the candidates and the document
frequencies in the project's memories. Results are read from the bytes of the file. A result is
dropped if its bytes are not what was ranked, or if it would not be shown as a memory of the
project.
"""

from __future__ import annotations

import math

from memtool.fleet.backend import (
    ANY_CATEGORY,
    CANDIDATES,
    FleetQuery,
    build_terms,
    limit_each,
    limit_shares,
)
from memtool.index import scoring
from memtool.index.scoring import MIN_MEMORIES, Statistics, content_terms, query_coverage
from memtool.memory import document
from memtool.memory.lineage import Lineage
from memtool.memory.visibility import explain_kept_back, is_alive
from memtool.search import ranking
from memtool.search.effort import FULL
from memtool.search.features import Facts
from memtool.store.snapshot import Location
from memtool.store.tree import ReadTree, Record
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from memtool.fleet.backend import FleetCandidate
    from memtool.index.scoring import Question
    from memtool.memory.memory import Memory
    from memtool.search.ranking import RankingContext
    from memtool.store.config import Config
    from memtool.store.repository import Repository
    from memtool.store.tree import Masker

MAX_TERMS = 24
"""Terms of a question in a query to a backend: the most informative ones."""


class FleetHit:
    """A memory of another repository, in all stages of ranking.

    `raw` is its score by words, about 1 for the best. `score` is the product of `factors`,
    beginning with `relevance`; both are set by `_apply_factors`. `complete` sets `record`, the
    memory with secrets masked, its path and an id of its bytes, and `terms`, the matching terms of
    the question.
    """

    __slots__ = ("candidate", "factors", "raw", "record", "score", "terms")
    record: Record

    def __init__(self, candidate: FleetCandidate, raw: float) -> None:
        self.candidate = candidate
        self.raw = raw
        self.score = 0.0
        self.factors: dict[str, float] = {}
        self.terms: tuple[str, ...] = ()


def _adapt_statistics(statistics: Statistics, question: Question) -> tuple[Statistics, Statistics]:
    """Return the statistics for scoring foreign texts by words, and for closer ranking.

    A term that no memory of the client has scores nothing in a local search, but such terms are the
    purpose of asking the fleet. So it counts as if one memory had it. Parts of a term that are only
    compared, such as its grams, keep their local frequency: for identical memories the order is the
    same as in a local search.
    """
    heads = {term: statistics.head_df.get(term) or 1 for term in question.weights}
    close = statistics.replace(count=max(statistics.count, 1), head_df=heads)
    words = {term: statistics.df.get(term) or 1 for term in question.weights}
    return close.replace(df=words), close


def with_repository_votes(
    statistics: Statistics, question: Question, candidates: Iterable[FleetCandidate]
) -> Statistics:
    """Add the candidates to the statistics of the client's memories, if those are too few.

    A handful of memories does not show how rare a word is. Then each repository among the
    candidates counts as one memory with the words of all its candidates, so that a repository that
    floods the fleet has a single vote.
    """
    # Measured by `bench/fleet.py --order` on the questions about ADRs, from 20 repositories: with
    # ten memories about other things nDCG@10 is .436 without this and .497 with it; with none .337
    # and .463; by the statistics of the ADRs themselves .482. From `scoring.LEAST_COUNT` memories
    # on, the client's own statistics are good enough: by those of the PEPs it is .455.
    if statistics.count >= MIN_MEMORIES:
        return statistics
    terms = {term.encode(): term for term in question.weights}
    texts_by_repository: dict[str, list[bytes]] = {}
    for candidate in candidates:
        texts_by_repository.setdefault(candidate.repository, []).append(candidate.text)
    df, head_df = dict(statistics.df), dict(statistics.head_df)
    length, head_length = statistics.length, statistics.head_length
    for texts in texts_by_repository.values():
        words = [text.split() for text in texts]
        heads = [scoring.split_head(text) for text in texts]
        length += sum(map(len, words)) // len(texts)
        head_length += sum(map(len, heads)) // len(texts)
        for counts, term_lists in ((df, words), (head_df, heads)):
            for term in terms.keys() & set().union(*term_lists):
                counts[terms[term]] = counts.get(terms[term], 0) + 1
    return Statistics(statistics.count + len(texts_by_repository), length, head_length, df, head_df)


def build_query(question: Question, statistics: Statistics) -> FleetQuery:
    """Build the query to a backend from the most informative terms, without stop words.

    It has nothing else of the question. The caller adds the filters.
    """
    weights = content_terms(question)
    worth = {
        term: weight * scoring.idf(statistics.count, statistics.df.get(term, 0))
        for term, weight in weights.items()
    }
    chosen = sorted(worth, key=lambda term: (-worth[term], term))[:MAX_TERMS]
    return FleetQuery({term: weights[term] for term in chosen})


def rank_candidates(
    question: Question, candidates: Iterable[FleetCandidate], statistics: Statistics
) -> list[FleetHit]:
    """Rank candidates by words, and the first ones again with `scoring.closely`.

    Each repository is limited to its share. The order depends only on the candidates and the
    statistics; equal scores are ordered by repository and path.
    """
    statistics, close = _adapt_statistics(statistics, question)
    gained = scoring.max_term_scores(question.weights, statistics)
    scored = []
    for candidate in candidates:
        score = scoring.score_text(candidate.text, gained, statistics)
        if score > 0.0:
            scored.append((score, candidate, len(candidate.text.split())))
    scored.sort(key=lambda row: (-row[0], row[1].repository, row[1].path))
    chosen_ids = {
        id(candidate)
        for candidate in limit_shares(
            (candidate for _score, candidate, _length in scored), CANDIDATES
        )
    }
    scored = [row for row in scored if id(row[1]) in chosen_ids]
    hits = scoring.rerank(
        question,
        close,
        [(number, score) for number, (score, _candidate, _length) in enumerate(scored)],
        lambda number: (scored[number][1].text, scored[number][2]),
        lambda number: number,
    )
    return [FleetHit(scored[number][1], score) for number, score in hits]


FACTORS = (
    "recency",
    "status",
    "due",
    "category",
    "confidence",
    "importance",
    "source",
    "question",
)
"""The factors of `ranking` that apply to foreign memories. Those that depend on files, triggers,
conflicts or git's history here do not."""
# Each round ranks again without the candidates whose terms turned out to be false.
MAX_ROUNDS = 4


def build_facts(repository: Repository, now: int, config: Config) -> Facts:
    """Build the facts for filters of foreign memories: without git and without lineage."""
    empty_tree = ReadTree(Location(repository, "", "commit", ""), (), (), config.categories)
    return Facts(empty_tree, now, dict, Lineage(()))


class ResultFilter(Value):
    """Decides which memories are shown: `test` has the query's filters, `text` is the question.

    `labels` are the privacy labels that hide a memory; `mask` masks secrets.
    """

    facts: Facts
    config: Config
    labels: Collection[str]
    mask: Masker
    test: Callable[[Record], bool] = lambda _record: True
    text: str = ""


def select_shown(
    question: Question,
    candidates: Iterable[FleetCandidate],
    statistics: Statistics,
    result_filter: ResultFilter,
    limit: int,
    max_per_repository: int = 0,
) -> tuple[list[FleetHit], int]:
    """Return the best `limit` candidates, ready to show, and the total number of hits.

    At most `max_per_repository` of each repository are considered, 0 for all. A candidate whose
    terms do not match its bytes is removed, also from the statistics. Identical files in several
    repositories are shown once. The total includes hits that were not verified, as only those to be
    shown are.
    """
    remaining = list(candidates)
    reader = CandidateReader(result_filter)
    hits: list[FleetHit] = []
    for _round in range(MAX_ROUNDS):
        remaining = [candidate for candidate in remaining if reader.can_show(candidate)]
        votes = with_repository_votes(statistics, question, remaining)
        by_words = rank_candidates(question, remaining, votes)[: FULL.weighed]
        if not by_words:
            return [], 0
        hits = _apply_factors(question, by_words, votes, reader)
        if max_per_repository:
            hits = limit_each(hits, max_per_repository, lambda hit: hit.candidate.repository)
        top_candidates = [by_words[0].candidate, *(hit.candidate for hit in hits[:limit])]
        false_candidates = [
            candidate for candidate in top_candidates if not reader.has_true_terms(candidate)
        ]
        if not false_candidates:
            break
        remaining = [candidate for candidate in remaining if candidate not in false_candidates]
    seen_contents: set[bytes] = set()
    answers: list[FleetHit] = []
    for place, hit in enumerate(hits):
        if len(answers) >= max(0, limit):
            seen_contents.update(other.candidate.data for other in hits[place:])
            break
        if hit.candidate.data not in seen_contents and reader.has_true_terms(hit.candidate):
            seen_contents.add(hit.candidate.data)
            reader.complete(hit, question)
            answers.append(hit)
    return answers, len(seen_contents)


def _apply_factors(
    question: Question, hits: Sequence[FleetHit], statistics: Statistics, reader: CandidateReader
) -> list[FleetHit]:
    """Apply the ranking factors to hits, which are ordered by words, and sort by the result.

    Relevance is the score relative to the best match, times the query coverage of that match, as in
    a local search.
    """
    count, df = statistics.count, statistics.df
    quality = query_coverage(
        question, question, hits[0].candidate.text, count, lambda term: df.get(term, 0)
    )
    best = hits[0].raw / quality
    for hit in hits:
        hit.factors = {"relevance": hit.raw / best} | reader.compute_factors(hit.candidate)
        hit.score = math.prod(hit.factors.values())
    return sorted(hits, key=lambda hit: (-hit.score, hit.candidate.repository, hit.candidate.path))


class CandidateReader:
    """Reads the memories of candidates, each once."""

    def __init__(self, result_filter: ResultFilter) -> None:
        self._filter = result_filter
        self._ranking_context: RankingContext = ranking.parse_context(
            result_filter.text, ()
        ).replace(words="", fading=result_filter.config.text("decay.preset"))
        self._read = document.Reader(ANY_CATEGORY).read
        self._memories: dict[tuple[str, str], Memory | None] = {}
        self._true: dict[tuple[str, str], bool] = {}

    def read_memory(self, candidate: FleetCandidate) -> Memory | None:
        """Parse the memory of a candidate; None if it is not one."""
        key = (candidate.repository, candidate.path)
        if key not in self._memories:
            try:
                self._memories[key] = self._read(candidate.data, candidate.path)
            except document.Unreadable:
                self._memories[key] = None
        return self._memories[key]

    def can_show(self, candidate: FleetCandidate) -> bool:
        """Return whether a candidate may be shown and passes the query's filters."""
        memory, by = self.read_memory(candidate), self._filter
        if memory is None or explain_kept_back(memory, by.labels):
            return False
        living = is_alive(memory, by.facts.now, by.config.categories)
        return living and by.test(self._build_record(candidate, memory))

    def has_true_terms(self, candidate: FleetCandidate) -> bool:
        """Return whether the terms of a candidate match its bytes."""
        key = (candidate.repository, candidate.path)
        if key not in self._true:
            memory = self.read_memory(candidate)
            self._true[key] = memory is not None and build_terms(memory) == candidate.text
        return self._true[key]

    def compute_factors(self, candidate: FleetCandidate) -> dict[str, float]:
        """Return the ranking factors of a candidate; a foreign pin does not count."""
        memory = self.read_memory(candidate)
        assert memory is not None
        if memory.status == "pinned":
            memory = memory.with_fields(status="confirmed")
        factors = ranking.weigh(
            self._build_record(candidate, memory), self._filter.facts, self._ranking_context
        )
        return {name: factors[name] for name in FACTORS}

    def complete(self, hit: FleetHit, question: Question) -> None:
        """Set the record and terms of a hit that will be shown."""
        candidate = hit.candidate
        memory = self.read_memory(candidate)
        assert memory is not None
        hit.record = Record(
            self._filter.mask.read(memory, candidate.data, ""),
            candidate.path,
            digest(candidate.data, 20),
        )
        hit.terms = tuple(
            t for t in sorted(question.weights) if b" %b " % t.encode() in candidate.text
        )

    def _build_record(self, candidate: FleetCandidate, memory: Memory) -> Record:
        """Build a record with a unique path, which is the key of facts."""
        return Record(memory, f"{candidate.repository}/{candidate.path}", "")
