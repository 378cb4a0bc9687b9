"""Small derived facts, kept in one database that all worktrees of a repository share.

A fact has a kind, a basis that it hangs on (a commit, a hash of rules) and a key. One that was not
used for a month goes. A fact that cannot be read is absent, and one that cannot be kept is made
again: nothing here raises. `docs/state.md` has the schema.
"""

from __future__ import annotations

import os
import time

from memtool.store import cache
from memtool.store.cache import CorruptCache
from memtool.store.state import Rows, Schema, State, Table, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "state"
"""The directory below the cache directory in which the database is."""
FACTS = Schema(1, (Table("kept", "kind TEXT, basis BLOB, key BLOB, data BLOB, used INT", 3),))
_UNUSED_DAYS = 30
_DAY_S = 86_400
_WAIT_S = 0.15


def read(cache_dir: str, kind: str, basis: bytes, key: bytes = b"") -> bytes | None:
    """Return a fact as it was kept by `write`, None if it is unknown."""
    place = os.path.join(cache_dir, FOLDER)
    today = int(time.time()) // _DAY_S

    def use(rows: Rows) -> None:
        found = rows.one("kept", kind, basis, key)
        if found is not None:
            rows.put("kept", *found[:4], today)

    try:
        state = State.open(place, FACTS)
        if state is None:
            return None
        try:
            with state.read() as rows:
                row = rows.one("kept", kind, basis, key)
            if row is not None and row[4] != today:
                state.write(use)
        finally:
            state.close()
    except CorruptCache:
        cache.drop(place)
        return None
    except Unavailable:
        return None
    return row[3] if row is not None and isinstance(row[3], bytes) else None


def write(cache_dir: str, kind: str, basis: bytes, data: bytes, key: bytes = b"") -> None:
    """Keep a fact if that is possible, and drop those of its kind that were not used for long."""
    place = os.path.join(cache_dir, FOLDER)
    today = int(time.time()) // _DAY_S

    def change(rows: Rows) -> None:
        rows.put("kept", kind, basis, key, data, today)
        old = rows.some("kept", "kind = ? AND used < ?", kind, today - _UNUSED_DAYS)
        for row in list(old):
            rows.remove("kept", *row[:3])

    try:
        state = State.open(place, FACTS)
        if state is None:
            state = State.rebuilt(place, FACTS, lambda _rows: None, wait_s=_WAIT_S)
        try:
            state.write(change)
        finally:
            state.close()
    except CorruptCache:
        cache.drop(place)


def read_json(cache_dir: str, kind: str, basis: bytes) -> Any:
    """Return a fact of plain types, None if it is unknown."""
    data = read(cache_dir, kind, basis)
    if data is None:
        return None
    import json

    return json.loads(data)


def write_json(cache_dir: str, kind: str, basis: bytes, fact: Any) -> None:
    """Keep a fact of plain types as `write` does."""
    import json

    write(cache_dir, kind, basis, json.dumps(fact, separators=(",", ":")).encode())


def damages(cache_dir: str) -> list[str]:
    """Return the files of the database that are not what was written, or cannot be read."""
    return State.damages(os.path.join(cache_dir, FOLDER), FACTS)
