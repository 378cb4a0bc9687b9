"""Comparison: memories prepared for comparison by terms, names and statements.

The similarity itself is in `memory.likeness`; this module provides its input.
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
"""Share of the literal words that two memories must share to say the same."""
BEGINNING_WORDS = 6
"""Leading words of a memory that are compared first, its type among them."""


class ComparedText:
    """A memory prepared for comparison: beginning, literal words, terms.

    Each is computed only if the cheaper ones did not tell two memories apart; terms cost a hundred
    times as much as words. Memories with the same words have the same beginning.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    @cached_property
    def text(self) -> str:
        """Type, title and body."""
        return f"{self.memory.type}\n{self.memory.title}\n{self.memory.body}"

    @cached_property
    def beginning(self) -> str:
        """The first words, without case and extra white space."""
        return " ".join(self.text.split(None, BEGINNING_WORDS)[:BEGINNING_WORDS]).lower()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All literal words in lower case, the type first."""
        return tuple(self.text.lower().split())

    @cached_property
    def word_set(self) -> frozenset[str]:
        """The literal words, without the type."""
        return frozenset(self.words[1:])

    def has_same_words(self, other: ComparedText) -> bool:
        """Return whether two memories have the same words, apart from case and white space."""
        return self.beginning == other.beginning and self.words == other.words

    @cached_property
    def content(self) -> frozenset[str]:
        """The terms without stop words."""
        return content_terms(self.memory)

    @cached_property
    def terms(self) -> TextTerms:
        """All terms, and those that name one thing."""
        return TextTerms(self.content, naming_terms(self.memory))

    @cached_property
    def stated(self) -> Sequence[Statement]:
        """The statements of the memory."""
        from memtool.search import contradictions

        return contradictions.parse_statements(self.memory)


def compare_memories(memory: Memory, other: Memory) -> float:
    """Return the similarity of two memories, 0 to 1: the cosine of their sets of terms.

    0 if each names something that the other does not (the same sentence about another port,
    version, file or person is another claim), or if they oppose each other.
    """
    return compute_likeness(ComparedText(memory), ComparedText(other))


def compute_likeness(text: ComparedText, other: ComparedText, least: float = 0.0) -> float:
    """Return the similarity of two compared texts; a value below `least` may be too high."""
    near = measure.compute_cosine(text.content, other.content)
    if near < least:
        return near
    return 0.0 if _opposes(text, other) else measure.compute_likeness(text.terms, other.terms)


def says_same(text: ComparedText, other: ComparedText, least: float = SAME) -> bool:
    """Return whether two memories say the same: their similarity is at least `least`.

    A memory that names the other one was written with knowledge of it, and says something else.
    """
    shared = len(text.word_set & other.word_set)
    if shared / max(1, len(text.word_set | other.word_set)) < MIN_SHARED_WORDS:
        return False
    if _names(text.memory, other.memory) or _names(other.memory, text.memory):
        return False
    return compute_likeness(text, other, least) >= least


def _names(memory: Memory, other: Memory) -> bool:
    return any(other.id in memory.items(relation) for relation in RELATIONS)


def _opposes(text: ComparedText, other: ComparedText) -> bool:
    from memtool.search import contradictions  # most memories are like no other

    return bool(contradictions.find((text.memory, other.memory), (text.stated, other.stated)))


def join_texts(memory: Memory) -> str:
    """Return title and body without headings, which come from the template, not the author."""
    lines = [line for line in memory.body.splitlines() if not line.lstrip().startswith("#")]
    return "\n".join([memory.title, *lines])


def content_terms(memory: Memory, language: str = "english") -> frozenset[str]:
    """Return the terms of a memory without stop words."""
    from memtool.index.analyzer import is_stop, terms  # most memories are like no other

    content = set(terms(join_texts(memory), language))
    return frozenset(term for term in content if not is_stop(term))


def naming_terms(memory: Memory) -> frozenset[str]:
    """Return the terms that name one thing.

    These are values, paths, identifiers, and capitalized words inside a sentence.
    """
    from memtool.index.analyzer import is_stop, terms

    text = join_texts(memory)
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
    """Return whether a term is a number or a compound: a path, a version or an identifier."""
    return term in NUMBER_WORDS or not _VALUE_CHARS.isdisjoint(term)
