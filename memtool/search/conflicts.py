"""Conflicts: memories of one tree that cannot all hold, or say the same twice.

Forks come from lineage, oppositions from the statements of living heads, duplicates from their
words. What both sides know of is accepted: one names the other in `conflicts_accepted`.
"""

from __future__ import annotations

from itertools import combinations

from memtool.memory.visibility import OUT_OF_USE
from memtool.search import contradictions as signs
from memtool.search.contradictions import Contradiction, Statement
from memtool.search.features import Facts
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from memtool.memory.memory import Memory
    from memtool.store.tree import Record, Tree

KIND = "clashes 3"
"""What is kept of oppositions."""
CODE = ("memory", "index", "search")
"""The parts of the package whose code decides what contradicts what."""
FORK = "fork"
DUPLICATE = "duplicate"
KINDS: dict[str, str] = {
    FORK: "heads that supersede the same memory",
    signs.OPPOSITION: "one says to do what the other says not to do",
    signs.VALUES: "they give different values to the same thing",
    DUPLICATE: "they say the same",
}
"""What a conflict may be, in the order in which they are listed."""
_CERTAINTIES = (signs.CERTAIN, signs.SUSPECTED)
_ORDER = {kind: number for number, kind in enumerate(KINDS)}
MAX_COMPARED_AT_ONCE = 2_000
"""Memories of a tree that are compared though nobody asked for conflicts: under half a second."""
MAX_COMPARED = 60
"""Memories of one answer that are compared with each other: it takes about 2 ms."""
MAX_NAMED = 4
"""Ids in one warning."""
MOST_STATED = 20_000
"""Memories of which one process remembers what they state, about 10 MB."""
_known_statements: dict[str, tuple[Statement, ...]] = {}
"""What memories state, by the blob of their file."""


class Conflict(Value):
    """Memories that contradict each other, by their ids in sorted order.

    `topic` is what it is about, the same for all that belong together; `values` is what each memory
    gives to the same thing, in the order of `ids`, empty where it is no value. `certainty` is
    `certain` or `suspected`; a fork is certain.
    """

    kind: str
    ids: tuple[str, ...]
    reason: str
    accepted: bool
    topic: str = ""
    values: tuple[str, ...] = ()
    certainty: str = signs.CERTAIN

    @property
    def is_certain(self) -> bool:
        """Whether it is marked wherever its memories are shown."""
        return self.certainty == signs.CERTAIN

    @property
    def differs(self) -> str:
        """What differs, where that is a value: `6379 against 6380`."""
        return " against ".join(dict.fromkeys(self.values))


def living(tree: Tree, now: int) -> list[Record]:
    """Return the heads that are in use, sorted by id: what they state is meant to hold."""
    unused = {one.path for one in tree.of_kinds(lambda kind: kind.status in OUT_OF_USE)}
    found = (one for one in Facts(tree, now, dict).current_records() if one.path not in unused)
    return sorted(found, key=lambda record: (record.id, record.path))


def contradictions(tree: Tree, now: int, cache_dir: str = "") -> list[Conflict]:
    """Return the forks, then what opposes each other, each by ids.

    With a cache directory, memories that were compared before are not compared again.
    """
    found = {
        fork.heads: Conflict(
            FORK,
            fork.heads,
            f"both replace {fork.ancestor}",
            is_accepted(tree, fork.heads),
            f"{FORK} {fork.ancestor}",
        )
        for fork in tree.lineage.forks()
    }
    parted = {pair for heads in found for pair in combinations(heads, 2)}
    records = living(tree, now)
    for clash in _clashes(records, cache_dir):
        ids = (records[clash.one].id, records[clash.other].id)
        is_replacing = _replaces(records[clash.one].memory, records[clash.other].memory)
        if ids[0] != ids[1] and ids not in parted and not is_replacing:
            accepted = is_accepted(tree, ids)
            found[ids] = Conflict(
                clash.kind,
                ids,
                clash.reason,
                accepted,
                clash.topic,
                clash.values,
                clash.certainty,
            )
    return sorted(found.values(), key=order)


def marked(records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    """Return by id which of some memories certainly contradict one, itself among them.

    They are in order of time, the newest first. Nothing is in it that was accepted, and nothing of
    which one would replace the other: then that is what is said of them. Only the first
    `MAX_COMPARED` are compared.
    """
    records = list({one.path: one for one in records}.values())[:MAX_COMPARED]
    found: dict[str, set[int]] = {}
    for clash in signs.find([one.memory for one in records], map(_stated, records)):
        sides = records[clash.one], records[clash.other]
        mine, theirs = (side.memory for side in sides)
        is_settled = _accepts(mine, theirs) or _replaces(mine, theirs)
        if clash.certainty == signs.CERTAIN and mine.id != theirs.id and not is_settled:
            for side in sides:
                found.setdefault(side.id, set()).update((clash.one, clash.other))
    return {
        id_: tuple(
            dict.fromkeys(
                records[at].id
                for at in sorted(
                    places, key=lambda at: (-records[at].memory.timestamp, records[at].id)
                )
            )
        )
        for id_, places in found.items()
    }


def mark(ids: Sequence[str]) -> str:
    """Return the warning that each of some memories is shown with, of `marked`; empty for none."""
    if not ids:
        return ""
    more = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
    named = ", ".join(ids[:MAX_NAMED]) + more
    return f"[CONFLICT] {named} contradict each other, the newest first: ask the user which holds"


def _replaces(one: Memory, other: Memory) -> bool:
    return one.id in other.supersedes or other.id in one.supersedes


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
    certainty = min((one.certainty for one in group), key=_CERTAINTIES.index)
    joined = first.replace(ids=ids, values=values, certainty=certainty)
    return joined.replace(reason=joined.differs or f"{first.reason}, and {len(ids) - 2} more")


def open_contradictions(tree: Tree, now: int, cache_dir: str = "") -> list[Conflict] | None:
    """Return what opposes each other, forks and what was accepted aside, if that takes little time.

    None is for a large tree that changed since `contradictions` compared it.
    """
    if tree.count > MAX_COMPARED_AT_ONCE:
        stamps = [(record.path, record.oid) for record in living(tree, now)]
        if _kept(stamps, cache_dir) is None:
            return None
    found = contradictions(tree, now, cache_dir)
    return [one for one in found if one.kind != FORK and not one.accepted]


def _kept(stamps: Sequence[tuple[str, str]], cache_dir: str) -> list[Any] | None:
    """Return the rows that were kept of a comparison of all these files; None for none."""
    from memtool.store import kept

    found = kept.read_json(cache_dir, KIND, _basis()) if cache_dir else None
    if found is None:
        return None
    known, rows = found
    return rows if set(stamps) <= {(path, oid) for path, oid in known} else None


def _basis() -> bytes:
    """Return what the rows depend on besides the files: the code that compares."""
    from memtool.store import cache

    return cache.code_version(CODE).encode()


def _clashes(records: Sequence[Record], cache_dir: str) -> list[Contradiction]:
    """Return what opposes each other among some records.

    Whether two memories do follows from them alone. So what is kept of more memories holds for
    fewer of them; where one came, all are compared.
    """
    stamps = [(record.path, record.oid) for record in records]
    before = _kept(stamps, cache_dir)
    if before is not None:
        number = {path: at for at, (path, _oid) in enumerate(stamps)}
        return [
            Contradiction(number[one], number[other], kind, reason, topic, tuple(values), certainty)
            for one, other, kind, reason, topic, values, certainty in before
            if one in number and other in number
        ]
    found = signs.find([record.memory for record in records], map(_stated, records))
    if cache_dir:
        rows = [
            (
                records[c.one].path,
                records[c.other].path,
                c.kind,
                c.reason,
                c.topic,
                c.values,
                c.certainty,
            )
            for c in found
        ]
        from memtool.store import kept

        kept.write_json(cache_dir, KIND, _basis(), [stamps, rows])
    return found


def _stated(record: Record) -> tuple[Statement, ...]:
    """Return what a memory states; the process remembers it, since no file changes its blob."""
    if record.memory.withheld:  # what is masked depends on the settings, too
        return signs.statements(record.memory)
    found = _known_statements.get(record.oid)
    if found is None:
        found = signs.statements(record.memory)
        if len(_known_statements) >= MOST_STATED:
            _known_statements.clear()
        _known_statements[record.oid] = found
    return found


def order(conflict: Conflict) -> tuple[int, tuple[str, ...]]:
    """Sort key: kinds in the order of their table, then ids."""
    return _ORDER[conflict.kind], conflict.ids


def is_accepted(tree: Tree, ids: Collection[str]) -> bool:
    """Tell whether of every two memories one accepts the other."""
    accepts = {id_: tree[id_].memory.items("conflicts_accepted") for id_ in ids}
    return all(
        one in accepts[other] or other in accepts[one] for one, other in combinations(ids, 2)
    )


def _accepts(one: Memory, other: Memory) -> bool:
    key = "conflicts_accepted"
    return one.id in other.items(key) or other.id in one.items(key)
