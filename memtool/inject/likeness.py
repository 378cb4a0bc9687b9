"""Likeness: which memories would repeat each other in a block.

Two memories say the same where nearly all of their words are the same, and nothing that they
differ in is a number or a negation: `30 seconds` and `60 seconds` contradict each other.
"""

from __future__ import annotations

from memtool.search.terms import is_stop, terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.memory.memory import Memory

SAME = 0.9
"""Share of all words of two memories that are in both, from which they say the same."""
LEAST_WORDS = 8
"""Shorter texts are compared by fingerprint alone: each word of theirs may be the point."""
SIZES = 0.7
"""Least ratio of two lengths for which it is worth to look at words."""
ROUGHLY = 0.3
"""Least share of words, as they are written, that two texts must have in common for that."""
PER_SOURCE = 2
"""Most memories of one source in a block."""
SOURCE_KINDS = frozenset({"commit", "file", "url", "session", "memory"})
"""Kinds that name one thing. A person or a tool says many."""

_MOST_KNOWN = 64
_known: dict[str, frozenset[str]] = {}
_rough_known: dict[str, frozenset[str]] = {}
_NEGATIONS = frozenset({"no", "not", "never", "without", "dont", "cannot", "except"})


def says_same(one: Memory, other: Memory) -> bool:
    """Tell whether two memories say the same in nearly the same words."""
    if one.type != other.type:
        return False
    length, other_length = len(one.body), len(other.body)
    if length < SIZES * other_length or other_length < SIZES * length:
        return False
    if _overlap(_rough(one.body), _rough(other.body)) < ROUGHLY:
        return False
    first, second = (_words(f"{memory.title}\n{memory.body}") for memory in (one, other))
    differing = first ^ second
    if any(term in _NEGATIONS or any(char.isdigit() for char in term) for term in differing):
        return False
    first, second = (
        frozenset(term for term in found if not is_stop(term)) for found in (first, second)
    )
    both = len(first & second)
    return both >= LEAST_WORDS and both >= SAME * len(first | second)


def _rough(text: str) -> frozenset[str]:
    """Return the words of a text as they are written: a hundredth of the work of its terms."""
    return _remembered(_rough_known, text, lambda: text.lower().split())


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    both = len(first & second)
    return both / max(1, len(first) + len(second) - both)


def _words(text: str) -> frozenset[str]:
    """Return the terms of a text, kept for the next comparison with it."""
    return _remembered(_known, text, lambda: terms(text))


def _remembered(
    known: dict[str, frozenset[str]], text: str, make: Callable[[], list[str]]
) -> frozenset[str]:
    if text not in known:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[text] = frozenset(make())
    return known[text]


def sources(memory: Memory) -> tuple[str, ...]:
    """Return the things that a memory comes from, without places in them, sorted."""
    found = set()
    for source in memory.items("source"):
        kind, _colon, rest = source.partition(":")
        if kind in SOURCE_KINDS:
            name = rest if kind == "url" else rest.partition("#")[0].partition("@")[0]
            found.add(f"{kind}:{name}")
    return tuple(sorted(found))
