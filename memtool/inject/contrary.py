"""Contrary: memories at hand that cannot both hold, so that both are shown, and marked.

Compared is what is shown of every memory, its title and statement. How they begin tells which
pairs are worth to be taken apart by the gate, whose modules most answers then need not load.
"""

from __future__ import annotations

from memtool.memory.signs import AFFIRMING, DENYING, TYPES, WEAK
from memtool.search.terms import is_stop
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.inject.standing import Standing
    from memtool.memory.memory import Memory

MOST_EXTRA = 2
"""Words by which the subjects of two clauses may differ, each way."""
BEGINNING = 150
"""Characters of a statement that are looked at for words."""
ROOT = 5
"""Letters by which words are compared: `session` and `sessions` are the same."""
_NO_SUBJECT = DENYING | AFFIRMING | WEAK
_PARTED = str.maketrans("_-./=", "     ")
_SPACED = str.maketrans(',;!?:`"*()[]{}<>', "\n\n\n\n" + " " * 12)


class Clause(Value):
    """Part of a sentence: the roots of the words that it is about, and what it gives as values."""

    subject: set[str]
    is_denying: bool
    values: set[str]


def clashes(memories: Sequence[Memory]) -> list[tuple[int, int]]:
    """Return every two memories that cannot both hold, by place in the list, in order.

    Left out is what one of them names in `conflicts_accepted`.
    """
    return [
        (one, other)
        for one, other in _suspected(memories)
        if _is_contrary(memories[one], memories[other])
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


def _is_contrary(one: Memory, other: Memory) -> bool:
    if one.id in other.items("conflicts_accepted") or other.id in one.items("conflicts_accepted"):
        return False
    from memtool.gate import opposition  # most answers hold nothing that may be contrary

    first, second = (
        opposition.said_by(memory.replace(body=memory.statement)) for memory in (one, other)
    )
    is_related = opposition.is_related(one, other)
    for mine in first:
        for theirs in second:
            if opposition.kind_of(mine, theirs, is_related=is_related):
                return True
    return False


def _suspected(memories: Sequence[Memory]) -> list[tuple[int, int]]:
    """Return the pairs that speak of the same, where one denies or values otherwise."""
    clauses = [
        (place, clause)
        for place, memory in enumerate(memories)
        if memory.type in TYPES
        for clause in _clauses(memory)
    ]
    return sorted({
        (min(place, other), max(place, other))
        for place, one in clauses
        if one.is_denying or one.values
        for other, two in clauses
        if other != place and not one.subject.isdisjoint(two.subject) and _may_clash(one, two)
    })  # fmt: skip


def _clauses(memory: Memory) -> list[Clause]:
    """Return the clauses by which a memory begins."""
    text = f"{memory.title}\n{memory.statement[:BEGINNING]}".lower().translate(_SPACED)
    found = []
    for clause in text.replace(". ", "\n").split("\n"):
        parts = set(clause.translate(_PARTED).split()) - _NO_SUBJECT
        subject = {part[:ROOT] for part in parts if part.isalpha() and not is_stop(part)}
        if subject:
            words = clause.split()
            is_denying = "n't" in clause or not DENYING.isdisjoint(words)
            values = {word.rstrip(".") for word in words if not word.isalpha()}
            found.append(Clause(subject, is_denying, values))
    return found


def _may_clash(one: Clause, other: Clause) -> bool:
    """Tell whether the subjects are nearly the same, and something of what is said differs."""
    common = len(one.subject & other.subject)
    if max(len(one.subject), len(other.subject)) > common + min(MOST_EXTRA, common):
        return False
    return one.is_denying or bool(other.values and one.values != other.values)
