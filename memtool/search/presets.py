"""Presets: how sharply an answer is chosen, and in which order it is given, by name.

Settings choose by name from these tables. A repository cannot name code: a reranker of one's own
is a function that is given to `finding.Scope` in Python.
"""

from __future__ import annotations

from memtool.memory import lifecycle
from memtool.search.gatekeeper import Strictness
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memtool.search.finding import Hit
    from memtool.store.config import Config

    Rerank = Callable[[Sequence[Hit]], Sequence[Hit]]
    """Gets the best hits by score, at most as many as may be shown, and gives them in order."""


class Preset(Value):
    """`strictness` is what an answer must hold, `threshold` a share of the best score."""

    doc: str
    strictness: Strictness
    threshold: float


PRESETS: dict[str, Preset] = {
    "balanced": Preset("what is probably an answer", Strictness(0.5, 3.0), 0.5),
    "precision": Preset("what is almost certainly one, more often nothing", Strictness(0.6, 3.5),
                        0.7),
}  # fmt: skip


def preset(config: Config) -> Preset:
    """Return the preset that the settings name, with their own threshold if they give one."""
    found = PRESETS[config.text("search.preset")]
    if "inject.threshold" in config.given:
        found = found.replace(threshold=config.number("inject.threshold"))
    return found


def _as_scored(hits: Sequence[Hit]) -> Sequence[Hit]:
    return hits


def _by_relevance(hits: Sequence[Hit]) -> Sequence[Hit]:
    return sorted(hits, key=lambda hit: (-hit.factors["relevance"], hit.record.id, hit.record.path))


def _newest(hits: Sequence[Hit]) -> Sequence[Hit]:
    return sorted(
        hits,
        key=lambda hit: (
            -lifecycle.confirmed_at(hit.record.memory),
            hit.record.id,
            hit.record.path,
        ),
    )


RERANKERS: dict[str, Rerank] = {
    "score": _as_scored,
    "relevance": _by_relevance,
    "newest": _newest,
}
"""Orders of what is shown: by relevance and all factors, by relevance alone, or by the last
confirmation. What is found does not depend on them."""
