"""Building: documents become rows of postings; the one owner of bm25s and numpy.

A run is what is written between spaces (see `analyzer`). Ten thousand memories hold nearly two
million, of which one in forty is new, so what terms a run gives is a table beside them. The
documents become one long row of numbers of runs, with marks where a field begins, and where a head
and a document end; whole arrays are worked on, never single words. bm25s scores them. Terms are
sorted, so that the same documents give the same rows, whatever the hash seed.
"""

from __future__ import annotations

import os
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np

from memtool.index import analyzer, postings
from memtool.index.postings import IN_HEAD
from memtool.index.scoring import HEAD_FIELDS, K1, MOST_TF, B
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from memtool.index.scoring import Document


_NO_BARS = "DISABLE_TQDM"
"""The variable that bm25s reads when it is imported."""

ARRAYS = {"data": "f4", "indices": "i4", "indptr": "i8"}
"""bm25s's arrays, and their types."""

FIELD, HEAD, END = 0, 1, 2
"""The numbers of the marks: a field begins, a head has ended, a document has ended."""

SPELLED = (" ", "\n", "")
"""How marks stand in a text as terms (see `scoring.searchable`), where a space ends each term."""

_MARKS = (b"\xff", b"\xfe", b"\xfd")
"""How they stand between runs: no text in UTF-8 holds one of these."""

_BATCH = 500
"""Documents that are split at once: with fewer, calls cost more; with more, memory does."""

_SPACED = bytes(ord(analyzer.spaced(chr(code))) if code < 128 else code for code in range(256))


class Runs(dict[bytes, int]):
    """The number of each run. One that is new is taken apart into its words and compounds.

    These stand in two lists by number. A mark is its own word.
    """

    def __init__(self, language: str) -> None:
        super().__init__({mark: number for number, mark in enumerate(_MARKS)})
        self._language = language
        self.words: list[tuple[str, ...]] = [(spelled,) for spelled in SPELLED]
        self.compounds: list[tuple[str, ...]] = [() for _spelled in SPELLED]

    def __missing__(self, raw: bytes) -> int:
        words, compounds = analyzer.of_run(raw.decode(), self._language)
        self.words.append(words)
        self.compounds.append(compounds)
        number = self[raw] = len(self)
        return number


def rows(documents: Iterable[Document]) -> Iterator[list[bytes]]:
    """Yield the runs of documents, with marks, some documents at a time.

    Of each the fields of the head come first, as in a text as terms.
    """
    found = iter(documents)
    while batch := list(islice(found, _BATCH)):
        parts: list[bytes] = []
        for document in batch:
            _spell(document, parts)
        yield b" ".join(parts).split()


def _spell(document: Document, parts: list[bytes]) -> None:
    """Append the bytes of a document, without what is in no word, each field behind its mark."""
    field, head, end = _MARKS
    rest: list[bytes] = []
    for name, text in document.fields:
        raw = text.encode().translate(_SPACED) if text.isascii() else analyzer.spaced(text).encode()
        (parts if name in HEAD_FIELDS else rest).extend((field, raw))
    parts.append(head)
    parts += rest
    parts.append(end)


SLICE = 500
"""Documents that are worked on at once: arrays of so many stay in the processor's cache."""


class Built(Value):
    """What was made of documents: their texts as terms by number, their lengths, and the postings.

    `lengths` are the terms of each and those in its head. Each posting row has term, chunk, heads,
    top and data, as the table `posting`. `words` are all terms, the commonest first.
    """

    texts: list[bytes]
    lengths: list[tuple[int, int]]
    postings: Iterator[tuple[str, int, int, float, bytes]]
    words: list[bytes]


def build(documents: Iterable[Document], language: str = analyzer.ENGLISH) -> Built:
    """Return what is stored of documents, numbered in their order.

    `language` is that of words in Latin letters.
    """
    vocabulary, found, texts, ids = _read(documents, language)
    arrays = _scored(ids, vocabulary)
    by_df = sorted(range(len(vocabulary)), key=lambda term: (-found.df[term], vocabulary[term]))
    return Built(
        texts,
        list(zip(found.lengths, found.head_lengths, strict=True)),
        _rows(vocabulary, found, arrays, len(texts)),
        [vocabulary[term].encode() for term in by_df],
    )


def _rows(
    vocabulary: Sequence[str], found: Postings, arrays: Mapping[str, NDArray[Any]], count: int
) -> Iterator[tuple[str, int, int, float, bytes]]:
    """Yield the rows of the table `posting`, term by term and chunk by chunk."""
    if not vocabulary:
        return
    frequencies = found.frequencies()
    numbers, indptr = arrays["indices"], arrays["indptr"]
    rarity = np.log(1.0 + (count - found.df + 0.5) / (found.df + 0.5))  # as `scoring.idf`
    scores = (arrays["data"] / np.repeat(rarity, found.df)).astype(np.float32)
    terms = np.repeat(np.arange(len(vocabulary)), found.df)
    places = terms.astype(np.int64) << 32 | numbers // postings.CHUNK
    starts = np.flatnonzero(np.append(True, places[1:] != places[:-1])[: len(places)])
    heads = np.add.reduceat(frequencies >= IN_HEAD, starts, dtype=np.int64)
    tops = np.maximum.reduceat(scores, starts)
    ends = np.append(starts[1:], len(places)).tolist()
    assert len(indptr) == len(vocabulary) + 1
    columns = zip(
        terms[starts].tolist(),
        (places[starts] & 0xFFFFFFFF).tolist(),
        heads.tolist(),
        tops.tolist(),
        starts.tolist(),
        ends,
        strict=True,
    )
    raw = numbers.tobytes(), scores.tobytes(), frequencies.tobytes()
    for term, chunk, in_heads, top, start, end in columns:
        data = b"".join(
            (
                raw[0][4 * start : 4 * end],
                raw[1][4 * start : 4 * end],
                raw[2][start:end],
            )
        )
        yield vocabulary[term], chunk, in_heads, top, data


def _read(
    documents: Iterable[Document], language: str
) -> tuple[list[str], Postings, list[bytes], list[list[int]]]:
    """Return the sorted terms of documents, their postings, their texts and numbers as terms."""
    runs = Runs(language)
    numbers = np.concatenate(
        [
            np.zeros(0, np.int32),
            *(
                np.fromiter(map(runs.__getitem__, row), np.int32, len(row))
                for row in rows(documents)
            ),
        ]
    )
    distinct = set().union(*runs.words[len(SPELLED) :], *runs.compounds)
    vocabulary = sorted(distinct)
    known = {name: number for number, name in enumerate([*SPELLED, *vocabulary])}
    words, compounds = RunTable(runs.words, known), RunTable(runs.compounds, known)
    spelled = np.array([n.encode() for n in (*SPELLED, *(f"{n} " for n in vocabulary))], object)
    sizes = np.fromiter(map(len, spelled), np.int32, len(spelled))
    ends = np.flatnonzero(numbers == END) + 1
    slices = [0, *ends[SLICE - 1 : -1 : SLICE], len(numbers)] if len(ends) else []
    found, texts, ids = Postings(len(vocabulary)), [], []
    for first, end in pairwise(slices):
        row = _terms(numbers[first:end], words, compounds)
        found.add(row)
        text = b"".join(spelled[row].tolist())
        cuts = np.cumsum(sizes[row])[row == END].tolist()
        texts += [text[begin:cut] for begin, cut in pairwise([0, *cuts])]
        is_term = row > END
        terms = (row[is_term] - len(SPELLED)).tolist()
        cuts = np.cumsum(is_term)[row == END].tolist()
        ids += [terms[begin:cut] for begin, cut in pairwise([0, *cuts])]
    return vocabulary, found, texts, ids


class RunTable:
    """What terms each run gives, by number; `sizes` says how many."""

    def __init__(self, rows: Sequence[tuple[str, ...]], known: dict[str, int]) -> None:
        self.sizes = np.fromiter(map(len, rows), np.int32, len(rows))
        flat = map(known.__getitem__, chain.from_iterable(rows))
        self._numbers = np.fromiter(flat, np.int32, int(self.sizes.sum()))
        self._starts = np.cumsum(self.sizes, dtype=np.int32) - self.sizes

    def terms(self, runs: NDArray[np.int32], sizes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the terms of runs, which give so many each, one behind the other."""
        places = np.repeat(self._starts[runs] - (np.cumsum(sizes) - sizes), sizes)
        found: NDArray[np.int32] = self._numbers[places + np.arange(len(places))]
        return found


def _terms(runs: NDArray[np.int32], words: RunTable, compounds: RunTable) -> NDArray[np.int32]:
    """Return the terms of a row of runs, with marks: of each field the words, then the compounds.

    A mark is its own word. The mark of a field without terms is left out, as in a text as terms.
    """
    is_mark = runs <= END
    field = np.cumsum(is_mark) - 1
    begins = np.flatnonzero(is_mark)
    word_sizes, compound_sizes = words.sizes[runs], compounds.sizes[runs]
    compounds_by_field = np.add.reduceat(compound_sizes, begins)
    compounds_before = np.cumsum(compounds_by_field) - compounds_by_field
    words_until = np.cumsum(np.add.reduceat(word_sizes, begins))
    found = np.empty(int(word_sizes.sum() + compound_sizes.sum()), np.int32)
    own = words.terms(runs, word_sizes)
    found[np.arange(len(own)) + np.repeat(compounds_before[field], word_sizes)] = own
    some = np.flatnonzero(compound_sizes)
    compound_sizes = compound_sizes[some]
    own = compounds.terms(runs[some], compound_sizes)
    found[np.arange(len(own)) + np.repeat(words_until[field[some]], compound_sizes)] = own
    is_empty = np.append((found[:-1] == FIELD) & (found[1:] <= END), False)
    return found[np.flatnonzero(~is_empty)]


class Postings:
    """Which terms stand in which documents and how often, slice by slice of the documents.

    Of each posting of a slice there are the term, and how often it is in the document, marked with
    `IN_HEAD` where it is in the head too; they are sorted by term and then by document.
    """

    def __init__(self, vocabulary: int) -> None:
        self.slices: list[tuple[NDArray[np.int32], NDArray[np.uint8]]] = []
        self.df = np.zeros(vocabulary, np.int64)
        self.head_df = np.zeros(vocabulary, np.int64)
        self.lengths: list[int] = []
        self.head_lengths: list[int] = []

    def add(self, row: NDArray[np.int32]) -> None:
        """Count the next documents: a row of terms with marks, numbered behind these."""
        count, vocabulary = np.count_nonzero(row == END), len(self.df)
        is_term = row > END
        ended = np.cumsum(row == END)
        in_head = (np.cumsum(row == HEAD) == ended)[is_term]
        documents = ended[is_term]
        terms = row[is_term].astype(np.int64) - len(SPELLED)
        pairs = (terms << 32 | documents) << 1 | in_head
        pairs.sort()
        places = pairs >> 1
        last = np.flatnonzero(np.append(places[1:] != places[:-1], True)[: len(places)])
        is_head = (pairs[last] & 1).astype(bool)
        terms, counts = places[last] >> 32, np.minimum(np.diff(last, prepend=-1), MOST_TF)
        self.slices.append(
            (
                terms.astype(np.int32),
                (counts | is_head * IN_HEAD).astype(np.uint8),
            )
        )
        self.df += np.bincount(terms, minlength=vocabulary)
        self.head_df += np.bincount(terms[is_head], minlength=vocabulary)
        self.lengths += np.bincount(documents, minlength=count).tolist()
        self.head_lengths += np.bincount(documents[in_head], minlength=count).tolist()

    def frequencies(self) -> NDArray[np.uint8]:
        """Return how often each term is in each document, term by term."""
        if not self.slices:
            return np.zeros(0, np.uint8)
        terms, counts = (np.concatenate(column) for column in zip(*self.slices, strict=True))
        return counts[np.argsort(terms, kind="stable")]


def _bm25s() -> ModuleType:
    """Return bm25s, imported without progress bars.

    The lock of a bar, even of one that is not shown, is a semaphore of the system. Python starts a
    process to watch it, which complains once a verb has ended without Python's tear-down.
    """
    before = os.environ.get(_NO_BARS)
    os.environ[_NO_BARS] = "1"
    try:
        import bm25s
    finally:
        os.environ.pop(_NO_BARS)
        if before is not None:
            os.environ[_NO_BARS] = before
    return bm25s  # type: ignore[no-any-return]


def _scored(ids: list[list[int]], vocabulary: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return bm25s's arrays of documents, given as numbers of terms.

    They are `data` (the score of each term in each document, float32), `indices` (the documents,
    int32) and `indptr` (where each term's postings begin, int64).
    """
    retriever = _bm25s().BM25(k1=K1, b=B, method="lucene", backend="numpy", csc_backend="numpy")
    if not vocabulary:
        return {name: np.zeros(int(name == "indptr"), kind) for name, kind in ARRAYS.items()}
    numbers = {name: number for number, name in enumerate(vocabulary)}
    retriever.index((ids, numbers), create_empty_token=False, show_progress=False)
    return {name: retriever.scores[name].astype(kind, copy=False) for name, kind in ARRAYS.items()}


MOST_BYTE = 127
"""The largest number of a vector as bytes."""


def quantized(vectors: NDArray[Any]) -> bytes:
    """Return vectors, a row each, as signed bytes: the largest number of each row becomes 127.

    That keeps a cosine to about a thousandth. A row without direction becomes zeros.
    """
    rows = np.nan_to_num(vectors.astype(np.float32))
    most = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    most[most == 0.0] = 1.0
    found: bytes = np.rint(rows / most * MOST_BYTE).astype(np.int8).tobytes()
    return found


def cosines(rows: bytes | memoryview, asked: bytes) -> list[float]:
    """Return the cosine of each row with one vector, -1 to 1, all as `quantized` gives them.

    What is summed are whole numbers, exact for vectors of up to 1,040: in which order the machine
    adds them changes nothing. What has no direction is at 0.
    """
    vector = np.frombuffer(asked, np.int8).astype(np.float32)
    table = np.frombuffer(rows, np.int8).astype(np.float32).reshape(-1, len(vector))
    squares = np.einsum("ij,ij->i", table, table).astype(np.float64)
    sizes = np.sqrt(squares * float(vector @ vector))
    sizes[sizes == 0.0] = 1.0
    found: list[float] = ((table @ vector) / sizes).tolist()
    return found
