"""Writing: the rows of an index are made of memories, all anew or those that changed."""

from __future__ import annotations

import os

from memtool.index import memories, postings, scoring
from memtool.index.memories import Entry, MemoryRows
from memtool.index.schema import SCHEMA
from memtool.index.scoring import Document
from memtool.index.text import fields
from memtool.store import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from memtool.index.postings import Posting
    from memtool.memory.fields import Category
    from memtool.store.state import Rows
    from memtool.store.tree import Record

    Filed = tuple[Record, Document]
    """A memory, and what is searched of it."""

MIN_CHANGES = 64
"""So many changes are always written into the rows that there are ..."""
CHANGED_SHARE = 4
"""... and of a larger index one in so many; building it anew is faster from there on."""
MAX_CLEAN = 20_000
"""Blobs that were here before and need no search for secrets when they return; then all go."""


def documents(records: Iterable[Record]) -> Iterator[Filed]:
    """Yield memories with what is searched of each."""
    for record in records:
        yield record, Document(record.path, fields(record))


def fill(
    rows: Rows, filed: Iterable[Filed], categories: Mapping[str, Category], language: str
) -> None:
    """Write an index anew, its memories numbered in the order given; bm25s scores them."""
    from memtool.index import build  # bm25s and numpy: 15 interpreter starts

    cache.note_event(cache.BUILT)
    for table in SCHEMA.tables:
        rows.remove(table.name)
    records: list[Record] = []

    def of_each() -> Iterator[Document]:  # documents are large, and needed once
        for record, document in filed:
            records.append(record)
            yield document

    built = build.build(of_each(), language)
    dictionaries = {
        "body": memories.dictionary(memories.common_words(records)),
        "text": memories.dictionary(built.words),
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
    rows.put_all("meta", totals(count, length, head_length, count))
    ids: dict[str, int] = {}
    for record in records:
        ids[record.id] = ids.get(record.id, 0) + 1
    memories.mark_twins(rows, (id_ for id_, count in ids.items() if count > 1))


def update(
    rows: Rows,
    removed: Iterable[int],
    added: Iterable[Filed],
    categories: Mapping[str, Category],
    language: str,
) -> list[int]:
    """Remove memories from an index and add others; return the numbers of these."""
    old = MemoryRows(rows)
    changes: dict[str, dict[int, Posting | None]] = {}
    count, length, head_length = map(old.number, ("count", "length", "head_length"))
    ids = set()
    for number in removed:
        row, record = old.row(number), old.record(number)
        for term in set(old.text(number).decode().split()):
            changes.setdefault(term, {})[number] = None
        if number not in old.withheld:
            rows.put("clean", bytes.fromhex(row.oid))
        memories.remove(rows, number, record)
        ids.add(record.id)
        count -= 1
        length -= row.length
        head_length -= row.head_length
    entries = []
    for number, (record, document) in enumerate(added, old.size):
        text = scoring.searchable(document, language)[1]
        entry = Entry(number, record, text, len(text.split()), len(scoring.head_of(text)))
        for term, posting in postings.postings_of(text, old.basis).items():
            changes.setdefault(term, {})[number] = posting
        ids.add(record.id)
        count += 1
        length += entry.length
        head_length += entry.head_length
        entries.append(entry)
    memories.store(rows, entries, categories, old.dictionaries)
    postings.change(rows, changes)
    memories.mark_twins(rows, ids)
    rows.put_all("meta", totals(count, length, head_length, old.size + len(entries)))
    if next(rows.select("SELECT count(*) > ? FROM clean", MAX_CLEAN))[0]:
        rows.remove("clean")
    return [entry.n for entry in entries]


def totals(count: int, length: int, head_length: int, size: int) -> list[tuple[str, int | str]]:
    """Return the rows of `meta` that say how much there is, and name this state of it."""
    return [
        ("count", count),
        ("length", length),
        ("head_length", head_length),
        ("next", size),
        ("version", os.urandom(8).hex()),
        ("change", os.urandom(8).hex()),
    ]


def max_changes(count: int) -> int:
    """Return how many changes may be written into an index of so many memories.

    One of none has no average length to score by, so it is built anew.
    """
    return max(MIN_CHANGES, count // CHANGED_SHARE) if count else 0
