"""An index that is open: read in one snapshot, and kept for later calls of the process."""

from __future__ import annotations

import os

from memtool.index import keys
from memtool.index.memories import MemoryRows
from memtool.index.postings import PostingRows
from memtool.index.reader import IndexReader, LeafReader
from memtool.index.schema import SCHEMA
from memtool.index.stamps import Stamps
from memtool.store.cache import CorruptCache
from memtool.store.state import State, thread_number
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.context import Context
    from memtool.store.repository import Repository

FOLDER = os.path.join("memtool", "index")
"""Where the database of a worktree is, below the worktree's own git directory."""
MAX_OPEN = 4
"""Worktrees that one process keeps open."""
MAX_MEMORIES_KEPT = 2_000
"""Memories that are kept as they were read, about 10 MB; then all of it is opened again."""

_open: dict[tuple[str, str, int, int], OpenIndex] = {}
"""What is kept open, by git directory, key, process and thread, which a connection belongs to."""


class OpenIndex:
    """An open index, read in one snapshot."""

    def __init__(self, state: State) -> None:
        """Begin to read. Raises CorruptCache, and Unavailable where that is impossible."""
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

    def reader_at(self, as_of: int | None) -> IndexReader:
        """Return what is to be searched, without what was written after a second."""
        dead = set() if as_of is None else self.memories.later_than(as_of)
        if not dead:
            return self.reader
        (part,) = self.reader.parts
        return IndexReader([LeafReader(part.postings, part.memories, 0, frozenset(dead))])

    def is_unchanged(self) -> bool:
        """Begin a new snapshot; return whether it has the same rows. Raises CorruptCache."""
        if not self.state.is_current() or self.reader.read > MAX_MEMORIES_KEPT:
            return False
        self.rows.__exit__()
        self.rows.__enter__()
        return MemoryRows(self.rows).meta("change") == self.change


def index_folder(repository: Repository) -> str:
    """Return the folder of a worktree's index."""
    return os.path.join(repository.own_dir, FOLDER)


def open_at(place: str, key: str) -> OpenIndex | None:
    """Open the index in a folder, None if there is none. Raises CorruptCache."""
    state = State.open(place, SCHEMA, key=key)
    return None if state is None else OpenIndex(state)


def open_stored(repository: Repository, key: str) -> OpenIndex | None:
    """Return the index of a worktree as it is stored, None if there is none.

    If an earlier call of this process opened it, and no row has changed, it is that one.
    Raises CorruptCache.
    """
    return _reuse(repository, key) or open_at(index_folder(repository), key)


def _reuse(repository: Repository, key: str) -> OpenIndex | None:
    found = _open.get(_process_key(repository, key))
    return found if found is not None and found.is_unchanged() else None


def keep(repository: Repository, key: str, found: OpenIndex) -> None:
    """Keep an index open for later calls of this process."""
    if found.state.path:
        while len(_open) >= MAX_OPEN:
            _open.pop(next(iter(_open)), None)
        _open[_process_key(repository, key)] = found


def forget(repository: Repository) -> None:
    """Keep no index of a worktree open."""
    for key in [key for key in _open if key[0] == repository.own_dir]:
        _open.pop(key)


def _process_key(repository: Repository, key: str) -> tuple[str, str, int, int]:
    return repository.own_dir, key, os.getpid(), thread_number()


def open_last_written(context: Context, key: str) -> OpenIndex | None:
    """Return the index of the worktree as it was last written, None without one that fits."""
    try:
        found = open_stored(context.repository, key)
        fits = found is not None and found.memories.meta("mask") == keys.mask_key(context.settings)
    except CorruptCache:
        return None
    return found if fits else None
