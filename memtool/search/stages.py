"""Stages: what may change how a search is made, each optional, in one table."""

from __future__ import annotations

import time

from memtool.search.effort import Effort
from memtool.search.scope import shown_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.search.retrieve import Scope
    from memtool.search.sources import SearchRequest
    from memtool.store.context import Context

    Stage = Callable[[SearchRequest, Scope], Scope]
    """Returns a scope as it is, or changed."""


def staged(request: SearchRequest, scope: Scope) -> Scope:
    """Return the scope that all stages make of one for a search."""
    scope = staged_for_any(request.context, scope)
    for stage in STAGES:
        scope = stage(request, scope)
    return scope


def staged_for_any(context: Context, scope: Scope) -> Scope:
    """Return the scope that those stages make of one which a search and a block share."""
    for stage in SHARED_STAGES:
        scope = stage(context, scope)
    return scope


def _with_effort(context: Context, scope: Scope) -> Scope:
    """Return a scope that has a time limit, and looks at less where answers are slow, if set so.

    What is asked as of another moment, of a revision or at a fixed clock is asked again to get the
    same answer: there nothing depends on the machine.
    """
    if context.settings.text("search.degrade") != "on":
        return scope
    if scope.is_replay or context.caller.env.get("MEMTOOL_NOW"):
        return scope
    from memtool.store import ledger  # only where that setting is on

    effort = Effort(clock=time.monotonic)
    if ledger.health(context.repository.cache_dir).state == ledger.DEGRADED:
        effort = effort.replace(weighed=15, candidates=10, is_narrow=True)
    return scope.replace(effort=effort)


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


SHARED_STAGES: tuple[Callable[[Context, Scope], Scope], ...] = (_with_effort,)
"""The stages of a search and of a block."""
STAGES: tuple[Stage, ...] = (
    lambda request, scope: shown_to(request.context, scope),
    _meaning,
)
"""Those that a search has besides."""
