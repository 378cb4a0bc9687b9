"""Signatures: a few numbers by which memories that say nearly the same find each other.

A signature samples two sets of features by their smallest checksums (bottom-k sketches, Broder
1997): runs of three terms, which survive edits of a long text, and pairs of the terms of title
and statement, which survive another order of words in a short one. Memories that share two
numbers are candidates; `similarity` then compares their terms in full.
"""

from __future__ import annotations

import zlib

from memtool.gate.sketches import SHARED as SHARED  # noqa: PLC0414  # given on
from memtool.memory import ids
from memtool.search.terms import is_stop, terms
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.memory.memory import Memory

RUN = 3
SAMPLED = 16
"""Numbers that are kept of each set: enough that texts with a tenth of their words changed share
two of them nearly always."""
STATED = 16
"""Terms of title and statement that are paired: 120 pairs at most."""

_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve fifteen twenti thirti forti"
    " fifti sixti seventi eighti nineti hundr thousand million billion half doubl tripl"
)
NUMBER_WORDS = frozenset(_NUMBER_WORDS.split())
"""Stems of number words: they are values, like digits."""
_VALUE_CHARS = frozenset("0123456789_./:")


class Signature(Value):
    """What is kept of a memory: the fingerprint of its claim, and the sampled numbers, sorted."""

    fingerprint: int
    numbers: tuple[int, ...]


def text_of(memory: Memory) -> str:
    """Return title and body without headings, which are the template's words, not the author's."""
    lines = [line for line in memory.body.splitlines() if not line.lstrip().startswith("#")]
    return "\n".join([memory.title, *lines])


def signature(memory: Memory) -> Signature:
    """Return the signature of a memory: the same bytes give the same numbers anywhere."""
    words = terms(text_of(memory))
    shifted = [words[place:] for place in range(RUN)]
    runs = set(map(" ".join, zip(*shifted, strict=False))) or {" ".join(words)}
    stated = sorted({t for t in terms(f"{memory.title}\n{memory.statement}") if not is_stop(t)})
    if len(stated) > STATED:  # whichever, as long as two texts choose the same
        stated = sorted(sorted(stated, key=_number)[:STATED])
    pairs = {f"{one}\0{other}" for at, one in enumerate(stated) for other in stated[at + 1 :]}
    sampled = {*_sampled(runs), *_sampled(pairs or set(stated))}
    return Signature(int(ids.fingerprint(memory), 16), tuple(sorted(sampled)))


def _sampled(features: Iterable[str]) -> list[int]:
    """Return the smallest checksums of features; all are encoded at once, which takes a third."""
    encoded = "\n".join(features).encode(errors="surrogatepass")
    return sorted(set(map(zlib.crc32, encoded.split(b"\n"))))[:SAMPLED]


def _number(feature: str) -> int:
    return zlib.crc32(feature.encode(errors="surrogatepass"))


def content_of(memory: Memory) -> frozenset[str]:
    """Return the terms of a memory without stop words."""
    return frozenset(term for term in set(terms(text_of(memory))) if not is_stop(term))


def names_of(memory: Memory) -> frozenset[str]:
    """Return the terms that name one thing.

    They are values, paths, identifiers, and words with a capital inside a sentence.
    """
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


def cosine(one: frozenset[str], other: frozenset[str]) -> float:
    """Return how far two sets of terms are the same, 0 to 1 (Ochiai 1957)."""
    if not one or not other:
        return 0.0
    return float(len(one & other) / (len(one) * len(other)) ** 0.5)
