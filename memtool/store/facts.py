"""Facts about blobs and commits: the database that all worktrees of a repository share.

It is derived: facts that cannot be read count as missing, facts that cannot be stored are computed
again, and nothing here raises. The first process to find damage drops the database. The meaning of
the rows belongs to the modules that own the tables; `docs/state.md` has the schema.
"""

from __future__ import annotations

import os

from memtool.store import cache
from memtool.store.cache import CorruptCacheError
from memtool.store.state import Schema, State, Table, UnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from memtool.store.state import Rows

    Answer = TypeVar("Answer")

FOLDER = "state"
"""The directory of the database, below the cache directory."""
_KEPT_COLUMNS = "kind TEXT, basis BLOB, key BLOB, data BLOB, used INT"
_BASIS_COLUMNS = "number INT, scope TEXT, trust TEXT, head TEXT, worktree BLOB, used INT"
_CITATION_COLUMNS = (
    "basis INT, path BLOB, oid TEXT, last_commit TEXT, author TEXT, date TEXT, state TEXT, "
    "trusted_oid TEXT, trusted_commit TEXT"
)
_DRIFT_COLUMNS = (
    "basis INT, path BLOB, oid TEXT, base TEXT, level TEXT, quality TEXT, trusted TEXT, "
    "watched BLOB, files BLOB, moves BLOB, landed INT"
)
_LANDING_COLUMNS = "basis INT, path BLOB, landed TEXT, how TEXT"
FACTS = Schema(
    3,
    (
        Table("kept", _KEPT_COLUMNS, 3),
        Table("basis", _BASIS_COLUMNS, 1),
        Table("citation", _CITATION_COLUMNS, 2),
        Table("drift", _DRIFT_COLUMNS, 2),
        Table("landing", _LANDING_COLUMNS, 2),
    ),
)
DAY_S = 86_400
MAX_UNUSED_S = 30 * DAY_S
"""Rows that were not used for this long are deleted."""
_WAIT_S = 0.15


def read(cache_dir: str, read_rows: Callable[[Rows], Answer]) -> Answer | None:
    """Read from one snapshot and return the result; None if no database can be read."""
    folder = os.path.join(cache_dir, FOLDER)
    try:
        state = State.open_shared(folder, FACTS)
        if state is None:
            return None
        with state.read() as rows:
            return read_rows(rows)
    except CorruptCacheError:
        cache.drop(folder)
    except UnavailableError:
        pass
    return None


def write(cache_dir: str, change: Callable[[Rows], None]) -> bool:
    """Change rows in one transaction, in a new database if there is none; return True on success.

    `change` must read what it depends on, since another process may have done the work.
    """
    folder = os.path.join(cache_dir, FOLDER)
    try:
        state = State.open_shared(folder, FACTS)
        if state is None:
            State.rebuild(folder, FACTS, lambda _rows: None, wait_s=_WAIT_S).close()
            state = State.open_shared(folder, FACTS)
        return state is not None and not state.write(change, wait_s=_WAIT_S)
    except CorruptCacheError:
        cache.drop(folder)
        return False
