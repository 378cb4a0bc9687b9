"""Building: documents become the files of a segment; the one owner of bm25s.

bm25s gets sorted documents as lists of numbers of sorted terms, so that the same documents give
the same bytes, whatever the hash seed. What it saves can be opened by `bm25s.BM25.load`.
"""

from __future__ import annotations

import io
import json
from array import array
from collections.abc import Iterable
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any
from zlib import crc32

import bm25s
import numpy as np

from memtool.search.layout import (
    ARRAYS,
    IN_HEAD,
    MOST_LEVEL,
    SEEDED,
    SIDECAR,
    document_sum,
    joined,
    term_sum,
)
from memtool.search.scoring import K1, B, Document, head_of, searchable

if TYPE_CHECKING:
    from numpy.typing import NDArray


def build(documents: Iterable[Document]) -> dict[str, bytes]:
    """Return the files of a segment by name.

    Raises:
        ValueError: two documents have the same key.
    """
    found = sorted(
        ((document.key, *searchable(document)) for document in documents), key=lambda row: row[0]
    )
    keys = [key for key, _terms, _text in found]
    if len(set(keys)) != len(keys):
        raise ValueError("two documents have the same key")
    distinct: set[str] = set().union(*(terms for _key, terms, _text in found))
    vocabulary = {term: number for number, term in enumerate(sorted(distinct))}
    ids = [list(map(vocabulary.__getitem__, terms)) for _key, terms, _text in found]
    files, arrays = _indexed(ids, vocabulary)
    own_heads = [head_of(text) for _key, _terms, text in found]
    tf, heads = _frequencies(ids, own_heads, vocabulary)
    indptr = arrays["indptr"]
    tops = (
        np.maximum.reduceat(arrays["data"], indptr[:-1]) if vocabulary else np.zeros(0, np.float32)
    )
    levels = _levels(arrays["data"], tops, indptr)
    seeds = _seeds(levels, indptr)
    names = [term.encode() for term in vocabulary]
    raw_keys = [key.encode(errors="surrogatepass") for key in keys]
    texts = [text for _key, _terms, text in found]
    lengths = [len(row) for row in ids]
    sections: dict[str, bytes] = {
        "terms": b"".join(names),
        "term_ends": _ends("I", names),
        "tops": tops.tobytes(),
        "head_df": heads.tobytes(),
        "term_sums": _term_sums(
            names,
            indptr.tolist(),
            [heads, tops, seeds],
            [arrays["indices"], arrays["data"], tf, levels],
        ),
        "tf": tf.tobytes(),
        "levels": levels.tobytes(),
        "seeds": seeds.tobytes(),
        "lengths": array("I", lengths).tobytes(),
        "head_lengths": array("I", map(len, own_heads)).tobytes(),
        "keys": b"".join(raw_keys),
        "key_ends": _ends("I", raw_keys),
        "document_sums": array(
            "I",
            [
                document_sum(key, size, len(head))
                for key, size, head in zip(raw_keys, lengths, own_heads, strict=True)
            ],
        ).tobytes(),
        "text_sums": array("I", map(crc32, texts)).tobytes(),
        "texts": b"".join(texts),
        "text_ends": _ends("Q", texts),
    }
    head_length = sum(map(len, own_heads))
    return files | {SIDECAR: joined([len(keys), sum(lengths), head_length], sections)}


def _indexed(
    ids: list[list[int]], vocabulary: dict[str, int]
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Let bm25s index documents; return the files that it saves, and its arrays by name."""
    retriever = bm25s.BM25(k1=K1, b=B, method="lucene", backend="numpy", csc_backend="numpy")
    if vocabulary:
        retriever.index((ids, vocabulary), create_empty_token=False, show_progress=False)
        arrays = {name: retriever.scores[name] for name in ARRAYS}
    else:  # bm25s cannot index nothing
        arrays = {
            "data": np.zeros(0, np.float32),
            "indices": np.zeros(0, np.int32),
            "indptr": np.zeros(1, np.int64),
        }
    parameters = {
        "k1": K1, "b": B, "delta": retriever.delta, "method": retriever.method,
        "idf_method": retriever.idf_method, "dtype": retriever.dtype,
        "int_dtype": retriever.int_dtype, "num_docs": len(ids), "version": bm25s.__version__,
        "backend": retriever.backend,
    }  # fmt: skip
    files = {
        "vocab.index.json": json.dumps(vocabulary, ensure_ascii=False).encode(),
        "params.index.json": json.dumps(parameters, indent=4).encode(),
    }
    for name, (file, kind, _code) in ARRAYS.items():
        arrays[name] = arrays[name].astype(kind, copy=False)
        saved = io.BytesIO()
        np.save(saved, arrays[name], allow_pickle=False)
        files[file] = saved.getvalue()
    return files, arrays


def _frequencies(
    ids: list[list[int]], heads: list[list[bytes]], vocabulary: dict[str, int]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return how often each term stands in each of its documents, in the order of postings.

    Marked are those whose term stands in the head too; in how many heads each term does is the
    second array.
    """
    sizes = np.array([len(row) for row in ids], np.int64)
    flat = np.fromiter(chain.from_iterable(ids), np.int64, int(sizes.sum()))
    numbers = np.repeat(np.arange(len(ids), dtype=np.int64), sizes)
    pairs, counts = np.unique(flat << 32 | numbers, return_counts=True)
    tf = counts.astype(np.uint32)
    in_heads = np.array(
        sorted({
            vocabulary[term.decode()] << 32 | number
            for number, head in enumerate(heads)
            for term in head
        }),
        np.int64,
    )  # fmt: skip
    tf[np.searchsorted(pairs, in_heads)] |= IN_HEAD
    counted = np.bincount(in_heads >> 32, minlength=len(vocabulary)).astype(np.uint32)
    return tf, counted


def _levels(
    data: NDArray[np.float32], tops: NDArray[np.float32], indptr: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Return each score in parts of the highest of its term, rounded up."""
    shares = data / np.repeat(tops, np.diff(indptr))
    return np.ceil(shares * MOST_LEVEL).astype(np.uint8)


def _seeds(levels: NDArray[np.uint8], indptr: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the level of each term's posting of a certain rank, 0 where it has fewer."""
    seeds = np.zeros(len(indptr) - 1, np.uint8)
    for term in np.flatnonzero(np.diff(indptr) >= SEEDED):
        own = levels[indptr[term] : indptr[term + 1]]
        seeds[term] = np.partition(own, -SEEDED)[-SEEDED]
    return seeds


def _term_sums(names: list[bytes], ends: list[int], stored: list[Any], posted: list[Any]) -> bytes:
    """Return the checksum of each term: its row in `stored`, its postings in `posted` columns."""
    rows = [memoryview(column) for column in stored]
    columns = [memoryview(column) for column in posted]
    sums = array("I")
    for number, name in enumerate(names):
        own = [row[number : number + 1] for row in rows]
        postings = [column[ends[number] : ends[number + 1]] for column in columns]
        sums.append(term_sum(name, *own, *postings))
    return sums.tobytes()


def _ends(code: str, parts: list[bytes]) -> bytes:
    return array(code, accumulate(map(len, parts), initial=0)).tobytes()
