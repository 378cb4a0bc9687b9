"""What a plan of upkeep is made of but the tree: the moment, the settings, and what was used."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from memtool.memory.memory import Memory
from memtool.search import conflicts
from memtool.store import ledger
from memtool.store.config import Config
from memtool.store.history import Upholding
from memtool.store.ledger import Counted
from memtool.store.tree import Record, Tree
from memtool.value import Value


class Uses(Value):
    """How often memories were shown, by id.

    `opened` counts by id how often a memory was shown by its id; `used` has the seconds at which
    one was, or came first in a search. Without any totals, nobody knows whether a memory was looked
    at.
    """

    totals: Mapping[str, Counted] = {}
    opened: Mapping[str, int] = {}
    used: Mapping[str, Sequence[int]] = {}

    @property
    def is_known(self) -> bool:
        """Tell whether anything was counted here."""
        return bool(self.totals)

    def count(self, memory: Memory) -> int:
        """Return how many answers ever showed a memory."""
        return sum(row.count for row in self._rows(memory))

    def count_opened(self, memory: Memory) -> int:
        """Return how often a memory was shown by its id; what it supersedes lends it nothing."""
        return self.opened.get(memory.id, 0)

    def last(self, memory: Memory) -> int | None:
        """Return the second of the last answer that showed it, None for none."""
        return max((row.last for row in self._rows(memory)), default=None)

    def used_since(self, memory: Memory, second: int) -> int:
        """Return how often it was used from a second on, as far as answers are kept in detail."""
        found = (self.used.get(id_, ()) for id_ in (memory.id, *memory.replaces))
        return sum(len(some) - bisect_left(some, second) for some in found)

    def _rows(self, memory: Memory) -> list[Counted]:
        ids = (memory.id, *memory.replaces)
        return [self.totals[id_] for id_ in ids if id_ in self.totals]


def read_uses(directory: str) -> Uses:
    """Return what the ledger in the cache directory has counted.

    Raises:
        MemtoolError: it cannot be read.
    """
    with ledger.reading(directory) as held:
        totals = {row.id: row for row in held.most("", -1)}
        opened = {row.id: row.count for row in held.most("show", -1)}
        used: dict[str, list[int]] = {}
        for id_, second in held.used():
            used.setdefault(id_, []).append(second)
    return Uses(totals, opened, used)


class PlanInputs(Value):
    """What a plan is made of but the tree. `frozen` are the paths that must stay as they are.

    `drifted` says by id what is gone of the files that a memory names. `added` is by path the
    second of the commit that added the file of a candidate; one that is not in it waits.
    `upheld` is by id the commit of the trusted branch that upholds a memory.
    """

    now: int
    config: Config
    uses: Uses
    directory: str
    frozen: frozenset[str] = frozenset()
    drifted: Mapping[str, str] = {}
    added: Mapping[str, int] = {}
    upheld: Mapping[str, Upholding] = {}

    def living(self, tree: Tree) -> list[Record]:
        """Return the heads in use, by id."""
        return conflicts.living(tree, self.now)
