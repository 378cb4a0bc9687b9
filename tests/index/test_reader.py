"""The reader: deltas answer like a segment of the same documents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memtool.index import build, reader, scoring
from memtool.index.postings import Segment
from memtool.index.reader import Delta, IndexReader, LeafReader
from memtool.index.scoring import Document, Statistics

WORDS = ("git", "tree", "lock", "file_lock", "the", "index")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
ROWS = st.lists(st.tuples(TEXTS, TEXTS), max_size=8)
ASKED = st.dictionaries(st.sampled_from(("git", "tree", "lock", "the", "none")),
                        st.sampled_from((0.3, 1.0, 2.0)), max_size=5)  # fmt: skip


def documents(rows: list[tuple[str, str]]) -> list[Document]:
    return [
        Document(f"{n:02}", (("title", title), ("body", body)))
        for n, (title, body) in enumerate(rows)
    ]


def segment(rows: list[Document]) -> Segment:
    return Segment({name: memoryview(data) for name, data in build.build(rows).items()})


def lain_over(rows: list[Document]) -> Delta:
    return Delta([scoring.searchable(document)[1] for document in rows])


def numbers(found: Statistics) -> object:
    """Statistics without the zeros that may be left out."""
    heads = {term: count for term, count in found.head_df.items() if count}
    return (found.count, found.length, found.head_length, dict(found.df), heads)


class Shelf:
    """How many memories a part holds."""

    def __init__(self, count: int) -> None:
        self.count = count


class Named:
    """Paths of a part, as its shelf would know them."""

    def __init__(self, first: int) -> None:
        self.first = first

    def path(self, number: int) -> str:
        return f"{self.first + number:02}"


@given(ROWS, ASKED, st.integers(0, 9))
def test_an_overlay_is_a_segment(
    rows: list[tuple[str, str]], asked: dict[str, float], limit: int
) -> None:
    """Same statistics, same documents for a term, same best with the same scores."""
    made = documents(rows)
    one, other = segment(made), lain_over(made)
    assert numbers(one.statistics(asked)) == numbers(other.statistics(asked))
    statistics = one.statistics(asked)
    even = frozenset(range(0, len(rows), 2))
    assert one.best(asked, limit) == other.best(asked, limit, None, statistics)
    assert one.best(asked, limit, even.__contains__) == other.best(
        asked, limit, even.__contains__, statistics
    )
    for term in WORDS:
        assert list(one.holding(term)) == list(other.holding(term))
        assert one.among(term, even) == other.among(term, even)
    for number in range(len(rows)):
        assert one.candidate(number) == other.candidate(number)
        assert one.lengths(number) == other.lengths(number)
    for dead in (frozenset[int](), even):
        assert one.beginning("", 9, dead) == other.beginning("", 9, dead)
        assert one.beginning("l", 1, dead) == other.beginning("l", 1, dead)


@given(ROWS, st.lists(st.booleans(), min_size=8, max_size=8), ASKED, st.integers(0, 9))
def test_parts_score_as_one_segment_of_what_lives(
    rows: list[tuple[str, str]], kept: list[bool], asked: dict[str, float], limit: int
) -> None:
    """Dead documents in one part and fresh ones in another change no bit of a score."""
    made = documents(rows)
    cut = len(made) // 2
    old = segment(made[:cut])
    dead = frozenset(number for number in range(cut) if not kept[number])
    found = IndexReader([
        LeafReader(old, Named(0), 0, dead),  # type: ignore[arg-type]  # only paths are asked of it
        LeafReader(lain_over(made[cut:]), Named(cut), cut, frozenset()),  # type: ignore[arg-type]
    ])  # fmt: skip
    living = [number for number in range(len(made)) if number not in dead]
    whole = segment([made[number] for number in living])
    assert numbers(found.statistics(asked)) == numbers(whole.statistics(asked))
    expected = [(living[number], score) for number, score in whole.best(asked, limit)]
    assert found.best(asked, limit, lambda _number: True) == expected
    assert found.beginning("", 99) == whole.beginning("", 99)


@given(st.lists(TEXTS, max_size=6))
def test_texts_come_back_from_bytes(texts: list[str]) -> None:
    """What a state keeps of an overlay is all of it."""
    raw = [text.encode() for text in texts]
    assert reader.unpack_texts(memoryview(reader.pack_texts(raw))) == raw


def test_terms_of_a_head_are_marked() -> None:
    """A frequency says whether the term stands in the title or tags too."""
    held = lain_over(documents([("git", "git git"), ("", "git")]))
    assert held.best({"git": 1.0}, 9, None, held.statistics(["git"]))[0][0] == 0
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
    parts = [
        LeafReader(segment(made[: len(olds)]), Shelf(len(olds)), 0, frozenset()),
        LeafReader(lain_over(made[len(olds) :]), Shelf(len(news)), len(olds), frozenset()),
    ]
    hidden = {number for number in hidden if number < len(made)}
    found = IndexReader(parts).without_counting(hidden).statistics(asked)
    others = [one for number, one in enumerate(made) if number not in hidden]
    alone, whole = (lain_over(some).statistics(asked) for some in (others, made))
    assert found.count == (max(1, len(others)) if hidden else len(made))
    assert (found.length, found.head_length) == (alone.length, alone.head_length)
    for own, counted, known in (
        (found.df, alone.df, whole.df),
        (found.head_df, alone.head_df, whole.head_df),
    ):
        for term in asked:
            assert own.get(term, 0) == max(counted.get(term, 0), min(1, known.get(term, 0)))
