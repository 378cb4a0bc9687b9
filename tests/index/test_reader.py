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
    found = shelf(rows)
    return LeafReader(found.postings, found.memories, first, dead)


def numbers(found: Statistics) -> object:
    """Statistics without the zeros that may be left out."""
    heads = {term: count for term, count in found.head_df.items() if count}
    return (found.count, found.length, found.head_length, dict(found.df), heads)


@given(ROWS, st.lists(st.booleans(), min_size=8, max_size=8), ASKED, st.integers(0, 9))
def test_parts_score_as_one_segment_of_what_lives(
    rows: list[tuple[str, str]], kept: list[bool], asked: dict[str, float], limit: int
) -> None:
    """Dead documents in one part and fresh ones in another change no bit of a score."""
    made = documents(rows)
    cut = len(made) // 2
    dead = frozenset(number for number in range(cut) if not kept[number])
    found = IndexReader([part(made[:cut], 0, dead), part(made[cut:], cut)])
    living = [number for number in range(len(made)) if number not in dead]
    whole = shelf([made[number] for number in living]).postings
    assert numbers(found.statistics(asked)) == numbers(whole.statistics(asked))
    expected = [(living[number], score) for number, score in whole.best(asked, limit)]
    assert found.best(asked, limit, lambda _number: True) == expected
    assert found.beginning("", 99) == whole.beginning("", 99)


def test_terms_of_a_head_are_marked() -> None:
    """A frequency says whether the term stands in the title or tags too."""
    held = shelf(documents([("git", "git git"), ("", "git")])).postings
    assert held.best({"git": 1.0}, 9)[0][0] == 0
    assert held.among("git", {0, 1}) == (2, 1)


@given(ROWS, ROWS, ASKED, st.sets(st.integers(0, 15)))
def test_what_is_hidden_counts_for_no_statistics(
    olds: list[tuple[str, str]],
    news: list[tuple[str, str]],
    asked: dict[str, float],
    hidden: set[int],
) -> None:
    """They are those of the others alone; a word that only hidden ones hold counts as one's."""
    made = documents([*olds, *news])
    parts = [part(made[: len(olds)]), part(made[len(olds) :], len(olds))]
    hidden = {number for number in hidden if number < len(made)}
    found = IndexReader(parts).without_counting(hidden).statistics(asked)
    others = [one for number, one in enumerate(made) if number not in hidden]
    alone, whole = (shelf(some).postings.statistics(asked) for some in (others, made))
    assert found.count == (max(1, len(others)) if hidden else len(made))
    assert (found.length, found.head_length) == (alone.length, alone.head_length)
    for own, counted, known in (
        (found.df, alone.df, whole.df),
        (found.head_df, alone.head_df, whole.head_df),
    ):
        for term in asked:
            assert own.get(term, 0) == max(counted.get(term, 0), min(1, known.get(term, 0)))
