"""Conflicts: memories of one tree that cannot all hold, or say the same twice.

Forks come from lineage, oppositions from the statements of living heads, duplicates from their
words. What both sides know of is accepted: one names the other in `conflicts_accepted`.
"""

from __future__ import annotations

import os
from itertools import combinations

from memtool.gate import contradictions as signs
from memtool.gate import near_duplicates
from memtool.gate.checks.secrets import ROOM, RULES
from memtool.gate.contradictions import Contradiction, Statement
from memtool.gate.near_duplicates import DEAD
from memtool.index.reader import StoredCatalog
from memtool.memory import lifecycle
from memtool.search.features import Facts
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from memtool.gate.near_duplicates import Neighbours
    from memtool.memory.fields import Category
    from memtool.store.snapshot import Record, Tree

KIND = "clashes 2"
"""What is kept of oppositions."""
FORK = "fork"
DUPLICATE = "duplicate"
KINDS: dict[str, str] = {
    FORK: "heads that supersede the same memory",
    signs.OPPOSITION: "one says to do what the other says not to do",
    signs.VALUES: "they give different values to the same thing",
    DUPLICATE: "they say the same",
}
"""What a conflict may be, in the order in which they are listed."""
_ORDER = {kind: number for number, kind in enumerate(KINDS)}
MOST_STATED = 20_000
"""Memories of which one process remembers what they state, about 10 MB."""
_known_statements: dict[str, tuple[Statement, ...]] = {}
"""What memories state, by the blob of their file."""


class Conflict(Value):
    """Memories that contradict each other, by their ids in sorted order.

    `topic` is what it is about, the same for all that belong together; `values` is what each memory
    gives to the same thing, in the order of `ids`, empty where it is no value.
    """

    kind: str
    ids: tuple[str, ...]
    reason: str
    accepted: bool
    topic: str = ""
    values: tuple[str, ...] = ()

    @property
    def differs(self) -> str:
        """What differs, where that is a value: `6379 against 6380`."""
        return " against ".join(dict.fromkeys(self.values))


def living(tree: Tree, now: int, categories: Mapping[str, Category]) -> list[Record]:
    """Return the heads that are in use, sorted by id: what they state is meant to hold."""
    current = Facts(tree, now, categories, dict).current()
    if current is None:
        return [
            record
            for record in tree.records
            if tree.lineage.is_head(record.id)
            and record.memory.status not in DEAD
            and lifecycle.state(record.memory, now, categories) == lifecycle.ALIVE
        ]
    assert isinstance(tree, StoredCatalog)
    numbers = current.all()
    for part in tree.parts.parts:
        dead = part.shelf.of_kinds(lambda kind: kind.status in DEAD)
        numbers.difference_update(map(part.first.__add__, dead))
    return sorted(map(tree.record, numbers), key=lambda record: (record.id, record.path))


def contradictions(
    tree: Tree, now: int, categories: Mapping[str, Category], cache_dir: str = ""
) -> list[Conflict]:
    """Return the forks, then what opposes each other, each by ids.

    With a cache directory, memories that were compared before are not compared again.
    """
    found = {
        fork.heads: Conflict(
            FORK,
            fork.heads,
            f"both replace {fork.ancestor}",
            _is_accepted(tree, fork.heads),
            f"{FORK} {fork.ancestor}",
        )
        for fork in tree.lineage.forks()
    }
    parted = {pair for heads in found for pair in combinations(heads, 2)}
    records = living(tree, now, categories)
    for clash in _clashes(records, cache_dir):
        ids = (records[clash.one].id, records[clash.other].id)
        if ids[0] != ids[1] and ids not in parted:
            is_accepted = _is_accepted(tree, ids)
            found[ids] = Conflict(
                clash.kind, ids, clash.reason, is_accepted, clash.topic, clash.values
            )
    return sorted(found.values(), key=order)


def clusters(found: Sequence[Conflict]) -> list[Conflict]:
    """Return conflicts with those about one thing as one, of all memories that take part in it.

    What is accepted stays apart from what is open. The kind is the first in the order of the table.
    """
    apart: dict[tuple[str, bool], list[tuple[set[str], list[Conflict]]]] = {}
    for conflict in found:
        groups = apart.setdefault((conflict.topic, conflict.accepted), [])
        ids, members = set(conflict.ids), [conflict]
        for group in [group for group in groups if not ids.isdisjoint(group[0])]:
            groups.remove(group)
            ids |= group[0]
            members += group[1]
        groups.append((ids, members))
    joined = [_joined(members) for groups in apart.values() for _ids, members in groups]
    return sorted(joined, key=order)


def _joined(group: Sequence[Conflict]) -> Conflict:
    first = min(group, key=order)
    if len(group) == 1:
        return first
    gives = {id_: value for one in group for id_, value in zip(one.ids, one.values, strict=False)}
    ids = tuple(sorted({id_ for one in group for id_ in one.ids}))
    values = tuple(gives.get(id_, "") for id_ in ids) if all(map(gives.get, ids)) else ()
    joined = first.replace(ids=ids, values=values)
    return joined.replace(reason=joined.differs or f"{first.reason}, and {len(ids) - 2} more")


def _clashes(records: Sequence[Record], cache_dir: str) -> list[Contradiction]:
    """Return what opposes each other among some records.

    Whether two memories do follows from them alone. So what is kept of more memories holds for
    fewer of them; where one came, all are compared.
    """
    from memtool.store import cache

    folder = os.path.join(cache_dir, ROOM)
    name = f"clashes-{cache.code_version(RULES)}" if cache_dir else ""
    was = cache.read_json(os.path.join(folder, name), KIND) if cache_dir else None
    stamps = [(record.path, record.oid) for record in records]
    if was is not None and set(stamps) <= {(path, oid) for path, oid in was[0]}:
        number = {path: at for at, (path, _oid) in enumerate(stamps)}
        return [
            Contradiction(number[one], number[other], kind, reason, topic, tuple(values))
            for one, other, kind, reason, topic, values in was[1]
            if one in number and other in number
        ]
    found = signs.find([record.memory for record in records], map(_stated, records))
    if cache_dir:
        rows = [
            (records[c.one].path, records[c.other].path, c.kind, c.reason, c.topic, c.values)
            for c in found
        ]
        cache.keep_json(folder, name, KIND, [stamps, rows], 1, "clashes-")
    return found


def _stated(record: Record) -> tuple[Statement, ...]:
    """Return what a memory states; the process remembers it, since no file changes its blob."""
    if getattr(record.memory, "withheld", ()):  # what is masked depends on the settings, too
        return signs.statements(record.memory)
    found = _known_statements.get(record.oid)
    if found is None:
        found = signs.statements(record.memory)
        if len(_known_statements) >= MOST_STATED:
            _known_statements.clear()
        _known_statements[record.oid] = found
    return found


def repetitions(
    tree: Tree,
    judged: Sequence[Record],
    neighbours: Neighbours,
    threshold: float,
    now: int,
    categories: Mapping[str, Category],
) -> list[Conflict]:
    """Return which of some living memories say what another one says, as conflicts by ids."""
    found = {}
    twins = near_duplicates.twins(judged, neighbours, threshold, now, categories)
    for record, twin in zip(judged, twins, strict=True):
        if twin is not None:
            first, second = sorted((record.id, twin.record.id))
            how = "the same words" if twin.is_exact else f"nearly the same ({twin.likeness:.2f})"
            accepted = _is_accepted(tree, (first, second))
            found[first, second] = Conflict(DUPLICATE, (first, second), how, accepted, DUPLICATE)
    return sorted(found.values(), key=order)


def order(conflict: Conflict) -> tuple[int, tuple[str, ...]]:
    """Sort key: kinds in the order of their table, then ids."""
    return _ORDER[conflict.kind], conflict.ids


def _is_accepted(tree: Tree, ids: Collection[str]) -> bool:
    """Tell whether of every two memories one accepts the other."""
    accepts = {id_: tree.by_id[id_].memory.items("conflicts_accepted") for id_ in ids}
    return all(
        one in accepts[other] or other in accepts[one] for one, other in combinations(ids, 2)
    )
