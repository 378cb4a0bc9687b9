"""The gatekeeper: does a memory hold enough of what a text says to be an answer to it?

A ranking always has a best; most prompts have no answer in the memories at all. So what is found
is weighed once more, against the text as a whole. Everything is counted in rare words: a word that
stands nowhere in the tree counts 1, a commoner one less, by its inverse document frequency, and an
everyday word less again (see `everyday`). A memory then holds

    its words of the text  +  its adjacent pairs of them  +  those in its title and tags

and an answer holds at least a share of all words of the text, or as much as so many rare words,
whichever is less; words that no memory holds count, too: a text about something else is not
answered by its small talk. And the words must tell something by themselves: one that is no
everyday word, or several everyday ones. One of the best five by relevance must hold that much, else
there is no answer; where one does, others that hold 0.7 of it stand beside it.

Measured on the tuning questions of three public sets, in stores of all their documents and of 20
to 200 of them; `foreign` are questions of the other two sets. `own` are the memories of this
project, for which 80 prompts were written, half of them about something else, and 42 questions by
somebody else. In brackets is what a share of all words by inverse document frequency gave.

    store           relevant pass   foreign find nothing   about nothing here find nothing
    700 to 1,500    .92 (.92)       .83 (.45)              -
    100 and 200     .89 (.88)       .91 (.49)              -
    20 and 50       .90 (.92)       .83 (.40)              -
    16, own         .81 (.79)       .96 (.80)              .97 (.88)

`relevant` are those among the best five. Of the prompts about this project .97 (.97) find
something.
"""

from __future__ import annotations

from memtool.search import everyday, scoring
from memtool.search.terms import is_stop
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memtool.search.scoring import Question

LEAST_COUNT = 100
"""How rare a word is cannot be seen in fewer memories; a smaller tree is taken to have so many."""
LEADERS = 5
"""One of so many of the best must be an answer."""
FOLLOWING = 0.7
"""Share of that which is enough for others, where one is."""
LEAST_TELLING = 0.85
"""Least worth of the held words by themselves, however rare they are in the tree: about one that
is no everyday word, or three everyday words, or two that stand in the title. Less where the whole
text is worth less."""


class Strictness(Value):
    """How much an answer must hold: a `share` of the text, or so many rare words, if less."""

    share: float
    most: float


class Gatekeeper:
    """What one text asks of an answer.

    `said` are the words of the text, `asked` the same with what aliases and near words add, which
    count with their weights. `df` tells in how many of `count` memories a term stands.
    """

    def __init__(
        self,
        said: Question,
        asked: Question,
        count: int,
        df: Callable[[str], int],
        strictness: Strictness,
    ) -> None:
        count = max(count, LEAST_COUNT)
        rare = scoring.idf(count, 0)
        self._telling = {term: everyday.worth(term) for term in asked.weights if not is_stop(term)}
        self._worth = {
            term: worth * scoring.idf(count, df(term)) / rare
            for term, worth in self._telling.items()
        }
        self._held = [
            (term.encode(), f" {term} ".encode(), share * self._worth[term], share * telling)
            for term, telling in sorted(self._telling.items())
            if (share := min(1.0, asked.weights[term]))
        ]
        """Each term, as it stands in a text, and what it adds to both shares."""
        self._pairs = [
            (first.encode(), second.encode(), self._worth[first] + self._worth[second])
            for first, second in sorted(asked.pairs)
            if first in self._worth and second in self._worth
        ]
        whole = telling = 0.0
        for term in said.weights:
            if not is_stop(term):
                own = everyday.worth(term)
                telling += own
                whole += own * scoring.idf(count, df(term)) / rare
            if whole * strictness.share >= strictness.most and telling >= LEAST_TELLING:
                break  # of a long text the rest changes nothing
        self.least = min(strictness.share * whole, strictness.most)
        """What an answer must hold, in rare words."""
        self._least_telling = min(LEAST_TELLING, telling)

    def share(self, text: bytes) -> float:
        """Return how much of what an answer must hold a text as terms holds; 1 is enough."""
        return min(self._shares(text))

    def objection(self, share: float, text: bytes) -> str:
        """Return why a text that holds such a share is no answer."""
        words, telling = self._shares(text)
        if telling < words:
            return "it shares little but everyday words with the question"
        return f"it holds {share:.2f} of what an answer must hold"

    def _shares(self, text: bytes) -> tuple[float, float]:
        """Return the share by what a text holds, and by the words themselves."""
        if self.least <= 0.0:
            return 0.0, 0.0
        head = scoring.head_of(text)
        found = telling = 0.0
        there = set()
        for term, spaced, worth, tells in self._held:
            if spaced in text:
                there.add(term)
                times = 2.0 if term in head else 1.0
                found += times * worth
                telling += times * tells
        found += sum(
            worth
            for first, second, worth in self._pairs
            if first in there and second in there and b" %b %b " % (first, second) in text
        )
        return found / self.least, telling / self._least_telling


def passing(shares: Sequence[float]) -> list[bool]:
    """Tell which of the candidates of one question pass, from their shares, the best first."""
    is_answered = any(share >= 1.0 for share in shares[:LEADERS])
    return [is_answered and share >= FOLLOWING for share in shares]
