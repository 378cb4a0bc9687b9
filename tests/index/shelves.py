"""Indexes in memory of documents and records that a test makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memtool.index import writing
from memtool.index.analyzer import ENGLISH
from memtool.index.open_index import OpenIndex
from memtool.index.reader import LeafReader
from memtool.index.schema import SCHEMA
from memtool.index.scoring import Document
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.store.state import Rows, State
from memtool.store.tree import Record
from tests.conftest import make_memory


def filed(documents: Iterable[Document]) -> list[tuple[Record, Document]]:
    """Documents with memories that only have their paths."""
    return [(Record(make_memory("dec-x"), document.key, ""), document) for document in documents]


def built(pairs: Sequence[tuple[Record, Document]]) -> OpenIndex:
    """An index that bm25s scored."""

    def write(rows: Rows) -> None:
        writing.write_all(rows, pairs, DEFAULT_CATEGORIES, ENGLISH)

    return OpenIndex(State.create_in_memory(SCHEMA, write))


def shelf(documents: Iterable[Document]) -> LeafReader:
    """An index of documents, numbered in their order."""
    (part,) = built(filed(documents)).reader.parts
    return part


def updated(before: Iterable[Document], after: Sequence[Document]) -> LeafReader:
    """An index of some documents in which others were put in their place, one after the other."""
    state = built(filed(before)).state

    def remove(rows: Rows) -> None:
        numbers = [row[0] for row in rows.select("SELECT number FROM memory")]
        writing.update(rows, numbers, (), DEFAULT_CATEGORIES, ENGLISH)  # type: ignore[arg-type]

    state = state.copy_to_memory()
    for document in after[: len(after) // 2]:
        state.write(lambda rows, document=document: put(rows, [document]))
    state.write(remove)
    for cut in (after[::2], after[1::2]):
        state.write(lambda rows, cut=cut: put(rows, cut))
    (part,) = OpenIndex(state).reader.parts
    return part


def put(rows: Rows, documents: Iterable[Document]) -> None:
    writing.update(rows, (), filed(documents), DEFAULT_CATEGORIES, ENGLISH)
