"""Ranking of candidates: memtool's own recipe, with the statistics of the client's own memories.

A backend chooses candidates by the statistics of its own index, which anybody who may write to that
index moves: a flood of hostile documents changed every order in the prototype. So the order that
people see is made here, from the candidates' texts and the document frequencies of the memories of
the project (`own_statistics`), alike for all backends. What is shown is read from the bytes of the
file, and dropped where it is not what was ranked, or would not be shown were it a memory of the
project.
"""

from __future__ import annotations

from memtool.fleet.backend import CANDIDATES, FleetQuery, within_share
from memtool.index import scoring
from memtool.index.postings import MOST_TF
from memtool.index.scoring import Statistics
from memtool.search.retrieve import telling
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memtool.fleet.backend import FleetCandidate
    from memtool.index.reader import IndexReader
    from memtool.index.scoring import Question

MOST_WORDS = 24
"""Words of a question that a backend is asked for: those that tell most."""


class Scored(Value):
    """A candidate with its score, the best first gets about 1.0, and what adds up to it."""

    candidate: FleetCandidate
    score: float
    parts: dict[str, float]


def own_statistics(index: IndexReader, asked: Question) -> Statistics:
    """Return the numbers of the client's own memories for the terms of a question.

    A term that stands in none of them, which is what other repositories are asked about, counts as
    if it stood in one.
    """
    found = index.statistics(asked.weights)
    return Statistics(
        max(found.count, 1),
        found.length,
        found.head_length,
        {term: found.df.get(term, 1) for term in asked.weights},
        {term: found.head_df.get(term, 0) or 1 for term in asked.weights},
    )


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
    asked: Question,
    candidates: Iterable[FleetCandidate],
    statistics: Statistics,
    most: int = CANDIDATES,
) -> list[Scored]:
    """Return candidates in order: by words, and the first of them by all that `closely` looks at.

    Of one repository only its share counts. The order depends on nothing but the candidates and the
    statistics: equal scores go by repository and path.
    """
    gained = scoring.gains(asked.weights, statistics)
    looked = []
    for one in candidates:
        words = one.text.split()
        frequencies = _frequencies(words, gained)
        against = scoring.damping(len(words), statistics.count, statistics.length)
        score = scoring.bm25(gained, frequencies, against)
        if score > 0.0:
            looked.append((score, one, len(words)))
    looked.sort(key=lambda found: (-found[0], found[1].repository, found[1].path))
    kept = {id(one) for one in within_share((one for _score, one, _length in looked), most)}
    looked = [found for found in looked if id(found[1]) in kept]
    hits = scoring.closely(
        asked,
        statistics,
        [(number, score) for number, (score, _one, _length) in enumerate(looked)],
        lambda number: (looked[number][1].text, looked[number][2]),
        lambda number: number,
    )
    return [Scored(looked[number][1], score, parts) for number, score, parts in hits]


def _frequencies(words: Sequence[bytes], gained: Mapping[str, float]) -> dict[str, int]:
    """Return how often each of some terms stands among words, up to what an index counts."""
    found: dict[str, int] = {}
    wanted = {term.encode(): term for term in gained}
    for word in words:
        term = wanted.get(word)
        if term is not None:
            found[term] = found.get(term, 0) + 1
    return {term: min(count, MOST_TF) for term, count in found.items()}
