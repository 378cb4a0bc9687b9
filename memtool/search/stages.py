"""Stages: one table of the optional steps that change a search."""

from __future__ import annotations

import time

from memtool.search.effort import Effort
from memtool.search.scope import restricted_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.index.reader import Catalog
    from memtool.search.retrieve import Scope
    from memtool.search.sources import SearchRequest
    from memtool.store.context import Context

    Stage = Callable[[SearchRequest, Scope], Scope]
    """Returns a scope, perhaps changed."""


def with_stages(request: SearchRequest, scope: Scope) -> Scope:
    """Apply all stages to the scope of a search."""
    scope = with_general_stages(request.context, scope)
    for stage in STAGES:
        scope = stage(request, scope)
    return scope


def with_general_stages(context: Context, scope: Scope) -> Scope:
    """Apply the stages that a search and a block share."""
    for stage in SHARED_STAGES:
        scope = stage(context, scope)
    return scope


def overlay_tree(context: Context, tree: Catalog, now: int) -> Catalog:
    """Return the memories that a search and a block see of a worktree, as of the second `now`."""
    for stage in TREE_STAGES:
        tree = stage(context, tree, now)
    return tree


def _with_ahead(context: Context, tree: Catalog, now: int) -> Catalog:
    from memtool.search import ahead  # a revision has no branch that could be behind

    return ahead.add_ahead(context, tree, now)


def _with_effort(context: Context, scope: Scope) -> Scope:
    """Add a time limit, and examine less if answers are slow, if the setting says so.

    A question as of another moment, of a revision or with a fixed clock must get the same answer
    again, so there nothing depends on the machine.
    """
    if context.settings.text("search.degrade") != "on":
        return scope
    if scope.is_replay or context.caller.env.get("MEMTOOL_NOW"):
        return scope
    from memtool.store import ledger  # only where that setting is on

    effort = Effort(clock=time.monotonic)
    if ledger.compute_health(context.repository.cache_dir).state == ledger.DEGRADED:
        effort = effort.replace(weighed=15, candidates=10, is_narrow=True)
    return scope.replace(effort=effort)


def _with_meaning(request: SearchRequest, scope: Scope) -> Scope:
    """Search by meaning too, if requested.

    A resident process does so by default if its user has set a model.
    """
    is_asked = "semantic" in request.options
    text = "\n".join(request.query.words)
    if not text or not (is_asked or request.context.caller.is_resident):
        return scope
    from memtool.search import semantic  # most questions go by words alone

    matcher = semantic.build_matcher_if_usable(request.context, scope.tree, text, is_asked=is_asked)
    return scope if matcher is None else scope.replace(matchers=(*scope.matchers, matcher))


TREE_STAGES: tuple[Callable[[Context, Catalog, int], Catalog], ...] = (_with_ahead,)
"""Stages that add memories to those of a worktree."""
SHARED_STAGES: tuple[Callable[[Context, Scope], Scope], ...] = (_with_effort,)
"""Stages of a search and of a block."""
STAGES: tuple[Stage, ...] = (
    lambda request, scope: restricted_for(request.context, scope),
    _with_meaning,
)
"""Further stages of a search."""
