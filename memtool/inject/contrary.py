"""Contrary: memories at hand that may contradict each other, so that both are shown, and marked."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.inject.standing import Standing
    from memtool.memory.memory import Memory


def clashes(memories: Sequence[Memory]) -> list[tuple[int, int]]:
    """Return every two memories that may contradict each other, by place in the list, in order.

    Left out is what one of them names in `conflicts_accepted`.
    """
    if len(memories) < 2:
        return []
    from memtool.gate import contradictions  # many answers hold one memory, or none

    return [
        (found.one, found.other)
        for found in contradictions.find(memories)
        if not _is_accepted(memories[found.one], memories[found.other])
    ]


def known(standing: Standing, memories: Sequence[Memory]) -> Standing:
    """Return the standing with what contradicts each other among some memories."""
    found: dict[str, set[str]] = {}
    for one, other in clashes(memories):
        ids = memories[one].id, memories[other].id
        if ids[0] != ids[1] and ids[1] not in standing.conflicts(ids[0]):
            found.setdefault(ids[0], set()).add(ids[1])
            found.setdefault(ids[1], set()).add(ids[0])
    if not found:
        return standing
    return standing.replace(contrary={id_: tuple(sorted(found[id_])) for id_ in sorted(found)})


def _is_accepted(one: Memory, other: Memory) -> bool:
    return one.id in other.items("conflicts_accepted") or other.id in one.items(
        "conflicts_accepted"
    )
