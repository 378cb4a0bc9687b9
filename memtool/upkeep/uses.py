"""Uses: how often this clone looked at each memory, and when, as the ledger tells it.

Who looked at what a memory replaces directly, looked at it. What was injected was of use, but
nobody asked for it: that keeps a memory in use, and vouches for none.
"""

from __future__ import annotations

from bisect import bisect_left

from memtool.store import ledger
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memtool.memory.memory import Memory
    from memtool.store.ledger import Counted


class Uses(Value):
    """What was counted: totals by id, and the seconds of what is kept in detail, from `since` on.

    `asked` counts by id what was not injected. Without any totals, nobody knows whether a memory
    was looked at.
    """

    totals: Mapping[str, Counted] = {}
    asked: Mapping[str, int] = {}
    seconds: Mapping[str, Sequence[int]] = {}
    since: int | None = None

    @property
    def is_known(self) -> bool:
        """Tell whether anything was counted here."""
        return bool(self.totals)

    def count(self, memory: Memory) -> int:
        """Return how many answers ever showed a memory."""
        return sum(row.count for row in self._rows(memory))

    def count_asked(self, memory: Memory) -> int:
        """Return how many answers ever showed a memory to somebody who asked for it."""
        return sum(self.asked.get(id_, 0) for id_ in (memory.id, *memory.supersedes))

    def last(self, memory: Memory) -> int | None:
        """Return the second of the last answer that showed it, None for none."""
        return max((row.last for row in self._rows(memory)), default=None)

    def count_since(self, memory: Memory, second: int) -> int:
        """Return how many answers showed it from a second on.

        Where the ledger no longer knows that far back, all count, if the last of them does.
        """
        rows = self._rows(memory)
        if self.since is None or self.since > second:
            return sum(row.count for row in rows if row.last >= second)
        found = (self.seconds.get(row.id, ()) for row in rows)
        return sum(len(some) - bisect_left(some, second) for some in found)

    def _rows(self, memory: Memory) -> list[Counted]:
        ids = (memory.id, *memory.supersedes)
        return [self.totals[id_] for id_ in ids if id_ in self.totals]


def read(directory: str) -> Uses:
    """Return what the ledger in the cache directory has counted.

    Raises:
        MemtoolError: it is there, and cannot be read.
    """
    with ledger.reading(directory) as held:
        totals = {row.id: row for row in held.most("", -1)}
        asked = held.asked()
        _answers, since = held.answers()
        seconds: dict[str, list[int]] = {}
        for id_, second in held.shown():
            seconds.setdefault(id_, []).append(second)
    return Uses(totals, asked, seconds, since)
