"""Building: documents become the files of a segment; the one owner of bm25s.

bm25s gets sorted documents as lists of numbers of sorted terms, so that the same documents give
the same bytes, whatever the hash seed. What it saves can be opened by `bm25s.BM25.load`.
"""

from __future__ import annotations

import io
import json
import zlib
from array import array
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import bm25s
import numpy as np

from memtool.search.layout import (
    ARRAYS,
    SIDECAR,
    document_sum,
    joined,
    term_sum,
)
from memtool.search.scoring import K1, B, Document, head_of, searchable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TEXT_LEVEL = 1
"""zlib's fastest: a text is read far more often than it is worth packing tightly."""


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
    vocabulary = {
        term: number
        for number, term in enumerate(
            sorted({term for _key, terms, _text in found for term in terms})
        )
    }
    ids = [[vocabulary[term] for term in terms] for _key, terms, _text in found]
    files, arrays = _indexed(ids, vocabulary)
    tf = _frequencies(ids)
    heads = _head_frequencies([text for _key, _terms, text in found], vocabulary)
    indptr = arrays["indptr"]
    tops = (
        np.maximum.reduceat(arrays["data"], indptr[:-1]) if vocabulary else np.zeros(0, np.float32)
    )
    names = [term.encode() for term in vocabulary]
    raw_keys = [key.encode(errors="surrogatepass") for key in keys]
    texts = [zlib.compress(text, _TEXT_LEVEL) for _key, _terms, text in found]
    lengths = [len(row) for row in ids]
    sections: dict[str, bytes] = {
        "terms": b"".join(names),
        "term_ends": _ends("I", names),
        "tops": tops.tobytes(),
        "head_df": heads.tobytes(),
        "term_sums": _term_sums(
            names, indptr.tolist(), [heads, tops], [arrays["indices"], arrays["data"], tf]
        ),
        "tf": tf.tobytes(),
        "lengths": array("I", lengths).tobytes(),
        "keys": b"".join(raw_keys),
        "key_ends": _ends("I", raw_keys),
        "document_sums": array(
            "I", [document_sum(key, size) for key, size in zip(raw_keys, lengths, strict=True)]
        ).tobytes(),
        "texts": b"".join(texts),
        "text_ends": _ends("Q", texts),
    }
    head_length = sum(len(head_of(text)) for _key, _terms, text in found)
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


def _frequencies(ids: list[list[int]]) -> NDArray[np.uint32]:
    """Return how often each term stands in each of its documents, in the order of postings."""
    sizes = np.array([len(row) for row in ids], np.int64)
    flat = np.fromiter((term for row in ids for term in row), np.int64, int(sizes.sum()))
    numbers = np.repeat(np.arange(len(ids), dtype=np.int64), sizes)
    _pairs, counts = np.unique(flat << 32 | numbers, return_counts=True)
    return np.asarray(counts, np.uint32)


def _head_frequencies(texts: list[bytes], vocabulary: dict[str, int]) -> NDArray[np.uint32]:
    """Return in how many heads each term stands."""
    found = np.zeros(len(vocabulary), np.uint32)
    for text in texts:
        for term in set(head_of(text)):
            found[vocabulary[term.decode()]] += 1
    return found


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
