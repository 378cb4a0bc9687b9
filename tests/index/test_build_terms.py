"""Documents as runs, and what the builder makes of them: the same as of each by itself."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from memtool.index import build
from memtool.index.postings import IN_HEAD, Segment
from memtool.index.scoring import Document, head_of, searchable

WORDS = (
    "git",
    "FileLock",
    "a/b_c.d-e",
    "...",
    "café",
    "東京都",
    "x\x1fy",
    "\x00",
    "ÿ",
    "v1.2",
    "\n",
)
TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=5), max_size=5).map(" ".join)
NAMES = st.sampled_from(("title", "body", "tags", "id"))
DOCUMENTS = st.lists(
    st.lists(st.tuples(NAMES, TEXTS), max_size=5).map(tuple), min_size=1, max_size=6
).map(lambda rows: [Document(f"k{number}", row) for number, row in enumerate(rows)])


@given(DOCUMENTS)
def test_many_documents_give_what_each_gives(documents: list[Document]) -> None:
    """Texts, lengths, counts and marks of heads are those of every document read by itself."""
    files = build.build(documents)
    segment = Segment({name: memoryview(data) for name, data in files.items()})
    for number, document in enumerate(documents):
        terms, text = searchable(document)
        head = head_of(text)
        assert segment.text(number) == text
        assert segment.lengths(number) == (len(terms), len(head))
        for term, count in Counter(terms).items():
            at = segment._postings(term)
            assert at is not None
            place = list(segment.holding(term)).index(number)
            mark = IN_HEAD if term.encode() in head else 0
            assert segment._section["tf"][at[1] + place] == count | mark


def test_slices_fit_together() -> None:
    """More documents than are worked on at once give as many texts, each its own."""
    count = 2 * build.SLICE + 1
    documents = [Document(f"{n:05}", (("title", f"t{n}"), ("body", "x_y"))) for n in range(count)]
    files = build.build(documents)
    segment = Segment({name: memoryview(data) for name, data in files.items()})
    assert [segment.text(n) for n in range(count)] == [searchable(d)[1] for d in documents]


def test_a_run_is_looked_at_once() -> None:
    """What stands in many documents is in the table once, and marks are no part of a text."""
    rows = build.rows([Document("a", (("title", "git git"),)), Document("b", (("x", "git"),))])
    runs = build.Runs()
    numbers = [runs[run] for row in rows for run in row]
    assert numbers == [build.FIELD, 3, 3, build.HEAD, build.END,
                       build.HEAD, build.FIELD, 3, build.END]  # fmt: skip
    assert runs.words[3:] == [("git",)]
