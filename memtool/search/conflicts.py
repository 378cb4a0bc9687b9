"""Conflicts: memories of one tree that cannot all hold, or that say the same twice.

Forks come from lineage, oppositions from the statements of living heads, duplicates from their
words. A conflict is accepted if one side names the other in `conflicts_accepted`.
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
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Any

    from memtool.memory.memory import Memory
    from memtool.store.tree import Record, Tree

KIND = "clashes 3"
"""Version of the stored oppositions."""
CODE = ("memory", "index", "search")
"""The packages whose code decides what contradicts what."""
FORK = "fork"
DUPLICATE = "duplicate"
KINDS: dict[str, str] = {
    FORK: "heads that supersede the same memory",
    signs.OPPOSITION: "one says to do what the other says not to do",
    signs.VALUES: "they give different values to the same thing",
    DUPLICATE: "they say the same",
}
"""The kinds of conflict, in the order in which they are listed."""
_CERTAINTIES = (signs.CERTAIN, signs.SUSPECTED)
_ORDER = {kind: number for number, kind in enumerate(KINDS)}
MAX_COMPARED_AT_ONCE = 2_000
"""Limit for comparing a tree without a request for conflicts: under half a second."""
MAX_COMPARED = 60
"""Memories of one answer that are compared with each other; this takes about 2 ms."""
MAX_NAMED = 4
"""Ids in one warning."""
MAX_STATED = 20_000
"""Memories whose statements one process caches, about 10 MB."""
_known_statements: dict[str, tuple[Statement, ...]] = {}
"""Statements by the blob of the memory's file."""


class Conflict(Value):
    """Memories that contradict each other, by their ids in sorted order.

    `topic` is the same for all conflicts about one thing. `values` are the values that the memories
    give to it, in the order of `ids`, empty without values. `certainty` is `certain` or
    `suspected`; a fork is certain.
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
        """The differing values, if any: `6379 against 6380`."""
        return " against ".join(dict.fromkeys(self.values))


def find_living(tree: Tree, now: int) -> list[Record]:
    """Return the heads in use, sorted by id: their statements are meant to hold."""
    unused = {record.path for record in tree.of_kinds(lambda kind: kind.status in OUT_OF_USE)}
    records = (
        record for record in Facts(tree, now, dict).find_current() if record.path not in unused
    )
    return sorted(records, key=lambda record: (record.id, record.path))


def find_contradictions(tree: Tree, now: int, cache_dir: str = "") -> list[Conflict]:
    """Return the forks, then the oppositions, each sorted by ids.

    With a cache directory, memories that were compared before are not compared again.
    """
    conflicts = {
        fork.heads: Conflict(
            FORK,
            fork.heads,
            f"both replace {fork.ancestor}",
            is_accepted(tree, fork.heads),
            f"{FORK} {fork.ancestor}",
        )
        for fork in tree.lineage.find_forks()
    }
    parted = {pair for heads in conflicts for pair in combinations(heads, 2)}
    records = find_living(tree, now)
    for clash in _find_clashes(records, cache_dir):
        ids = (records[clash.first].id, records[clash.other].id)
        is_replacing = _replaces(records[clash.first].memory, records[clash.other].memory)
        if ids[0] != ids[1] and ids not in parted and not is_replacing:
            accepted = is_accepted(tree, ids)
            conflicts[ids] = Conflict(
                clash.kind,
                ids,
                clash.reason,
                accepted,
                clash.topic,
                clash.values,
                clash.certainty,
            )
    return sorted(conflicts.values(), key=sort_key)


def mark_contradicting(records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    """Return, by id, the memories that certainly contradict each other, itself included.

    They are sorted by time, newest first. Accepted conflicts are left out, and pairs in which one
    would replace the other, since that is reported instead. Only the first `MAX_COMPARED` are
    compared.
    """
    records = list({record.path: record for record in records}.values())[:MAX_COMPARED]
    clashing: dict[str, set[int]] = {}
    for clash in signs.find([record.memory for record in records], map(_read_statements, records)):
        sides = records[clash.first], records[clash.other]
        mine, theirs = (side.memory for side in sides)
        is_settled = _accepts(mine, theirs) or _replaces(mine, theirs)
        if clash.certainty == signs.CERTAIN and mine.id != theirs.id and not is_settled:
            for side in sides:
                clashing.setdefault(side.id, set()).update((clash.first, clash.other))
    return {
        id_: tuple(
            dict.fromkeys(
                records[at].id
                for at in sorted(
                    places, key=lambda at: (-records[at].memory.timestamp, records[at].id)
                )
            )
        )
        for id_, places in clashing.items()
    }


def mark(ids: Sequence[str]) -> str:
    """Format the warning on contradicting memories, from `mark_contradicting`; empty for none."""
    if not ids:
        return ""
    suffix = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
    named = ", ".join(ids[:MAX_NAMED]) + suffix
    return f"[CONFLICT] {named} contradict each other, the newest first: ask the user which holds"


def _replaces(memory: Memory, other: Memory) -> bool:
    return memory.id in other.supersedes or other.id in memory.supersedes


def find_clusters(conflicts: Sequence[Conflict]) -> list[Conflict]:
    """Merge the conflicts about one thing into one, with all memories that take part.

    Accepted ones stay apart from open ones. The kind is the first in the order of the table.
    """
    apart: dict[tuple[str, bool], list[tuple[set[str], list[Conflict]]]] = {}
    for conflict in conflicts:
        groups = apart.setdefault((conflict.topic, conflict.accepted), [])
        ids, members = set(conflict.ids), [conflict]
        for group in [group for group in groups if not ids.isdisjoint(group[0])]:
            groups.remove(group)
            ids |= group[0]
            members += group[1]
        groups.append((ids, members))
    joined = [_join_group(members) for groups in apart.values() for _ids, members in groups]
    return sorted(joined, key=sort_key)


def _join_group(group: Sequence[Conflict]) -> Conflict:
    first = min(group, key=sort_key)
    if len(group) == 1:
        return first
    gives = {
        id_: value
        for conflict in group
        for id_, value in zip(conflict.ids, conflict.values, strict=False)
    }
    ids = tuple(sorted({id_ for conflict in group for id_ in conflict.ids}))
    values = tuple(gives.get(id_, "") for id_ in ids) if all(map(gives.get, ids)) else ()
    certainty = min((conflict.certainty for conflict in group), key=_CERTAINTIES.index)
    joined = first.replace(ids=ids, values=values, certainty=certainty)
    return joined.replace(reason=joined.differs or f"{first.reason}, and {len(ids) - 2} more")


def find_open_contradictions(
    tree: Tree, now: int, cache_dir: str = "", *, max_compared: int = MAX_COMPARED_AT_ONCE
) -> list[Conflict] | None:
    """Return the open conflicts without forks, if that takes little time.

    None for a tree of more than `max_compared` memories that changed since `find_contradictions`
    compared it.
    """
    if tree.count > max_compared:
        stored = _read_stored(lambda: _list_stamps(find_living(tree, now)), cache_dir)
        if stored is None:
            return None
    conflicts = find_contradictions(tree, now, cache_dir)
    return [conflict for conflict in conflicts if conflict.kind != FORK and not conflict.accepted]


def _list_stamps(records: Iterable[Record]) -> list[tuple[str, str]]:
    return [(record.path, record.oid) for record in records]


def _read_stored(
    list_stamps: Callable[[], Sequence[tuple[str, str]]], cache_dir: str
) -> list[Any] | None:
    """Return the stored rows of a comparison of all these files; None if there are none.

    The files are only listed if there is a comparison.
    """
    from memtool.store import kept

    stored = kept.read_json(cache_dir, KIND, _basis()) if cache_dir else None
    if stored is None:
        return None
    stored_stamps, rows = stored
    return rows if set(list_stamps()) <= {(path, oid) for path, oid in stored_stamps} else None


def _basis() -> bytes:
    """Return what the rows depend on besides the files: the code that compares."""
    from memtool.store import cache

    return cache.compute_code_version(CODE).encode()


def _find_clashes(records: Sequence[Record], cache_dir: str) -> list[Contradiction]:
    """Return the oppositions among records.

    Whether two memories oppose each other depends on them alone. So stored results for more
    memories hold for a part of them; if one was added, all are compared.
    """
    stamps = _list_stamps(records)
    before = _read_stored(lambda: stamps, cache_dir)
    if before is not None:
        number = {path: at for at, (path, _oid) in enumerate(stamps)}
        return [
            Contradiction(
                number[first], number[other], kind, reason, topic, tuple(values), certainty
            )
            for first, other, kind, reason, topic, values, certainty in before
            if first in number and other in number
        ]
    clashes = signs.find([record.memory for record in records], map(_read_statements, records))
    if cache_dir:
        rows = [
            (
                records[c.first].path,
                records[c.other].path,
                c.kind,
                c.reason,
                c.topic,
                c.values,
                c.certainty,
            )
            for c in clashes
        ]
        from memtool.store import kept

        kept.write_json(cache_dir, KIND, _basis(), [stamps, rows])
    return clashes


def _read_statements(record: Record) -> tuple[Statement, ...]:
    """Return the statements of a memory, cached by its immutable blob."""
    if record.memory.withheld:  # what is masked depends on the settings, too
        return signs.parse_statements(record.memory)
    statements = _known_statements.get(record.oid)
    if statements is None:
        statements = signs.parse_statements(record.memory)
        if len(_known_statements) >= MAX_STATED:
            _known_statements.clear()
        _known_statements[record.oid] = statements
    return statements


def sort_key(conflict: Conflict) -> tuple[int, tuple[str, ...]]:
    """Sort by kind in the order of the table, then by ids."""
    return _ORDER[conflict.kind], conflict.ids


def list_unsettled(tree: Tree, contradictions: Iterable[Conflict]) -> list[tuple[str, ...]]:
    """Return the ids in each conflict that the user has to settle.

    First come the forks that are not accepted, then the clusters of the certain contradictions.
    """
    forks = [fork.heads for fork in tree.lineage.find_forks()]
    certain = [contradiction for contradiction in contradictions if contradiction.is_certain]
    return [
        *(heads for heads in forks if not is_accepted(tree, heads)),
        *(cluster.ids for cluster in find_clusters(certain)),
    ]


def is_accepted(tree: Tree, ids: Collection[str]) -> bool:
    """Return whether of every two memories one accepts the other."""
    accepts = {id_: tree[id_].memory.items("conflicts_accepted") for id_ in ids}
    return all(
        first in accepts[other] or other in accepts[first] for first, other in combinations(ids, 2)
    )


def _accepts(memory: Memory, other: Memory) -> bool:
    key = "conflicts_accepted"
    return memory.id in other.items(key) or other.id in memory.items(key)
