"""Reranking: reorders the hits that are shown, by a named order or a Python function.

A repository cannot name code: a custom reranker is a function passed to `Scope`.
"""

from __future__ import annotations

from memtool.memory import lifecycle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memtool.search.retrieve import Hit, Rerank, Scope

MAX_SHOWN = 15
"""Best hits that may be shown, and so are reordered."""


def _order_by(upper_bound: Callable[[Hit], float]) -> Rerank:
    """Build an order of hits by a number, highest first, then by id and path."""
    return lambda hits: sorted(
        hits, key=lambda hit: (-upper_bound(hit), hit.record.id, hit.record.path)
    )


RERANKERS: dict[str, Rerank] = {
    "score": lambda hits: hits,
    "relevance": _order_by(lambda hit: hit.factors["relevance"]),
    "newest": _order_by(lambda hit: lifecycle.find_confirmed_at(hit.record.memory)),
}
"""Orders of the shown hits: by score, by relevance alone, or by the last confirmation. They do not
change which hits are found."""


def rerank(scope: Scope, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with those that may be shown in the order of the reranker."""
    rerank = scope.rerank or RERANKERS[scope.config.text("search.rerank")]
    return [*rerank(hits[:MAX_SHOWN]), *hits[MAX_SHOWN:]]
