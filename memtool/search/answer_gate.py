"""The answer gate: decides whether a memory contains enough of a text to answer it.

A ranking always has a best hit, but most prompts have no answer in the memories. So each hit is
weighed once more, against the text as a whole. The unit is a rare word: a word that no memory in
the tree contains counts 1, a more common one less, by its inverse document frequency, and an
everyday word less again (see `weigh_everyday`). The worth of a memory is then

its words of the text + its adjacent pairs of them + those in its title and tags

An answer has at least a given share of all words of the text, or a given number of rare words,
whichever is less. Words that no memory contains count too: a text about something else is not
answered by its small talk. A missing word counts half if the memory has a similar one, by 4-grams:
other endings, compounds, parts of a name. A text of four or more words, or of everyday words only,
needs at least one rare word's worth, because a share of nearly nothing is in every store. One of
the best five hits by relevance must have that much, else there is no answer. If one does, others
with 0.7 of it are shown too. A title that holds 0.8 of the text and a word of it that is not an
everyday one is an answer in any case, however common its words are here.

A hit must also reach a share of the best score, the threshold. It is compared with those hits only
that share a rare word of the text with it, so that each topic of a prompt has its best answers. A
gate for each clause of a prompt was tried, and let prompts of other projects pass (.27 to .53).

Measured by `bench/silence.py` on questions about three public sets, in stores of all their
documents and of 60 of them. `hit`: questions with an answer among the five that are shown. `talk`
and `coding`: prompts about no project that get something. In brackets: a share of 0.5, or three
rare words, without the floor. The numbers were chosen on the tuning half.

    half      store           hit            talk           coding         shown
    tuning    700 to 1,500    .669 (.655)    .056 (.633)    .167 (.844)    3.2 (3.7)
    held out  700 to 1,500    .654 (.652)    .067 (.767)    .333 (.844)    3.2 (3.7)
    tuning    60              .752 (.690)    .017 (.383)    .133 (.628)    2.0 (2.1)
    held out  60              .751 (.682)    .017 (.572)    .161 (.589)    2.0 (2.1)

A floor of 0.8 lets twice as much small talk pass; one of 1.2 costs .018 of the hits. A threshold of
0.5 instead of 0.6 shows 3.7 and gains .01 of the hits; one of 0.7 shows 2.6 and costs .02. 0.6 is
the highest at which neither half answers fewer questions than before.

Settings choose the strictness by name, from the table `PRESETS`.
"""

from __future__ import annotations

import math

from memtool import tables
from memtool.index import scoring
from memtool.index.analyzer import find_shared_stops, is_stop
from memtool.index.scoring import MIN_MEMORIES
from memtool.store.config import BY_CATEGORY
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memtool.index.scoring import Question
    from memtool.search.retrieve import Hit
    from memtool.store.config import Config


EVERYDAY_WORTH = 0.3
"""Worth of an everyday word, relative to 1 for any other."""


_everyday: set[str] = set()


def weigh_everyday(term: str) -> float:
    """Return how informative a term is in any text: 1, or less for an everyday word or a number."""
    if not _everyday:
        _everyday.update(tables.read_words("search/everyday_words"))
    return EVERYDAY_WORTH if term in _everyday or term.isdigit() else 1.0


LEADING_HITS = 5
"""One of this many best hits must be an answer."""

FOLLOWER_SHARE = 0.7
"""Share of the minimum that other hits need, if one hit is an answer."""

MIN_WORDS_FOR_FLOOR = 4
"""From this many words on, or if all are everyday words, an answer must reach the floor."""


SIMILAR_WORD_SHARE = 0.5
"""Share of a missing word's worth that counts if the memory has a similar word."""

MIN_SHARED_GRAMS = 0.7
"""Share of a word's 4-grams that must be in one other word: endings, compounds, names."""

MIN_GRAMS = 2

TITLE_SHARE = 0.8
"""Share of a text's worth that is enough in a title, if a rare word is in it."""


def has_similar_word(term: bytes, text: bytes) -> bool:
    """Return whether a text (as terms) has a word similar to a term, such as `datenbanken`."""
    word, size = term.decode(), scoring.GRAM_LENGTH
    grams = [word[at : at + size] for at in range(len(word) - size + 1)]
    if len(grams) < MIN_GRAMS or not word.isalpha():
        return False
    min_shared = math.ceil(MIN_SHARED_GRAMS * len(grams))
    for gram in grams[: len(grams) - min_shared + 1]:  # what lacks all of these lacks too many
        raw = gram.encode()
        at = text.find(raw)
        while at >= 0:
            end = text.find(b" ", at)
            other = text[text.rfind(b" ", 0, at) + 1 : end].decode()
            if sum(part in other for part in grams) >= min_shared:
                return True
            at = text.find(raw, end)
    return False


class Strictness(Value):
    """Requirements for an answer: a share of the text, or a number of rare words, if less.

    `min_rare_words` is the minimum for a text of `MIN_WORDS_FOR_FLOOR` words or more, or of
    everyday words only: nearly nothing of a small worth is not an answer.
    """

    min_coverage: float
    sufficient_rare_words: float
    min_rare_words: float

    def compute_minimum(self, whole: float, *, is_floored: bool) -> float:
        """Return how much an answer needs for a text worth `whole`, both in rare words."""
        minimum = min(self.min_coverage * whole, self.sufficient_rare_words)
        return max(minimum, self.min_rare_words) if is_floored else minimum


class Gatekeeper:
    """The requirements that one text has for an answer.

    `literal_question` has the words of the text; `question` adds aliases and near words, which
    count with their weights. `df` returns how many of `count` memories contain a term. Categories
    may have a strictness of their own in `special`.
    """

    def __init__(
        self,
        literal_question: Question,
        question: Question,
        count: int,
        df: Callable[[str], int],
        strictness: Strictness,
        special: Mapping[str, Strictness] = {},
    ) -> None:
        count = max(count, MIN_MEMORIES)
        rare = scoring.idf(count, 0)
        stops = find_shared_stops(literal_question.weights)
        own = {
            term: weigh_everyday(term)
            for term in question.weights
            if not is_stop(term) and term not in stops
        }
        self._worth = {
            term: worth * scoring.idf(count, df(term)) / rare for term, worth in own.items()
        }
        self._term_worths = [
            (term.encode(), f" {term} ".encode(), share * worth)
            for term, worth in sorted(self._worth.items())
            if (share := min(1.0, question.weights[term]))
        ]
        """Each term, as it appears in a text, and its worth."""
        self._pairs = [
            (first.encode(), second.encode(), self._worth[first] + self._worth[second])
            for first, second in sorted(question.pairs)
            if first in self._worth and second in self._worth
        ]
        self._own_worths = {
            term.encode(): self._worth[term]
            for term in literal_question.weights
            if term in self._worth
        }
        whole = sum(self._own_worths.values())
        self._rare_words = [
            term.encode() for term in literal_question.weights if own.get(term, 0.0) == 1.0
        ]
        """The words of the text that are neither stop words nor everyday words."""
        is_floored = len(literal_question.weights) >= MIN_WORDS_FOR_FLOOR or all(
            own.get(term, 0.0) < 1.0 for term in literal_question.weights
        )
        self._whole = whole
        self._minimum = strictness.compute_minimum(whole, is_floored=is_floored)
        """Minimum for an answer, in rare words."""
        self._special = {
            category: strictness.compute_minimum(whole, is_floored=is_floored)
            for category, strictness in special.items()
        }

    def find_topic(self, text: bytes) -> frozenset[bytes]:
        """Return the rare words that a text (as terms) has of the question."""
        return frozenset(term for term in self._rare_words if b" %b " % term in text)

    def measure(self, hit: Hit, text: bytes) -> float:
        """Return how much of its category's minimum a hit reaches; 1 is enough."""
        return self.measure_text(text, hit.record.memory.category if self._special else "")

    def measure_text(self, text: bytes, category: str = "") -> float:
        """Return how much of the minimum a text (as terms) reaches; 1 is enough."""
        if self._whole <= 0.0:
            return 0.0
        minimum = self._special.get(category, self._minimum)
        head = scoring.split_head(text)
        best = 0.0
        there = set()
        absent: list[tuple[bytes, float]] = []
        for term, spaced, worth in self._term_worths:
            if spaced not in text:
                absent.append((term, worth))
            else:
                there.add(term)
                best += worth * (2.0 if term in head else 1.0)
        best += sum(
            worth
            for first, second, worth in self._pairs
            if first in there and second in there and b" %b %b " % (first, second) in text
        )
        if (
            best < minimum
            and best + SIMILAR_WORD_SHARE * sum(worth for _, worth in absent)
            >= FOLLOWER_SHARE * minimum
        ):
            best += SIMILAR_WORD_SHARE * sum(
                worth for term, worth in absent if has_similar_word(term, text)
            )
        if best < minimum and any(term in head for term in self._rare_words):
            in_title = sum(worth for term, worth in self._own_worths.items() if term in head)
            if in_title >= TITLE_SHARE * self._whole:
                return 1.0
        return best / minimum if minimum else 1.0


def is_same_topic(topic: frozenset[bytes], other: frozenset[bytes]) -> bool:
    """Return whether two memories answer the same part of a text: they share a rare word of it.

    A memory without such a word is compared with all others.
    """
    return not topic or not other or not topic.isdisjoint(other)


def find_best_score(
    topic: frozenset[bytes], scores: Iterable[tuple[frozenset[bytes], float]]
) -> float:
    """Return the best score of hits that answer the same part of a prompt as a topic; 0 if none."""
    return max((score for other, score in scores if is_same_topic(topic, other)), default=0.0)


def format_objection(share: float) -> str:
    """Format why a hit with this share is not an answer."""
    return f"it holds {share:.2f} of what an answer must hold"


def select_passing(shares: Sequence[float]) -> list[bool]:
    """Tell which candidates pass, from their shares, best first."""
    is_answered = any(share >= 1.0 for share in shares[:LEADING_HITS])
    return [is_answered and share >= FOLLOWER_SHARE for share in shares]


class Preset(Value):
    """`strictness` is the minimum for an answer, `threshold` a share of the best score."""

    doc: str
    strictness: Strictness
    threshold: float


PRESETS: dict[str, Preset] = {
    "balanced": Preset("what is probably an answer", Strictness(0.4, 2.4, 1.0), 0.6),
    "precision": Preset(
        "what is almost certainly one, more often nothing", Strictness(0.6, 3.5, 1.0), 0.8
    ),
}


def choose_preset(config: Config, category: str = "") -> Preset:
    """Return the preset that the settings name, with single values overridden by settings.

    A category has its own value if it is set, else the general one.
    """
    chosen = PRESETS[config.text("search.preset")]

    def number(name: str, otherwise: float) -> float:
        is_given = not config.values.keys().isdisjoint((name, f"{name}.{category}"))
        return config.number(name, category) if is_given else otherwise

    strictness = chosen.strictness
    return Preset(
        chosen.doc,
        Strictness(
            number("inject.min_coverage", strictness.min_coverage),
            number("inject.sufficient_rare_words", strictness.sufficient_rare_words),
            number("inject.min_rare_words", strictness.min_rare_words),
        ),
        number("inject.threshold", chosen.threshold),
    )


def choose_threshold(config: Config) -> Callable[[str], float]:
    """Return a function from a category to its threshold, a share of the best score."""
    by_category: dict[str, float] = {}

    def for_category(category: str) -> float:
        if category not in by_category:
            by_category[category] = choose_preset(config, category).threshold
        return by_category[category]

    return for_category


def read_limits(config: Config) -> tuple[Strictness, dict[str, Strictness]]:
    """Return the general strictness, and that of each category that differs."""
    special = {
        key.rpartition(".")[2] for key in config.values if key.rpartition(".")[0] in BY_CATEGORY
    }
    return choose_preset(config).strictness, {
        category: choose_preset(config, category).strictness for category in sorted(special)
    }
