"""Stages: one table of the optional steps that change a search."""

from __future__ import annotations

import time

from memtool.search.effort import Effort
from memtool.search.scope import restricted_for
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.index.reader import Catalog
    from memtool.search.retrieve import Matcher, Scope
    from memtool.search.sources import SearchRequest
    from memtool.store.context import Context

    Stage = Callable[[SearchRequest, Scope], Scope]
    """Returns a scope, perhaps changed."""


BY_WORDS = "words"
"""The option that searches by words alone."""


class OptionalMatcher(Value):
    """A row of the table of ways to match other than by words. Each works only if it is set up.

    - `extra`: the extra of the package that it needs
    - `build`: the matcher of a text over a tree
    - `describe_missing`: how much it has to prepare before it compares all memories, and what for
    - `make_missing`: prepares that
    - `check_setup`: what is wrong and the command that mends it, empty if nothing is; from
      `is_installed`, whether its extra is there
    """

    extra: str
    build: Callable[[Context, Catalog, str], Matcher | None]
    describe_missing: Callable[[Context], tuple[str, str] | None]
    make_missing: Callable[[Context], None]
    check_setup: Callable[..., tuple[str, str]]


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


def with_matchers(context: Context, scope: Scope, text: str) -> Scope:
    """Find memories in all other ways than by the words of a text, too."""
    if not text.strip():
        return scope
    built = [row.build(context, scope.tree, text) for row in MATCHERS]
    matchers = [matcher for matcher in built if matcher is not None]
    return scope.replace(matchers=(*scope.matchers, *matchers)) if matchers else scope


def _with_matchers_unless_by_words(request: SearchRequest, scope: Scope) -> Scope:
    if BY_WORDS in request.options:
        return scope
    return with_matchers(request.context, scope, "\n".join(request.query.words))


def _build_semantic(context: Context, tree: Catalog, text: str) -> Matcher | None:
    from memtool.search.model import find_model  # a cold hook needs none

    model = find_model(context)
    if model is None:
        return None
    from memtool.search import semantic

    return semantic.build_matcher(context, tree, text, model)


def _describe_missing_vectors(context: Context) -> tuple[str, str] | None:
    from memtool.search import semantic

    return semantic.describe_missing(context)


def _make_missing_vectors(context: Context) -> None:
    from memtool.search import semantic

    semantic.make_missing(context)


def _check_model(context: Context, *, is_installed: bool) -> tuple[str, str]:
    from memtool.search import model

    return model.check_setup(context, is_installed=is_installed)


TREE_STAGES: tuple[Callable[[Context, Catalog, int], Catalog], ...] = (_with_ahead,)
"""Stages that add memories to those of a worktree."""
SHARED_STAGES: tuple[Callable[[Context, Scope], Scope], ...] = (_with_effort,)
"""Stages of a search and of a block."""
STAGES: tuple[Stage, ...] = (
    lambda request, scope: restricted_for(request.context, scope),
    _with_matchers_unless_by_words,
)
"""Further stages of a search."""
MATCHERS: tuple[OptionalMatcher, ...] = (
    OptionalMatcher(
        "semantic",
        _build_semantic,
        _describe_missing_vectors,
        _make_missing_vectors,
        _check_model,
    ),
)
"""Ways to match other than by words, of searches and of blocks."""
