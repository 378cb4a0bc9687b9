"""Stages: what may change how a search is made, each optional, in one table."""

from __future__ import annotations

from memtool.search.scope import hurried, shown_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.search.retrieve import Scope
    from memtool.search.sources import SearchRequest

    Stage = Callable[[SearchRequest, Scope], Scope]
    """Returns a scope as it is, or changed."""


def staged(request: SearchRequest, scope: Scope) -> Scope:
    """Return the scope that all stages make of one."""
    for stage in STAGES:
        scope = stage(request, scope)
    return scope


def _meaning(request: SearchRequest, scope: Scope) -> Scope:
    """Search by meaning, too, where that is asked for.

    A process that answers many questions does so unasked, if its user has set a model.
    """
    is_asked = "semantic" in request.options
    text = "\n".join(request.query.words)
    if not text or not (is_asked or request.context.caller.is_resident):
        return scope
    from memtool.search import semantic  # most questions go by words alone

    matcher = semantic.matcher_if_usable(request.context, scope.tree, text, is_asked=is_asked)
    return scope if matcher is None else scope.replace(matchers=(*scope.matchers, matcher))


STAGES: tuple[Stage, ...] = (
    lambda request, scope: hurried(request.context, scope),
    lambda request, scope: shown_to(request.context, scope),
    _meaning,
)
