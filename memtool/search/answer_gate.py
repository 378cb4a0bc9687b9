"""The answer gate: does a memory hold enough of what a text says to be an answer to it?

A ranking always has a best; most prompts have no answer in the memories at all. So what is found
is weighed once more, against the text as a whole. Everything is counted in rare words: a word that
stands nowhere in the tree counts 1, a commoner one less, by its inverse document frequency, and an
everyday word less again (see `everyday_worth`). A memory then holds

    its words of the text  +  its adjacent pairs of them  +  those in its title and tags

and an answer holds at least a share of all words of the text, or as much as so many rare words,
whichever is less; words that no memory holds count, too: a text about something else is not
answered by its small talk. A word that a memory lacks counts half where another is like it, by its
4-grams: other endings, compounds, parts of a name. A text of four or more words, or of everyday
ones alone, is answered by one rare word's worth at least: a share of nearly nothing is in every
store. One of the best five by relevance must hold that much, else there is no answer; where
one does, others that hold 0.7 of it stand beside it.

Measured by `bench/silence.py` on questions about three public sets, in stores of all their
documents and of 60 of them: `hit`, those with an answer among the five that are shown; `talk` and
`coding`, prompts about no project that get something. In brackets is a share of 0.5, or three rare
words, without the floor. The numbers were chosen on the tuning half.

    half      store           hit            talk           coding         shown
    tuning    700 to 1,500    .669 (.655)    .056 (.633)    .167 (.844)    3.2 (3.7)
    held out  700 to 1,500    .654 (.652)    .067 (.767)    .333 (.844)    3.2 (3.7)
    tuning    60              .752 (.690)    .017 (.383)    .133 (.628)    2.0 (2.1)
    held out  60              .751 (.682)    .017 (.572)    .161 (.589)    2.0 (2.1)

A floor of 0.8 lets twice as much small talk pass, one of 1.2 costs .018 of the hits. A threshold of
0.5 instead of 0.6 shows 3.7 for .01 of the hits, one of 0.7 2.6 and costs .02: 0.6 is the highest
at which no half answers fewer questions than before.

Settings choose the strictness by name, from the table `PRESETS`.
"""

from __future__ import annotations

import math

from memtool import tables
from memtool.index import scoring
from memtool.index.analyzer import is_stop, shared_stops
from memtool.index.scoring import LEAST_COUNT
from memtool.store.config import BY_CATEGORY
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memtool.index.scoring import Question
    from memtool.search.retrieve import Hit
    from memtool.store.config import Config


WORTH = 0.3
"""What an everyday word is worth beside 1 for any other."""


_everyday: set[str] = set()


def everyday_worth(term: str) -> float:
    """Return how much a term tells in any text: 1, or less for an everyday word or a number."""
    if not _everyday:
        _everyday.update(tables.words("search/everyday_words"))
    return WORTH if term in _everyday or term.isdigit() else 1.0


LEADERS = 5
"""One of so many of the best must be an answer."""

FOLLOWING = 0.7
"""Share of that which is enough for others, where one is."""

MANY_WORDS = 4
"""From so many words on, and where all are everyday ones, an answer must hold the floor."""


ALIKE = 0.5
"""What a word of the text adds of its worth where a memory holds another that is like it."""

LEAST_ALIKE = 0.7
"""Share of a word's 4-grams that must stand in one other word: endings, compounds, names."""

LEAST_GRAMS = 2


def is_alike(term: bytes, text: bytes) -> bool:
    """Tell whether a text as terms holds a word that is like a term, such as `datenbanken`."""
    word, size = term.decode(), scoring.GRAM_LENGTH
    grams = [word[at : at + size] for at in range(len(word) - size + 1)]
    if len(grams) < LEAST_GRAMS or not word.isalpha():
        return False
    least = math.ceil(LEAST_ALIKE * len(grams))
    for gram in grams[: len(grams) - least + 1]:  # what lacks all of these lacks too many
        raw = gram.encode()
        at = text.find(raw)
        while at >= 0:
            end = text.find(b" ", at)
            other = text[text.rfind(b" ", 0, at) + 1 : end].decode()
            if sum(part in other for part in grams) >= least:
                return True
            at = text.find(raw, end)
    return False


class Strictness(Value):
    """How much an answer must hold: a `share` of the text, or so many rare words, if less.

    `floor` is the least, in rare words, for a text of `MANY_WORDS` or of everyday words alone: what
    is near nothing of its small worth is no answer.
    """

    share: float
    most: float
    floor: float

    def least(self, whole: float, *, is_floored: bool) -> float:
        """Return what an answer must hold of a text that is worth so many rare words."""
        least = min(self.share * whole, self.most)
        return max(least, self.floor) if is_floored else least


class Gatekeeper:
    """What one text asks of an answer.

    `said` are the words of the text, `asked` the same with what aliases and near words add, which
    count with their weights. `df` tells in how many of `count` memories a term stands. A category
    may have a strictness of its own in `special`.
    """

    def __init__(
        self,
        said: Question,
        asked: Question,
        count: int,
        df: Callable[[str], int],
        strictness: Strictness,
        special: Mapping[str, Strictness] = {},
    ) -> None:
        count = max(count, LEAST_COUNT)
        rare = scoring.idf(count, 0)
        stops = shared_stops(said.weights)
        own = {
            term: everyday_worth(term)
            for term in asked.weights
            if not is_stop(term) and term not in stops
        }
        self._worth = {
            term: worth * scoring.idf(count, df(term)) / rare for term, worth in own.items()
        }
        self._held = [
            (term.encode(), f" {term} ".encode(), share * worth)
            for term, worth in sorted(self._worth.items())
            if (share := min(1.0, asked.weights[term]))
        ]
        """Each term, as it stands in a text, and what it adds."""
        self._pairs = [
            (first.encode(), second.encode(), self._worth[first] + self._worth[second])
            for first, second in sorted(asked.pairs)
            if first in self._worth and second in self._worth
        ]
        whole = sum(self._worth.get(term, 0.0) for term in said.weights)
        is_floored = len(said.weights) >= MANY_WORDS or all(
            own.get(term, 0.0) < 1.0 for term in said.weights
        )
        self._whole = whole
        self._least = strictness.least(whole, is_floored=is_floored)
        """What an answer must hold, in rare words, and what in some categories."""
        self._special = {
            category: one.least(whole, is_floored=is_floored) for category, one in special.items()
        }

    def share_of(self, hit: Hit, text: bytes) -> float:
        """Return how much of what an answer of its category must hold a hit holds."""
        return self.share(text, hit.record.memory.category if self._special else "")

    def share(self, text: bytes, category: str = "") -> float:
        """Return how much of what an answer must hold a text as terms holds; 1 is enough."""
        if self._whole <= 0.0:
            return 0.0
        least = self._special.get(category, self._least)
        head = scoring.head_of(text)
        found = 0.0
        there = set()
        absent: list[tuple[bytes, float]] = []
        for term, spaced, worth in self._held:
            if spaced not in text:
                absent.append((term, worth))
            else:
                there.add(term)
                found += worth * (2.0 if term in head else 1.0)
        found += sum(
            worth
            for first, second, worth in self._pairs
            if first in there and second in there and b" %b %b " % (first, second) in text
        )
        if found < least and found + ALIKE * sum(worth for _, worth in absent) >= FOLLOWING * least:
            found += ALIKE * sum(worth for term, worth in absent if is_alike(term, text))
        return found / least if least else 1.0


def objection(share: float) -> str:
    """Return why what holds such a share of what an answer must hold is no answer."""
    return f"it holds {share:.2f} of what an answer must hold"


def which_pass(shares: Sequence[float]) -> list[bool]:
    """Tell which of the candidates of one question pass, from their shares, the best first."""
    is_answered = any(share >= 1.0 for share in shares[:LEADERS])
    return [is_answered and share >= FOLLOWING for share in shares]


class Preset(Value):
    """`strictness` is what an answer must hold, `threshold` a share of the best score."""

    doc: str
    strictness: Strictness
    threshold: float


PRESETS: dict[str, Preset] = {
    "balanced": Preset("what is probably an answer", Strictness(0.4, 2.4, 1.0), 0.6),
    "precision": Preset(
        "what is almost certainly one, more often nothing", Strictness(0.6, 3.5, 1.0), 0.8
    ),
}


def preset(config: Config, category: str = "") -> Preset:
    """Return the preset that the settings name, with their own numbers in place of its.

    A category has its own number where the settings give one, else that of all others.
    """
    found = PRESETS[config.text("search.preset")]

    def number(name: str, otherwise: float) -> float:
        is_given = not config.given.keys().isdisjoint((name, f"{name}.{category}"))
        return config.number(name, category) if is_given else otherwise

    strictness = found.strictness
    return Preset(
        found.doc,
        Strictness(
            number("inject.share", strictness.share),
            number("inject.most", strictness.most),
            number("inject.floor", strictness.floor),
        ),
        number("inject.threshold", found.threshold),
    )


def threshold(config: Config) -> Callable[[str], float]:
    """Return what gives the threshold of a category, a share of the best score."""
    known: dict[str, float] = {}

    def of_category(category: str) -> float:
        if category not in known:
            known[category] = preset(config, category).threshold
        return known[category]

    return of_category


def limits(config: Config) -> tuple[Strictness, dict[str, Strictness]]:
    """Return how much an answer must hold, and how much in the categories that differ."""
    special = {
        key.rpartition(".")[2] for key in config.given if key.rpartition(".")[0] in BY_CATEGORY
    }
    return preset(config).strictness, {
        category: preset(config, category).strictness for category in sorted(special)
    }
