"""Reranking: the order of what is shown, by name or by a function that is given in Python.

A repository cannot name code: a reranker of one's own is a function that is given to `Scope`.
"""

from __future__ import annotations

from memtool.memory import lifecycle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memtool.search.retrieve import Hit, Rerank, Scope

MOST_SHOWN = 15
"""So many of the best may be shown, and are put in order."""


def _ordered(most: Callable[[Hit], float]) -> Rerank:
    """Return what orders hits by a number, the highest first, and then by id and path."""
    return lambda hits: sorted(hits, key=lambda hit: (-most(hit), hit.record.id, hit.record.path))


RERANKERS: dict[str, Rerank] = {
    "score": lambda hits: hits,
    "relevance": _ordered(lambda hit: hit.factors["relevance"]),
    "newest": _ordered(lambda hit: lifecycle.confirmed_at(hit.record.memory)),
}
"""Orders of what is shown: by relevance and all factors, by relevance alone, or by the last
confirmation. What is found does not depend on them."""


def reranked(scope: Scope, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with those that may be shown in the order of the reranker."""
    rerank = scope.rerank or RERANKERS[scope.config.text("search.rerank")]
    return [*rerank(hits[:MOST_SHOWN]), *hits[MOST_SHOWN:]]
