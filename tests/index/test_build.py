"""Building: scores are those of bm25s, and terms those of the analyzer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from itertools import chain

import bm25s
import pytest
from conftest import Sandbox
from hypothesis import given
from hypothesis import strategies as st

from memtool.index import build
from memtool.index.analyzer import terms
from memtool.index.postings import IN_HEAD, split_columns
from memtool.index.scoring import Document, analyze_document, idf, split_head

TEXTS = ("git tree tree", "the FileLock of café", "merge.ours", "", "lock git 東京")
DOCUMENTS = [Document(f"k{n}", (("title", t), ("tags", "x y"))) for n, t in enumerate(TEXTS)]


def test_a_build_starts_no_other_process(sandbox: Sandbox) -> None:
    """The lock of a progress bar would start one, which Python 3.14 tells the user about."""
    sandbox.memory("dec-redis", "Redis is the cache.\n")
    done = sandbox.process("search", "redis", PYTHONPROFILEIMPORTTIME="1")
    assert ("bm25s" in done.stderr, "multiprocessing" in done.stderr) == (True, False)


def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    """Processes with other hash seeds make the same rows."""
    code = f"""
import hashlib
from memtool.index import build
from memtool.index.scoring import Document
documents = [Document(f"k{{n}}", (("title", t),)) for n, t in enumerate({TEXTS!r})]
for _twice in range(2):
    built = build.build(documents)
    made = repr([(chunk.texts, list(chunk.postings)) for chunk in built.chunks] + built.words)
    print(hashlib.sha256(made.encode()).hexdigest())
"""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    lines = outputs[0].splitlines()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_scores_are_those_of_bm25s(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each posting has bm25s's score for all documents, divided by the rarity of its term."""
    monkeypatch.setattr("memtool.index.postings.CHUNK_SIZE", chunk)
    bags = [[t for _n, field in d.fields for t in terms(field)] for d in DOCUMENTS]
    theirs = bm25s.BM25()
    theirs.index(bags, show_progress=False)
    postings: dict[str, dict[int, float]] = {}
    rows = chain.from_iterable(chunk.postings for chunk in build.build(DOCUMENTS).chunks)
    for term, place, _heads, top, data in rows:
        numbers, scores, _frequencies = split_columns(data)
        columns = memoryview(numbers).cast("i"), memoryview(scores).cast("f")
        postings.setdefault(term, {}).update(zip(*columns, strict=True))
        assert top == max(columns[1])
        assert {number // chunk for number in columns[0]} == {place}
    for term, number in theirs.vocab_dict.items():
        if term:
            start, end = theirs.scores["indptr"][number], theirs.scores["indptr"][number + 1]
            documents = theirs.scores["indices"][start:end].tolist()
            expected = dict(zip(documents, theirs.scores["data"][start:end], strict=True))
            rarity = idf(len(bags), len(postings[term]))
            own = {number: score * rarity for number, score in postings[term].items()}
            assert own == pytest.approx(expected, rel=1e-6)


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
RUN_TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=5), max_size=5).map(" ".join)
NAMES = st.sampled_from(("title", "body", "tags", "id"))
RUN_DOCUMENTS = st.lists(
    st.lists(st.tuples(NAMES, RUN_TEXTS), max_size=5).map(tuple), min_size=1, max_size=6
).map(lambda rows: [Document(f"k{number}", row) for number, row in enumerate(rows)])


@given(RUN_DOCUMENTS, st.integers(1, 7))
def test_many_documents_give_what_each_gives(documents: list[Document], size: int) -> None:
    """Texts, lengths, counts and marks of heads are those of every document read by itself.

    However many are worked on at once, they fit together.
    """
    texts, lengths, postings = [], [], {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memtool.index.postings.CHUNK_SIZE", size)
        for chunk in build.build(documents).chunks:
            texts += chunk.texts
            lengths += chunk.lengths
            for term, _place, _heads, _top, data in chunk.postings:
                numbers, _scores, frequencies = split_columns(data)
                pairs = zip(memoryview(numbers).cast("i"), frequencies, strict=True)
                postings.update({(term, number): frequency for number, frequency in pairs})
    expected = {}
    for number, document in enumerate(documents):
        tokens, text = analyze_document(document)
        head = split_head(text)
        assert texts[number] == text
        assert lengths[number] == (len(tokens), len(head))
        for term, count in Counter(tokens).items():
            expected[term, number] = count | (IN_HEAD if term.encode() in head else 0)
    assert postings == expected


def test_a_run_is_looked_at_once() -> None:
    """Runs in many documents are in the table once, and marks are not part of a text."""
    rows = build.split_runs(
        [Document("a", (("title", "git git"),)), Document("b", (("x", "git"),))]
    )
    runs = build.RunNumbers("english")
    numbers = [runs[run] for row in rows for run in row]
    assert numbers == [
        build.FIELD,
        3,
        3,
        build.HEAD,
        build.END,
        build.HEAD,
        build.FIELD,
        3,
        build.END,
    ]
    assert runs.words[3:] == [("git",)]
