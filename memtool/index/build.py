"""Build the rows of postings from documents. It owns bm25s.

A run is the text between two spaces (see `analyzer`). Ten thousand memories contain nearly two
million runs, and only one in forty is new. So each distinct run is analyzed once, into a table of
its terms. The documents become one long array of run numbers, with marks where a field begins and
where a head and a document end. All work is done on whole arrays, never on single words; bm25s
scores them. Terms are sorted, so that the same documents give the same rows for any hash seed.
"""

from __future__ import annotations

import os
from array import array
from itertools import chain, islice, pairwise
from typing import Any

from memtool.index import analyzer, postings
from memtool.index.arrays import np
from memtool.index.postings import IN_HEAD
from memtool.index.scoring import HEAD_FIELDS, K1, MAX_TF, B
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import ModuleType

    from memtool.index.arrays import NDArray
    from memtool.index.scoring import Document


_NO_PROGRESS_VARIABLE = "DISABLE_TQDM"
"""The environment variable that bm25s reads on import."""

FIELD, HEAD, END = 0, 1, 2
"""The numbers of the marks: a field begins, a head has ended, a document has ended."""

MARK_TERMS = (" ", "\n", "")
"""The marks as they appear in a text as terms (see `scoring.analyze_document`)."""

_MARK_BYTES = (b"\xff", b"\xfe", b"\xfd")
"""The marks as they appear between runs. No UTF-8 text contains these bytes."""

# Fewer documents at a time cost more calls; more cost memory.
_BATCH_DOCUMENTS = 500

_SEPARATORS = bytes(
    ord(analyzer.blank_separators(chr(code))) if code < 128 else code for code in range(256)
)


class RunNumbers(dict[bytes, int]):
    """The number of each run; a new run is analyzed when it is looked up.

    `words` and `compounds` hold the terms of each run, by its number. A mark is its own word.
    """

    def __init__(self, language: str) -> None:
        super().__init__({mark: number for number, mark in enumerate(_MARK_BYTES)})
        self._language = language
        self.words: list[tuple[str, ...]] = [(spelled,) for spelled in MARK_TERMS]
        self.compounds: list[tuple[str, ...]] = [() for _spelled in MARK_TERMS]

    def __missing__(self, run: bytes) -> int:
        words, compounds = analyzer.analyze_run(run.decode(), self._language)
        self.words.append(words)
        self.compounds.append(compounds)
        number = self[run] = len(self)
        return number


def split_runs(documents: Iterable[Document]) -> Iterator[list[bytes]]:
    """Yield the runs of documents, with marks, in batches of documents.

    In each document the fields of the head come first, as in a text as terms.
    """
    iterator = iter(documents)
    while batch := list(islice(iterator, _BATCH_DOCUMENTS)):
        parts: list[bytes] = []
        for document in batch:
            _append_runs(document, parts)
        yield b" ".join(parts).split()


def _append_runs(document: Document, parts: list[bytes]) -> None:
    """Append the words of a document as bytes, each field after its mark."""
    field, head, end = _MARK_BYTES
    body_parts: list[bytes] = []
    for name, text in document.fields:
        raw = (
            text.encode().translate(_SEPARATORS)
            if text.isascii()
            else analyzer.blank_separators(text).encode()
        )
        (parts if name in HEAD_FIELDS else body_parts).extend((field, raw))
    parts.append(head)
    parts += body_parts
    parts.append(end)


class Chunk(Value):
    """The stored form of `postings.CHUNK_SIZE` documents.

    `texts` are the texts as terms. `lengths` are the numbers of terms of each document and of its
    head. Each row of `postings` has term, chunk, heads, top and data, as the table `posting`.
    """

    texts: list[bytes]
    lengths: list[tuple[int, int]]
    postings: Iterator[tuple[str, int, int, float, bytes]]


class BuildResult(Value):
    """All terms of some documents, the commonest first, and the documents chunk by chunk.

    Chunks are built as they are iterated: those of 100,000 documents take a gigabyte.
    """

    words: list[bytes]
    chunks: Iterator[Chunk]


def build(documents: Iterable[Document], language: str = analyzer.ENGLISH) -> BuildResult:
    """Build the stored form of documents, numbered in their order.

    `language` applies to words in Latin letters.
    """
    vocabulary, numbers, words, compounds = _number_runs(documents, language)
    occurrences = np.bincount(numbers, minlength=len(words.sizes))
    size = len(MARK_TERMS) + len(vocabulary)
    counts = words.count_terms(occurrences, size) + compounds.count_terms(occurrences, size)
    counts = counts[len(MARK_TERMS) :]
    by_count = sorted(range(len(vocabulary)), key=lambda term: (-counts[term], vocabulary[term]))
    return BuildResult(
        [vocabulary[term].encode() for term in by_count],
        _build_chunks(vocabulary, numbers, words, compounds, counts.sum()),
    )


def _number_runs(
    documents: Iterable[Document], language: str
) -> tuple[list[str], NDArray[np.int32], RunTable, RunTable]:
    """Return the sorted terms, the documents as run numbers, and each run's words and compounds."""
    runs = RunNumbers(language)
    numbers = array("i")
    for batch in split_runs(documents):
        numbers.extend(map(runs.__getitem__, batch))
    vocabulary = sorted(set().union(*runs.words[len(MARK_TERMS) :], *runs.compounds))
    term_numbers = {name: number for number, name in enumerate([*MARK_TERMS, *vocabulary])}
    tables = RunTable(runs.words, term_numbers), RunTable(runs.compounds, term_numbers)
    return vocabulary, np.array(numbers, np.int32), *tables


def _build_chunks(
    vocabulary: Sequence[str],
    numbers: NDArray[np.int32],
    words: RunTable,
    compounds: RunTable,
    length: float,
) -> Iterator[Chunk]:
    """Yield the stored form of documents; `length` is how many terms they have."""
    ends = np.flatnonzero(numbers == END) + 1
    term_bytes = np.array(
        [n.encode() for n in (*MARK_TERMS, *(f"{n} " for n in vocabulary))], object
    )
    sizes = np.fromiter(map(len, term_bytes), np.int32, len(term_bytes))
    cuts = [0, *ends[postings.CHUNK_SIZE - 1 : -1 : postings.CHUNK_SIZE], *ends[-1:]]
    for chunk, (first, end) in enumerate(pairwise(cuts)):
        row = _expand_runs(numbers[first:end], words, compounds)
        is_end, is_term = row == END, row > END
        texts = _split_at(b"".join(term_bytes[row].tolist()), np.cumsum(sizes[row])[is_end])
        document_numbers = np.cumsum(is_end)
        in_head = np.cumsum(row == HEAD) == document_numbers
        documents, in_head = document_numbers[is_term], in_head[is_term]
        lengths = np.bincount(documents, minlength=len(texts))
        heads = np.bincount(documents[in_head], minlength=len(texts))
        terms = row[is_term] - len(MARK_TERMS)
        yield Chunk(
            texts,
            list(zip(lengths.tolist(), heads.tolist(), strict=True)),
            _build_postings(
                chunk, vocabulary, terms, documents, in_head, lengths, length / len(ends)
            ),
        )


def _split_at(sequence: Any, ends: NDArray[Any]) -> list[Any]:
    return [sequence[begin:end] for begin, end in pairwise([0, *ends.tolist()])]


def _build_postings(
    chunk: int,
    vocabulary: Sequence[str],
    terms: NDArray[np.int32],
    documents: NDArray[np.int64],
    in_head: NDArray[np.bool],
    lengths: NDArray[np.int64],
    average: float,
) -> Iterator[tuple[str, int, int, float, bytes]]:
    """Yield the rows of the table `posting` of a chunk, by term.

    `terms`, `documents` and `in_head` are parallel: each occurrence of a term. `average` is the
    mean length of all documents.
    """
    if not len(terms):
        return
    is_present = np.bincount(terms, minlength=len(vocabulary)) > 0
    local_terms = (np.cumsum(is_present) - 1)[terms]  # bm25s counts all terms of its vocabulary
    names = [vocabulary[term] for term in np.flatnonzero(is_present).tolist()]
    occurrences = (local_terms << 32 | documents) << 1 | in_head
    occurrences.sort()
    term_documents = occurrences >> 1
    last_occurrences = np.flatnonzero(np.append(term_documents[1:] != term_documents[:-1], True))
    is_head = occurrences[last_occurrences] & 1
    frequencies = np.minimum(np.diff(last_occurrences, prepend=-1), MAX_TF) | is_head * IN_HEAD
    numbers, scores, starts = _score_documents(
        _split_at(local_terms.tolist(), np.cumsum(lengths)), len(names), average
    )
    raw = (
        (numbers + chunk * postings.CHUNK_SIZE).astype(np.int32).tobytes(),
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
    """The terms of each run, by run number; `sizes` is how many it has."""

    def __init__(self, rows: Sequence[tuple[str, ...]], term_numbers: dict[str, int]) -> None:
        self.sizes = np.fromiter(map(len, rows), np.int32, len(rows))
        flat_numbers = map(term_numbers.__getitem__, chain.from_iterable(rows))
        self._numbers = np.fromiter(flat_numbers, np.int32, int(self.sizes.sum()))
        self._starts = np.cumsum(self.sizes, dtype=np.int32) - self.sizes

    def find_terms(self, runs: NDArray[np.int32], sizes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the terms of runs as one array; `sizes` is how many each of them has."""
        places = np.repeat(self._starts[runs] - (np.cumsum(sizes) - sizes), sizes)
        run_terms: NDArray[np.int32] = self._numbers[places + np.arange(len(places))]
        return run_terms

    def count_terms(self, occurrences: NDArray[np.int64], size: int) -> NDArray[np.float64]:
        """Return how often each of `size` terms occurs, from the occurrences of each run."""
        totals = np.bincount(self._numbers, np.repeat(occurrences, self.sizes), size)
        return totals.astype(np.float64)


def _expand_runs(
    runs: NDArray[np.int32], words: RunTable, compounds: RunTable
) -> NDArray[np.int32]:
    """Return the terms of an array of runs: for each field its mark, words, then compounds.

    The mark of a field without terms is left out, as in a text as terms.
    """
    is_mark = runs <= END
    field = np.cumsum(is_mark) - 1
    begins = np.flatnonzero(is_mark)
    word_sizes, compound_sizes = words.sizes[runs], compounds.sizes[runs]
    compounds_by_field = np.add.reduceat(compound_sizes, begins)
    compounds_before = np.cumsum(compounds_by_field) - compounds_by_field
    words_until = np.cumsum(np.add.reduceat(word_sizes, begins))
    terms = np.empty(int(word_sizes.sum() + compound_sizes.sum()), np.int32)
    run_terms = words.find_terms(runs, word_sizes)
    terms[np.arange(len(run_terms)) + np.repeat(compounds_before[field], word_sizes)] = run_terms
    with_compounds = np.flatnonzero(compound_sizes)
    compound_sizes = compound_sizes[with_compounds]
    run_terms = compounds.find_terms(runs[with_compounds], compound_sizes)
    terms[
        np.arange(len(run_terms)) + np.repeat(words_until[field[with_compounds]], compound_sizes)
    ] = run_terms
    is_empty = np.append((terms[:-1] == FIELD) & (terms[1:] <= END), False)
    return terms[np.flatnonzero(~is_empty)]


def _import_bm25s() -> ModuleType:
    """Import bm25s without progress bars."""
    # The lock of a bar, even of a hidden one, is a system semaphore. Python starts a process to
    # watch it, which complains if a verb ends without Python's tear-down.
    before = os.environ.get(_NO_PROGRESS_VARIABLE)
    os.environ[_NO_PROGRESS_VARIABLE] = "1"
    try:
        import bm25s
    finally:
        os.environ.pop(_NO_PROGRESS_VARIABLE)
        if before is not None:
            os.environ[_NO_PROGRESS_VARIABLE] = before
    return bm25s  # type: ignore[no-any-return]


def _score_documents(
    documents: list[list[int]], size: int, average: float
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]:
    """Score documents with bm25s; each is given as the numbers of its terms, below `size`.

    Return the document of each posting, term by term; its score without the term's IDF; and the
    position where the postings of each term begin, with the end of the last.
    """
    # bm25s only knows the mean length of these documents. Its two constants are chosen so that a
    # length counts as much as with the mean of the whole collection.
    share = B * sum(map(len, documents)) / len(documents) / average
    k1 = K1 * (1.0 - B + share)
    retriever = _import_bm25s().BM25(
        k1=k1, b=K1 * share / k1, method="lucene", backend="numpy", csc_backend="numpy"
    )
    numbers = {number: number for number in range(size)}
    retriever.index((documents, numbers), create_empty_token=False, show_progress=False)
    matrix = retriever.scores
    df = np.diff(matrix["indptr"])
    rarity = np.log(1.0 + (len(documents) - df + 0.5) / (df + 0.5))  # as `scoring.idf`
    scores = matrix["data"] / np.repeat(rarity, df)
    return matrix["indices"], scores.astype(np.float32), matrix["indptr"]
