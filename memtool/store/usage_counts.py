"""How often answers showed a memory: counts from the ledger for the ranking.

Counts that cannot be read are 0: no answer fails because of statistics.
"""

from __future__ import annotations

import os
import time

from memtool.memory.timestamps import DAY_S
from memtool.store.state import open_connection
from memtool.store.usage_log import LEDGER
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection
    from typing import Any

TIMEOUT_S = 5.0
_IDS_PER_STATEMENT = 500
"""Ids per statement."""


class UsageCounts:
    """The counts of one cache directory. The ledger is opened at the first request."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, LEDGER)

    @cached_property
    def _connection(self) -> Connection | None:
        return connect_to_read(self._path) if os.path.exists(self._path) else None

    @cached_property
    def _has_folded_today(self) -> bool:
        """Whether the ledger was filled from the usage log today (UTC), by the system clock."""
        days = self._rows("SELECT day FROM folded")
        return not days or int(days[0][0]) >= int(time.time()) // DAY_S

    def count_shown(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the number of answers that showed each memory."""
        query = "SELECT memory, sum(count) FROM counts WHERE memory IN ({}) GROUP BY memory"
        return self._read_counts(query, list(ids))

    def count_settled(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the same counts as of the start of this UTC day.

        The ranking uses these, so that repeating a query does not change its results.
        """
        if not self._has_folded_today:
            return self.count_shown(ids)
        return self._read_counts(
            "SELECT memory, count FROM settled WHERE memory IN ({})", list(ids)
        )

    def _read_counts(self, query: str, ids: list[str]) -> dict[str, int]:
        counts = dict.fromkeys(ids, 0)
        for at in range(0, len(ids), _IDS_PER_STATEMENT):
            batch = ids[at : at + _IDS_PER_STATEMENT]
            counts |= dict(self._rows(query.format(",".join("?" * len(batch))), *batch))
        return counts

    def _rows(self, query: str, *values: str) -> list[Any]:
        if self._connection is None:
            return []
        from sqlite3 import Error

        try:
            return self._connection.execute(query, values).fetchall()
        except Error:  # damaged, locked, or of an older version
            return []


def connect_to_read(path: str) -> Connection:
    """Open an existing ledger for reading."""
    # In WAL mode even readers write files next to the database. If the folder is read-only, no
    # process can write, so that the database is immutable.
    mode = "mode=ro" if os.access(os.path.dirname(path), os.W_OK) else "immutable=1"
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return open_connection(f"file:{quoted}?{mode}", TIMEOUT_S)
