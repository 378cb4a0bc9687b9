"""Refresh: bring an index up to date with the files of its worktree, or build it from them."""

from __future__ import annotations

import os

from memtool.index import keys, open_index, stamps, writing
from memtool.index.memories import MemoryRows
from memtool.index.open_index import OpenIndex
from memtool.index.schema import SCHEMA
from memtool.index.stamps import NEVER, NO_MEMORY, Changes, Stamps, find_changes, to_stat
from memtool.index.writing import max_changes
from memtool.store import cache, snapshot
from memtool.store.cache import CorruptCacheError
from memtool.store.snapshot import make_blob_hash
from memtool.store.state import LOCKED_REASON, State
from memtool.store.tree import Record
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from memtool.index.stamps import Folder, Stat
    from memtool.memory.schema import Problem
    from memtool.memory.three_way import DividedMemory
    from memtool.redaction.mask import Mask
    from memtool.store.context import Context
    from memtool.store.repository import Repository
    from memtool.store.state import Rows

MAX_SINGLE_LOOKUPS = 200
"""Unread files that are looked up in the index one by one; for more, all its rows are read."""
# A call waits this long for another process that writes, then goes on with a copy.
_WAIT_S = 0.15


def refresh_index(context: Context, key: str, *, exact: bool) -> tuple[OpenIndex, Refresh]:
    """Return the up-to-date index of a worktree, and what was refreshed."""
    repository, directory = context.repository, context.directory
    mask = keys.mask_key(context.settings)
    opened = open_index.open_stored(repository, key)
    if opened is None or opened.memories.meta("mask") != mask:
        opened, refresh = _build_index(context, key, mask, None, opened)
    else:
        changes = find_changes(repository.top, directory, opened.stamps, exact=exact)
        if changes.count() > max_changes(opened.memories.count):
            opened, refresh = _build_index(context, key, mask, opened.memories, opened)
        else:
            opened, refresh = _write_changes(context, key, opened, changes)
    open_index.keep_open(repository, key, opened)
    return opened, refresh


def _write_changes(
    context: Context, key: str, opened_before: OpenIndex, changes: Changes
) -> tuple[OpenIndex, Refresh]:
    """Write changes to an index, or to a copy in memory if that is impossible."""
    refresh = Refresh(context, changes, opened_before.memories, ())
    if not changes:
        cache.note_event(cache.HIT)
        return opened_before, refresh
    cache.note_event(cache.READ)
    if not refresh.has_memory_changes and not changes.is_certain():
        return opened_before, refresh  # the files would be read again anyway
    state, change_before = opened_before.state, opened_before.change

    def write(rows: Rows) -> None:
        nonlocal refresh
        memories = MemoryRows(rows)
        if memories.meta("change") != change_before:  # another process was first
            top, directory = context.repository.top, context.directory
            new_changes = find_changes(top, directory, Stamps(rows), exact=changes.is_exact)
            refresh = Refresh(context, new_changes, memories, ())
        refresh.write(rows)

    why_not = state.write(write, wait_s=_WAIT_S)
    if not why_not and state.path:
        # Not closed: earlier callers in this process may still read the old snapshot.
        opened = open_index.open_at(os.path.dirname(state.path), key)
        if opened is None:
            return refresh_index(context, key, exact=changes.is_exact)
        refresh.changes.stamps = opened.stamps
        return opened, refresh
    if not state.is_current():  # another process has built a newer one
        return refresh_index(context, key, exact=changes.is_exact)
    if why_not:
        state = state.copy_to_memory()
        state.note = "" if why_not.endswith(LOCKED_REASON) else why_not
        state.write(write)
    opened = OpenIndex(state)
    refresh.changes.stamps = opened.stamps
    return opened, refresh


def _build_index(
    context: Context, key: str, mask: str, reusable: MemoryRows | None, replaced: OpenIndex | None
) -> tuple[OpenIndex, Refresh]:
    """Build an index from all files; return it and what was refreshed.

    Memories of `reusable` are not read again; `replaced` is the index that the new one replaces.
    """
    repository, directory = context.repository, context.directory
    sibling = None if replaced else _find_sibling(repository, key, mask)
    source = reusable if sibling is None else sibling.memories
    refresh: Refresh | None = None

    def write(rows: Rows) -> None:
        nonlocal refresh
        changes = find_changes(repository.top, directory, None, exact=True)
        refresh = Refresh(
            context, changes, source, find_blobs_without_secrets(source) if source else ()
        )
        if sibling is not None:
            refresh.removed = set(sibling.memories.select_numbers()) - refresh.unchanged_numbers()
            changed = len(refresh.removed) + len(refresh.added)
            if changed <= max_changes(sibling.memories.count):
                for path in sibling.stamps.folders:
                    stamps.forget(rows, path)
                refresh.write(rows)
                return
        refresh.build(rows, mask)

    state = State.rebuild(
        open_index.index_folder(repository),
        SCHEMA,
        write,
        key=key,
        instead_of=replaced.state if replaced else None,
        copy_of=sibling.state if sibling else None,
    )
    opened = OpenIndex(state)
    if refresh is None:  # another process has built it meanwhile
        changes = find_changes(repository.top, directory, opened.stamps, exact=True)
        return _write_changes(context, key, opened, changes)
    return opened, refresh


def _find_sibling(repository: Repository, key: str, mask: str) -> OpenIndex | None:
    """Return the last used index of another worktree of the repository, None if none fits."""
    common = os.path.dirname(repository.cache_dir)
    try:
        names = os.listdir(os.path.join(common, "worktrees"))
    except OSError:
        return None
    git_dirs = [common, *(os.path.join(common, "worktrees", name) for name in sorted(names))]
    places = [
        os.path.join(git_dir, open_index.FOLDER)
        for git_dir in git_dirs
        if git_dir != repository.worktree_cache_dir
    ]
    for place in sorted(places, key=lambda place: -State.read_last_used(place, SCHEMA, key=key)):
        try:
            opened = open_index.open_at(place, key)
        except CorruptCacheError:
            continue
        if opened is not None and opened.memories.meta("mask") == mask:
            return opened
    return None


def find_blobs_without_secrets(memories: MemoryRows) -> frozenset[str]:
    """Return the blob ids of the memories in which nothing is masked."""
    withheld = memories.withheld
    return frozenset(oid for number, _path, oid in memories.list_blobs() if number not in withheld)


class Refresh:
    """The differences between a worktree and its index, read and ready to be written."""

    def __init__(
        self, context: Context, changes: Changes, old: MemoryRows | None, clean: Collection[str]
    ) -> None:
        """Read the files that differ. Memories of `old` are not read again.

        `clean` are ids of blobs without secrets. Raises CorruptCache.
        """
        self.context = context
        self.changes = changes
        self.old = old
        self.added: list[tuple[Folder, str, Record]] = []
        self.removed = {number for number in changes.dropped if number >= 0}
        self._clean = clean
        if changes.unread:
            self._read_all()

    def _read_all(self) -> None:
        repository, directory = self.context.repository, self.context.directory
        ends = snapshot.LineEnds(repository, directory)
        blob_id = make_blob_hash(repository.object_format)
        paths = [f"{folder.path}/{name}" for folder, name, _number in self.changes.unread]
        ignored = snapshot.find_ignored(repository, directory, paths)
        for (folder, name, number), path in zip(self.changes.unread, paths, strict=True):
            if folder.problems:
                folder.problems = tuple(
                    problem for problem in folder.problems if problem.path != path
                )
            if path in ignored:
                folder.problems = (*folder.problems, snapshot.build_ignored_problem(path))
                folder.files[name] = (NEVER, NO_MEMORY)
                continue
            data = ends.read_file(path)
            if not isinstance(data, bytes):
                folder.problems = (*folder.problems, data)
                continue
            sides = self._read_sides(path, data) if b"<<<<<<< " in data else None
            if sides is not None:
                folder.problems = (*folder.problems, self._mask.problem(sides.problem))
            oid = blob_id(data)
            unchanged_number = self._find_unchanged(path, oid, number)
            if unchanged_number is not None:
                folder.files[name] = (folder.files[name][0], unchanged_number)
                self.removed.discard(unchanged_number)
            elif (record := self._read_record(folder, path, oid, data)) is not None:
                self.added.append((folder, name, record))

    def _find_unchanged(self, path: str, oid: str, number: int | None) -> int | None:
        """Return the number of the memory that a file still is, None if it changed."""
        if self.old is None:
            return None
        if number is not None and number >= 0:
            return number if self.old.oid(number) == oid else None
        if len(self.changes.unread) > MAX_SINGLE_LOOKUPS:
            stored_number, stored_oid = self._stored.get(path, (None, ""))
            return stored_number if stored_oid == oid else None
        number = self.old.find_by_path(path)
        return number if number is not None and self.old.oid(number) == oid else None

    @cached_property
    def _stored(self) -> dict[str, tuple[int, str]]:
        """Number and blob id of all memories of the index, by path."""
        assert self.old is not None
        return {path: (number, oid) for number, path, oid in self.old.list_blobs()}

    def _read_record(self, folder: Folder, path: str, oid: str, data: bytes) -> Record | None:
        """Return a file as a memory; if it is not one, None, and its problems go to the folder."""
        from memtool.memory import document  # only if files changed

        try:
            memory = document.read(data, path, self.context.settings.categories)
        except document.Unreadable as error:
            sides = self._read_sides(path, data)
            if sides is None:
                problems = map(self._mask.problem, error.problems)
                folder.problems = (*folder.problems, *problems)
                return None
            memory = sides.memory
        is_clean = self.old is not None and self.old.was_clean(oid)
        return Record(memory if is_clean else self._mask.read(memory, data, oid), path, oid)

    def _read_sides(self, path: str, data: bytes) -> DividedMemory | None:
        """Return both sides of a file with an unfinished merge, None if they are unclear."""
        from memtool.memory import three_way  # few files are ever in a merge

        return three_way.read_divided(data, path, self.context.settings.categories)

    @cached_property
    def _mask(self) -> Mask:
        """The mask of all files that are read, so that the index contains no secrets."""
        from memtool.redaction.mask import Mask  # imports `re`: only if files changed

        return Mask(self.context.settings, self._clean)

    @property
    def has_memory_changes(self) -> bool:
        """Whether any memory changed, not only times of files."""
        return bool(self.added or self.removed)

    def unchanged_numbers(self) -> set[int]:
        """Return the numbers of the memories whose files are unchanged."""
        folders = self.changes.folders.values()
        return {
            number for folder in folders for _status, number in folder.files.values() if number >= 0
        }

    def records(self) -> list[tuple[Folder, str, Record]]:
        """Return folder, name and record of all memories in the folders that were read, by path."""
        located_records = list(self.added)
        for folder in self.changes.folders.values():
            for name, (_status, number) in folder.files.items():
                if number >= 0:
                    assert self.old is not None
                    located_records.append((folder, name, self.old.record(number)))
        return sorted(located_records, key=lambda located: located[2].path)

    def write(self, rows: Rows) -> None:
        """Bring the rows of an index up to date."""
        settings = self.context.settings
        added = writing.pair_documents(record for _folder, _name, record in self.added)
        language = settings.text(keys.LANGUAGE_KEY)
        numbers = []
        if self.has_memory_changes:
            numbers = writing.update(rows, self.removed, added, settings.categories, language)
        for (folder, name, _record), number in zip(self.added, numbers, strict=True):
            folder.files[name] = (folder.files[name][0], number)
        self.write_stamps(rows)

    def build(self, rows: Rows, mask: str) -> None:
        """Write the whole index, replacing all rows."""
        located_records = self.records()
        settings = self.context.settings
        pairs = writing.pair_documents(record for _folder, _name, record in located_records)
        writing.write_all(rows, pairs, settings.categories, settings.text(keys.LANGUAGE_KEY))
        rows.put("meta", "mask", mask)
        for number, (folder, name, _record) in enumerate(located_records):
            folder.files[name] = (folder.files[name][0], number)
        self.write_stamps(rows)

    def write_stamps(self, rows: Rows) -> None:
        """Write the folders as they were seen."""
        for path in self.changes.vanished:
            stamps.forget(rows, path)
        for folder in self.changes.folders.values():
            stamps.write(rows, folder, self.changes.taken_ns)
        rows.put("meta", "change", os.urandom(8).hex())

    def problems(self) -> list[Problem]:
        """Return the problems of files and folders."""
        problems = [
            problem for folder in self.changes.folders.values() for problem in folder.problems
        ]
        if self.changes.stamps is not None:
            for path, folder_problems in self.changes.stamps.problems.items():
                if path not in self.changes.folders and path not in self.changes.vanished:
                    problems += folder_problems
        return problems

    def is_unchanged(self, top: str, path: str) -> bool:
        """Return whether a file below the folder `top` is still as it was when it was checked."""
        try:
            return to_stat(os.lstat(f"{top}/{path}")) == self._status(path)
        except OSError:
            return False

    def _status(self, path: str) -> Stat | None:
        place, _slash, name = path.rpartition("/")
        folder = self.changes.folders.get(place)
        if folder is not None:
            return folder.files[name][0] if name in folder.files else None
        return self.changes.stamps.find_status(path) if self.changes.stamps is not None else None
