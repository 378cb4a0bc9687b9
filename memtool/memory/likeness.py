"""Likeness: does one memory say the same as another? Pure measures over terms and sentences.

The gate, blocks, promoted findings and the fleet share this measure and its one threshold.
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
"""A section with one of these words in its heading holds rejected options, not the decision."""
TITLED_TYPES = ("decision", "semantic")
"""Types for which an equal title means the same claim. Two episodes, or two states of the work, may
share a title.
"""


class TextTerms(Value):
    """A text to compare: its terms without stop words, and those that name one thing."""

    content: frozenset[str]
    names: frozenset[str]


def compute_likeness(left: TextTerms, other: TextTerms, least: float = 0.0) -> float:
    """Return how far two texts say the same, 0 to 1: the cosine of their sets of terms.

    It is 0 if each names something that the other does not: the same sentence about another port,
    version, file or person is another claim. A result below `least` may be too high.
    """
    near = compute_cosine(left.content, other.content)
    is_other = near >= least and left.names - other.content and other.names - left.content
    return 0.0 if is_other else near


def compute_cosine(left: frozenset[str], other: frozenset[str]) -> float:
    """Return how far two sets of terms are the same, 0 to 1 (Ochiai 1957)."""
    if not left or not other:
        return 0.0
    return float(len(left & other) / (len(left) * len(other)) ** 0.5)


def key(text: str) -> str:
    """Return the words of a text in lower case, without the marks around them."""
    return " ".join(word for part in text.casefold().split() if (word := part.strip(_EDGES)))


def has_same_title(memory: Memory, other: Memory) -> bool:
    """Return whether two memories of one type make their claims under the same title."""
    is_same_type = memory.type == other.type and memory.type in TITLED_TYPES
    return is_same_type and key(memory.title) == key(other.title) != ""


def is_said_by(memory: Memory, other: Memory) -> bool:
    """Return whether each sentence of a memory is the title or a sentence of another one."""
    sentences = frozenset(_split_sentences(memory))
    return bool(sentences) and sentences <= frozenset(_split_sentences(other))


def _split_sentences(memory: Memory) -> Iterator[str]:
    """Yield title and sentences of a memory, without sections about rejected options."""
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
