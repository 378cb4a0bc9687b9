"""Measures: how good a ranking is, beside the ids that were expected. Relevance is yes or no.

Every measure takes the ids in rank order, the best first and none twice, and the expected ids, of
which there is at least one; it lies between 0 and 1. The mean over queries is the plain one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

DEPTH = 10
"""The rank down to which measures look."""


def recall(ranked: Sequence[str], expected: Collection[str], depth: int) -> float:
    """Return the share of the expected ids that stand at or above a rank.

    Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), section 8.4. Where
    more ids are expected than `depth`, 1 cannot be reached.
    """
    return len(set(ranked[:depth]) & set(expected)) / len(set(expected))


def reciprocal_rank(ranked: Sequence[str], expected: Collection[str], depth: int) -> float:
    """Return 1 / rank of the first expected id; 0 where none stands at or above `depth`.

    Its mean is MRR: Voorhees, The TREC-8 Question Answering Track Report (1999).
    """
    return next(
        (1 / rank for rank, id_ in enumerate(ranked[:depth], 1) if id_ in expected),
        0.0,
    )


def ndcg(ranked: Sequence[str], expected: Collection[str], depth: int) -> float:
    """Return the discounted gain of a ranking as a share of the best that is possible.

    Each expected id gains 1 / log2(rank + 1). Järvelin and Kekäläinen, Cumulated Gain-Based
    Evaluation of IR Techniques (2002), with binary gains and in the form of trec_eval, which
    discounts the second rank too.
    """
    ranks = [rank for rank, id_ in enumerate(ranked[:depth], 1) if id_ in expected]
    best = range(1, min(len(set(expected)), depth) + 1)
    return math.fsum(map(_discount, ranks)) / math.fsum(map(_discount, best))


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


Measure = Callable[[Sequence[str], Collection[str]], float]

MEASURES: dict[str, Measure] = {
    "recall@5": lambda ranked, expected: recall(ranked, expected, 5),
    "recall@10": lambda ranked, expected: recall(ranked, expected, DEPTH),
    "mrr@10": lambda ranked, expected: reciprocal_rank(ranked, expected, DEPTH),
    "ndcg@10": lambda ranked, expected: ndcg(ranked, expected, DEPTH),
}
"""The measures of `memtool eval`, in the order in which they are shown."""


def measure(ranked: Sequence[str], expected: Collection[str]) -> dict[str, float]:
    """Return every measure of one ranking, by name."""
    return {name: function(ranked, expected) for name, function in MEASURES.items()}


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each measure over at least one query."""
    return {name: math.fsum(row[name] for row in rows) / len(rows) for name in MEASURES}
