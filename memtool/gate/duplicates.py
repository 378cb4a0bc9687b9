"""Duplicates: is a memory said already, in the same words or nearly so?

The same words (by `identity.fingerprint`) are an exact twin. A near twin shares so many terms that
one of the two says nothing new; the same sentence with another value, name or sign is none, that
is a conflict. A memory that names its twin in a relation was written knowing it, and may stay.
"""

from __future__ import annotations

from memtool.memory.fields import DEFAULT_CATEGORIES, RELATIONS
from memtool.memory.problem import Problem
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from memtool.gate.neighbours import Found, Neighbours
    from memtool.memory.fields import Category
    from memtool.memory.memory import Memory
    from memtool.store.tree import Record

THRESHOLD_KEY = "check.duplicate_threshold"
"""The setting: least `likeness` of a near twin."""


class Twin(Value):
    """The memory that says it already. `likeness` is 1 for an exact one."""

    record: Record
    is_exact: bool
    likeness: float


def likeness(one: Memory, other: Memory) -> float:
    """Return how far two memories say the same, 0 to 1: the cosine of their sets of terms.

    0 where each names something that the other does not (the same sentence about another port,
    version, file or person is another claim), and where they oppose each other.
    """
    from memtool.gate.signatures import content_of, cosine

    mine, theirs = content_of(one), content_of(other)
    return 0.0 if _parts(one, mine, other, theirs) else cosine(mine, theirs)


def _parts(one: Memory, mine: frozenset[str], other: Memory, theirs: frozenset[str]) -> bool:
    """Tell whether something sets two memories apart, however alike their words are."""
    from memtool.gate.opposition import opposed
    from memtool.gate.signatures import names_of

    if names_of(one) - theirs and names_of(other) - mine:
        return True
    return bool(opposed(one, other)[0])


def twins(
    judged: Sequence[Record],
    neighbours: Neighbours,
    threshold: float,
    now: int,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
) -> list[Twin | None]:
    """Return for each memory the living one that says the same: the most alike, then by id.

    A memory that is itself deleted or archived repeats nothing. A relation that names the near
    twin makes it none.
    """
    words: dict[tuple[str, str], frozenset[str]] = {}

    def alike(one: Record, other: Record) -> float:
        known = neighbours.share(one, other)
        if known is None:
            known = compare(one, other)
            neighbours.compared(one, other, known)
        return known

    def compare(one: Record, other: Record) -> float:
        from memtool.gate.signatures import content_of, cosine  # most memories are like no other

        for record in (one, other):
            if (record.path, record.oid) not in words:
                words[record.path, record.oid] = content_of(record.memory)
        mine, theirs = words[one.path, one.oid], words[other.path, other.oid]
        near = cosine(mine, theirs)
        if near >= threshold and _parts(one.memory, mine, other.memory, theirs):
            return 0.0
        return near

    return [
        _best(record, near, alike, threshold, now, categories)
        if near and _lives(record.memory, now, categories)
        else None
        for record, near in zip(judged, neighbours.worth(judged, threshold), strict=True)
    ]


def _best(
    record: Record,
    near: Sequence[Found],
    alike: Callable[[Record, Record], float],
    threshold: float,
    now: int,
    categories: Mapping[str, Category],
) -> Twin | None:
    """Return which of some neighbours says what a memory says."""
    best: Twin | None = None
    for candidate in near:
        other = candidate.record.memory
        if not _lives(other, now, categories):
            continue
        is_related = any(other.id in record.memory.items(key) for key in RELATIONS)
        share = 1.0 if candidate.is_exact else alike(record, candidate.record)
        if candidate.is_exact or (share >= threshold and not is_related):
            twin = Twin(candidate.record, candidate.is_exact, share)
            best = twin if best is None else min(best, twin, key=_order)
    return best


def _lives(memory: Memory, now: int, categories: Mapping[str, Category]) -> bool:
    """Tell whether a memory is alive and says something itself, as no generated digest does."""
    from memtool.memory import lifecycle
    from memtool.memory.memory import is_generated  # most memories are like no other

    is_alive = lifecycle.state(memory, now, categories) == lifecycle.ALIVE
    return is_alive and not is_generated(memory)


def _order(twin: Twin) -> tuple[bool, float, str, str]:
    return not twin.is_exact, -twin.likeness, twin.record.id, twin.record.path


def problems(
    judged: Sequence[Record],
    neighbours: Neighbours,
    threshold: float,
    now: int,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
    *,
    among: Collection[str] = (),
) -> list[Problem]:
    """Return a problem for each memory that is said already, in their order.

    Of two judged memories that repeat each other only the later one is told; the paths of `among`
    count as judged for that.
    """
    places = {record.path for record in judged}.union(among)
    found = []
    for record, twin in zip(
        judged, twins(judged, neighbours, threshold, now, categories), strict=True
    ):
        if twin is None or (twin.record.path in places and _age(record) < _age(twin.record)):
            continue
        other = twin.record
        how = (
            "says the same as"
            if twin.is_exact
            else f"says nearly ({twin.likeness:.2f}) the same as"
        )
        found.append(
            Problem(
                record.path,
                1,
                "duplicate",
                f"it {how} {other.id}, {other.memory.title!r}",
                hint(other.id, is_exact=twin.is_exact),
                id=record.id,
            )
        )
    return found


def hint(id_: str, *, is_exact: bool) -> str:
    """Return what to do about a twin."""
    instead = f"memtool supersede {id_} TITLE replaces it"
    if is_exact:
        return f"leave this one out, or {instead}"
    return f"{instead}; related_to: [{id_}] says that both are meant"


def _age(record: Record) -> tuple[int, str, str]:
    return record.memory.timestamp, record.id, record.path
