"""Contrary: memories at hand that cannot both hold, so that both are shown, and marked.

Compared is what is shown of every memory, its title and statement. How they begin tells which
pairs are worth to be taken apart by the gate, whose modules most answers then need not load.
"""

from __future__ import annotations

from memtool.index.analyzer import is_stop
from memtool.memory.signs import AFFIRMING, DENYING, TYPES, WEAK

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
_PARTED = bytes.maketrans(b"_-./=", b"     ")
_SPACED = bytes.maketrans(b',;!?:`"*()[]{}<>', b"\n\n\n\n" + b" " * 12)


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
    clauses: list[tuple[int, int, bool, set[str]]] = []
    subjects: list[set[str]] = []
    speaking: dict[str, list[int]] = {}
    """The clauses about a root, so that only those that share one are compared."""
    for place, memory in enumerate(memories):
        for subject, is_denying, values in _clauses(memory) if memory.type in TYPES else ():
            for root in subject:
                speaking.setdefault(root, []).append(len(clauses))
            clauses.append((place, len(subject), is_denying, values))
            subjects.append(subject)
    found = set()
    for (place, size, is_denying, values), subject in zip(clauses, subjects, strict=True):
        if not (is_denying or values):
            continue
        common: dict[int, int] = {}
        for root in subject:
            for number in speaking[root]:
                common[number] = common.get(number, 0) + 1
        for number, count in common.items():
            other, other_size, _is_denying, other_values = clauses[number]
            may_clash = is_denying or (other_values and other_values != values)
            if may_clash and other != place and _is_same(size, other_size, count):
                found.add((min(place, other), max(place, other)))
    return sorted(found)


def _clauses(memory: Memory) -> list[tuple[set[str], bool, set[str]]]:
    """Return the clauses by which a memory begins.

    Each is the roots of the words that it is about, whether it denies, and what it gives as values.
    """
    text = f"{memory.title}\n{memory.statement[:BEGINNING]}".lower()
    spaced = text.encode(errors="surrogatepass").translate(_SPACED).replace(b". ", b"\n")
    parted = spaced.translate(_PARTED)
    clauses, subjects = (one.decode(errors="surrogatepass").split("\n") for one in (spaced, parted))
    found = []
    for clause, said in dict(zip(clauses, subjects, strict=True)).items():
        parts = set(said.split()) - _NO_SUBJECT
        subject = {part[:ROOT] for part in parts if part.isalpha() and not is_stop(part)}
        if subject:
            words = clause.split()
            is_denying = "n't" in clause or not DENYING.isdisjoint(words)
            values = {word.rstrip(".") for word in words if not word.isalpha()}
            found.append((subject, is_denying, values))
    return found


def _is_same(one: int, other: int, common: int) -> bool:
    """Tell from the numbers of roots whether two subjects are nearly the same."""
    return max(one, other) <= common + min(MOST_EXTRA, common)
