"""Leave ready what the first hook of a session reads, after a verb that wrote many memories.

A host waits two seconds for a hook, and a big import needs more than that to be indexed. So the
verb that wrote the memories builds the index, while somebody waits for it anyway.
"""

from __future__ import annotations

from memtool.index import index
from memtool.search import conflicts, history_files
from memtool.store.cache import CorruptCacheError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.context import Context


def leave_index(context: Context) -> None:
    """Build or update the index of the worktree, with authors, commits and contradictions.

    If memories were imported, the history is read that names them.
    """
    if context.repository.is_bare or not context.is_cached:
        return
    try:
        tree = index.open_catalog(context, exact=True)
        context.provenance_reader(tree).origins(tree.records)
        conflicts.find_open_contradictions(tree, context.clock.now, context.cache_dir)
        if tree.imported_ids and (head := context.repository.git.head()):
            history_files.read_table(context, tree.imported_ids, head)
    except (CorruptCacheError, OSError):
        return  # the memories are written; the next verb builds what is missing
