"""Likeness: which memories would repeat each other in a block.

Two memories say the same where nearly all of their words are the same, and nothing that they
differ in is a number or a negation: `30 seconds` and `60 seconds` contradict each other.
"""

from __future__ import annotations

from memtool.index.analyzer import is_stop, terms
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.memory import Memory

SAME = 0.9
"""Share of all words of two memories that are in both, from which they say the same."""
LEAST_WORDS = 8
"""Shorter texts are compared by fingerprint alone: each word of theirs may be the point."""
SIZES = 0.7
"""Least ratio of two lengths for which it is worth to look at words."""
ROUGHLY = 0.3
"""Least share of words, as they are written, that two texts must have in common for that."""
FIRST = 6
"""Words by which a memory begins, its type among them."""
PER_SOURCE = 2
"""Most memories of one source in a block."""
SOURCE_KINDS = frozenset({"commit", "file", "url", "session", "memory"})
"""Kinds that name one thing. A person or a tool says many."""

_NEGATIONS = frozenset({"no", "not", "never", "without", "dont", "cannot", "except"})


class Wording:
    """The words of a memory: how it begins, all as they are written, and as terms.

    Each is worked out where what costs less did not tell two memories apart; terms cost a hundred
    times what the words cost. Memories with the same words begin the same.
    """

    def __init__(self, memory: Memory) -> None:
        self.type = memory.type
        self.size = len(memory.body)
        self.head = f"{memory.type}\n{memory.title}\n"
        self.text = f"{self.head}{memory.body}"
        self.begin = " ".join(self.text.split(None, FIRST)[:FIRST]).lower()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All words as they are written, the type first; case does not count."""
        return tuple(self.text.lower().split())

    @cached_property
    def rough(self) -> frozenset[str]:
        """The words of the body as they are written."""
        return frozenset(self.words[len(self.head.split()) :])

    @cached_property
    def terms(self) -> frozenset[str]:
        """The terms of title and body."""
        return frozenset(terms(self.text[len(self.type) :]))


def says_same(one: Wording, other: Wording) -> bool:
    """Tell whether two memories say the same in nearly the same words."""
    if one.type != other.type:
        return False
    if one.size < SIZES * other.size or other.size < SIZES * one.size:
        return False
    if _overlap(one.rough, other.rough) < ROUGHLY:
        return False
    differing = one.terms ^ other.terms
    if any(term in _NEGATIONS or any(char.isdigit() for char in term) for term in differing):
        return False
    first, second = (
        frozenset(term for term in found if not is_stop(term)) for found in (one.terms, other.terms)
    )
    both = len(first & second)
    return both >= LEAST_WORDS and both >= SAME * len(first | second)


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    both = len(first & second)
    return both / max(1, len(first) + len(second) - both)


def sources(memory: Memory) -> tuple[str, ...]:
    """Return the things that a memory comes from, without places in them, sorted."""
    found = set()
    for source in memory.items("source"):
        kind, _colon, rest = source.partition(":")
        if kind in SOURCE_KINDS:
            name = rest if kind == "url" else rest.partition("#")[0].partition("@")[0]
            found.add(f"{kind}:{name}")
    return tuple(sorted(found))
