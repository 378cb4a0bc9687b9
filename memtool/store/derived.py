"""Derived files: the list of everything that is rebuilt from memories and git, and how to drop it.

A reader of the search index raises `CorruptCacheError` on damage; no format repairs itself.
`retry_if_damaged` runs a verb again, without the index and finally without any cache. Damaged facts
count as missing (`facts.py`). Records of users and agents (sessions, memories they have seen, the
ledger, the audit) are not derived: they cannot be rebuilt.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store import cache, facts, files
from memtool.store.cache import CorruptCacheError
from memtool.store.state import State, UnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import TypeVar

    from memtool.store.context import Context
    from memtool.store.repository import Repository

    Answer = TypeVar("Answer")

TREE_FOLDERS = "trees", "few"
"""Folders below the cache directory: the indexes of revisions, and of differences between some."""
WORKTREE_INDEX_FOLDER = "index"
"""Folder of a worktree's index, below `memtool` in the worktree's own git directory."""


def find_damaged_files(repository: Repository) -> list[str]:
    """Return the derived files that are damaged or cannot be read."""
    return [
        path
        for place in (_facts_folder(repository), *_index_folders(repository))
        for path in State.find_damaged_files(place)
    ]


def drop_all(repository: Repository) -> bool:
    """Remove everything derived; return whether it is gone."""
    return _drop([_facts_folder(repository), *_index_folders(repository)])


def retry_if_damaged(context: Context, run_verb: Callable[[], Answer]) -> Answer:
    """Run a verb; if a derived file turns out to be damaged, drop it and run the verb again.

    The verb must not print anything. A file that cannot be dropped is not used any more. A verb
    that has already written a file is not repeated, since it would write it twice.

    Raises:
        MemtoolError: a derived file is damaged, and the verb has written something.
    """
    cache.take_events()  # drop earlier events of this process, which belong to other answers
    files.take_waited_s()
    note_count, write_count = len(context.notes), files.count_writes()
    contexts = [context for context in (context, context.global_context) if context is not None]
    for list_paths in (_index_folders, None):
        try:
            return run_verb()
        except (CorruptCacheError, UnavailableError) as error:
            for each in contexts:
                is_gone = False
                if list_paths is not None and isinstance(error, CorruptCacheError):
                    is_gone = _drop(list_paths(each.repository))
                each.is_cached, each.trees_by_commit = each.is_cached and is_gone, None
            if files.count_writes() != write_count:
                raise MemtoolError(
                    f"a derived file is damaged ({error}); files that were already written stay",
                    hint="git status\nthe next command rebuilds the derived file",
                    code="damaged",
                ) from None
            del context.notes[note_count:]
    return run_verb()  # still damaged, so this time without any cache


def _facts_folder(repository: Repository) -> str:
    """Return the folder of the facts, which are derived from git and texts."""
    return os.path.join(repository.cache_dir, facts.FOLDER)


def _index_folders(repository: Repository) -> list[str]:
    own = os.path.join(repository.worktree_cache_dir, "memtool", WORKTREE_INDEX_FOLDER)
    return [own, *(os.path.join(repository.cache_dir, name) for name in TREE_FOLDERS)]


def _drop(paths: Collection[str]) -> bool:
    """Remove files and folders; return whether all are gone."""
    for path in paths:
        cache.drop(path)
    return not any(map(os.path.lexists, paths))
