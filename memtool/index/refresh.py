"""Refresh: an index is brought up to date with the files of its worktree, or built from them."""

from __future__ import annotations

import os

from memtool.index import keys, open_index, stamps, writing
from memtool.index.memories import MemoryRows
from memtool.index.open_index import OpenIndex
from memtool.index.schema import SCHEMA
from memtool.index.stamps import NEVER, NO_MEMORY, Changes, Stamps, check, stat_of
from memtool.index.writing import max_changes
from memtool.store import cache, snapshot
from memtool.store.cache import CorruptCache
from memtool.store.snapshot import blob_hash
from memtool.store.state import LOCKED, State
from memtool.store.tree import Record
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from memtool.index.stamps import Folder, Stat
    from memtool.memory.schema import Problem
    from memtool.memory.three_way import Divided
    from memtool.redaction.mask import Mask
    from memtool.store.context import Context
    from memtool.store.repository import Repository
    from memtool.store.state import Rows

MAX_SINGLE_LOOKUPS = 200
"""For so many files the index is asked one by one whether it has them."""
_WAIT_S = 0.15
"""How long an answer waits for another process that writes; then it goes on with a copy."""


def refresh_index(context: Context, key: str, *, exact: bool) -> tuple[OpenIndex, Refresh]:
    """Return the index of a worktree as the files are, and how they differed from it."""
    repository, directory = context.repository, context.directory
    mask = keys.mask_key(context.settings)
    found = open_index.open_stored(repository, key)
    if found is None or found.memories.meta("mask") != mask:
        found, refresh = _build_index(context, key, mask, None, found)
    else:
        seen = check(repository.top, directory, found.stamps, exact=exact)
        if seen.count() > max_changes(found.memories.count):
            found, refresh = _build_index(context, key, mask, found.memories, found)
        else:
            found, refresh = _write_changes(context, key, found, seen)
    open_index.keep(repository, key, found)
    return found, refresh


def _write_changes(
    context: Context, key: str, found: OpenIndex, seen: Changes
) -> tuple[OpenIndex, Refresh]:
    """Return an index with what changed written to it, or to a copy if that is impossible."""
    refresh = Refresh(context, seen, found.memories, ())
    if not seen:
        cache.note_event(cache.HIT)
        return found, refresh
    cache.note_event(cache.READ)
    if not refresh.is_news and not seen.is_certain():
        return found, refresh  # it would be read again all the same
    state, before = found.state, found.change

    def write(rows: Rows) -> None:
        nonlocal refresh
        now = MemoryRows(rows)
        if now.meta("change") != before:  # another process was first
            top, directory = context.repository.top, context.directory
            again = check(top, directory, Stamps(rows), exact=seen.is_exact)
            refresh = Refresh(context, again, now, ())
        refresh.write(rows)

    why_not = state.write(write, wait_s=_WAIT_S)
    if not why_not and state.path:
        # Not closed: who asked before in this process may still read the old snapshot.
        opened = open_index.open_at(os.path.dirname(state.path), key)
        if opened is None:
            return refresh_index(context, key, exact=seen.is_exact)
        refresh.seen.stamps = opened.stamps
        return opened, refresh
    if not state.is_current():  # another process has built a newer one
        return refresh_index(context, key, exact=seen.is_exact)
    if why_not:
        state = state.copied()
        state.note = "" if why_not.endswith(LOCKED) else why_not
        state.write(write)
    opened = OpenIndex(state)
    refresh.seen.stamps = opened.stamps
    return opened, refresh


def _build_index(
    context: Context, key: str, mask: str, known: MemoryRows | None, unfit: OpenIndex | None
) -> tuple[OpenIndex, Refresh]:
    """Return an index that was built of all files, and what was read of them.

    Those that are `known` are not read again; `unfit` is the index that it replaces.
    """
    repository, directory = context.repository, context.directory
    model = None if unfit else _find_sibling(repository, key, mask)
    source = known if model is None else model.memories
    refresh: Refresh | None = None

    def write(rows: Rows) -> None:
        nonlocal refresh
        seen = check(repository.top, directory, None, exact=True)
        refresh = Refresh(context, seen, source, blobs_without_secrets(source) if source else ())
        if model is not None:
            refresh.removed = set(model.memories.numbers()) - refresh.kept()
            changed = len(refresh.removed) + len(refresh.added)
            if changed <= max_changes(model.memories.count):
                for path in model.stamps.folders:
                    stamps.forget(rows, path)
                refresh.write(rows)
                return
        refresh.build(rows, mask)

    state = State.rebuilt(
        open_index.index_folder(repository),
        SCHEMA,
        write,
        key=key,
        instead_of=unfit.state if unfit else None,
        copy_of=model.state if model else None,
    )
    found = OpenIndex(state)
    if refresh is None:  # another process has built it meanwhile
        seen = check(repository.top, directory, found.stamps, exact=True)
        return _write_changes(context, key, found, seen)
    return found, refresh


def _find_sibling(repository: Repository, key: str, mask: str) -> OpenIndex | None:
    """Return the index of another worktree of the repository, the one that was last used."""
    common = os.path.dirname(repository.cache_dir)
    try:
        names = os.listdir(os.path.join(common, "worktrees"))
    except OSError:
        return None
    homes = [common, *(os.path.join(common, "worktrees", name) for name in sorted(names))]
    places = [os.path.join(home, open_index.FOLDER) for home in homes if home != repository.own_dir]
    for place in sorted(places, key=lambda place: -State.last_used(place, SCHEMA, key=key)):
        try:
            found = open_index.open_at(place, key)
        except CorruptCache:
            continue
        if found is not None and found.memories.meta("mask") == mask:
            return found
    return None


def blobs_without_secrets(known: MemoryRows) -> frozenset[str]:
    """Return the blobs of the memories in which nothing is masked."""
    withheld = known.withheld
    return frozenset(oid for number, _path, oid in known.blobs() if number not in withheld)


class Refresh:
    """What differs between a worktree and its index: read, and ready to be written."""

    def __init__(
        self, context: Context, seen: Changes, old: MemoryRows | None, clean: Collection[str]
    ) -> None:
        """Read the files that differ. `old` are memories that need not be read again.

        `clean` are blobs without secrets. Raises CorruptCache.
        """
        self.context = context
        self.seen = seen
        self.old = old
        self.added: list[tuple[Folder, str, Record]] = []
        self.removed = {number for number in seen.dropped if number >= 0}
        self._clean = clean
        if seen.unread:
            self._read_all()

    def _read_all(self) -> None:
        repository, directory = self.context.repository, self.context.directory
        ends = snapshot.LineEnds(repository, directory)
        blob_id = blob_hash(repository.object_format)
        paths = [f"{folder.path}/{name}" for folder, name, _number in self.seen.unread]
        ignored = snapshot.ignored(repository, directory, paths)
        for (folder, name, number), path in zip(self.seen.unread, paths, strict=True):
            if folder.problems:
                folder.problems = tuple(one for one in folder.problems if one.path != path)
            if path in ignored:
                folder.problems = (*folder.problems, snapshot.not_reviewed(path))
                folder.files[name] = (NEVER, NO_MEMORY)
                continue
            data = ends.read_file(path)
            if not isinstance(data, bytes):
                folder.problems = (*folder.problems, data)
                continue
            both = self._divided(path, data) if b"<<<<<<< " in data else None
            if both is not None:
                folder.problems = (*folder.problems, self._mask.problem(both.problem))
            oid = blob_id(data)
            known = self._known(path, oid, number)
            if known is not None:
                folder.files[name] = (folder.files[name][0], known)
                self.removed.discard(known)
            elif (record := self._record(folder, path, oid, data)) is not None:
                self.added.append((folder, name, record))

    def _known(self, path: str, oid: str, number: int | None) -> int | None:
        """Return the memory that a file still is, None where it is another."""
        if self.old is None:
            return None
        if number is not None and number >= 0:
            return number if self.old.oid(number) == oid else None
        if len(self.seen.unread) > MAX_SINGLE_LOOKUPS:
            known, stored = self._stored.get(path, (None, ""))
            return known if stored == oid else None
        number = self.old.number_at(path)
        return number if number is not None and self.old.oid(number) == oid else None

    @cached_property
    def _stored(self) -> dict[str, tuple[int, str]]:
        """Number and blob of all memories of the index by path."""
        assert self.old is not None
        return {path: (number, oid) for number, path, oid in self.old.blobs()}

    def _record(self, folder: Folder, path: str, oid: str, data: bytes) -> Record | None:
        """Return a file as a memory; what is wrong with one that is none goes to its folder."""
        from memtool.memory import document  # only where files changed

        try:
            memory = document.read(data, path, self.context.settings.categories)
        except document.Unreadable as error:
            both = self._divided(path, data)
            if both is None:
                problems = map(self._mask.problem, error.problems)
                folder.problems = (*folder.problems, *problems)
                return None
            memory = both.memory
        is_clean = self.old is not None and self.old.was_clean(oid)
        return Record(memory if is_clean else self._mask.read(memory, data, oid), path, oid)

    def _divided(self, path: str, data: bytes) -> Divided | None:
        """Return a file whose merge is unfinished as both sides have it, where that is known."""
        from memtool.memory import three_way  # few files are ever in a merge

        return three_way.divided(data, path, self.context.settings.categories)

    @cached_property
    def _mask(self) -> Mask:
        """What takes the secrets out of what is read: nothing of the index contains one."""
        from memtool.redaction.mask import Mask  # `re`: only where files changed

        return Mask(self.context.settings, self._clean)

    @property
    def is_news(self) -> bool:
        """Whether any memory differs, not only the times of files."""
        return bool(self.added or self.removed)

    def kept(self) -> set[int]:
        """Return the memories that the files still are."""
        folders = self.seen.folders.values()
        return {number for one in folders for _status, number in one.files.values() if number >= 0}

    def records(self) -> list[tuple[Folder, str, Record]]:
        """Return all memories of the folders that were read, with where they are, by path."""
        found = list(self.added)
        for folder in self.seen.folders.values():
            for name, (_status, number) in folder.files.items():
                if number >= 0:
                    assert self.old is not None
                    found.append((folder, name, self.old.record(number)))
        return sorted(found, key=lambda one: one[2].path)

    def write(self, rows: Rows) -> None:
        """Bring the rows of an index up to date."""
        settings = self.context.settings
        added = writing.documents(record for _folder, _name, record in self.added)
        language = settings.text(keys.LANGUAGE_KEY)
        numbers = []
        if self.is_news:
            numbers = writing.update(rows, self.removed, added, settings.categories, language)
        for (folder, name, _record), number in zip(self.added, numbers, strict=True):
            folder.files[name] = (folder.files[name][0], number)
        self.write_stamps(rows)

    def build(self, rows: Rows, mask: str) -> None:
        """Write an index anew, over whatever the rows are."""
        found = self.records()
        settings = self.context.settings
        filed = writing.documents(record for _folder, _name, record in found)
        writing.fill(rows, filed, settings.categories, settings.text(keys.LANGUAGE_KEY))
        rows.put("meta", "mask", mask)
        for number, (folder, name, _record) in enumerate(found):
            folder.files[name] = (folder.files[name][0], number)
        self.write_stamps(rows)

    def write_stamps(self, rows: Rows) -> None:
        """Write the folders as they were seen."""
        for path in self.seen.vanished:
            stamps.forget(rows, path)
        for folder in self.seen.folders.values():
            stamps.write(rows, folder, self.seen.taken_ns)
        rows.put("meta", "change", os.urandom(8).hex())

    def problems(self) -> list[Problem]:
        """Return what is wrong with single files and folders."""
        found = [problem for folder in self.seen.folders.values() for problem in folder.problems]
        if self.seen.stamps is not None:
            for path, own in self.seen.stamps.problems.items():
                if path not in self.seen.folders and path not in self.seen.vanished:
                    found += own
        return found

    def is_unchanged(self, top: str, path: str) -> bool:
        """Tell whether a file below a top folder is still as it was when it was looked at."""
        try:
            return stat_of(os.lstat(f"{top}/{path}")) == self._status(path)
        except OSError:
            return False

    def _status(self, path: str) -> Stat | None:
        place, _slash, name = path.rpartition("/")
        folder = self.seen.folders.get(place)
        if folder is not None:
            return folder.files[name][0] if name in folder.files else None
        return self.seen.stamps.status_of(path) if self.seen.stamps is not None else None
