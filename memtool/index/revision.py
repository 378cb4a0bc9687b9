"""Revisions: indexes of memories that are in no worktree, stored by content or held in memory."""

from __future__ import annotations

import os

from memtool.index import keys, open_index, scoring, writing
from memtool.index.memories import MemoryRows
from memtool.index.open_index import OpenIndex
from memtool.index.postings import PostingRows
from memtool.index.reader import IndexReader, LeafReader
from memtool.index.schema import SCHEMA
from memtool.store import cache
from memtool.store.cache import CorruptCache
from memtool.store.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.store.config import Config
    from memtool.store.context import Context
    from memtool.store.snapshot import Snapshot
    from memtool.store.state import Rows
    from memtool.store.tree import Record

FOLDER = "trees"
"""Where the databases are, below the cache directory that all worktrees share."""
MAX_KEPT = 4
"""Databases that stay: those last used."""


def open_revision(
    context: Context, key: str, records: Sequence[Record], last: OpenIndex | None
) -> IndexReader:
    """Return the index of records, from the cache or built now; without a key it is not stored.

    It begins with a copy of the worktree's, if that differs little.
    """
    settings = context.settings
    categories, language = settings.categories, settings.text(keys.LANGUAGE_KEY)

    def build(rows: Rows) -> None:
        ordered = writing.documents(sorted(records, key=lambda record: record.path))
        writing.fill(rows, ordered, categories, language)

    if not key:
        return OpenIndex(State.in_memory(SCHEMA, build)).reader
    place = os.path.join(context.repository.cache_dir, FOLDER)
    name = keys.revision_key(key, [(record.path, record.oid) for record in records])
    try:
        found = open_index.open_at(place, name)
    except CorruptCache:
        cache.drop(place)
        found = None
    if found is not None:
        cache.note_event(cache.HIT)
        return found.reader
    known = {(path, oid): n for n, path, oid in last.memories.blobs()} if last else {}
    added = [record for record in records if (record.path, record.oid) not in known]
    removed = set(known.values())
    removed.difference_update(known.get((one.path, one.oid), -1) for one in records)
    model = last if len(removed) + len(added) <= writing.max_changes(len(known)) else None

    def adapt(rows: Rows) -> None:
        writing.update(rows, removed, writing.documents(added), categories, language)

    state = State.rebuilt(
        place,
        SCHEMA,
        adapt if model else build,
        key=name,
        copy_of=model.state if model else None,
        most=MAX_KEPT,
    )
    found = OpenIndex(state)
    if state.note:
        found.reader.note = f"the search index is not kept: {state.note}"
    return found.reader


def in_memory(records: Sequence[Record], settings: Config, first: int = 0) -> LeafReader:
    """Return an index of few memories that ends with the process. Numbers begin at `first`."""
    filed, language = list(writing.documents(records)), settings.text(keys.LANGUAGE_KEY)
    terms = sum(len(scoring.searchable(document, language)[0]) for _record, document in filed)

    def write(rows: Rows) -> None:
        rows.put_all("meta", (("basis_count", len(filed)), ("basis_length", terms)))
        rows.put_all("meta", writing.totals(0, 0, 0, 0))
        writing.update(rows, (), filed, settings.categories, language)

    rows = State.in_memory(SCHEMA, write).read().__enter__()
    shelf = MemoryRows(rows)
    return LeafReader(PostingRows(rows, shelf), shelf, first)


def known_records(last: OpenIndex, taken: Snapshot) -> dict[str, Record]:
    """Return by path the files of a commit that an index has, and in which nothing is wrong."""
    faulty = {one.path for own in last.stamps.problems.values() for one in own}
    wanted = {one.path: one.oid for one in taken.entries if one.oid and one.path not in faulty}
    numbers = {
        path: number for number, path, oid in last.memories.blobs() if wanted.get(path) == oid
    }
    last.memories.load(numbers.values())
    return {path: last.memories.record(number) for path, number in numbers.items()}
