"""The reader: several indexes answer like one of all their documents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memtool.index.reader import IndexReader, LeafReader
from memtool.index.scoring import Document, Statistics
from tests.index.shelves import shelf

WORDS = ("git", "tree", "lock", "file_lock", "the", "index")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
ROWS = st.lists(st.tuples(TEXTS, TEXTS), max_size=8)
ASKED = st.dictionaries(
    st.sampled_from(("git", "tree", "lock", "the", "none")),
    st.sampled_from((0.3, 1.0, 2.0)),
    max_size=5,
)


def documents(rows: list[tuple[str, str]]) -> list[Document]:
    return [
        Document(f"{n:02}", (("title", title), ("body", body)))
        for n, (title, body) in enumerate(rows)
    ]


def part(rows: list[Document], first: int = 0, dead: frozenset[int] = frozenset()) -> LeafReader:
    segment = shelf(rows)
    return LeafReader(segment.postings, segment.memories, first, dead)


def numbers(counted: Statistics) -> object:
    """Statistics without the zeros that may be left out."""
    heads = {term: count for term, count in counted.head_df.items() if count}
    return (counted.count, counted.length, counted.head_length, dict(counted.df), heads)


@given(ROWS, st.lists(st.booleans(), min_size=8, max_size=8), ASKED, st.integers(0, 9))
def test_parts_score_as_one_segment_of_what_lives(
    rows: list[tuple[str, str]], alive: list[bool], weights: dict[str, float], limit: int
) -> None:
    """Dead documents in one part and fresh ones in another change no bit of a score."""
    made = documents(rows)
    cut = len(made) // 2
    dead = frozenset(number for number in range(cut) if not alive[number])
    reader = IndexReader([part(made[:cut], 0, dead), part(made[cut:], cut)])
    living = [number for number in range(len(made)) if number not in dead]
    whole = shelf([made[number] for number in living]).postings
    assert numbers(reader.statistics(weights)) == numbers(whole.statistics(weights))
    expected = [(living[number], score) for number, score in whole.find_best(weights, limit)]
    assert reader.find_best(weights, limit, lambda _number: True) == expected
    assert reader.find_terms("", 99) == whole.find_terms("", 99)


def test_terms_of_a_head_are_marked() -> None:
    """A frequency records whether the term is in the title or tags too."""
    postings = shelf(documents([("git", "git git"), ("", "git")])).postings
    assert postings.find_best({"git": 1.0}, 9)[0][0] == 0
    assert postings.count_among("git", {0, 1}) == (2, 1)


@given(ROWS, ROWS, ASKED, st.sets(st.integers(0, 15)))
def test_what_is_hidden_counts_for_no_statistics(
    olds: list[tuple[str, str]],
    news: list[tuple[str, str]],
    weights: dict[str, float],
    hidden: set[int],
) -> None:
    """They are those of the others alone; a word that only hidden ones hold counts as one's."""
    made = documents([*olds, *news])
    parts = [part(made[: len(olds)]), part(made[len(olds) :], len(olds))]
    hidden = {number for number in hidden if number < len(made)}
    statistics = IndexReader(parts).without_counting(hidden).statistics(weights)
    shown = [document for number, document in enumerate(made) if number not in hidden]
    alone, whole = (shelf(some).postings.statistics(weights) for some in (shown, made))
    assert statistics.count == (max(1, len(shown)) if hidden else len(made))
    assert (statistics.length, statistics.head_length) == (alone.length, alone.head_length)
    for own, counted, total in (
        (statistics.df, alone.df, whole.df),
        (statistics.head_df, alone.head_df, whole.head_df),
    ):
        for term in weights:
            assert own.get(term, 0) == max(counted.get(term, 0), min(1, total.get(term, 0)))
