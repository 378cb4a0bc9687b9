"""Leave ready what the first hook of a session reads, after a verb that wrote many memories.

A host waits two seconds for a hook, and a big import needs more than that to be indexed. So the
verb that wrote the memories builds the index, while somebody waits for it anyway.
"""

from __future__ import annotations

from memtool.index import index
from memtool.search import conflicts
from memtool.store.cache import CorruptCacheError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.context import Context


def leave_index(context: Context) -> None:
    """Build or update the index of the worktree, with authors, commits and contradictions."""
    if context.repository.is_bare or not context.is_cached:
        return
    try:
        tree = index.open_catalog(context, exact=True)
        context.provenance_reader(tree).origins(tree.records)
        cache_dir = context.repository.cache_dir
        conflicts.find_open_contradictions(tree, context.clock.now, cache_dir)
    except (CorruptCacheError, OSError):
        return  # the memories are written; the next verb builds what is missing
