"""Scores: BM25 over words, then a closer look at the best by pairs, titles and character grams.

Everything is computed from integers (counts of documents, terms and words), term by term in
sorted order, so that a score does not depend on how documents are spread over indexes. The numbers
of a collection come in a `Statistics`, which may describe more or fewer documents than one index.

The recipe was measured on real questions: the score of the words, plus 0.45 of what adjacent pairs
of words score, 0.3 of what titles, tags and the like score, and 0.2 of what character 4-grams score
(typing errors, other endings). Only candidates, the best by their words, are looked at closely: for
30 of them the order is as good as for all. A pair is taken to be as rare as its two words together,
a gram as its word, so that neither needs an index of its own.

A long text says first what it is about, so that what stands only after its twentieth word weighs
0.6 (`led`). Recall@5 without and with it: PEPs .701 and .701 (nDCG@10 .628 and .632), ADRs .531 and
.543, tracked issues .864 and .872, .827 to .833 on one half of them and .898 to .907 on the other;
asked as of their day .636 and .645, .537 and .537, .895 and .900. 20 to 25 words at 0.5 to 0.6 are
much the same; 12 cost ADRs .025, and from 30 on nothing is left of it.
"""

from __future__ import annotations

import math

from memtool.index.analyzer import ENGLISH, is_stop, query_terms, terms
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


K1 = 1.5

B = 0.75

MOST_TF = 127
"""A term counts at most so often in one document; more would add less than a hundredth."""

CANDIDATES = 30
"""How many of the best by words are looked at closely."""

PAIRS_WEIGHT = 0.45

HEAD_WEIGHT = 0.3

GRAMS_WEIGHT = 0.2

GRAM_LENGTH = 4

_GRAMS_PER_WORD = 5
"""How much longer a document is in grams than in words; only a scale."""

LEAD_WORDS = 20
"""So many words at the beginning of a long text say what it is about ..."""

LATER = 0.6
"""... and beside them what is only said later weighs so much."""


MANY = 4_096
"""Of so many documents the least of the best is looked for; sorting more takes milliseconds."""

_NEVER = float("-inf")
"""The sum of a document that is not allowed: whatever is added, it stays the least."""


HEAD_FIELDS = frozenset({"title", "tags", "aliases", "trigger_phrases"})
"""Fields whose words count a second time, as what the document itself says it is about."""


class Document(Value):
    """A text to be found: a key that sorts and names it, and its named fields in order."""

    key: str
    fields: tuple[tuple[str, str], ...]


class Question(Value):
    """What is asked for: terms with their weights, and adjacent pairs of terms with theirs."""

    weights: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float] = {}


class Statistics(Value):
    """The numbers of a collection that scores are made of.

    `length` is the number of terms in all documents, `head_length` of those in heads (titles and
    tags). `df` and `head_df` tell in how many documents and heads a term of the question stands;
    a term that is in none may be left out.
    """

    count: int
    length: int
    head_length: int
    df: Mapping[str, int]
    head_df: Mapping[str, int]


def question(text: str, language: str = ENGLISH) -> Question:
    """Read a question. A word that is said again weighs as much again."""
    asked = terms(text, language)
    each = query_terms(text, language)
    weights = dict.fromkeys(each, 0.0)
    for term in asked:
        weights[term] += each[term]
    pairs: dict[tuple[str, str], float] = {}
    for pair in zip(asked, asked[1:], strict=False):  # noqa: RUF007  # itertools is one more import
        pairs[pair] = pairs.get(pair, 0.0) + 1.0
    return Question(weights, pairs)


def telling(asked: Question) -> dict[str, float]:
    """Return the terms of a question that are no stop words, with their weights."""
    return {term: weight for term, weight in asked.weights.items() if not is_stop(term)}


LEAST_COUNT = 100
"""How rare a word is cannot be seen in fewer memories; a smaller tree is taken to have so many."""
LEAST_HELD = 0.01
"""Of the worth of a question that its best match is taken to hold: more than nothing."""


def held(
    said: Question, asked: Question, text: bytes, count: int, df: Callable[[str], int]
) -> float:
    """Return the share of the worth of a question's words that its best match holds, up to 1.

    Scores are shares of the best raw score, which depends on the question; times this they can be
    compared between questions: who holds all words of one stands before who holds one of another.
    `asked` is the question with what aliases and near words add, `text` the match as terms, `count`
    and `df` say of how many memories how many hold a term. A word's worth is its weight times its
    inverse document frequency.
    """
    count = max(count, LEAST_COUNT)

    def worth(question: Question) -> dict[str, float]:
        return {term: weight * idf(count, df(term)) for term, weight in telling(question).items()}

    whole = sum(worth(said).values())
    found = sum(one for term, one in worth(asked).items() if b" %b " % term.encode() in text)
    return min(1.0, max(LEAST_HELD, found / whole)) if whole > 0.0 else 1.0


def led(asked: Question, said: Question, text: str, language: str = ENGLISH) -> Question:
    """Return a question in which what a long text says only later weighs less.

    `said` are the words of the text by themselves; what stands in for them in `asked`, such as an
    alias, keeps its weight.
    """
    words = text.split(None, LEAD_WORDS)
    if len(words) <= LEAD_WORDS:
        return asked
    later = said.weights.keys() - terms(" ".join(words[:LEAD_WORDS]), language)
    return Question(
        {
            term: weight * LATER if term in later else weight
            for term, weight in asked.weights.items()
        },
        {
            pair: weight if later.isdisjoint(pair) else weight * LATER
            for pair, weight in asked.pairs.items()
        },
    )


def searchable(document: Document, language: str = ENGLISH) -> tuple[list[str], bytes]:
    """Return the terms of a document, and its text as terms, which is what `close_scores` reads.

    The text is the head, a line feed, and the rest; every term has a space on both sides, and
    fields are two spaces apart, so that no pair reaches over the end of a field.
    """
    head: list[list[str]] = []
    rest: list[list[str]] = []
    for name, text in document.fields:
        (head if name in HEAD_FIELDS else rest).append(terms(text, language, is_indexed=True))
    lines = ("".join(f" {' '.join(field)} " for field in part if field) for part in (head, rest))
    return [term for field in head + rest for term in field], "\n".join(lines).encode()


def head_of(text: bytes) -> list[bytes]:
    """Return the terms of the title and tags in a text as terms."""
    return text.partition(b"\n")[0].split()


def idf(count: int, df: int) -> float:
    """Return how much a term tells that stands in `df` of `count` documents (Lucene's form)."""
    return math.log(1.0 + (count - df + 0.5) / (df + 0.5))


def damping(length: int, count: int, total: int) -> float:
    """Return what a term frequency is weighed against in a document of that length."""
    return K1 * (1.0 - B + B * length * count / total) if total else K1


def gains(weights: Mapping[str, float], statistics: Statistics) -> dict[str, float]:
    """Return what each term adds at most, weight times rarity, in sorted order."""
    return {
        term: weights[term] * idf(statistics.count, statistics.df[term])
        for term in sorted(weights)
        if weights[term] > 0.0 and statistics.df.get(term)
    }


def text_score(text: bytes, gained: Mapping[str, float], statistics: Statistics) -> float:
    """Return the score by words alone of a text as terms, which need not be in an index."""
    words = text.split()
    frequencies: dict[str, int] = {}
    wanted = {term.encode(): term for term in gained}
    for word in words:
        term = wanted.get(word)
        if term is not None:
            frequencies[term] = min(frequencies.get(term, 0) + 1, MOST_TF)
    against = damping(len(words), statistics.count, statistics.length)
    return bm25(gained, frequencies, against)


def bm25(gained: Mapping[str, float], frequencies: Mapping[str, int], against: float) -> float:
    """Score a document by how often the terms of a question stand in it, and by its damping."""
    score = 0.0
    for term, gain in gained.items():
        frequency = frequencies.get(term, 0)
        score += gain * (frequency / (frequency + against))
    return score


def least_of_best(
    sums: dict[int, float],
    limit: int,
    allowed: Callable[[int], bool],
    known: float,
    most: int = MANY,
) -> float:
    """Return a sum that the best so many allowed documents reach; 0.0 if there are fewer.

    It is the least of theirs among the `most` documents that came first. Of these, those among
    the best that are not allowed lose their sums. `known` is a sum that so many are known to reach.
    """
    first = list(sums)[:most]
    first.sort(key=sums.__getitem__, reverse=True)
    found = 0
    for number in first:
        score = sums[number]
        if score <= known:
            break
        if allowed(number):
            found += 1
            if found == limit:
                return score
        else:
            sums[number] = _NEVER
    return known


def closely(
    asked: Question,
    statistics: Statistics,
    best: list[tuple[int, float]],
    candidate: Callable[[int], tuple[bytes, int]],
    order: Callable[[int], str | int],
) -> list[tuple[int, float]]:
    """Look closely at the first of the best by words, and return all of them in order.

    `best` is in order of score; `order` gives what equal scores are sorted by, such as a path.
    """
    scores = close_scores(
        asked,
        statistics,
        [score for _number, score in best],
        [candidate(number) for number, _score in best[:CANDIDATES]],
    )
    numbers = (number for number, _score in best)
    return ranked(list(zip(numbers, scores, strict=True)), order)


def ranked(
    hits: list[tuple[int, float]], order: Callable[[int], str | int]
) -> list[tuple[int, float]]:
    """Return numbers and scores of documents, the best first.

    Equal scores go by `order`, which is asked only where there are some.
    """
    hits.sort(key=lambda hit: -hit[1])
    for at in range(1, len(hits)):
        if hits[at][1] == hits[at - 1][1]:
            break
    else:
        return hits
    return sorted(hits, key=lambda hit: (-hit[1], order(hit[0])))


def close_scores(
    asked: Question,
    statistics: Statistics,
    scores: Sequence[float],
    texts: Sequence[tuple[bytes, int]],
) -> list[float]:
    """Return the score of each document by its words, pairs of them, titles and grams.

    `scores` are those of the words, the best first, which gets 1.0. `texts` are the first of these
    documents as terms, with their lengths; what has no text is scored by its words alone.
    """
    most = max(scores, default=0.0)
    rare = {t: idf(statistics.count, statistics.df.get(t, 0)) for t in sorted(asked.weights)}
    spaced = {term: f" {term} ".encode() for term in rare}
    pairs = [
        (spaced[first], spaced[second], weight * (rare[first] + rare[second]))
        for (first, second), weight in sorted(asked.pairs.items())
    ]
    in_heads = _head_gains(asked, statistics)
    grams = _gram_weights(asked, rare)
    seen = []
    for text, length in texts:
        there = {found for found in spaced.values() if found in text}
        against = damping(length, statistics.count, statistics.length)
        by_pairs = 0.0
        for first, second, gain in pairs:
            if first in there and second in there:
                found = text.count(first + second[1:])
                by_pairs += gain * (found / (found + against))
        by_head = _by_head(head_of(text), in_heads, statistics)
        by_grams = 0.0
        against *= _GRAMS_PER_WORD
        for gram, weight in grams:
            found = text.count(gram)
            if found:
                by_grams += weight * (found / (found + against))
        seen.append((by_pairs, by_head, by_grams))
    most_grams = max((found[2] for found in seen), default=0.0) or 1.0
    seen += [(0.0, 0.0, 0.0)] * (len(scores) - len(seen))
    return [
        score / most
        + PAIRS_WEIGHT * by_pairs / most
        + HEAD_WEIGHT * by_head / most
        + GRAMS_WEIGHT * by_grams / most_grams
        for score, (by_pairs, by_head, by_grams) in zip(scores, seen, strict=True)
    ]


def _head_gains(asked: Question, statistics: Statistics) -> list[tuple[bytes, float]]:
    """Return what each term that stands in a title or tag adds at most, in sorted order."""
    return [
        (term.encode(), asked.weights[term] * idf(statistics.count, statistics.head_df[term]))
        for term in sorted(asked.weights)
        if statistics.head_df.get(term)
    ]


def _by_head(
    head: list[bytes], gained: Sequence[tuple[bytes, float]], statistics: Statistics
) -> float:
    """Score the words of a title and tags."""
    against = damping(len(head), statistics.count, statistics.head_length)
    score = 0.0
    for term, gain in gained:
        if term in head:
            found = head.count(term)
            score += gain * (found / (found + against))
    return score


def _gram_weights(asked: Question, rare: Mapping[str, float]) -> list[tuple[bytes, float]]:
    """Return the grams of a question's words, stop words aside, each as rare as its rarest word."""
    weights: dict[str, float] = {}
    for term, rarity in rare.items():
        if is_stop(term):
            continue
        padded = f" {term} "
        weight = rarity * min(asked.weights[term], 1.0)
        for start in range(max(1, len(padded) - GRAM_LENGTH + 1)):
            gram = padded[start : start + GRAM_LENGTH]
            weights[gram] = max(weights.get(gram, 0.0), weight)
    return sorted((gram.encode(), weight) for gram, weight in weights.items())
