"""Derived files: the one list of what is rebuilt from memories and git, and the one way to drop it.

A reader of the search index that meets damage raises `CorruptCache`, and no format mends itself.
`retry_if_damaged` runs a verb again, without the index and last without any cache. Facts that are
damaged are absent (`facts.py`). What a user or an agent did (sessions, what they were shown, the
ledger, the audit) is on no list here: it cannot be made again.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store import cache, facts, files
from memtool.store.cache import CorruptCache
from memtool.store.state import State, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import TypeVar

    from memtool.store.context import Context
    from memtool.store.repository import Repository

    Answer = TypeVar("Answer")

TREES = "trees"
"""The indexes of revisions, made again by reading every memory: below the cache directory."""
OWN_INDEX = "index"
"""The index of a worktree: below `memtool` in the worktree's own git directory."""


def damages(repository: Repository) -> list[str]:
    """Return the derived files that are not what was written, or cannot be read."""
    return [
        path for place in (_facts(repository), *_index(repository)) for path in State.damages(place)
    ]


def drop(repository: Repository) -> bool:
    """Remove everything derived; return whether it is gone."""
    return _drop([_facts(repository), *_index(repository)])


def retry_if_damaged(context: Context, ask: Callable[[], Answer]) -> Answer:
    """Run a verb; if a derived file turns out to be damaged, drop it and run the verb again.

    Nothing may be printed meanwhile. What cannot be dropped is not used any more. A verb that has
    written a file by then does not run again: it would write it twice.

    Raises:
        MemtoolError: a derived file is damaged, and something was written.
    """
    cache.take_events()  # what this process did before is no part of this answer
    files.take_waited_s()
    noted, written = len(context.notes), files.writes()
    contexts = [one for one in (context, context.beside) if one is not None]
    for find in (_index, None):
        try:
            return ask()
        except (CorruptCache, Unavailable) as error:
            for one in contexts:
                is_gone = False
                if find is not None and isinstance(error, CorruptCache):
                    is_gone = _drop(find(one.repository))
                one.is_cached, one.opened = one.is_cached and is_gone, None
            if files.writes() != written:
                raise MemtoolError(
                    f"a derived file is damaged ({error}); what was written until then stays",
                    hint="git status shows it; the next command makes the derived file anew",
                    code="damaged",
                ) from None
            del context.notes[noted:]
    return ask()  # another process damages files all the time, so without any


def _facts(repository: Repository) -> str:
    """Return where what is made again from git, or by comparing texts, is."""
    return os.path.join(repository.cache_dir, facts.FOLDER)


def _index(repository: Repository) -> list[str]:
    own = os.path.join(repository.own_dir, "memtool", OWN_INDEX)
    return [own, os.path.join(repository.cache_dir, TREES)]


def _drop(paths: Collection[str]) -> bool:
    """Remove files and folders; return whether all are gone."""
    for path in paths:
        cache.drop(path)
    return not any(map(os.path.lexists, paths))
