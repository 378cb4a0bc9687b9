"""Postings, held against a brute-force oracle and against bm25s."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys

import bm25s
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.index import postings, scoring
from memtool.index.analyzer import terms
from memtool.index.postings import PostingRows
from memtool.index.reader import IndexReader, LeafReader
from memtool.index.scoring import Document, Question, Statistics
from tests.index.shelves import shelf, updated

WORDS = ("git", "tree", "lock", "blob", "cache", "merge", "of", "the")
text = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
corpora = st.lists(st.tuples(text, text), max_size=25)
weights = st.dictionaries(
    st.sampled_from((*WORDS, "absent")), st.sampled_from((0.3, 1.0, 2.0)), max_size=6
)


def made(rows: list[tuple[str, str]], prefix: str = "k") -> list[Document]:
    return [
        Document(f"{prefix}{n:03}", (("title", title), ("body", body)))
        for n, (title, body) in enumerate(rows)
    ]


def opened(documents: list[Document]) -> PostingRows:
    return shelf(documents).postings


def searched(part: LeafReader, question: Question, limit: int) -> list[tuple[int, float]]:
    """Search one index as a collection."""
    index, depth = IndexReader([part]), max(limit, scoring.MAX_RERANKED)
    best = index.find_best(question.weights, depth, lambda _number: True)
    return index.rerank(question, best)[:limit]


def oracle(documents: list[Document], term_weights: dict[str, float]) -> list[tuple[str, float]]:
    """BM25 in its plainest form, over all documents."""
    bags = {d.key: [t for _name, field in d.fields for t in terms(field)] for d in documents}
    count = len(bags)
    average = sum(map(len, bags.values())) / count if count else 0
    scored = []
    for key, bag in bags.items():
        score = 0.0
        for term, weight in term_weights.items():
            df = sum(term in other for other in bags.values())
            tf = bag.count(term)
            if tf:
                idf = math.log(1 + (count - df + 0.5) / (df + 0.5))
                score += weight * idf * tf / (tf + 1.5 * (0.25 + 0.75 * len(bag) / average))
        if score > 0:
            scored.append((key, score))
    return sorted(scored, key=lambda pair: (-round(pair[1], 9), pair[0]))


@given(corpora, weights, st.integers(1, 30))
def test_the_best_are_those_of_a_brute_force_search(
    rows: list[tuple[str, str]], term_weights: dict[str, float], limit: int
) -> None:
    """The best by words are exactly those of the formula over every document, ties by key."""
    documents = made(rows)
    segment = opened(documents)
    best = [
        (documents[n].key, round(score, 9)) for n, score in segment.find_best(term_weights, limit)
    ]
    assert best == [
        (key, round(score, 9)) for key, score in oracle(documents, term_weights)[:limit]
    ]


@given(corpora.filter(any), st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_the_best_have_the_scores_of_bm25s(rows: list[tuple[str, str]], words: list[str]) -> None:
    """bm25s gives the same scores in the same order, once its zeros are dropped."""
    documents = made(rows)
    bags = [[t for _name, field in d.fields for t in terms(field)] for d in documents]
    if not any(bags):
        return
    retriever = bm25s.BM25()
    retriever.index(bags, show_progress=False)
    stemmed = [t for word in words for t in terms(word)]
    indexed = [t for t in stemmed if t in retriever.vocab_dict]
    if not indexed:
        return
    term_weights = {t: float(stemmed.count(t)) for t in stemmed}
    numbers, scores = retriever.retrieve([indexed], k=len(bags), show_progress=False)
    theirs = {int(n): float(s) for n, s in zip(numbers[0], scores[0], strict=True) if s > 0}
    ours = opened(documents).find_best(term_weights, len(bags))
    assert dict(ours) == pytest.approx(theirs, rel=1e-4)
    assert [theirs[n] for n, _score in ours] == pytest.approx(
        sorted(theirs.values(), reverse=True), rel=1e-4
    )


@given(corpora, corpora, weights, st.integers(1, 8))
def test_scores_come_from_the_statistics_of_the_whole_collection(
    rows: list[tuple[str, str]],
    other_rows: list[tuple[str, str]],
    term_weights: dict[str, float],
    limit: int,
) -> None:
    """A part of a collection gives its documents bit for bit the scores the whole gives them."""
    part = made(rows)
    whole = opened([*part, *made(other_rows, prefix="z")])
    segment = opened(part)
    expected = whole.find_best(term_weights, limit, lambda n: n < len(part))
    assert (
        segment.find_best(term_weights, limit, statistics=whole.statistics(term_weights))
        == expected
    )


@given(corpora, weights, st.integers(1, 8))
def test_filters_come_before_the_limit(
    rows: list[tuple[str, str]], term_weights: dict[str, float], limit: int
) -> None:
    """Filtered documents take no place, and change no score."""
    segment = opened(made(rows))
    everything = segment.find_best(term_weights, len(rows) + 1)
    expected = [hit for hit in everything if hit[0] % 2][:limit]
    assert segment.find_best(term_weights, limit, lambda number: number % 2 == 1) == expected


def many() -> LeafReader:
    """Three hundred documents with common and rare words, so that pruning has work."""
    bodies = [
        " ".join(w for k, w in enumerate(WORDS) for _ in range((n * (k + 3)) % (k + 2)))
        for n in range(300)
    ]
    return shelf(made([(WORDS[n % 7], body) for n, body in enumerate(bodies)]))


def test_pruning_looks_at_less_and_finds_the_same() -> None:
    """Every limit gives a prefix of the full answer, also where long lists are only looked up."""
    segment = many().postings
    term_weights = {"git": 3.0, "tree": 2.0, "the": 0.01, "of": 0.01}
    everything = segment.find_best(term_weights, 1000)
    for limit in (1, 2, 3, 10, 50, 299):
        assert segment.find_best(term_weights, limit) == everything[:limit]


@pytest.mark.slow
def test_what_is_spared_in_long_lists_counts_for_nothing() -> None:
    """Pruning leaves the best as they are, whatever is asked and whatever is allowed."""
    draw = random.Random(5)
    shares = {"git": 0.9, "tree": 0.8, "the": 0.7, "lock": 0.3, "cache": 0.1, "rare": 0.03}
    bodies = [
        " ".join(word for word, share in shares.items() for _ in range(5) if draw.random() < share)
        + " more" * draw.randrange(40)
        for _ in range(2_500)
    ]
    segment = opened(made([("", body) for body in bodies]))
    for _ in range(60):
        words = draw.sample(sorted(shares), draw.randrange(1, 6))
        term_weights = {word: draw.choice([0.3, 0.5, 1.0, 2.0]) for word in words}
        parts = draw.choice([1, 2, 50, 900])
        everything = segment.find_best(term_weights, 2_500)
        expected = [hit for hit in everything if hit[0] % parts == 0]
        for limit in (1, 30, 60, 65):
            best = segment.find_best(
                term_weights, limit, lambda number, parts=parts: number % parts == 0
            )
            assert best == expected[:limit]


def test_a_higher_limit_only_adds_at_the_end() -> None:
    """Hits beyond the candidates follow them, so that every page is a prefix of the longer one."""
    segment = many()
    question = scoring.parse_question("the git tree lock")
    everything = searched(segment, question, 1000)
    assert len(everything) > 2 * scoring.MAX_RERANKED
    for limit in (0, 1, 10, scoring.MAX_RERANKED, scoring.MAX_RERANKED + 7):
        assert searched(segment, question, limit) == everything[:limit]
    order = [(-score, number) for number, score in everything]
    assert order == sorted(order)
    assert all(score > 0 for _number, score in everything)


def test_pairs_titles_and_grams_lift_what_the_words_leave_equal() -> None:
    """Adjacent words, title words and misspelt words count in addition to the words."""
    documents = [
        Document("a", (("title", "x"), ("body", "lock y file"))),
        Document("b", (("title", "x"), ("body", "file lock y"))),
        Document("c", (("title", "file"), ("body", "lock y x"))),
        Document("d", (("title", "x"), ("body", "lock y kubernetes"))),
        Document("e", (("title", "x"), ("body", "lock y elsewhere"))),
    ]
    segment = shelf(documents)
    hits = searched(segment, scoring.parse_question("file lock"), 3)
    assert [documents[number].key for number, _score in hits] == ["c", "b", "a"]
    hits = searched(segment, scoring.parse_question("lock kubernets"), 5)
    assert documents[hits[0][0]].key == "d"


def test_nothing_is_asked_or_known() -> None:
    """Empty questions, unknown words, weights of 0 and empty corpora give no hits."""
    segment = shelf(made([("git", "tree")]))
    assert searched(segment, scoring.parse_question(""), 5) == []
    assert searched(segment, scoring.parse_question("unknown"), 5) == []
    assert searched(segment, Question({"git": 0.0}), 5) == []
    assert searched(segment, scoring.parse_question("git"), 0) == []
    for documents in ([], [Document("a", ())], [Document("a", (("title", "!"),))]):
        empty = shelf(documents)
        assert searched(empty, scoring.parse_question("git"), 5) == []
        assert empty.postings.count == len(documents)


@given(corpora, corpora, weights, st.integers(1, 30))
def test_an_index_that_changed_is_as_one_that_was_built(
    before: list[tuple[str, str]],
    after: list[tuple[str, str]],
    term_weights: dict[str, float],
    limit: int,
) -> None:
    """Documents that came and went leave nothing behind, in scores, statistics or terms."""
    documents = made(after)
    plain, changed = shelf(documents), updated(made(before, "b"), documents)
    assert numbers(changed.postings.statistics(term_weights)) == numbers(
        plain.postings.statistics(term_weights)
    )
    results = [
        [
            (part.memories.path(number), score)
            for number, score in part.postings.find_best(term_weights, limit)
        ]
        for part in (plain, changed)
    ]
    assert results[0] == results[1]
    for prefix in ("", "t"):
        assert changed.postings.find_terms(prefix, 99) == plain.postings.find_terms(prefix, 99)


def numbers(counted: Statistics) -> object:
    """Statistics without the zeros that may be left out."""
    heads = {term: count for term, count in counted.head_df.items() if count}
    return (counted.count, counted.length, counted.head_length, dict(counted.df), heads)


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=40))
def test_a_row_is_spliced_as_a_sorted_list(steps: list[tuple[int, bool]]) -> None:
    """Postings are put in, replaced and taken out, several at once, and stay ascending."""
    by_number: dict[int, tuple[float, int]] = {}
    data = b""
    for start in range(0, len(steps), 3):
        changes = {}
        for at, (number, is_in) in enumerate(steps[start : start + 3]):
            changes[number] = (0.5 * at, start + at) if is_in else None
        for number, posting in changes.items():
            by_number.pop(number, None)
            by_number |= {} if posting is None else {number: posting}
        data = postings.splice(data, changes)
        raw, scores, frequencies = postings.split_columns(data)
        assert memoryview(raw).cast("i").tolist() == sorted(by_number)
        pairs = zip(memoryview(scores).cast("f").tolist(), frequencies, strict=True)
        assert list(pairs) == [by_number[number] for number in sorted(by_number)]


def test_reading_loads_no_library() -> None:
    """Opening and asking a segment imports neither numpy nor bm25s, nor regular expressions."""
    code = "import sys, memtool.index.index; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"numpy", "bm25s", "re", "json", "typing", "Stemmer", "unicodedata"}


def test_hits_can_be_written_as_json() -> None:
    """Numbers of an answer are plain numbers."""
    segment = shelf(made([("git", "tree")]))
    assert json.loads(json.dumps(searched(segment, scoring.parse_question("git"), 1)))[0][0] == 0


def test_ties_go_by_key_whatever_list_they_come_from() -> None:
    """Documents of equal score are ordered by key, also where the limit cuts."""
    segment = opened(made([("", "tree"), ("", "git"), ("", "tree"), ("", "git")]))
    term_weights = {"git": 1.0, "tree": 1.0}
    assert [number for number, _score in segment.find_best(term_weights, 4)] == [0, 1, 2, 3]
    assert [number for number, _score in segment.find_best(term_weights, 2)] == [0, 1]
