"""An open index: read in one snapshot, and cached for later calls of the process."""

from __future__ import annotations

import os

from memtool.index import keys
from memtool.index.memories import MemoryRows
from memtool.index.postings import PostingRows
from memtool.index.reader import IndexReader, LeafReader
from memtool.index.schema import SCHEMA
from memtool.index.stamps import Stamps
from memtool.store.cache import CorruptCacheError
from memtool.store.state import State, get_thread_id
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.context import Context
    from memtool.store.repository import Repository

FOLDER = os.path.join("memtool", "index")
"""The folder of a worktree's database, below the worktree's own git directory."""
MAX_OPEN = 4
"""Worktrees whose index one process keeps open."""
MAX_CACHED_MEMORIES = 2_000
"""Cached memories, about 10 MB; after more the index is opened again."""

_open_indexes: dict[tuple[str, str, int, int], OpenIndex] = {}
"""By git directory, key, process and thread, since a connection belongs to one thread."""


class OpenIndex:
    """An open index, read in one snapshot."""

    def __init__(self, state: State) -> None:
        """Begin a snapshot. Raises CorruptCache, and Unavailable if it cannot be read."""
        self.state = state
        self.rows = state.read().__enter__()
        self.memories = MemoryRows(self.rows)
        self.change = self.memories.meta("change")
        index = PostingRows(self.rows, self.memories)
        self.reader = IndexReader([LeafReader(index, self.memories)], state.note)

    @cached_property
    def stamps(self) -> Stamps:
        """The files as they were when the index was written."""
        return Stamps(self.rows)

    def make_reader(self, as_of: int | None) -> IndexReader:
        """Return a reader without the memories written after the second `as_of`."""
        dead = set() if as_of is None else self.memories.find_written_after(as_of)
        if not dead:
            return self.reader
        (part,) = self.reader.parts
        return IndexReader([LeafReader(part.postings, part.memories, 0, frozenset(dead))])

    def is_unchanged(self) -> bool:
        """Begin a new snapshot; return whether no row has changed. Raises CorruptCache."""
        if not self.state.is_current() or self.reader.count_cached > MAX_CACHED_MEMORIES:
            return False
        self.rows.__exit__()
        self.rows.__enter__()
        return MemoryRows(self.rows).meta("change") == self.change


def index_folder(repository: Repository) -> str:
    """Return the folder of a worktree's index."""
    return os.path.join(repository.worktree_cache_dir, FOLDER)


def open_at(place: str, key: str) -> OpenIndex | None:
    """Open the index in a folder, None if there is none. Raises CorruptCache."""
    state = State.open(place, SCHEMA, key=key)
    return None if state is None else OpenIndex(state)


def open_stored(repository: Repository, key: str) -> OpenIndex | None:
    """Open the index of a worktree as it is stored, None if there is none. Raises CorruptCache.

    An index that this process has open already is returned again if no row has changed.
    """
    return _reuse(repository, key) or open_at(index_folder(repository), key)


def _reuse(repository: Repository, key: str) -> OpenIndex | None:
    opened = _open_indexes.get(_process_key(repository, key))
    return opened if opened is not None and opened.is_unchanged() else None


def keep_open(repository: Repository, key: str, opened: OpenIndex) -> None:
    """Keep an index open for later calls of this process."""
    if opened.state.path:
        while len(_open_indexes) >= MAX_OPEN:
            _open_indexes.pop(next(iter(_open_indexes)), None)
        _open_indexes[_process_key(repository, key)] = opened


def forget(repository: Repository) -> None:
    """Drop all open indexes of a worktree."""
    for key in [key for key in _open_indexes if key[0] == repository.worktree_cache_dir]:
        _open_indexes.pop(key)


def _process_key(repository: Repository, key: str) -> tuple[str, str, int, int]:
    return repository.worktree_cache_dir, key, os.getpid(), get_thread_id()


def open_last_written(context: Context, key: str) -> OpenIndex | None:
    """Open the index of the worktree as last written, None if none fits the settings."""
    try:
        opened = open_stored(context.repository, key)
        is_usable = opened is not None and opened.memories.meta("mask") == keys.mask_key(
            context.settings
        )
    except CorruptCacheError:
        return None
    return opened if is_usable else None
