"""Derived files: the one list of what is rebuilt from memories and git, and the one way to drop it.

A reader that meets damage raises `CorruptCache`, and no format mends itself. `retry_if_damaged`
runs a verb again without what may be damaged: first without the tables, which git makes again in a
moment, then without the search index, and last without any cache. What a user or an agent did
(sessions, what they were shown, the ledger, the audit) is on no list here: it cannot be made again.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store import cache, files
from memtool.store.cache import CorruptCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from memtool.store.context import Context
    from memtool.store.repository import Repository

    Answer = TypeVar("Answer")

TABLES = ("citations", "drift", "cochange", "lately", "gate")
"""Folders below the cache directory whose files are made again from git, or by comparing texts."""
INDEX = ("index",)
"""Folders below the cache directory that take a reading of every memory to be made again."""
OWN_INDEX = ("manifest", "vectors")
"""Files of one worktree, below `memtool` in its own directory, that go with the index."""


def places(repository: Repository) -> list[str]:
    """Return the paths of everything derived, whether it exists or not: tables, then the index."""
    return _tables(repository) + _index(repository)


def drop(repository: Repository) -> bool:
    """Remove everything derived; return whether it is gone."""
    return _drop(places(repository))


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
    for find in (_tables, _index):
        try:
            return ask()
        except CorruptCache as error:
            for one in contexts:
                one.is_cached = _drop(find(one.repository)) and one.is_cached
                one.opened = None
            if files.writes() != written:
                raise MemtoolError(
                    f"a derived file is damaged ({error}); what was written until then stays",
                    hint="git status shows it; the next command makes the derived file anew",
                    code="damaged",
                ) from None
            del context.notes[noted:]
    try:
        return ask()
    except CorruptCache:  # another process damages or replaces files all the time
        del context.notes[noted:]
        for one in contexts:
            one.is_cached, one.opened = False, None
        return ask()


def _tables(repository: Repository) -> list[str]:
    return [os.path.join(repository.cache_dir, name) for name in TABLES]


def _index(repository: Repository) -> list[str]:
    own = os.path.join(repository.own_dir, "memtool")
    shared = [os.path.join(repository.cache_dir, name) for name in INDEX]
    return [os.path.join(own, name) for name in OWN_INDEX] + shared


def _drop(paths: list[str]) -> bool:
    for path in paths:
        cache.drop(path)
    return not any(map(os.path.lexists, paths))
