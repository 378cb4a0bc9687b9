"""Word join: finds, among many texts, the pairs that are similar enough to compare.

Candidates come from prefix filtering (Chaudhuri, Ganti, Kaushik 2006; Bayardo, Ma, Srikant 2007):
the rarest words of each text are looked up, and only texts that share some of them are counted in
full. The number of candidates for one text is bounded, so that a template filled in thousands of
times costs no more than other texts. Whether two texts say the same is decided by
`memory.likeness`.
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
"""Words are compared by this many leading bytes: `deploys` and `deployed` are one."""
SHORT_WORD_BYTES = 3
"""Words of at most this many bytes are left out, unless they are numbers."""
MIN_SHARED = 0.4
"""Share of the shorter text's words that must be in both texts."""
RARE_WORDS, FEW_WORDS = 24, 4
"""Rare words that are looked up for a text, and the number of these that may be common."""
MAX_HOLDING = 1_500
"""Texts that may contain the rare words beyond the first FEW_WORDS."""


class JoinLimits(Value):
    """Thresholds for candidates, and limits for how many texts one is compared with.

    A candidate has at least the share `least_rare` of a text's rare words, which are words in at
    most `most_holding` texts. All words are counted for the `most_counted` texts with most of
    these. At most `max_words` texts with a similarity of at least `least_shared`, by
    `measure_shared_words`, are returned.
    """

    least_rare: float
    least_shared: float
    most_holding: int
    most_counted: int
    max_words: int


TREE = JoinLimits(0.25, 0.0, 500, 400, 16)
"""For memories of one tree: one may be a part of another."""
FINDINGS = JoinLimits(0.25, 0.0, 500, 400, 12)
"""For findings of sessions, each of them one sentence."""
FLEET = JoinLimits(0.5, 0.6, 5_000, 8, 8)
"""For decisions of many repositories, perhaps a million."""

_PLAIN = bytes(
    code + 32 if 65 <= code <= 90 else code if chr(code).isalnum() and code < 128 else 32
    for code in range(256)
)
"""Lower case, and a space for characters outside words."""


def find_word_beginnings(text: bytes) -> frozenset[bytes]:
    """Return the beginnings of a text's words: nearly equal texts have nearly equal sets."""
    if b"\n#" in text or text.startswith(b"#"):
        text = b"\n".join(line for line in text.split(b"\n") if not line.lstrip().startswith(b"#"))
    words: Iterable[bytes]
    if text.isascii():
        words = text.translate(_PLAIN).split()
    else:  # accents, and writing without spaces
        from memtool.index.analyzer import terms

        words = (term.encode(errors="replace") for term in terms(text.decode(errors="replace")))
    return frozenset(
        [word[:WORD_BYTES] for word in words if len(word) > SHORT_WORD_BYTES or word.isdigit()]
    )


def find_words(memory: Memory) -> frozenset[bytes]:
    """Return the words of title and body of a memory."""
    return find_word_beginnings(f"{memory.title}\n{memory.body}".encode(errors="replace"))


def measure_shared_words(words: frozenset[Any], other: frozenset[Any]) -> float:
    """Return the word similarity of two texts, 0 if they share too few; 1 for no words."""
    shared = len(words & other)
    if shared < MIN_SHARED * min(len(words), len(other)):
        return 0.0
    return float(shared / (len(words) * len(other)) ** 0.5) if words and other else 1.0


class WordNumbers:
    """Numbers words, because a memory has hundreds, and a million memories share them."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def number(self, memory: Memory) -> array[int]:
        """Return the words of a memory as numbers, in word order."""
        numbers = self._numbers
        words = sorted(find_words(memory))
        return array("I", [numbers.setdefault(word, len(numbers)) for word in words])


def join_similar(
    texts: Mapping[int, array[int]],
    limits: JoinLimits,
    wanted: Collection[int] | None = None,
    may_join: Callable[[int, int], bool] = lambda _first, _other: True,
) -> Iterator[tuple[int, list[int]]]:
    """Yield each wanted text with those that may say the same, most similar first.

    Texts are word numbers by any key; all are wanted by default. `may_join` is called before two
    are compared. The time grows with the number of texts, not of pairs.
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
        shared = (
            _count_sharing(map(holding.__getitem__, rarest), limits.least_rare) if own else wordless
        )
        near = sorted((-number, other) for other, number in shared.items())
        candidates = (other for _number, other in near if other != at and may_join(at, other))
        scores = [
            (-score, other)
            for other in islice(candidates, limits.most_counted)
            if (score := measure_shared_words(own, frozenset(texts[other])))
            and score >= limits.least_shared
        ]
        yield at, [other for _score, other in sorted(scores)[: limits.max_words]]


def _count_sharing(holding: Iterable[list[int]], least_rare: float) -> dict[int, int]:
    """Count the shared rare words of each text that shares enough of them.

    `holding` has the texts that contain each word, rarest word first.
    """
    rare: list[list[int]] = []
    looked_at = 0
    for texts in holding:
        is_enough = len(rare) >= FEW_WORDS and looked_at + len(texts) > MAX_HOLDING
        if is_enough or len(rare) >= RARE_WORDS:
            break
        rare.append(texts)
        looked_at += len(texts)
    min_shared = max(1, int(len(rare) * least_rare))
    prefix = len(rare) - min_shared + 1  # a text with none of these shares fewer than enough
    shared = Counter(chain.from_iterable(rare[:prefix]))
    shared.update(filter(shared.__contains__, chain.from_iterable(rare[prefix:])))
    return {text: number for text, number in shared.items() if number >= min_shared}
