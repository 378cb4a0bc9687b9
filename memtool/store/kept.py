"""Small derived facts, kept as rows of the database that all worktrees of a repository share.

A fact has a kind, a basis that it hangs on (a commit, a hash of rules) and a key. One that was not
used for a month goes, and so do the facts of a basis when enough others of their kind are in use.
"""

from __future__ import annotations

import time

from memtool.store import facts
from memtool.store.facts import DAY_S, UNUSED_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from memtool.store.state import Row, Rows

MAX_BASES = 16
"""Bases of one kind that stay: several worktrees and branches are at work at the same time."""


def read(cache_dir: str, kind: str, basis: bytes, key: bytes = b"") -> bytes | None:
    """Return a fact as it was kept by `write`, None if it is unknown."""
    return read_all(cache_dir, kind, basis, (key,)).get(key)


def write(cache_dir: str, kind: str, basis: bytes, data: bytes, key: bytes = b"") -> None:
    """Keep a fact if that is possible."""
    write_all(cache_dir, kind, basis, {key: data})


def read_all(
    cache_dir: str, kind: str, basis: bytes, keys: Collection[bytes]
) -> dict[bytes, bytes]:
    """Return the facts of some keys, without those that are unknown."""
    found = facts.read(cache_dir, lambda rows: list(rows.many("kept", (kind, basis), keys))) or []
    now = int(time.time())
    old = [row for row in found if not 0 <= now - _used(row) < DAY_S]

    def use(rows: Rows) -> None:
        rows.put_all("kept", ((*row[:4], now) for row in old))
        unused = "SELECT basis, key FROM kept WHERE kind = ? AND used < ?"
        for row in list(rows.select(unused, kind, now - UNUSED_S)):
            rows.remove("kept", kind, *row)

    if old:
        facts.write(cache_dir, use)
    return {
        key: data
        for _kind, _basis, key, data, _used in found
        if isinstance(key, bytes) and isinstance(data, bytes)
    }


def write_all(cache_dir: str, kind: str, basis: bytes, data: Mapping[bytes, bytes]) -> None:
    """Keep facts by key if that is possible; a new basis takes the place of one out of use."""
    now = int(time.time())
    known = "SELECT 1 FROM kept WHERE kind = ? AND basis = ? LIMIT 1"
    others = (
        "SELECT basis, max(used) FROM kept WHERE kind = ? GROUP BY basis ORDER BY 2 DESC, basis"
    )

    def change(rows: Rows) -> None:
        if not list(rows.select(known, kind, basis)):
            for number, (other, used) in enumerate(list(rows.select(others, kind)), 2):
                if number > MAX_BASES or not isinstance(used, int) or used < now - UNUSED_S:
                    rows.remove("kept", kind, other)
        rows.put_all("kept", ((kind, basis, key, one, now) for key, one in data.items()))

    facts.write(cache_dir, change)


def _used(row: Row) -> int:
    """Return the second in which a fact was last used, to the day."""
    used = row[4]
    return used if isinstance(used, int) else 0


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


def read_texts(
    cache_dir: str, kind: str, basis: bytes, keys: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Return facts that are texts without NUL by their keys, without those that are unknown."""
    found = read_all(cache_dir, kind, basis, [key.encode() for key in keys])
    return {key.decode(): tuple(data.decode().split("\0")[:-1]) for key, data in found.items()}


def write_texts(
    cache_dir: str, kind: str, basis: bytes, texts: Mapping[str, Iterable[str]]
) -> None:
    """Keep facts that are texts as `write_all` does."""
    data = {
        key.encode(): "".join(f"{text}\0" for text in own).encode() for key, own in texts.items()
    }
    if data:
        write_all(cache_dir, kind, basis, data)
