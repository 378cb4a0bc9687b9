"""The join of many texts by their words: which others are so alike that comparing them is worth it.

Candidates are found by prefix filtering (Chaudhuri, Ganti, Kaushik 2006; Bayardo, Ma, Srikant
2007): of each text the rarest words are looked up, and only texts that share some of them are
counted in full. How many texts are looked at for one is bounded, so that a template which
thousands have filled in costs no more than other texts. Whether two of them say the same is for
`memory.likeness` to tell.
"""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import chain, islice

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import Any

    from memtool.memory.memory import Memory

WORD_BYTES = 6
"""Words are compared by so many of their first bytes: `deploys` and `deployed` are one."""
SHORT = 3
"""Words of at most so many bytes are left out, unless they are numbers."""
LEAST_SHARED = 0.4
"""Share of the words of the shorter text that is in both, from which two are candidates."""
RARE_WORDS, FEW_WORDS = 24, 4
"""Words by which a text is looked for, and how many of them even where they are common."""
MOST_HOLDING = 1_500
"""Texts in which all words beyond these few may stand."""


class JoinLimits(Value):
    """What makes two texts candidates, and with how many a text is compared.

    A candidate has at least the share `least_rare` of the rare words of a text, none of which more
    than `most_holding` texts have. Of `most_counted` with most of these all words are counted:
    `most` are given that are alike by at least `least_shared`, a likeness by `shared_words`.
    """

    least_rare: float
    least_shared: float
    most_holding: int
    most_counted: int
    most: int


TREE = JoinLimits(0.25, 0.0, 500, 400, 16)
"""Memories of one tree: one may be a part of another."""
FINDINGS = JoinLimits(0.25, 0.0, 500, 400, 12)
"""Findings of sessions, which are a sentence each."""
FLEET = JoinLimits(0.5, 0.6, 5_000, 8, 8)
"""Decisions of many repositories, of which there may be a million."""

_PLAIN = bytes(
    code + 32 if 65 <= code <= 90 else code if chr(code).isalnum() and code < 128 else 32
    for code in range(256)
)
"""Lower case, and a space for what is in no word."""


def words_of(text: bytes) -> frozenset[bytes]:
    """Return how each word of a text begins: nearly the same text gives nearly the same."""
    if b"\n#" in text or text.startswith(b"#"):
        text = b"\n".join(line for line in text.split(b"\n") if not line.lstrip().startswith(b"#"))
    words: Iterable[bytes]
    if text.isascii():
        words = text.translate(_PLAIN).split()
    else:  # accents, and writing without spaces
        from memtool.index.analyzer import terms

        words = (term.encode(errors="replace") for term in terms(text.decode(errors="replace")))
    return frozenset([word[:WORD_BYTES] for word in words if len(word) > SHORT or word.isdigit()])


def words_in(memory: Memory) -> frozenset[bytes]:
    """Return the words of title and body of a memory."""
    return words_of(f"{memory.title}\n{memory.body}".encode(errors="replace"))


def shared_words(one: frozenset[Any], other: frozenset[Any]) -> float:
    """Return how far two texts share their words, 0 where they share too few; 1 for no words."""
    shared = len(one & other)
    if shared < LEAST_SHARED * min(len(one), len(other)):
        return 0.0
    return float(shared / (len(one) * len(other)) ** 0.5) if one and other else 1.0


class WordNumbers:
    """Numbers for words: a memory has hundreds, and a million memories the same ones."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def of(self, memory: Memory) -> array[int]:
        """Return the words of a memory as numbers, in the order of the words."""
        numbers = self._numbers
        words = sorted(words_in(memory))
        return array("I", [numbers.setdefault(word, len(numbers)) for word in words])


def joined(
    texts: Mapping[int, array[int]],
    limits: JoinLimits,
    wanted: Collection[int] | None = None,
    may_join: Callable[[int, int], bool] = lambda _one, _other: True,
) -> Iterator[tuple[int, list[int]]]:
    """Yield each wanted text with those that may say the same, the most alike first.

    Texts are given by any number as the numbers of their words; all are wanted by default.
    `may_join` is asked before two are compared. The time grows with the number of texts, and not
    with that of their pairs.
    """
    count = Counter(chain.from_iterable(texts.values()))
    holding: dict[int, list[int]] = {
        word: [] for word, number in count.items() if 1 < number <= limits.most_holding
    }
    for at, words in texts.items():
        for word in words:
            if word in holding:
                holding[word].append(at)
    wordless = dict.fromkeys((at for at, words in texts.items() if not words), 1)
    for at in texts if wanted is None else wanted:
        own = frozenset(texts[at])
        rarest = sorted(filter(holding.__contains__, texts[at]), key=count.__getitem__)
        shared = _sharing(map(holding.__getitem__, rarest), limits.least_rare) if own else wordless
        near = sorted((-number, other) for other, number in shared.items())
        others = (other for _number, other in near if other != at and may_join(at, other))
        scores = [
            (-score, other)
            for other in islice(others, limits.most_counted)
            if (score := shared_words(own, frozenset(texts[other])))
            and score >= limits.least_shared
        ]
        yield at, [other for _score, other in sorted(scores)[: limits.most]]


def _sharing(holding: Iterable[list[int]], least_rare: float) -> dict[int, int]:
    """Return the texts that share enough rare words with one, and how many.

    `holding` are the texts that have each of its words, the rarest word first.
    """
    rare: list[list[int]] = []
    looked_at = 0
    for texts in holding:
        is_enough = len(rare) >= FEW_WORDS and looked_at + len(texts) > MOST_HOLDING
        if is_enough or len(rare) >= RARE_WORDS:
            break
        rare.append(texts)
        looked_at += len(texts)
    least = max(1, int(len(rare) * least_rare))
    prefix = len(rare) - least + 1  # who has none of these words has fewer than `least`
    shared = Counter(chain.from_iterable(rare[:prefix]))
    shared.update(filter(shared.__contains__, chain.from_iterable(rare[prefix:])))
    return {text: number for text, number in shared.items() if number >= least}
