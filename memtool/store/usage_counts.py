"""How often answers showed each memory: single counts from the ledger, as a ranking asks for them.

What cannot be read was shown by no answer: these are statistics, and no answer fails for them.
"""

from __future__ import annotations

import os
import time

from memtool.memory.timestamps import DAY_S
from memtool.store.state import own_connection
from memtool.store.usage_log import LEDGER
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection
    from typing import Any

PATIENCE_S = 5.0
_AT_ONCE = 500
"""Ids that one statement names."""


class UsageCounts:
    """The counts of one cache directory. The ledger is opened when the first is asked for."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, LEDGER)

    @cached_property
    def _connection(self) -> Connection | None:
        return connect_to_read(self._path) if os.path.exists(self._path) else None

    @cached_property
    def _is_of_today(self) -> bool:
        """Whether the ledger has taken answers over today, by the clock."""
        days = self._rows("SELECT day FROM folded")
        return not days or int(days[0][0]) >= int(time.time()) // DAY_S

    def shown(self, ids: Iterable[str]) -> dict[str, int]:
        """Return how many answers showed each memory, 0 for those that none did."""
        query = "SELECT memory, sum(count) FROM counts WHERE memory IN ({}) GROUP BY memory"
        return self._counts(query, list(ids))

    def settled(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the same as it was taken over before this UTC day.

        Rankings use these: a question must not change its own answer while it is asked again.
        """
        if not self._is_of_today:
            return self.shown(ids)
        return self._counts("SELECT memory, count FROM settled WHERE memory IN ({})", list(ids))

    def _counts(self, query: str, ids: list[str]) -> dict[str, int]:
        found = dict.fromkeys(ids, 0)
        for at in range(0, len(ids), _AT_ONCE):
            some = ids[at : at + _AT_ONCE]
            found |= dict(self._rows(query.format(",".join("?" * len(some))), *some))
        return found

    def _rows(self, query: str, *values: str) -> list[Any]:
        if self._connection is None:
            return []
        from sqlite3 import Error

        try:
            return self._connection.execute(query, values).fetchall()
        except Error:  # damaged, locked, or of an older version
            return []


def connect_to_read(path: str) -> Connection:
    """Open the ledger, which is there, to read it."""
    # Even a reader writes next to a database in WAL mode; where it may not, nobody writes.
    mode = "mode=ro" if os.access(os.path.dirname(path), os.W_OK) else "immutable=1"
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return own_connection(f"file:{quoted}?{mode}", PATIENCE_S)
