"""Facts about blobs and commits: the one database that all worktrees of a repository share.

It is derived: what cannot be read is absent, what cannot be kept is made again, and nothing here
raises. A damaged database is dropped by whoever meets the damage. What the rows mean is up to the
modules that own the tables; `docs/state.md` has the schema.
"""

from __future__ import annotations

import os

from memtool.store import cache
from memtool.store.cache import CorruptCache
from memtool.store.state import Schema, State, Table, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from memtool.store.state import Rows

    Answer = TypeVar("Answer")

FOLDER = "state"
"""The directory below the cache directory in which the database is."""
_KEPT = "kind TEXT, basis BLOB, key BLOB, data BLOB, used INT"
_BASIS = "number INT, scope TEXT, trust TEXT, head TEXT, worktree BLOB, used INT"
_CITATION = (
    "basis INT, path BLOB, oid TEXT, last_commit TEXT, author TEXT, date TEXT, state TEXT, "
    "trusted_oid TEXT, trusted_commit TEXT"
)
_DRIFT = (
    "basis INT, path BLOB, oid TEXT, base TEXT, level TEXT, quality TEXT, trusted TEXT, "
    "watched BLOB, files TEXT"
)
FACTS = Schema(
    2,
    (
        Table("kept", _KEPT, 3),
        Table("basis", _BASIS, 1),
        Table("citation", _CITATION, 2),
        Table("drift", _DRIFT, 2),
    ),
)
DAY_S = 86_400
UNUSED_S = 30 * DAY_S
"""Rows that nobody has used for so long go."""
_WAIT_S = 0.15


def read(cache_dir: str, ask: Callable[[Rows], Answer]) -> Answer | None:
    """Return what is read from one snapshot, None if no database can be read."""
    place = os.path.join(cache_dir, FOLDER)
    try:
        state = State.shared(place, FACTS)
        if state is None:
            return None
        with state.read() as rows:
            return ask(rows)
    except CorruptCache:
        cache.drop(place)
    except Unavailable:
        pass
    return None


def write(cache_dir: str, change: Callable[[Rows], None]) -> bool:
    """Change rows in one transaction, in a new database if there is none; tell whether it worked.

    `change` reads what it depends on anew, since another process may have done the work.
    """
    place = os.path.join(cache_dir, FOLDER)
    try:
        state = State.shared(place, FACTS)
        if state is None:
            State.rebuilt(place, FACTS, lambda _rows: None, wait_s=_WAIT_S).close()
            state = State.shared(place, FACTS)
        return state is not None and not state.write(change, wait_s=_WAIT_S)
    except CorruptCache:
        cache.drop(place)
        return False
