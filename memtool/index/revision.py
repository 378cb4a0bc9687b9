"""Revisions: indexes of memories outside the worktree, stored by content or in memory."""

from __future__ import annotations

import os

from memtool.index import keys, open_index, scoring, writing
from memtool.index.open_index import OpenIndex
from memtool.index.reader import IndexReader, LeafReader
from memtool.index.schema import SCHEMA
from memtool.store import cache
from memtool.store.cache import CorruptCacheError
from memtool.store.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.store.config import Config
    from memtool.store.context import Context
    from memtool.store.snapshot import Snapshot
    from memtool.store.state import Rows
    from memtool.store.tree import Record

FOLDERS = FOLDER, SMALL_FOLDER = "trees", "few"
"""Folders of the databases of whole trees and of small sets, below the shared cache directory."""
MAX_TREES, MAX_SMALL = 4, 16
"""Databases that stay in each folder, those used last."""


def open_revision(
    context: Context, key: str, records: Sequence[Record], last: OpenIndex | None
) -> IndexReader:
    """Return the index of records, from the cache or built now; not stored if the key is empty.

    The new index begins as a copy of `last`, the worktree's, if that differs little.
    """
    settings = context.settings
    categories, language = settings.categories, settings.text(keys.LANGUAGE_KEY)

    def build(rows: Rows) -> None:
        ordered = writing.pair_documents(sorted(records, key=lambda record: record.path))
        writing.write_all(rows, ordered, categories, language)

    if not key:
        return OpenIndex(State.create_in_memory(SCHEMA, build)).reader
    place = os.path.join(context.repository.cache_dir, FOLDER)
    name = keys.revision_key(key, [(record.path, record.oid) for record in records])
    try:
        opened = open_index.open_at(place, name)
    except CorruptCacheError:
        cache.drop(place)
        opened = None
    if opened is not None:
        cache.note_event(cache.HIT)
        return opened.reader
    stored_numbers = {(path, oid): n for n, path, oid in last.memories.list_blobs()} if last else {}
    added = [record for record in records if (record.path, record.oid) not in stored_numbers]
    removed = set(stored_numbers.values())
    removed.difference_update(
        stored_numbers.get((record.path, record.oid), -1) for record in records
    )
    base = last if len(removed) + len(added) <= writing.max_changes(len(stored_numbers)) else None

    def adapt(rows: Rows) -> None:
        writing.update(rows, removed, writing.pair_documents(added), categories, language)

    state = State.rebuild(
        place,
        SCHEMA,
        adapt if base else build,
        key=name,
        copy_of=base.state if base else None,
        max_databases=MAX_TREES,
    )
    opened = OpenIndex(state)
    if state.note:
        opened.reader.note = f"the search index is not kept: {state.note}"
    return opened.reader


def build_in_memory(records: Sequence[Record], settings: Config, first: int = 0) -> LeafReader:
    """Build an index of a small set of memories in memory, with numbers from `first` on."""
    state = State.create_in_memory(SCHEMA, lambda rows: _write_small(rows, records, settings))
    return _make_leaf(OpenIndex(state), first)


def open_small(
    context: Context,
    stamps: Iterable[tuple[str, str]],
    read: Callable[[], Sequence[Record]],
    first: int,
    *,
    is_built: bool = True,
) -> LeafReader | None:
    """Return the index of a small set of memories, from the cache or built now.

    Numbers begin at `first`. `stamps` are path and blob id of each file; the files are only `read`
    if their index is not stored. None if it is not stored and `is_built` is false.
    """
    settings = context.settings
    if not context.is_cached:
        return build_in_memory(read(), settings, first)
    key = keys.settings_key(context.repository, context.directory, settings)
    name = keys.revision_key(f"{key} {keys.mask_key(settings)}", stamps)
    place = os.path.join(context.repository.cache_dir, SMALL_FOLDER)
    try:
        opened = open_index.open_at(place, name)
    except CorruptCacheError:
        cache.drop(place)
        opened = None
    if opened is None and not is_built:
        return None
    if opened is None:
        state = State.rebuild(
            place,
            SCHEMA,
            lambda rows: _write_small(rows, read(), settings),
            key=name,
            max_databases=MAX_SMALL,
        )
        opened = OpenIndex(state)
    return _make_leaf(opened, first)


def _make_leaf(opened: OpenIndex, first: int) -> LeafReader:
    (part,) = opened.reader.parts
    return LeafReader(part.postings, part.memories, first)


def _write_small(rows: Rows, records: Sequence[Record], settings: Config) -> None:
    pairs, language = list(writing.pair_documents(records)), settings.text(keys.LANGUAGE_KEY)
    terms = sum(len(scoring.analyze_document(document, language)[0]) for _record, document in pairs)
    rows.put_all("meta", (("basis_count", len(pairs)), ("basis_length", terms)))
    rows.put_all("meta", writing.build_totals(0, 0, 0, 0))
    writing.update(rows, (), pairs, settings.categories, language)


def read_unchanged(last: OpenIndex, snapshot: Snapshot) -> dict[str, Record]:
    """Return the records of a snapshot that an index has without problems, by path."""
    faulty_paths = {
        problem.path
        for folder_problems in last.stamps.problems.values()
        for problem in folder_problems
    }
    wanted = {
        entry.path: entry.oid
        for entry in snapshot.entries
        if entry.oid and entry.path not in faulty_paths
    }
    numbers = {
        path: number for number, path, oid in last.memories.list_blobs() if wanted.get(path) == oid
    }
    last.memories.load(numbers.values())
    return {path: last.memories.record(number) for path, number in numbers.items()}
