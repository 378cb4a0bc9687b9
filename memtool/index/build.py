"""Building: documents become rows of postings; the one owner of bm25s and numpy.

A run is what is written between spaces (see `analyzer`). Ten thousand memories hold nearly two
million, of which one in forty is new, so what terms a run gives is a table beside them. The
documents become one long row of numbers of runs, with marks where a field begins, and where a head
and a document end; whole arrays are worked on, never single words. bm25s scores them. Terms are
sorted, so that the same documents give the same rows, whatever the hash seed.
"""

from __future__ import annotations

import os
from array import array
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np

from memtool.index import analyzer, postings
from memtool.index.postings import IN_HEAD
from memtool.index.scoring import HEAD_FIELDS, K1, MOST_TF, B
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from memtool.index.scoring import Document


_NO_BARS = "DISABLE_TQDM"
"""The variable that bm25s reads when it is imported."""

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


class Chunk(Value):
    """What is stored of `postings.CHUNK` documents.

    `texts` are as terms, `lengths` how many terms each has and how many in its head. Each posting
    row has term, chunk, heads, top and data, as the table `posting`.
    """

    texts: list[bytes]
    lengths: list[tuple[int, int]]
    postings: Iterator[tuple[str, int, int, float, bytes]]


class Built(Value):
    """What was made of documents: all terms, the commonest first, and the documents chunk by chunk.

    A chunk is made when it is asked for: those of 100,000 documents take a gigabyte.
    """

    words: list[bytes]
    chunks: Iterator[Chunk]


def build(documents: Iterable[Document], language: str = analyzer.ENGLISH) -> Built:
    """Return what is stored of documents, numbered in their order.

    `language` is that of words in Latin letters.
    """
    vocabulary, numbers, words, compounds = _read(documents, language)
    occurrences = np.bincount(numbers, minlength=len(words.sizes))
    size = len(SPELLED) + len(vocabulary)
    counts = words.counts(occurrences, size) + compounds.counts(occurrences, size)
    counts = counts[len(SPELLED) :]
    by_count = sorted(range(len(vocabulary)), key=lambda term: (-counts[term], vocabulary[term]))
    return Built(
        [vocabulary[term].encode() for term in by_count],
        _chunks(vocabulary, numbers, words, compounds, counts.sum()),
    )


def _read(
    documents: Iterable[Document], language: str
) -> tuple[list[str], NDArray[np.int32], RunTable, RunTable]:
    """Return the sorted terms of documents, these as numbers of runs, and what a run gives."""
    runs = Runs(language)
    numbers = array("i")
    for row in rows(documents):
        numbers.extend(map(runs.__getitem__, row))
    vocabulary = sorted(set().union(*runs.words[len(SPELLED) :], *runs.compounds))
    known = {name: number for number, name in enumerate([*SPELLED, *vocabulary])}
    tables = RunTable(runs.words, known), RunTable(runs.compounds, known)
    return vocabulary, np.array(numbers, np.int32), *tables


def _chunks(
    vocabulary: Sequence[str],
    numbers: NDArray[np.int32],
    words: RunTable,
    compounds: RunTable,
    length: float,
) -> Iterator[Chunk]:
    """Yield what is stored of documents with so many terms in all."""
    ends = np.flatnonzero(numbers == END) + 1
    spelled = np.array([n.encode() for n in (*SPELLED, *(f"{n} " for n in vocabulary))], object)
    sizes = np.fromiter(map(len, spelled), np.int32, len(spelled))
    cuts = [0, *ends[postings.CHUNK - 1 : -1 : postings.CHUNK], *ends[-1:]]
    for chunk, (first, end) in enumerate(pairwise(cuts)):
        row = _terms(numbers[first:end], words, compounds)
        is_end, is_term = row == END, row > END
        texts = _cut(b"".join(spelled[row].tolist()), np.cumsum(sizes[row])[is_end])
        ended = np.cumsum(is_end)
        in_head = np.cumsum(row == HEAD) == ended
        documents, in_head = ended[is_term], in_head[is_term]
        lengths = np.bincount(documents, minlength=len(texts))
        heads = np.bincount(documents[in_head], minlength=len(texts))
        terms = row[is_term] - len(SPELLED)
        yield Chunk(
            texts,
            list(zip(lengths.tolist(), heads.tolist(), strict=True)),
            _postings(chunk, vocabulary, terms, documents, in_head, lengths, length / len(ends)),
        )


def _cut(whole: Any, ends: NDArray[Any]) -> list[Any]:
    return [whole[begin:end] for begin, end in pairwise([0, *ends.tolist()])]


def _postings(
    chunk: int,
    vocabulary: Sequence[str],
    terms: NDArray[np.int32],
    documents: NDArray[np.int64],
    in_head: NDArray[np.bool],
    lengths: NDArray[np.int64],
    average: float,
) -> Iterator[tuple[str, int, int, float, bytes]]:
    """Yield the rows of the table `posting` of a chunk, by term.

    Each term of its text comes with its document, and with whether it is in the head. `average` is
    the mean length of all documents.
    """
    if not len(terms):
        return
    is_held = np.bincount(terms, minlength=len(vocabulary)) > 0
    own = (np.cumsum(is_held) - 1)[terms]  # bm25s counts every term that it is given
    names = [vocabulary[term] for term in np.flatnonzero(is_held).tolist()]
    pairs = (own << 32 | documents) << 1 | in_head
    pairs.sort()
    places = pairs >> 1
    last = np.flatnonzero(np.append(places[1:] != places[:-1], True))
    is_head = pairs[last] & 1
    frequencies = np.minimum(np.diff(last, prepend=-1), MOST_TF) | is_head * IN_HEAD
    numbers, scores, starts = _scored(_cut(own.tolist(), np.cumsum(lengths)), len(names), average)
    raw = (
        (numbers + chunk * postings.CHUNK).astype(np.int32).tobytes(),
        scores.tobytes(),
        frequencies.astype(np.uint8).tobytes(),
    )
    heads = np.add.reduceat(is_head, starts[:-1]).tolist()
    tops = np.maximum.reduceat(scores, starts[:-1]).tolist()
    ranges = pairwise(starts.tolist())
    for name, (start, end), head, top in zip(names, ranges, heads, tops, strict=True):
        columns = raw[0][4 * start : 4 * end], raw[1][4 * start : 4 * end], raw[2][start:end]
        yield name, chunk, head, top, b"".join(columns)


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

    def counts(self, occurrences: NDArray[np.int64], size: int) -> NDArray[np.float64]:
        """Return how often each of so many terms occurs, by how often each run does."""
        found = np.bincount(self._numbers, np.repeat(occurrences, self.sizes), size)
        return found.astype(np.float64)


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


def _scored(
    ids: list[list[int]], size: int, average: float
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]:
    """Return what bm25s makes of documents, given as numbers of `size` terms.

    These are the documents of the postings, term by term, their scores without the rarity of the
    term, and where the postings of each term begin and the last ones end.

    bm25s knows only the mean length of what it is given. Its two constants are chosen such that a
    length counts as much as with the average of the whole collection.
    """
    share = B * sum(map(len, ids)) / len(ids) / average
    k1 = K1 * (1.0 - B + share)
    retriever = _bm25s().BM25(
        k1=k1, b=K1 * share / k1, method="lucene", backend="numpy", csc_backend="numpy"
    )
    numbers = {number: number for number in range(size)}
    retriever.index((ids, numbers), create_empty_token=False, show_progress=False)
    found = retriever.scores
    df = np.diff(found["indptr"])
    rarity = np.log(1.0 + (len(ids) - df + 0.5) / (df + 0.5))  # as `scoring.idf`
    scores = found["data"] / np.repeat(rarity, df)
    return found["indices"], scores.astype(np.float32), found["indptr"]


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
