"""Likeness: does one memory say what another one says? Pure measures over terms and sentences.

It is the one measure, with one threshold, for the gate, a block, promoted findings and a fleet.
"""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.memory.memory import Memory

SAME = 0.82
"""Likeness from which two memories say the same."""
_EDGES = "`*_\"'()[]<>,;:!?.\u201c\u201d\u2018\u2019\u00ab\u00bb\u2026"
_ENDS = (". ", "! ", "? ")
_NOT_SAID = ("option", "alternative", "reject", "consider")
"""A section whose heading has one of these words holds what was not decided."""
TITLED_TYPES = ("decision", "semantic")
"""Types of which two memories under one title are about the same claim: what happened, and where
the work stands, may bear the same title twice."""


class TextTerms(Value):
    """A text as it is compared: its terms without stop words, and those that name one thing."""

    content: frozenset[str]
    names: frozenset[str]


def likeness(one: TextTerms, other: TextTerms, least: float = 0.0) -> float:
    """Return how far two texts say the same, 0 to 1: the cosine of their sets of terms.

    It is 0 if each names something that the other does not: the same sentence about another port,
    version, file or person is another claim. What is below `least` may be too high.
    """
    near = cosine(one.content, other.content)
    is_other = near >= least and one.names - other.content and other.names - one.content
    return 0.0 if is_other else near


def cosine(one: frozenset[str], other: frozenset[str]) -> float:
    """Return how far two sets of terms are the same, 0 to 1 (Ochiai 1957)."""
    if not one or not other:
        return 0.0
    return float(len(one & other) / (len(one) * len(other)) ** 0.5)


def key(text: str) -> str:
    """Return the words of a text in lower case, without the marks around them."""
    return " ".join(word for part in text.casefold().split() if (word := part.strip(_EDGES)))


def has_title_of(one: Memory, other: Memory) -> bool:
    """Tell whether two memories of one type make their claims under the same title."""
    is_same_type = one.type == other.type and one.type in TITLED_TYPES
    return is_same_type and key(one.title) == key(other.title) != ""


def is_said_by(one: Memory, other: Memory) -> bool:
    """Tell whether each sentence of a memory is the title or a sentence of another one."""
    said = frozenset(_sentences(one))
    return bool(said) and said <= frozenset(_sentences(other))


def _sentences(memory: Memory) -> Iterator[str]:
    """Yield title and sentences of a memory, but for sections about what was not decided."""
    yield key(memory.title)
    is_said = True
    paragraph: list[str] = []
    for line in f"{memory.body}\n#".splitlines():
        row = line.strip()
        if not row or row.startswith(("#", "- ", "* ")):
            yield from filter(None, map(key, _split(" ".join(paragraph)))) if is_said else ()
            paragraph = []
        if row.startswith("#"):
            is_said = not any(word in row.casefold() for word in _NOT_SAID)
        elif row:
            paragraph.append(row)


def _split(line: str) -> Iterator[str]:
    """Yield the sentences of a paragraph on one line."""
    start = 0
    while start < len(line):
        ends = [at for mark in _ENDS if (at := line.find(mark, start)) >= 0]
        end = min(ends) + 1 if ends else len(line)
        yield line[start:end]
        start = end
