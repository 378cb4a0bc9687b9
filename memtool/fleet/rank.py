"""Ranking of candidates: memtool's own recipe, with the statistics of the client's own memories.

A backend chooses candidates by the statistics of its own index, which anybody who may write to that
index moves: a flood of hostile documents changed every order in the prototype. So the order that
people see is made here, from the candidates' texts and the document frequencies of the memories of
the project, alike for all backends. What is shown is read from the bytes of the
file, and dropped where it is not what was ranked, or would not be shown were it a memory of the
project.
"""

from __future__ import annotations

import math

from memtool.fleet.backend import (
    ANY_CATEGORY,
    CANDIDATES,
    FleetQuery,
    few_of_each,
    terms_of,
    within_share,
)
from memtool.index import scoring
from memtool.index.scoring import LEAST_COUNT, Statistics, held, telling
from memtool.memory import document
from memtool.memory.lineage import Lineage
from memtool.memory.visibility import is_alive, why_kept_back
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
    from memtool.search.ranking import Situation
    from memtool.store.config import Config
    from memtool.store.repository import Repository
    from memtool.store.tree import Masking

MOST_WORDS = 24
"""Words of a question that a backend is asked for: those that tell most."""


class FleetHit:
    """A memory of another repository that may answer, from the first look to the last.

    `raw` is its score by words, about 1 for the best. `score` is the product of `factors`, the
    first being `relevance`; both are there once it is weighed. Once it may be shown, `record` holds
    the memory with secrets masked, its path there and an id of its bytes, and `terms` the terms of
    the question that it holds.
    """

    __slots__ = ("candidate", "factors", "raw", "record", "score", "terms")
    record: Record

    def __init__(self, candidate: FleetCandidate, raw: float) -> None:
        self.candidate = candidate
        self.raw = raw
        self.score = 0.0
        self.factors: dict[str, float] = {}
        self.terms: tuple[str, ...] = ()


def _foreign(statistics: Statistics, asked: Question) -> tuple[Statistics, Statistics]:
    """Return the numbers by which words of others are scored, and those for the closer look.

    A term that stands in no memory of the client, which is what others are asked about, gains
    nothing in a local search, since nothing there holds it. Here it counts as if it stood in one.
    What is only compared with a term, such as its grams, is as rare as it is locally: so an order
    is the local one wherever the memories are the same.
    """
    heads = {term: statistics.head_df.get(term) or 1 for term in asked.weights}
    close = statistics.replace(count=max(statistics.count, 1), head_df=heads)
    words = {term: statistics.df.get(term) or 1 for term in asked.weights}
    return close.replace(df=words), close


def with_voices(
    statistics: Statistics, asked: Question, candidates: Iterable[FleetCandidate]
) -> Statistics:
    """Return the numbers of the client's memories, and of those of others where they are too few.

    How rare a word is cannot be seen in a handful of memories. Then each repository among the
    candidates counts as one memory that holds what any of its candidates do, so that one which
    floods the fleet has one voice. Measured by `bench/fleet.py --order` on the questions about
    ADRs, which lie in 20 repositories: with ten memories about other things nDCG@10 is .436 without
    this and .497 with it, with none .337 and .463; by the statistics of the ADRs themselves it is
    .482. From as many memories on as `LEAST_COUNT` their own numbers are good enough: by those of
    the PEPs it is .455.
    """
    if statistics.count >= LEAST_COUNT:
        return statistics
    terms = {term.encode(): term for term in asked.weights}
    held: dict[str, list[bytes]] = {}
    for one in candidates:
        held.setdefault(one.repository, []).append(one.text)
    df, head_df = dict(statistics.df), dict(statistics.head_df)
    length, head_length = statistics.length, statistics.head_length
    for texts in held.values():
        words = [text.split() for text in texts]
        heads = [scoring.head_of(text) for text in texts]
        length += sum(map(len, words)) // len(texts)
        head_length += sum(map(len, heads)) // len(texts)
        for counts, found in ((df, words), (head_df, heads)):
            for raw in terms.keys() & set().union(*found):
                counts[terms[raw]] = counts.get(terms[raw], 0) + 1
    return Statistics(statistics.count + len(held), length, head_length, df, head_df)


def question_of(asked: Question, statistics: Statistics) -> FleetQuery:
    """Return what a backend is asked: the words that tell most, without stop words.

    Of the question nothing but terms is in it. Whose memories count is the caller's to add.
    """
    weights = telling(asked)
    worth = {
        term: weight * scoring.idf(statistics.count, statistics.df.get(term, 0))
        for term, weight in weights.items()
    }
    kept = sorted(worth, key=lambda term: (-worth[term], term))[:MOST_WORDS]
    return FleetQuery({term: weights[term] for term in kept})


def ranked(
    asked: Question, candidates: Iterable[FleetCandidate], statistics: Statistics
) -> list[FleetHit]:
    """Return candidates in order: by words, and the first of them by all that `closely` looks at.

    Of one repository only its share counts. The order depends on nothing but the candidates and the
    statistics: equal scores go by repository and path.
    """
    statistics, close = _foreign(statistics, asked)
    gained = scoring.gains(asked.weights, statistics)
    looked = []
    for one in candidates:
        score = scoring.text_score(one.text, gained, statistics)
        if score > 0.0:
            looked.append((score, one, len(one.text.split())))
    looked.sort(key=lambda found: (-found[0], found[1].repository, found[1].path))
    kept = {id(one) for one in within_share((one for _score, one, _length in looked), CANDIDATES)}
    looked = [found for found in looked if id(found[1]) in kept]
    hits = scoring.closely(
        asked,
        close,
        [(number, score) for number, (score, _one, _length) in enumerate(looked)],
        lambda number: (looked[number][1].text, looked[number][2]),
        lambda number: number,
    )
    return [FleetHit(looked[number][1], score) for number, score in hits]


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
"""The factors of `ranking` that mean something for a memory of another repository: it governs no
file here, triggers nothing, is in nobody's way, and git says nothing about it."""
ROUNDS = 4
"""So often candidates are ranked again, without those that are not what they were ranked by."""


def facts_of(repository: Repository, now: int, config: Config) -> Facts:
    """Return what may be asked about memories of other repositories: nothing that git knows.

    No lineage of theirs reaches from one to another.
    """
    nothing = ReadTree(Location(repository, "", "commit", ""), (), (), config.categories)
    return Facts(nothing, now, dict, Lineage(()))


class ResultFilter(Value):
    """By what is chosen what is shown: `test` is the question's filters, `kinds` its kind.

    `labels` are those of privacy that hide a memory, `mask` takes secrets out.
    """

    facts: Facts
    config: Config
    labels: Collection[str]
    mask: Masking
    test: Callable[[Record], bool] = lambda _record: True
    text: str = ""


def shown(
    asked: Question,
    candidates: Iterable[FleetCandidate],
    statistics: Statistics,
    by: ResultFilter,
    most: int,
    of_one: int = 0,
) -> tuple[list[FleetHit], int]:
    """Return the best of some candidates, as they are shown, at most so many, and how many answer.

    Of one repository at most `of_one` are looked at, 0 for all.
    A candidate whose terms are not those of its bytes takes no part, not even as what others are
    measured by; and of the same bytes in several repositories one is shown. Those that answer and
    are not shown are counted unseen: what of them is false is only found out when they are.
    """
    left = list(candidates)
    reader = CandidateReader(by)
    hits: list[FleetHit] = []
    for _round in range(ROUNDS):
        left = [one for one in left if reader.is_shown(one)]
        voted = with_voices(statistics, asked, left)
        by_words = ranked(asked, left, voted)[: FULL.weighed]
        if not by_words:
            return [], 0
        hits = _weighed(asked, by_words, voted, reader)
        if of_one:
            hits = few_of_each(hits, of_one, lambda hit: hit.candidate.repository)
        looked = [by_words[0].candidate, *(hit.candidate for hit in hits[:most])]
        false = [one for one in looked if not reader.is_true(one)]
        if not false:
            break
        left = [one for one in left if one not in false]
    told: set[bytes] = set()
    answers: list[FleetHit] = []
    for place, hit in enumerate(hits):
        if len(answers) >= max(0, most):
            told.update(other.candidate.data for other in hits[place:])
            break
        if hit.candidate.data not in told and reader.is_true(hit.candidate):
            told.add(hit.candidate.data)
            reader.complete(hit, asked)
            answers.append(hit)
    return answers, len(told)


def _weighed(
    asked: Question, hits: Sequence[FleetHit], statistics: Statistics, reader: CandidateReader
) -> list[FleetHit]:
    """Weigh hits, the best by words first, and return them by the product of their factors.

    Relevance is the share of the best match, times what that one holds of the question, as in a
    local search.
    """
    count, df = statistics.count, statistics.df
    quality = held(asked, asked, hits[0].candidate.text, count, lambda term: df.get(term, 0))
    best = hits[0].raw / quality
    for hit in hits:
        hit.factors = {"relevance": hit.raw / best} | reader.factors(hit.candidate)
        hit.score = math.prod(hit.factors.values())
    return sorted(hits, key=lambda hit: (-hit.score, hit.candidate.repository, hit.candidate.path))


class CandidateReader:
    """What the bytes of candidates say, each read once."""

    def __init__(self, by: ResultFilter) -> None:
        self._by = by
        self._at: Situation = ranking.situation(by.text, ()).replace(
            words="", fading=ranking.fading_of(by.config)
        )
        self._read = document.Reader(ANY_CATEGORY).read
        self._memories: dict[tuple[str, str], Memory | None] = {}
        self._true: dict[tuple[str, str], bool] = {}

    def memory(self, one: FleetCandidate) -> Memory | None:
        """Return the memory of a candidate, None where its bytes are none."""
        key = (one.repository, one.path)
        if key not in self._memories:
            try:
                self._memories[key] = self._read(one.data, one.path)
            except document.Unreadable:
                self._memories[key] = None
        return self._memories[key]

    def is_shown(self, one: FleetCandidate) -> bool:
        """Tell whether a candidate may be shown, and is asked for."""
        memory, by = self.memory(one), self._by
        if memory is None or why_kept_back(memory, by.labels):
            return False
        living = is_alive(memory, by.facts.now, by.config.categories)
        return living and by.test(self._record(one, memory))

    def is_true(self, one: FleetCandidate) -> bool:
        """Tell whether the terms of a candidate are those of its bytes."""
        key = (one.repository, one.path)
        if key not in self._true:
            memory = self.memory(one)
            self._true[key] = memory is not None and terms_of(memory) == one.text
        return self._true[key]

    def factors(self, one: FleetCandidate) -> dict[str, float]:
        """Return what a candidate's relevance is multiplied by; that it is pinned there is not."""
        memory = self.memory(one)
        assert memory is not None
        if memory.status == "pinned":
            memory = memory.with_fields(status="confirmed")
        found = ranking.weigh(self._record(one, memory), self._by.facts, self._at)
        return {name: found[name] for name in FACTORS}

    def complete(self, hit: FleetHit, asked: Question) -> None:
        """Read a hit as it is shown."""
        one = hit.candidate
        memory = self.memory(one)
        assert memory is not None
        hit.record = Record(
            self._by.mask.read(memory, one.data, ""), one.path, digest(one.data, 20)
        )
        hit.terms = tuple(t for t in sorted(asked.weights) if b" %b " % t.encode() in one.text)

    def _record(self, one: FleetCandidate, memory: Memory) -> Record:
        """Return a record whose path no other has: facts are kept by it."""
        return Record(memory, f"{one.repository}/{one.path}", "")
