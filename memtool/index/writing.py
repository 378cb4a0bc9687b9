"""Writing: make the rows of an index from memories, all of them or only those that changed."""

from __future__ import annotations

import os

from memtool.index import memories, postings, scoring
from memtool.index.memories import Entry, MemoryRows
from memtool.index.schema import SCHEMA
from memtool.index.scoring import Document
from memtool.index.text import list_texts
from memtool.store import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from memtool.index.postings import Posting
    from memtool.memory.fields import Category
    from memtool.store.state import Rows
    from memtool.store.tree import Record

    RecordDocument = tuple[Record, Document]
    """A memory and its searchable text."""

MIN_CHANGES = 64
"""Up to this number, changes are always written into the existing rows."""
CHANGED_SHARE = 4
"""In a larger index up to one in this number may change; beyond that, rebuilding is faster."""
MAX_CLEAN = 20_000
"""Removed blobs that are remembered as free of secrets; beyond that all are forgotten."""


def pair_documents(records: Iterable[Record]) -> Iterator[RecordDocument]:
    """Yield memories, each with its searchable text."""
    for record in records:
        yield record, Document(record.path, list_texts(record))


def write_all(
    rows: Rows, pairs: Iterable[RecordDocument], categories: Mapping[str, Category], language: str
) -> None:
    """Write a whole index; memories are numbered in this order, and bm25s scores them."""
    from memtool.index import build  # bm25s and numpy: 15 interpreter starts

    cache.note_event(cache.BUILT)
    for table in SCHEMA.tables:
        rows.remove(table.name)
    records: list[Record] = []

    def iterate_documents() -> Iterator[Document]:  # documents are large, and needed only once
        for record, document in pairs:
            records.append(record)
            yield document

    built = build.build(iterate_documents(), language)
    dictionaries = {
        "body": memories.build_dictionary(memories.find_common_words(records)),
        "text": memories.build_dictionary(built.words),
    }
    rows.put_all("dictionary", dictionaries.items())
    count = length = head_length = 0
    for chunk in built.chunks:
        entries = [
            Entry(number, records[number], text, *lengths)
            for number, (text, lengths) in enumerate(
                zip(chunk.texts, chunk.lengths, strict=True), count
            )
        ]
        memories.store(rows, entries, categories, dictionaries)
        rows.put_all("posting", chunk.postings)
        count += len(entries)
        length += sum(entry.length for entry in entries)
        head_length += sum(entry.head_length for entry in entries)
    rows.put_all("meta", (("basis_count", count), ("basis_length", length)))
    rows.put_all("meta", build_totals(count, length, head_length, count))
    ids: dict[str, int] = {}
    for record in records:
        ids[record.id] = ids.get(record.id, 0) + 1
    memories.mark_shared_ids(rows, (id_ for id_, count in ids.items() if count > 1))


def update(
    rows: Rows,
    removed: Iterable[int],
    added: Iterable[RecordDocument],
    categories: Mapping[str, Category],
    language: str,
) -> list[int]:
    """Remove memories from an index and add others; return the numbers of the added ones."""
    memories_before = MemoryRows(rows)
    changes: dict[str, dict[int, Posting | None]] = {}
    count, length, head_length = map(memories_before.number, ("count", "length", "head_length"))
    ids = set()
    for number in removed:
        row, record = memories_before.row(number), memories_before.record(number)
        for term in set(memories_before.text(number).decode().split()):
            changes.setdefault(term, {})[number] = None
        if number not in memories_before.withheld:
            rows.put("clean", bytes.fromhex(row.oid))
        memories.remove(rows, number, record)
        ids.add(record.id)
        count -= 1
        length -= row.length
        head_length -= row.head_length
    entries = []
    for number, (record, document) in enumerate(added, memories_before.size):
        text = scoring.analyze_document(document, language)[1]
        entry = Entry(number, record, text, len(text.split()), len(scoring.split_head(text)))
        for term, posting in postings.build_postings(text, memories_before.basis).items():
            changes.setdefault(term, {})[number] = posting
        ids.add(record.id)
        count += 1
        length += entry.length
        head_length += entry.head_length
        entries.append(entry)
    memories.store(rows, entries, categories, memories_before.dictionaries)
    postings.write_changes(rows, changes)
    memories.mark_shared_ids(rows, ids)
    rows.put_all(
        "meta", build_totals(count, length, head_length, memories_before.size + len(entries))
    )
    if next(rows.select("SELECT count(*) > ? FROM clean", MAX_CLEAN))[0]:
        rows.remove("clean")
    return [entry.number for entry in entries]


def build_totals(
    count: int, length: int, head_length: int, size: int
) -> list[tuple[str, int | str]]:
    """Return the rows of `meta` with totals, and with new random names of this state."""
    return [
        ("count", count),
        ("length", length),
        ("head_length", head_length),
        ("next", size),
        ("version", os.urandom(8).hex()),
        ("change", os.urandom(8).hex()),
    ]


def max_changes(count: int) -> int:
    """Return how many changes may be written into an index of `count` memories.

    An empty index has no average length to score by, so it is rebuilt.
    """
    return max(MIN_CHANGES, count // CHANGED_SHARE) if count else 0
