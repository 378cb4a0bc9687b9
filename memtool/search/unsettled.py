"""Unsettled memories: those that rest on something that no longer holds.

`memory/premises.py` has the rules; this asks a tree. A question about some memories reads these and
what they rest on, however large the tree is; a question about all of them reads the edges from the
index, and opens only memories that could be out.
"""

from __future__ import annotations

from memtool.memory import premises, timestamps
from memtool.memory.changes import id_from_path
from memtool.memory.drift import BROKEN as BROKEN_LEVEL
from memtool.memory.premises import BROKEN, DEPRECATED, ENDED, FORGOTTEN, MISSING
from memtool.memory.visibility import OUT_OF_USE
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.memory.lineage import Lineage
    from memtool.memory.premises import Cause
    from memtool.search.features import FileWitness
    from memtool.store.tree import Record, Tree

    Causes = dict[str, Cause]
    """The causes of one conclusion, by name, the nearest first."""

MAX_READ = 500
"""Conclusions that a question about some memories reads; more take longer than all edges."""
_FAULT_BY_STATUS = {"deleted": FORGOTTEN, DEPRECATED: DEPRECATED}


class Unsettled:
    """The causes of the conclusions of a tree, as of the second `now`.

    `lineage` is the tree's own unless another is passed, such as one pruned by trust. `drift` tells
    which memories are broken; without it, none is.
    """

    def __init__(
        self,
        tree: Tree,
        now: int,
        drift: FileWitness | None = None,
        lineage: Lineage | None = None,
    ) -> None:
        self.tree = tree
        self.lineage = tree.lineage if lineage is None else lineage
        self._now = now
        self._drift = drift
        self._causes: dict[str, Causes] = {}
        self._faults: dict[str, str] = {}
        self._settled: Mapping[str, tuple[str, ...]] | None = None
        """What each memory accepts, once all are read."""

    # Some memories

    def find(self, ids: Iterable[str]) -> dict[str, Causes]:
        """Return the causes of those of these memories that have any, by id."""
        wanted = list(ids)
        edges = self._collect_premises(id_ for id_ in wanted if id_ not in self._causes)
        if len(edges) > MAX_READ:
            _ = self.all
        elif edges:
            self._causes |= premises.find_causes(edges, self)
        return {id_: causes for id_ in wanted if (causes := self._causes.get(id_))}

    def _collect_premises(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the premises of some memories, and of all that these rest on, by id.

        These are incomplete if they are more than `MAX_READ`.
        """
        edges: dict[str, tuple[str, ...]] = {}
        todo = list(ids)
        while todo and len(edges) <= MAX_READ:
            id_ = todo.pop()
            if id_ in edges or not (own := self.list_premises(id_)):
                continue
            edges[id_] = own
            for premise in own:
                todo += (premise, *self.lineage.find_heads(premise))
        return edges

    def list_premises(self, id_: str) -> tuple[str, ...]:
        """Return the ids that a memory rests on; none for one that is not in the tree."""
        record = self.tree.get(id_)
        return () if record is None else premises.find_premises(record.memory)

    def find_chain(self, id_: str, name: str) -> list[str]:
        """Return the ids from a memory down to the premise that gave it a cause, both included."""
        return premises.find_chain(self._causes, id_, name)

    def find_lowest(self, id_: str, name: str) -> str:
        """Return the conclusion to settle so that a cause of a memory is settled."""
        return self.find_chain(id_, name)[-2]

    # All memories

    @cached_property
    def all(self) -> dict[str, Causes]:
        """The causes of all memories in use that have any, by id, sorted."""
        edges = self.tree.premises
        if not edges:
            return {}
        self._judge_all(edges)
        self._causes |= premises.find_causes(edges, self)
        out_of_use = self.tree.find_kinds(lambda kind: kind.status in OUT_OF_USE)
        return {
            id_: causes
            for id_, causes in sorted(self._causes.items())
            if causes and self.lineage.is_head(id_) and id_ not in out_of_use
        }

    def is_listed(self, id_: str) -> bool:
        """Return whether an unsettled memory counts: it is in use, and nothing replaces it."""
        record = self.tree.get(id_)
        return (
            record is not None
            and self.lineage.is_head(id_)
            and record.memory.status not in OUT_OF_USE
        )

    def find_conclusions(self, id_: str) -> list[str]:
        """Return the memories in use that rest directly on a memory, sorted."""
        return [*filter(self.is_listed, self.tree.find_conclusions(id_))]

    def list_above(self, ids: Iterable[str]) -> list[str]:
        """Return the memories in use that rest on any of these, at any depth, nearest first.

        What rests on an archived memory is among them, but not that memory.
        """
        level = list(ids)
        seen = set(level)
        above: list[str] = []
        while level:
            conclusions = [up for id_ in level for up in self.tree.find_conclusions(id_)]
            heads = [up for up in {*conclusions}.difference(seen) if self.lineage.is_head(up)]
            heads.sort()
            seen.update(heads)
            above += filter(self.is_listed, heads)
            level = [up for up in heads if not self._find_own_fault(self.tree[up])]
        return above

    def _judge_all(self, edges: Mapping[str, Iterable[str]]) -> None:
        """Judge all premises at once."""
        cited = {premise for ids in edges.values() for premise in ids}
        cited.update(*map(self.lineage.find_heads, cited))
        self._faults = dict.fromkeys(cited, "")
        absent = self.tree.find_absent(cited)
        self._faults.update((id_, MISSING) for id_ in filter(self._is_missing, absent))
        named = self.tree.with_ids(cited) if self._drift else []
        drifts = self._drift.find(named) if self._drift else {}
        for record in reversed(named):  # of files with the same id the first counts
            drift = drifts.get(record.path)
            is_broken = drift is not None and drift.level == BROKEN_LEVEL
            self._faults[record.id] = BROKEN if is_broken else ""
        suspects = self.tree.find_kinds(
            lambda kind: kind.status in _FAULT_BY_STATUS or bool(kind.fields.get("valid_through"))
        )
        for id_ in cited.intersection(suspects):
            self._faults[id_] = self._find_own_fault(self.tree[id_]) or self._faults[id_]
        settled = self.tree.find_kinds(lambda kind: bool(kind.fields.get("settled_on")))
        self._settled = {
            id_: self.tree[id_].memory.items("settled_on") for id_ in settled if id_ in edges
        }

    # What the walk asks

    def list_settled(self, id_: str) -> tuple[str, ...]:
        """Return the causes that a memory accepts."""
        if self._settled is not None:
            return self._settled.get(id_, ())
        record = self.tree.get(id_)
        return () if record is None else record.memory.items("settled_on")

    def says_same(self, old: str, new: str) -> bool:
        """Return whether two memories have the same words in title and body."""
        first, second = self.tree.get(old), self.tree.get(new)
        return (
            first is not None and second is not None and _list_words(first) == _list_words(second)
        )

    def find_fault(self, id_: str) -> str:
        """Return why a memory no longer holds; empty if it does."""
        fault = self._faults.get(id_)
        if fault is None:
            record = self.tree.get(id_)
            if record is None:
                fault = MISSING if self._is_missing(id_) else ""
            else:
                fault = self._find_own_fault(record) or self._find_drift_fault(record)
            self._faults[id_] = fault
        return fault

    def _find_own_fault(self, record: Record) -> str:
        """Return the fault that the file of a memory tells; one that is archived may have ended."""
        end = record.memory.text("valid_through")
        fault = _FAULT_BY_STATUS.get(record.memory.status, "")
        return fault or (ENDED if end and self._now > timestamps.end(end) else "")

    def _is_missing(self, id_: str) -> bool:
        """Return whether an id that no memory has is surely that of no file."""
        return not self.tree.is_partial and id_ not in self._unreadable

    @cached_property
    def _unreadable(self) -> frozenset[str]:
        """The ids of files that are no memories, such as those with the marks of a conflict."""
        return frozenset(id_from_path(problem.path) for problem in self.tree.problems)

    def _find_drift_fault(self, record: Record) -> str:
        drift = None if self._drift is None else self._drift(record)
        return BROKEN if drift is not None and drift.level == BROKEN_LEVEL else ""


def _list_words(record: Record) -> list[str]:
    """Return the words of title and body, by which a wrapped line makes no difference."""
    return f"{record.memory.title}\n{record.memory.body}".split()
