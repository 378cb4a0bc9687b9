"""Scores: BM25 over single terms, then reranking by pairs, heads and character grams.

Everything is computed from integers (counts of documents and terms), term by term in sorted order.
So a score does not depend on how documents are distributed over indexes. The numbers of a
collection come in a `Statistics`, which may describe more or fewer documents than one index.

The weights were measured on real queries: the score of the terms, plus 0.45 times that of adjacent
pairs of terms and of heads (titles, tags and the like), and 0.2 times that of character 4-grams,
which match typing errors and other endings. Only the best candidates by terms are reranked: for 30
of them the order is as good as for all. A pair is assumed to be as rare as its two terms together,
a gram as its term, so that neither needs an index of its own.

A long query begins with its subject, so terms that only occur after its twentieth word weigh 0.6
(`downweight_tail`). Recall@5 without and with it: PEPs .701 and .701 (nDCG@10 .628 and .632), ADRs
.531 and .543, tracked issues .864 and .872 (.827 and .833 on one half of them, .898 and .907 on the
other). Asked as of their day: .636 and .645, .537 and .537, .895 and .900. 20 to 25 words with 0.5
to 0.6 do about as well; 12 words cost ADRs .025, and with 30 or more the gain is lost.
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

# Higher frequencies would add less than a hundredth to a score.
MAX_TF = 127

MAX_RERANKED = 30
"""The number of the best documents by terms that are reranked."""

PAIRS_WEIGHT = 0.45

HEAD_WEIGHT = 0.45

GRAMS_WEIGHT = 0.2

GRAM_LENGTH = 4

# How much longer a document is in grams than in words. It is only a scale.
_GRAMS_PER_WORD = 5

LEAD_WORDS = 20
"""Words at the beginning of a long query that have full weight."""

TAIL_WEIGHT = 0.6
"""The weight of terms that only occur later in a long query."""


MAX_SORTED = 4_096
"""Sums that are sorted to find a threshold; sorting more takes milliseconds."""

_EXCLUDED = float("-inf")
"""The sum of a document that is not allowed: it stays the lowest whatever is added."""


HEAD_FIELDS = frozenset({"title", "tags", "aliases", "trigger_phrases"})
"""Fields whose terms count twice, since they state the subject of the document."""


class Document(Value):
    """A text to index: its unique key, for sorting, and its named fields in order."""

    key: str
    fields: tuple[tuple[str, str], ...]


class Question(Value):
    """A query: the weights of its terms and of its adjacent pairs of terms."""

    weights: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float] = {}


class Statistics(Value):
    """The numbers of a collection that scores are computed from.

    `length` is the number of terms in all documents, `head_length` that in all heads (titles and
    tags). `df` and `head_df` are the numbers of documents and heads that contain a term of the
    query; terms without any may be left out.
    """

    count: int
    length: int
    head_length: int
    df: Mapping[str, int]
    head_df: Mapping[str, int]


def parse_question(text: str, language: str = ENGLISH) -> Question:
    """Parse a query. A repeated term weighs more, once for each time."""
    text_terms = terms(text, language)
    term_weights = query_terms(text, language)
    weights = dict.fromkeys(term_weights, 0.0)
    for term in text_terms:
        weights[term] += term_weights[term]
    pairs: dict[tuple[str, str], float] = {}
    for pair in zip(text_terms, text_terms[1:], strict=False):  # noqa: RUF007  # itertools is one more import
        pairs[pair] = pairs.get(pair, 0.0) + 1.0
    return Question(weights, pairs)


def content_terms(question: Question) -> dict[str, float]:
    """Return the terms of a query that are not stop words, with their weights."""
    return {term: weight for term, weight in question.weights.items() if not is_stop(term)}


MIN_MEMORIES = 100
"""Fewer memories do not show how rare a term is, so this many are assumed."""
MIN_COVERAGE = 0.01
"""The least coverage that is assumed, so that no score becomes zero."""


def query_coverage(
    original: Question, expanded: Question, text: bytes, count: int, df: Callable[[str], int]
) -> float:
    """Return the IDF-weighted fraction of a query's terms that its best hit contains, up to 1.

    Scores are fractions of the best raw score, which depends on the query. Multiplied by the
    coverage they can be compared between queries: a hit with all terms of one query ranks above a
    hit with one term of another. `expanded` is the query with aliases and similar words, `text` the
    best hit as terms. `count` is the number of memories, `df` returns how many contain a term.
    """
    count = max(count, MIN_MEMORIES)

    def idf_weights(question: Question) -> dict[str, float]:
        return {
            term: weight * idf(count, df(term)) for term, weight in content_terms(question).items()
        }

    total = sum(idf_weights(original).values())
    covered = sum(
        weight for term, weight in idf_weights(expanded).items() if b" %b " % term.encode() in text
    )
    return min(1.0, max(MIN_COVERAGE, covered / total)) if total > 0.0 else 1.0


def downweight_tail(
    expanded: Question, original: Question, text: str, language: str = ENGLISH
) -> Question:
    """Return a query in which terms that only occur late in a long text weigh less.

    `original` is the query of the text itself; the terms that `expanded` adds, such as aliases,
    keep their weights.
    """
    words = text.split(None, LEAD_WORDS)
    if len(words) <= LEAD_WORDS:
        return expanded
    tail_terms = original.weights.keys() - terms(" ".join(words[:LEAD_WORDS]), language)
    return Question(
        {
            term: weight * TAIL_WEIGHT if term in tail_terms else weight
            for term, weight in expanded.weights.items()
        },
        {
            pair: weight if tail_terms.isdisjoint(pair) else weight * TAIL_WEIGHT
            for pair, weight in expanded.pairs.items()
        },
    )


def analyze_document(document: Document, language: str = ENGLISH) -> tuple[list[str], bytes]:
    """Return the terms of a document, and its text as terms, the form that `rerank_scores` reads.

    The text is the head, a line feed, and the other fields. Every term has a space on both sides,
    and fields are two spaces apart, so that no pair spans two fields.
    """
    head: list[list[str]] = []
    body: list[list[str]] = []
    for name, text in document.fields:
        (head if name in HEAD_FIELDS else body).append(terms(text, language, is_indexed=True))
    lines = ("".join(f" {' '.join(field)} " for field in part if field) for part in (head, body))
    return [term for field in head + body for term in field], "\n".join(lines).encode()


def split_head(text: bytes) -> list[bytes]:
    """Return the terms of the title and tags in a text as terms."""
    return text.partition(b"\n")[0].split()


def idf(count: int, df: int) -> float:
    """Return the inverse document frequency of a term in `df` of `count` documents (Lucene's)."""
    return math.log(1.0 + (count - df + 0.5) / (df + 0.5))


def length_norm(length: int, count: int, total: int) -> float:
    """Return the length norm of BM25, K1 * (1 - B + B * length / average length)."""
    return K1 * (1.0 - B + B * length * count / total) if total else K1


def max_term_scores(weights: Mapping[str, float], statistics: Statistics) -> dict[str, float]:
    """Return the maximum score of each term, weight times IDF, in sorted order."""
    return {
        term: weights[term] * idf(statistics.count, statistics.df[term])
        for term in sorted(weights)
        if weights[term] > 0.0 and statistics.df.get(term)
    }


def score_text(text: bytes, gains: Mapping[str, float], statistics: Statistics) -> float:
    """Return the BM25 score of a text as terms, which need not be in an index."""
    words = text.split()
    frequencies: dict[str, int] = {}
    wanted = {term.encode(): term for term in gains}
    for word in words:
        term = wanted.get(word)
        if term is not None:
            frequencies[term] = min(frequencies.get(term, 0) + 1, MAX_TF)
    norm = length_norm(len(words), statistics.count, statistics.length)
    return bm25(gains, frequencies, norm)


def bm25(gains: Mapping[str, float], frequencies: Mapping[str, int], norm: float) -> float:
    """Return the BM25 score of a document from its term frequencies and its length norm."""
    score = 0.0
    for term, gain in gains.items():
        frequency = frequencies.get(term, 0)
        score += gain * (frequency / (frequency + norm))
    return score


def find_threshold(
    sums: dict[int, float],
    limit: int,
    is_allowed: Callable[[int], bool],
    known_threshold: float,
    max_sorted: int = MAX_SORTED,
) -> float:
    """Return a sum that the best `limit` allowed documents reach, or `known_threshold`.

    Only the first `max_sorted` documents are searched for it. Those of the best that are not
    allowed lose their sums. `known_threshold` is a sum that `limit` documents are known to reach.
    """
    first = list(sums)[:max_sorted]
    first.sort(key=sums.__getitem__, reverse=True)
    count = 0
    for number in first:
        score = sums[number]
        if score <= known_threshold:
            break
        if is_allowed(number):
            count += 1
            if count == limit:
                return score
        else:
            sums[number] = _EXCLUDED
    return known_threshold


def rerank(
    question: Question,
    statistics: Statistics,
    best: list[tuple[int, float]],
    read_candidate: Callable[[int], tuple[bytes, int]],
    order: Callable[[int], str | int],
) -> list[tuple[int, float]]:
    """Rerank the best documents by terms; return all of them in the new order.

    `best` is in order of score. `order` returns the sort key for equal scores, such as a path.
    """
    scores = rerank_scores(
        question,
        statistics,
        [score for _number, score in best],
        [read_candidate(number) for number, _score in best[:MAX_RERANKED]],
    )
    numbers = (number for number, _score in best)
    return sort_hits(list(zip(numbers, scores, strict=True)), order)


def sort_hits(
    hits: list[tuple[int, float]], order: Callable[[int], str | int]
) -> list[tuple[int, float]]:
    """Return numbers and scores of documents, the best first.

    `order` returns the sort key for equal scores; it is only called if there are some.
    """
    hits.sort(key=lambda hit: -hit[1])
    for at in range(1, len(hits)):
        if hits[at][1] == hits[at - 1][1]:
            break
    else:
        return hits
    return sorted(hits, key=lambda hit: (-hit[1], order(hit[0])))


def rerank_scores(
    question: Question,
    statistics: Statistics,
    scores: Sequence[float],
    texts: Sequence[tuple[bytes, int]],
) -> list[float]:
    """Return the score of each document by terms, pairs, heads and grams.

    `scores` are those of the terms, the best first, which becomes 1.0. `texts` are the first of
    these documents as terms, with their lengths; the other documents are scored by terms alone.
    """
    max_score = max(scores, default=0.0)
    idfs = {t: idf(statistics.count, statistics.df.get(t, 0)) for t in sorted(question.weights)}
    spaced = {term: f" {term} ".encode() for term in idfs}
    pairs = [
        (spaced[first], spaced[second], weight * (idfs[first] + idfs[second]))
        for (first, second), weight in sorted(question.pairs.items())
    ]
    in_heads = _max_head_scores(question, statistics)
    grams = _weigh_grams(question, idfs)
    parts = []
    for text, length in texts:
        present = {spaced_term for spaced_term in spaced.values() if spaced_term in text}
        norm = length_norm(length, statistics.count, statistics.length)
        by_pairs = 0.0
        for first, second, gain in pairs:
            if first in present and second in present:
                frequency = text.count(first + second[1:])
                by_pairs += gain * (frequency / (frequency + norm))
        by_head = _score_head(split_head(text), in_heads, statistics)
        by_grams = 0.0
        norm *= _GRAMS_PER_WORD
        for gram, weight in grams:
            frequency = text.count(gram)
            if frequency:
                by_grams += weight * (frequency / (frequency + norm))
        parts.append((by_pairs, by_head, by_grams))
    max_grams = max((part[2] for part in parts), default=0.0) or 1.0
    parts += [(0.0, 0.0, 0.0)] * (len(scores) - len(parts))
    return [
        score / max_score
        + PAIRS_WEIGHT * by_pairs / max_score
        + HEAD_WEIGHT * by_head / max_score
        + GRAMS_WEIGHT * by_grams / max_grams
        for score, (by_pairs, by_head, by_grams) in zip(scores, parts, strict=True)
    ]


def _max_head_scores(question: Question, statistics: Statistics) -> list[tuple[bytes, float]]:
    """Return the maximum score of each term that occurs in a head, in sorted order."""
    return [
        (term.encode(), question.weights[term] * idf(statistics.count, statistics.head_df[term]))
        for term in sorted(question.weights)
        if statistics.head_df.get(term)
    ]


def _score_head(
    head: list[bytes], gains: Sequence[tuple[bytes, float]], statistics: Statistics
) -> float:
    norm = length_norm(len(head), statistics.count, statistics.head_length)
    score = 0.0
    for term, gain in gains:
        if term in head:
            frequency = head.count(term)
            score += gain * (frequency / (frequency + norm))
    return score


def _weigh_grams(question: Question, idfs: Mapping[str, float]) -> list[tuple[bytes, float]]:
    """Return the grams of a query's terms without stop words, each with its highest weight."""
    weights: dict[str, float] = {}
    for term, term_idf in idfs.items():
        if is_stop(term):
            continue
        padded = f" {term} "
        weight = term_idf * min(question.weights[term], 1.0)
        for start in range(max(1, len(padded) - GRAM_LENGTH + 1)):
            gram = padded[start : start + GRAM_LENGTH]
            weights[gram] = max(weights.get(gram, 0.0), weight)
    return sorted((gram.encode(), weight) for gram, weight in weights.items())
