"""Comparison: memories as they are compared, by terms, names and statements.

The measure itself is `memory.likeness`; here are the words that it is given.
"""

from __future__ import annotations

from memtool.memory import likeness as measure
from memtool.memory.fields import RELATIONS
from memtool.memory.likeness import SAME, TextTerms
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.memory.memory import Memory
    from memtool.search.contradictions import Statement

_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve fifteen twenti thirti forti"
    " fifti sixti seventi eighti nineti hundr thousand million billion half doubl tripl"
)
NUMBER_WORDS = frozenset(_NUMBER_WORDS.split())
"""Stems of number words: they are values, like digits."""
_VALUE_CHARS = frozenset("0123456789_./:")
MIN_SHARED_WORDS = 0.3
"""Share of the words, as they are written, that two memories must share to say the same."""
BEGINNING_WORDS = 6
"""Words by which a memory begins, its type among them."""


class ComparedText:
    """A memory as it is compared: how it begins, its words as they are written, its terms.

    Each is worked out where what costs less did not tell two memories apart; terms cost a hundred
    times what the words cost. Memories with the same words begin the same.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    @cached_property
    def text(self) -> str:
        """Its type, title and body."""
        return f"{self.memory.type}\n{self.memory.title}\n{self.memory.body}"

    @cached_property
    def beginning(self) -> str:
        """Its first words, case and white space apart."""
        return " ".join(self.text.split(None, BEGINNING_WORDS)[:BEGINNING_WORDS]).lower()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All words as they are written, the type first; case does not count."""
        return tuple(self.text.lower().split())

    @cached_property
    def word_set(self) -> frozenset[str]:
        """The words as they are written, without the type."""
        return frozenset(self.words[1:])

    def has_words_of(self, other: ComparedText) -> bool:
        """Tell whether two memories have the same words, but for case and white space."""
        return self.beginning == other.beginning and self.words == other.words

    @cached_property
    def content(self) -> frozenset[str]:
        """Its terms without stop words."""
        return content_of(self.memory)

    @cached_property
    def terms(self) -> TextTerms:
        """Its terms, and those that name one thing."""
        return TextTerms(self.content, names_of(self.memory))

    @cached_property
    def stated(self) -> Sequence[Statement]:
        """What it states."""
        from memtool.search import contradictions

        return contradictions.statements(self.memory)


def likeness(one: Memory, other: Memory) -> float:
    """Return how far two memories say the same, 0 to 1: the cosine of their sets of terms.

    0 where each names something that the other does not (the same sentence about another port,
    version, file or person is another claim), and where they oppose each other.
    """
    return likeness_of(ComparedText(one), ComparedText(other))


def likeness_of(one: ComparedText, other: ComparedText, least: float = 0.0) -> float:
    """Return the `likeness` of two memories; what is below `least` may be too high."""
    near = measure.cosine(one.content, other.content)
    if near < least:
        return near
    return 0.0 if _opposes(one, other) else measure.likeness(one.terms, other.terms)


def says_same(one: ComparedText, other: ComparedText, least: float = SAME) -> bool:
    """Tell whether two memories say the same: their likeness is at least `least`.

    A memory that names the other one was written knowing it, and says something else.
    """
    shared = len(one.word_set & other.word_set)
    if shared / max(1, len(one.word_set | other.word_set)) < MIN_SHARED_WORDS:
        return False
    if _names(one.memory, other.memory) or _names(other.memory, one.memory):
        return False
    return likeness_of(one, other, least) >= least


def _names(one: Memory, other: Memory) -> bool:
    return any(other.id in one.items(relation) for relation in RELATIONS)


def _opposes(one: ComparedText, other: ComparedText) -> bool:
    from memtool.search import contradictions  # most memories are like no other

    return bool(contradictions.find((one.memory, other.memory), (one.stated, other.stated)))


def text_of(memory: Memory) -> str:
    """Return title and body without headings, which are the template's words, not the author's."""
    lines = [line for line in memory.body.splitlines() if not line.lstrip().startswith("#")]
    return "\n".join([memory.title, *lines])


def content_of(memory: Memory, language: str = "english") -> frozenset[str]:
    """Return the terms of a memory without stop words."""
    from memtool.index.analyzer import is_stop, terms  # most memories are like no other

    found = set(terms(text_of(memory), language))
    return frozenset(term for term in found if not is_stop(term))


def names_of(memory: Memory) -> frozenset[str]:
    """Return the terms that name one thing.

    They are values, paths, identifiers, and words with a capital inside a sentence.
    """
    from memtool.index.analyzer import is_stop, terms

    text = text_of(memory)
    names = {term for term in terms(text) if is_value(term)}
    for line in text.splitlines():
        starts = True
        for word in line.split():
            bare = word.strip("`*_\"'()[],;:")
            if bare[:1].isupper() and not starts:
                names.update(terms(bare))
            starts = word.endswith((".", "!", "?", ":"))
    return frozenset(term for term in names if not is_stop(term))


def is_value(term: str) -> bool:
    """Tell whether a term is a number or a compound such as a path, a version or an identifier."""
    return term in NUMBER_WORDS or not _VALUE_CHARS.isdisjoint(term)
