"""The inputs of an upkeep plan apart from the tree: time, settings and usage."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from memtool.memory.drift import Drift
from memtool.memory.memory import Memory
from memtool.search import conflicts
from memtool.store import ledger
from memtool.store.config import Config
from memtool.store.history import UpholdingCommit
from memtool.store.ledger import UsageCount
from memtool.store.tree import Record, Tree
from memtool.value import Value


class Uses(Value):
    """How often memories were shown, by id.

    `opened` counts how often a memory was shown by its id. `used` has the seconds at which it was,
    or came first in a search. If `totals` is empty, it is unknown whether a memory was used.
    """

    totals: Mapping[str, UsageCount] = {}
    opened: Mapping[str, int] = {}
    used: Mapping[str, Sequence[int]] = {}

    @property
    def is_known(self) -> bool:
        """Whether any access was counted in this clone."""
        return bool(self.totals)

    def count(self, memory: Memory) -> int:
        """Return how many answers ever showed a memory, or one that it replaces."""
        return sum(row.count for row in self._find_rows(memory))

    def count_opened(self, memory: Memory) -> int:
        """Return how often a memory was shown by its id, without those that it supersedes."""
        return self.opened.get(memory.id, 0)

    def find_last(self, memory: Memory) -> int | None:
        """Return the second of the last answer that showed a memory, None if none did."""
        return max((row.last for row in self._find_rows(memory)), default=None)

    def count_used_since(self, memory: Memory, second: int) -> int:
        """Return how often a memory was used from a second on.

        Only uses that are still recorded one by one count.
        """
        accesses = (self.used.get(id_, ()) for id_ in (memory.id, *memory.replaces))
        return sum(len(some) - bisect_left(some, second) for some in accesses)

    def _find_rows(self, memory: Memory) -> list[UsageCount]:
        ids = (memory.id, *memory.replaces)
        return [self.totals[id_] for id_ in ids if id_ in self.totals]


def read_uses(directory: str) -> Uses:
    """Read the usage counts from the ledger in the cache directory.

    Raises:
        MemtoolError: it cannot be read.
    """
    with ledger.open_ledger(directory) as usage:
        totals = {row.id: row for row in usage.most_shown("", -1)}
        opened = {row.id: row.count for row in usage.most_shown("show", -1)}
        used: dict[str, list[int]] = {}
        for id_, second in usage.uses():
            used.setdefault(id_, []).append(second)
    return Uses(totals, opened, used)


class PlanInputs(Value):
    """The inputs of a plan apart from the tree.

    `frozen` are the paths that must not change. `drifted` describes, by memory id, what is missing
    from the named files. `added` has, by path, the second of the commit that added a candidate's
    file; a candidate that is missing in it waits. `upheld` has, by id, the commit of the trusted
    branch that upholds a memory. `renamed` has, by path, the drift of memories that name renamed
    files, and `seen` the record of the code that each one saw.
    """

    now: int
    config: Config
    uses: Uses
    directory: str
    frozen: frozenset[str] = frozenset()
    drifted: Mapping[str, str] = {}
    added: Mapping[str, int] = {}
    upheld: Mapping[str, UpholdingCommit] = {}
    renamed: Mapping[str, Drift] = {}
    seen: Mapping[str, str] = {}

    def find_living(self, tree: Tree) -> list[Record]:
        """Return the active heads, by id."""
        return conflicts.find_living(tree, self.now)
