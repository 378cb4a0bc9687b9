"""Evaluation: golden queries and measures."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.search import evaluation
from memtool.search.evaluation import GoldenQuery

ROW = {"qid": "q1", "query": "where?", "expect": ["dec-a"]}


def line(**changes: object) -> bytes:
    row = {key: value for key, value in (ROW | changes).items() if value is not ...}
    return json.dumps(row).encode() + b"\n"


def test_a_line_is_a_golden_query() -> None:
    """All keys are read; those that may be left out are empty."""
    data = line() + b"\n  \n" + line(qid="q2", files=["a.py"], as_of="2026-02-22")
    assert evaluation.parse(data, "g") == (
        GoldenQuery("q1", "where?", ("dec-a",), (), "", 1),
        GoldenQuery("q2", "where?", ("dec-a",), ("a.py",), "2026-02-22", 4),
    )


def test_marks_and_line_ends_of_other_systems_are_fine() -> None:
    """A byte-order mark and carriage returns are not part of the query."""
    data = b"\xef\xbb\xbf" + line().replace(b"\n", b"\r\n")
    assert evaluation.parse(data, "g")[0].query == "where?"


def test_what_is_expected_twice_counts_once() -> None:
    """The order stays, the repetition goes."""
    (query,) = evaluation.parse(line(expect=["dec-b", "dec-a", "dec-b"]), "g")
    assert query.expect == ("dec-b", "dec-a")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "g:1: is not JSON: Expecting property name"),
        (line() + b"nonsense\n", "g:2: is not JSON: Expecting value"),
        (b"\xff\n", "g:1: is not JSON: it is not UTF-8"),
        (b"[" * 100_000, "g:1: is not JSON"),
        (b"[1]\n", "g:1: is not a JSON object"),
        (line(qid=...), "g:1: qid must be a text"),
        (line(qid=7), "g:1: qid must be a text"),
        (line(qid="a\tb"), "g:1: qid must not contain a tab"),
        (line(query=" "), "g:1: query must not be empty"),
        (line(expect="dec-a"), "g:1: expect must be a list of texts"),
        (line(expect=[]), "g:1: expect must not be empty"),
        (line(expect=[1]), "g:1: expect must be a list of texts"),
        (line(files="a.py"), "g:1: files must be a list of texts"),
        (line(as_of=3), "g:1: as_of must be a text"),
        (line(expects=["x"]), "g:1: 'expects' is not one of qid, query, expect, files, as_of"),
        (line() + b"\n" + line(), "g:3: qid 'q1' is also in line 1"),
        (b"", "no golden query in g"),
        (b"\n \n", "no golden query in g"),
    ],
)
def test_a_bad_line_is_named_with_its_number(data: bytes, message: str) -> None:
    """The problem has its line and reason."""
    with pytest.raises(MemtoolError) as caught:
        evaluation.parse(data, "g")
    assert caught.value.message.startswith(message)
    assert (caught.value.code, bool(caught.value.hint)) == ("bad-golden", True)


@given(st.binary(max_size=100))
def test_no_bytes_give_a_traceback(data: bytes) -> None:
    """Any file is golden queries or one clear error."""
    with suppress(MemtoolError):
        assert evaluation.parse(data, "g")


IDS = st.sampled_from("abcdefghijklmnop")
RANKED = st.lists(IDS, unique=True, max_size=14)
EXPECTED = st.sets(IDS, min_size=1, max_size=6)


def gain(flags: list[bool]) -> float:
    """DCG of a list of hits and misses, written out."""
    return sum(1 / math.log2(place + 2) for place, hit in enumerate(flags) if hit)


def best_gain(expected: int, depth: int) -> float:
    """The most that any way to place the expected ids among the ranks can gain."""
    placed = min(expected, depth)
    ways = combinations(range(depth), placed)
    return max(gain([place in way for place in range(depth)]) for way in ways)


@given(RANKED, EXPECTED, st.integers(1, 10))
def test_measures_equal_their_definitions(
    ranked: list[str], expected: set[str], depth: int
) -> None:
    """Each measure is what counting by hand gives."""
    flags = [id_ in expected for id_ in ranked][:depth]
    hits = sum(flags)
    assert evaluation.recall(ranked, expected, depth) == pytest.approx(hits / len(expected))
    first = 1 / (flags.index(True) + 1) if hits else 0
    assert evaluation.reciprocal_rank(ranked, expected, depth) == pytest.approx(first)
    ideal = best_gain(len(expected), depth)
    assert evaluation.ndcg(ranked, expected, depth) == pytest.approx(gain(flags) / ideal)


@given(RANKED, EXPECTED)
def test_measures_lie_between_none_and_all(ranked: list[str], expected: set[str]) -> None:
    """No ranking is better than perfect."""
    assert all(0 <= value <= 1 for value in evaluation.compute_measures(ranked, expected).values())


@given(st.lists(IDS, unique=True, min_size=1, max_size=5), RANKED)
def test_a_perfect_ranking_has_exactly_one(expected: list[str], other_ids: list[str]) -> None:
    """Whoever finds all that was expected first gets 1, not nearly 1."""
    ranked = expected + [id_ for id_ in other_ids if id_ not in expected]
    assert set(evaluation.compute_measures(ranked, expected).values()) == {1.0}


@given(RANKED, EXPECTED, st.data())
def test_moving_an_expected_memory_up_never_hurts(
    ranked: list[str], expected: set[str], data: st.DataObject
) -> None:
    """A better order has no smaller measure."""
    places = [n for n, id_ in enumerate(ranked) if n and id_ in expected]
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    better = [*ranked]
    better[place - 1], better[place] = better[place], better[place - 1]
    before, after = (
        evaluation.compute_measures(ranked, expected),
        evaluation.compute_measures(better, expected),
    )
    assert all(after[name] >= before[name] - 1e-12 for name in before)


def test_known_values() -> None:
    """Two of three expected ones, at ranks 2 and 6: worked out on paper."""
    measures = evaluation.compute_measures(list("xaxxxbxxxx".replace("x", "-")), {"a", "b", "c"})
    ideal = 1 + 1 / math.log2(3) + 0.5
    assert measures["recall@5"] == pytest.approx(1 / 3)
    assert measures["recall@10"] == pytest.approx(2 / 3)
    assert measures["mrr@10"] == 0.5
    assert measures["ndcg@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(7)) / ideal)


def test_the_mean_counts_every_query_alike() -> None:
    """One query that found all and one that found nothing make a half."""
    rows = [evaluation.compute_measures(["a"], {"a"}), evaluation.compute_measures(["b"], {"a"})]
    assert evaluation.compute_means(rows) == dict.fromkeys(evaluation.MEASURES, 0.5)
