"""Small derived facts, stored in the database that all worktrees of a repository share.

A fact has a kind, a basis that it depends on (a commit, a hash of rules) and a key. Facts that were
not used for a month are deleted, and so are the oldest bases of a kind beyond MAX_BASES.
"""

from __future__ import annotations

import time

from memtool.store import facts
from memtool.store.facts import DAY_S, MAX_UNUSED_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from memtool.store.state import Row, Rows

MAX_BASES = 16
"""Bases of one kind that are kept, for several worktrees and branches in use at the same time."""


def read(cache_dir: str, kind: str, basis: bytes, key: bytes = b"") -> bytes | None:
    """Return a fact that `write` has stored; None if unknown."""
    return read_all(cache_dir, kind, basis, (key,)).get(key)


def write(cache_dir: str, kind: str, basis: bytes, data: bytes, key: bytes = b"") -> None:
    """Store a fact. Errors are ignored."""
    write_all(cache_dir, kind, basis, {key: data})


def read_all(
    cache_dir: str, kind: str, basis: bytes, keys: Collection[bytes]
) -> dict[bytes, bytes]:
    """Return the facts of some keys; unknown ones are left out."""
    stored_rows = (
        facts.read(cache_dir, lambda rows: list(rows.find_many("kept", (kind, basis), keys))) or []
    )
    now = int(time.time())
    old = [row for row in stored_rows if not 0 <= now - _read_used(row) < DAY_S]

    def use(rows: Rows) -> None:
        rows.put_all("kept", ((*row[:4], now) for row in old))
        unused = "SELECT basis, key FROM kept WHERE kind = ? AND used < ?"
        for row in list(rows.select(unused, kind, now - MAX_UNUSED_S)):
            rows.remove("kept", kind, *row)

    if old:
        facts.write(cache_dir, use)
    return {
        key: data
        for _kind, _basis, key, data, _used_at in stored_rows
        if isinstance(key, bytes) and isinstance(data, bytes)
    }


def write_all(cache_dir: str, kind: str, basis: bytes, data: Mapping[bytes, bytes]) -> None:
    """Store facts by key; a new basis replaces unused ones. Errors are ignored."""
    now = int(time.time())
    exists_query = "SELECT 1 FROM kept WHERE kind = ? AND basis = ? LIMIT 1"
    bases_query = (
        "SELECT basis, max(used) FROM kept WHERE kind = ? GROUP BY basis ORDER BY 2 DESC, basis"
    )

    def change(rows: Rows) -> None:
        if not list(rows.select(exists_query, kind, basis)):
            for number, (old_basis, used) in enumerate(list(rows.select(bases_query, kind)), 2):
                if number > MAX_BASES or not isinstance(used, int) or used < now - MAX_UNUSED_S:
                    rows.remove("kept", kind, old_basis)
        rows.put_all("kept", ((kind, basis, key, value, now) for key, value in data.items()))

    facts.write(cache_dir, change)


def _read_used(row: Row) -> int:
    """Return the second at which a fact was last used, accurate to the day."""
    used = row[4]
    return used if isinstance(used, int) else 0


def read_json(cache_dir: str, kind: str, basis: bytes) -> Any:
    """Return a fact that is stored as JSON; None if unknown."""
    data = read(cache_dir, kind, basis)
    if data is None:
        return None
    import json

    return json.loads(data)


def write_json(cache_dir: str, kind: str, basis: bytes, fact: Any) -> None:
    """Store a fact as JSON, as `write` does."""
    import json

    write(cache_dir, kind, basis, json.dumps(fact, separators=(",", ":")).encode())


def read_texts(
    cache_dir: str, kind: str, basis: bytes, keys: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Return facts that are lists of texts, by key; unknown ones are left out."""
    data_by_key = read_all(cache_dir, kind, basis, [key.encode() for key in keys])
    return {
        key.decode(): tuple(data.decode().split("\0")[:-1]) for key, data in data_by_key.items()
    }


def write_texts(
    cache_dir: str, kind: str, basis: bytes, texts: Mapping[str, Iterable[str]]
) -> None:
    """Store facts that are lists of texts without NUL, as `write_all` does."""
    data = {
        key.encode(): "".join(f"{text}\0" for text in own).encode() for key, own in texts.items()
    }
    if data:
        write_all(cache_dir, kind, basis, data)
