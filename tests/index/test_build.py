"""Building: the files of a segment are those of bm25s, and its terms those of the analyzer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import bm25s
import numpy as np
import pytest
from conftest import Sandbox
from hypothesis import given
from hypothesis import strategies as st

from memtool.index import build
from memtool.index.analyzer import terms
from memtool.index.postings import IN_HEAD, Segment
from memtool.index.scoring import Document, head_of, searchable

TEXTS = ("git tree tree", "the FileLock of café", "merge.ours", "", "lock git 東京")
DOCUMENTS = [Document(f"k{n}", (("title", t), ("tags", "x y"))) for n, t in enumerate(TEXTS)]


def test_a_build_starts_no_other_process(sandbox: Sandbox) -> None:
    """The lock of a progress bar would start one, which Python 3.14 tells the user about."""
    sandbox.memory("dec-redis", "Redis is the cache.\n")
    done = sandbox.process("search", "redis", PYTHONPROFILEIMPORTTIME="1")
    assert ("bm25s" in done.stderr, "multiprocessing" in done.stderr) == (True, False)


def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    """Processes with other hash seeds, and documents in another order, write the same files."""
    code = f"""
import hashlib
from memtool.index import build
from memtool.index.scoring import Document
documents = [Document(f"k{{n}}", (("title", t),)) for n, t in enumerate({TEXTS!r})]
for order in (1, -1):
    for name, data in sorted(build.build(documents[::order]).items()):
        print(name, hashlib.sha256(data).hexdigest())
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


def test_bm25s_opens_what_was_built(tmp_path: Path) -> None:
    """The files are those that bm25s itself saves, byte for byte, and it can load them."""
    files = build.build(DOCUMENTS)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    loaded = bm25s.BM25.load(tmp_path)
    bags = [[t for _n, field in d.fields for t in terms(field)] for d in DOCUMENTS]
    vocabulary = {t: n for n, t in enumerate(sorted({t for bag in bags for t in bag}))}
    assert loaded.vocab_dict == vocabulary
    theirs = bm25s.BM25()
    ids = [[vocabulary[t] for t in bag] for bag in bags]
    theirs.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    theirs.save(tmp_path / "theirs", show_progress=False)
    for file in (tmp_path / "theirs").glob("*.npy"):
        assert file.read_bytes() == files[file.name]
    found, scores = loaded.retrieve([["git"]], k=5, show_progress=False)
    assert sorted(found[0][scores[0] > 0].tolist()) == [0, 4]


def test_frequencies_stand_beside_the_postings_of_bm25s() -> None:
    """Term frequencies are in the order in which bm25s put the documents of each term."""
    segment = Segment({n: memoryview(data) for n, data in build.build(DOCUMENTS).items()})
    assert segment.count == 5
    assert segment.length == sum(len(terms(t)) + 2 for t in TEXTS)
    scores = dict(segment.best({"tree": 1.0, "x": 1.0}, 5))
    assert max(scores, key=scores.__getitem__) == 0
    assert np.isfinite(list(scores.values())).all()


def test_keys_are_unique() -> None:
    """Two documents of one key are refused: a hit could not say which it means."""
    with pytest.raises(ValueError, match="same key"):
        build.build([Document("a", ()), Document("a", ())])


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


@given(RUN_DOCUMENTS)
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
    runs = build.Runs("english")
    numbers = [runs[run] for row in rows for run in row]
    assert numbers == [build.FIELD, 3, 3, build.HEAD, build.END,
                       build.HEAD, build.FIELD, 3, build.END]  # fmt: skip
    assert runs.words[3:] == [("git",)]


def test_vectors_as_bytes_keep_their_cosines() -> None:
    """A byte for each number is enough: a cosine changes by less than a hundredth."""
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(200, 64)).astype(np.float32)
    asked = vectors[:1] + 0.5 * rng.normal(size=(1, 64)).astype(np.float32)
    rows, question = build.quantized(vectors), build.quantized(asked)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
    exact = (vectors @ asked[0]) / lengths
    assert np.abs(np.array(build.cosines(rows, question)) - exact).max() < 0.01
    one_by_one = [build.cosines(rows[n * 64 : (n + 1) * 64], question)[0] for n in range(200)]
    assert build.cosines(rows, question) == one_by_one


def test_a_vector_without_direction_is_near_to_nothing() -> None:
    """Neither zeros nor what is no number divides by zero."""
    rows = build.quantized(np.array([[0.0, 0.0], [np.nan, 0.0], [0.0, -2.0]]))
    assert build.cosines(rows, build.quantized(np.array([[0.0, 1.0]]))) == [0.0, 0.0, -1.0]
    assert build.cosines(rows, build.quantized(np.array([[0.0, 0.0]]))) == [0.0, 0.0, 0.0]
    assert build.cosines(b"", build.quantized(np.array([[0.0, 1.0]]))) == []
