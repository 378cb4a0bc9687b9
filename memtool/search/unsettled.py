"""Unsettled memories: those that rest on something that no longer holds.

`memory/premises.py` has the rules; this asks a tree. A question about some memories reads these and
what they rest on, however large the tree is; a question about all of them reads the edges from the
index, and opens only memories that could be out.
"""

from __future__ import annotations

from memtool.memory import premises, timestamps
from memtool.memory.changes import id_from_path
from memtool.memory.drift import BROKEN as BROKEN_LEVEL
from memtool.memory.fields import SETTLED
from memtool.memory.premises import (
    BROKEN,
    ENDED,
    FAULT_BY_STATUS,
    MISSING,
    REPLACED,
    describe_cause,
)
from memtool.memory.visibility import OUT_OF_USE
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memtool.memory.drift import Drift
    from memtool.memory.lineage import Lineage
    from memtool.memory.premises import Cause
    from memtool.search.features import FileWitness
    from memtool.store.tree import Record, Tree

    Causes = dict[str, Cause]
    """The causes of one conclusion, by name, the nearest first."""

MAX_READ = 1_000
"""Conclusions that a question about some memories reads; more take longer than all edges."""
HOLDS, UNSETTLED = "holds", "unsettled"
"""The states of a linked memory with no fault: whether it is unsettled itself."""


class CauseReport(Value):
    """A cause of a memory: what took which premise out, and the way from the memory to it.

    `name` is `memory:ID` or `without:ID`, and `reason` is replaced, forgotten, deprecated, missing,
    ended or broken. `text` is a clause about the premise. `chain` has the ids from the memory down
    to that premise, both included; to settle the last but one settles all above it.
    """

    name: str
    reason: str
    text: str
    chain: tuple[str, ...]

    @property
    def id(self) -> str:
        """The memory that the cause names."""
        return self.name.partition(":")[2]

    @property
    def lowest(self) -> str:
        """The memory to settle."""
        return self.chain[-2]

    def describe(self) -> str:
        """Return the clause, with the conclusion that it comes through, if there is one."""
        through = f" (through {self.lowest})" if len(self.chain) > 2 else ""
        return f"{self.text}{through}"


def summarize(causes: Sequence[CauseReport]) -> str:
    """Return the nearest cause in words, and how many more there are; empty without any."""
    if not causes:
        return ""
    hidden = f", and {len(causes) - 1} more" if causes[1:] else ""
    return f"{causes[0].describe()}{hidden}"


def mark(unsettled: str) -> str:
    """Return the warning that an unsettled memory is found with, empty for any other."""
    return f"[UNSETTLED] {unsettled}" if unsettled else ""


class LinkedMemory(Value):
    """A premise or conclusion of a memory.

    `state` is holds, unsettled, or why it no longer holds: replaced, forgotten, deprecated,
    missing, ended or broken. The title is empty if the memory is missing.
    """

    id: str
    title: str
    state: str


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
        self._accepted: Mapping[str, tuple[str, ...]] = {}
        """What memories accept in addition; those named here are not broken."""

    def accepting(self, accepted: Mapping[str, tuple[str, ...]]) -> Unsettled:
        """Return the same as it would be if these memories were confirmed, with these causes."""
        other = Unsettled(self.tree, self._now, self._drift, self.lineage)
        other._accepted = accepted
        return other

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

    def list_below(self, ids: Iterable[str]) -> list[str]:
        """Return these memories, what they rest on at any depth, and what that is now.

        Each once, the nearest first; only those in the tree.
        """
        level = [*dict.fromkeys(id_ for id_ in ids if id_ in self.tree)]
        below = dict.fromkeys(level)
        while level:
            cited = [premise for upper in level for premise in self.list_premises(upper)]
            heads = [head for premise in cited for head in self.lineage.find_heads(premise)]
            level = [
                id_
                for id_ in dict.fromkeys((*cited, *heads))
                if id_ not in below and id_ in self.tree
            ]
            below.update(dict.fromkeys(level))
        return [*below]

    def list_premises(self, id_: str) -> tuple[str, ...]:
        """Return the ids that a memory rests on; none for one that is not in the tree."""
        record = self.tree.get(id_)
        return () if record is None else premises.find_premises(record.memory)

    def find_through(self, id_: str, premise: str) -> Cause | None:
        """Return the nearest cause of a memory that comes through a premise of it."""
        ids = {premise, *self.lineage.find_heads(premise)}
        causes = self.find([id_]).get(id_, {}).values()
        return next((cause for cause in causes if cause.via in ids), None)

    def is_out(self, premise: str) -> bool:
        """Return whether a premise no longer holds as it was, whatever rests on it accepts."""
        if self.lineage.is_head(premise):
            return bool(self.find_fault(premise))
        heads = self.lineage.find_heads(premise)
        return not heads or any(
            not self.says_same(premise, head) or self.find_fault(head) for head in heads
        )

    def find_chain(self, id_: str, name: str) -> list[str]:
        """Return the ids from a memory down to the premise that gave it a cause, both included."""
        return premises.find_chain(self._causes, id_, name)

    def find_lowest(self, id_: str, name: str) -> str:
        """Return the conclusion to settle so that a cause of a memory is settled."""
        return self.find_chain(id_, name)[-2]

    # For people

    def explain(self, id_: str) -> tuple[CauseReport, ...]:
        """Return the causes of a memory in use, the nearest first; none for any other."""
        names = self.find([id_]).get(id_, ()) if self.is_listed(id_) else ()
        return tuple(self._report(id_, name) for name in names)

    def _report(self, id_: str, name: str) -> CauseReport:
        chain = tuple(self.find_chain(id_, name))
        cause = self._causes[chain[-2]][name]
        return CauseReport(name, cause.reason, describe_cause(cause), chain)

    def summarize(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the nearest cause in words of those of these memories that have any, by id."""
        return {id_: summarize(self.explain(id_)) for id_ in self.find(ids) if self.is_listed(id_)}

    def link(self, ids: Iterable[str]) -> tuple[LinkedMemory, ...]:
        """Return title and state of memories that are linked to another one, in their order."""
        linked = list(ids)
        self.find(linked)
        return tuple(map(self._link, linked))

    def _link(self, id_: str) -> LinkedMemory:
        record = self.tree.get(id_)
        if self.lineage.is_head(id_):
            state = self.find_fault(id_) or (UNSETTLED if self.find([id_]) else HOLDS)
        else:
            state = REPLACED
        return LinkedMemory(id_, "" if record is None else record.memory.title, state)

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
            self._faults[record.id] = BROKEN if self._is_broken(record.id, drift) else ""
        suspects = self.tree.find_kinds(
            lambda kind: kind.status in FAULT_BY_STATUS or bool(kind.fields.get("valid_through"))
        )
        for id_ in cited.intersection(suspects):
            self._faults[id_] = self._find_own_fault(self.tree[id_]) or self._faults[id_]
        settled = self.tree.find_kinds(lambda kind: bool(kind.fields.get(SETTLED)))
        self._settled = {
            id_: self.tree[id_].memory.items(SETTLED) for id_ in settled if id_ in edges
        }

    # What the walk asks

    def list_settled(self, id_: str) -> tuple[str, ...]:
        """Return the causes that a memory accepts."""
        added = self._accepted.get(id_, ())
        if self._settled is not None:
            return (*self._settled.get(id_, ()), *added)
        record = self.tree.get(id_)
        return added if record is None else (*record.memory.items(SETTLED), *added)

    def says_same(self, old: str, new: str) -> bool:
        """Return whether two memories of the tree have the same title and body."""
        first, second = self.tree.get(old), self.tree.get(new)
        if first is None or second is None:
            return False
        return premises.says_same(first.memory, second.memory)

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
        fault = FAULT_BY_STATUS.get(record.memory.status, "")
        return fault or (ENDED if end and self._now > timestamps.end(end) else "")

    def _is_missing(self, id_: str) -> bool:
        """Return whether an id that no memory has is surely that of no file."""
        return not (self.tree.is_partial or id_ in self._unreadable or id_ in self.tree.concealed)

    @cached_property
    def _unreadable(self) -> frozenset[str]:
        """The ids of files that are no memories, such as those with the marks of a conflict."""
        return frozenset(id_from_path(problem.path) for problem in self.tree.problems)

    def _find_drift_fault(self, record: Record) -> str:
        drift = None if self._drift is None else self._drift(record)
        return BROKEN if self._is_broken(record.id, drift) else ""

    def _is_broken(self, id_: str, drift: Drift | None) -> bool:
        return drift is not None and drift.level == BROKEN_LEVEL and id_ not in self._accepted
