"""Grouping: which memories say the same, and which of them is the best.

A memory that names another one in a relation was written knowing it: then both are meant.
"""

from __future__ import annotations

from memtool.gate import near_duplicates
from memtool.memory.fields import CONFIDENCES, RELATIONS
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.memory.memory import Memory
    from memtool.store.tree import Record
    from memtool.upkeep.steps import Grounds

_RANK = {"pinned": 2, "confirmed": 1}
_ALIKE = ("type", "scope", "valid_from", "valid_through", "environment")
"""Keys in which memories that say the same may differ and hold side by side."""


class Parted(Value):
    """Memories that say the same, and what speaks against merging them."""

    ids: tuple[str, ...]
    why: str


def group(
    pool: Mapping[str, Record], grounds: Grounds
) -> tuple[dict[str, list[Record]], list[Parted]]:
    """Return memories that say the same by the best of them, and what cannot be merged.

    Each round looks at what is left when the best stand for their groups, until nothing says the
    same as another one, however many did.
    """
    threshold = grounds.config.number(near_duplicates.THRESHOLD_KEY)
    left = dict(pool)
    groups: dict[str, list[Record]] = {}
    parted: dict[tuple[str, ...], Parted] = {}
    while True:
        judged = list(left.values())
        near = near_duplicates.among(judged)
        found = near_duplicates.twins(
            judged, near, threshold, grounds.now, grounds.config.categories
        )
        pairs = []
        for record, twin in zip(judged, found, strict=True):
            if twin is None or _knows(record.memory, twin.record.memory):
                continue
            why = _objection(record.memory, twin.record.memory)
            if why:
                ids = tuple(sorted((record.id, twin.record.id)))
                parted[ids] = Parted(ids, why)
            else:
                pairs.append((record, twin.record))
        if not pairs:
            return groups, list(parted.values())
        for gone in _join(pairs, groups, threshold):
            del left[gone]


def _join(
    pairs: Iterable[tuple[Record, Record]], groups: dict[str, list[Record]], threshold: float
) -> list[str]:
    """Join the groups of pairs, and return whom another one stands for now; one at least.

    The better of a pair stands for it. Where it has joined another group in the same round, the
    best of that must say the same, too.
    """
    gone = []
    stands: dict[str, Record] = {}
    ordered = [sorted(pair, key=worth, reverse=True) for pair in pairs]
    for pair in sorted(ordered, key=lambda pair: [worth(one) for one in pair], reverse=True):
        heads = [stands.get(one.id, one) for one in pair]
        best, other = sorted(heads, key=worth, reverse=True)
        if best.id == other.id or not (
            heads == pair or _say_the_same(best.memory, other.memory, threshold)
        ):
            continue
        groups.setdefault(best.id, [best]).extend(groups.pop(other.id, [other]))
        stands.update((one.id, best) for one in groups[best.id])
        gone.append(other.id)
    return gone


def _say_the_same(one: Memory, other: Memory, threshold: float) -> bool:
    """Tell whether two memories that are no twins of each other may be merged all the same."""
    return not (
        _knows(one, other)
        or _objection(one, other)
        or near_duplicates.likeness(one, other) < threshold
    )


def _knows(one: Memory, other: Memory) -> bool:
    """Tell whether one of two memories names the other: then both are meant."""
    return any(
        b.id in a.items(key)
        for a, b in ((one, other), (other, one))
        for key in (*RELATIONS, "conflicts_accepted")
    )


def _objection(one: Memory, other: Memory) -> str:
    """Return what speaks against merging two memories, empty for nothing."""
    return next((f"their {key} differs" for key in _ALIKE if one.text(key) != other.text(key)), "")


def is_standing(memory: Memory) -> bool:
    """Tell whether somebody vouched for a memory: it is confirmed or pinned."""
    return memory.status in _RANK


def worth(record: Record) -> tuple[int, int, float, int, str]:
    """Sort key of memories that say the same: who is vouched for, sure, important, and new."""
    memory = record.memory
    sure = CONFIDENCES.index(memory.confidence)
    return _RANK.get(memory.status, 0), sure, memory.importance, memory.timestamp, memory.id
