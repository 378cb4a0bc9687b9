"""Duties: what waits for the user, as a sentence that a host shows to the user alone.

Agents are not told: a candidate that an agent confirmed would prove nothing.
"""

from __future__ import annotations

from memtool.index import index
from memtool.inject import session_seen
from memtool.search import conflicts, picks
from memtool.search.features import Facts
from memtool.value import format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.context import Context
    from memtool.store.tree import Tree

MAX_COMPARED_AT_START = 500
"""Memories that are compared at the start of a session: about 0.2 s, since a host waits."""


def format_duties(context: Context) -> str:
    """Return a sentence on the candidates, lessons and conflicts of a repository; empty if none."""
    tree = index.open(context)
    facts = Facts(tree, context.clock.now, dict)
    counts = (
        (sum(map(facts.is_current, picks.pick(tree, ("status", "candidate")))), "candidate"),
        (session_seen.count_waiting(context.repository.cache_dir), "lesson"),
        (_count_conflicts(context, tree), "conflict"),
    )
    named = ", ".join(format_count(count, name) for count, name in counts if count)
    return f"memtool: {named}: memtool status" if named else ""


def _count_conflicts(context: Context, tree: Tree) -> int:
    """Count the open conflicts that are certain; in a large tree that changed, the forks alone."""
    clashes = conflicts.find_open_contradictions(
        tree, context.clock.now, context.cache_dir, max_compared=MAX_COMPARED_AT_START
    )
    return len(conflicts.list_unsettled(tree, clashes or ()))
