"""Renewal: what to do where a worktree is not as its state says.

Few files changed: they are read, and searched beside the segment. Several, and the state is
written anew with them. Very many, or no state that can be used: every file is read, and their
segment taken from the cache or built. Nothing here changes an answer; what cannot be written is
only not kept.
"""

from __future__ import annotations

import os
import time

from memtool.memory import document
from memtool.memory.problem import Problem
from memtool.search import layout, overlay, scoring, shelf, shelving, state
from memtool.search.facts import fields
from memtool.search.freshness import check
from memtool.search.opening import Base, open_base, without_later
from memtool.search.overlay import Overlay
from memtool.search.parts import Part, Parts
from memtool.search.scoring import Document
from memtool.search.segment import Segment
from memtool.search.shelf import Shelf
from memtool.search.state import NO_MEMORY, State
from memtool.store import snapshot, tree
from memtool.store.cache import CorruptCache
from memtool.store.tree import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from memtool.search.freshness import Seen
    from memtool.search.opening import Look, Wanted
    from memtool.search.state import Stat

LEAST_KEPT = 64
"""So many changes may stand beside any segment ..."""
MOST_KEPT = 1_000
"""... so many beside one of a few thousand memories: searching them reads all of them ..."""
KEPT_SHARE = 10
"""... and beside a larger one, as a share of its memories: one in so many."""
FEW_READ = 2
"""So many memories may be read at every start before the state is written anew with them ...

Sooner, if nothing in it would be doubtful: writing it costs about what reading one of them does.
"""
READ_SHARE = 20_000
"""... and one more for each so many files, since the state of many takes longer to write."""


class Carried:
    """The memories in no segment: what the state carries, then what was read just now."""

    def __init__(self, kept: State | None) -> None:
        """Take those of a state. Raises CorruptCache."""
        self.old = Shelf(kept.shelf()) if kept else None
        self.texts = overlay.unpack(kept.overlay()) if kept else []
        self.fresh: list[Record] = []
        self.problems: list[Problem] = []

    def slot(self, record: Record) -> int:
        """Add a memory that was read and return its slot."""
        self.fresh.append(record)
        text = scoring.searchable(Document(record.path, fields(record)))[1]
        self.texts.append(text)
        return NO_MEMORY - len(self.texts)

    def record(self, number: int) -> Record:
        """Return a memory, by its number here."""
        count = self.old.count if self.old else 0
        if self.old and number < count:
            return self.old.record(number)
        return self.fresh[number - count]


class Renewal:
    """A worktree that is read again where it differs from its state, or as a whole."""

    def __init__(self, wanted: Wanted, look: Look | None) -> None:
        self.wanted = wanted
        self.repository = wanted.repository
        self.categories = wanted.categories
        self.folder = os.path.join(self.repository.cache_dir, layout.FOLDER)
        self.blob_id = blob_hash(self.repository.object_format)
        self.note = ""
        self.dead: set[int] = set()
        self.renewed: set[str] = set()
        self.taken_ns = look.taken_ns if look is not None else time.time_ns()
        self.state = look.kept if look is not None else None
        self._shelved: tuple[list[int], bytes] | None = None

    def take(self, kept: State, seen: Seen) -> None:
        """Read what differs from the state. Raises CorruptCache."""
        self.base = open_base(self.repository, kept.segment)
        self.carried = Carried(kept)
        self.seen = seen
        self.dead = set(kept.dead)
        for folder, name, slot, data in self.unread():
            path = f"{folder.path}/{name}"
            if isinstance(data, Problem):
                folder.problems = (*folder.problems, data)
                continue
            oid = self.blob_id(data)
            known = self.known(path, oid, slot)
            if known is None:
                known = self.read(path, oid, data)
            else:
                self.seen.dropped.discard(known)
                self.dead.discard(known)
            folder.files[name] = (folder.files[name][0], known)
        self.dead.update(slot for slot in self.seen.dropped if slot >= 0)
        told = {problem.path for problem in self.base.memories.problems}
        self.renewed = told.intersection(kept.renewed | self.seen.moved)
        self.renewed.update(problem.path for problem in self.kept_problems())

    def unread(self) -> Iterator[tuple[state.Folder, str, int | None, bytes | Problem]]:
        """Yield the files that are to be read: folder, name, slot that it had, and bytes."""
        rows = self.seen.unread
        for folder, name, _slot in rows:
            if folder.problems:
                path = f"{folder.path}/{name}"
                folder.problems = tuple(one for one in folder.problems if one.path != path)
        top = self.repository.top
        for folder, name, slot in rows:
            yield folder, name, slot, snapshot.read_file(top, f"{folder.path}/{name}")

    def known(self, path: str, oid: str, slot: int | None) -> int | None:
        """Return the slot that holds a file as it is now, else None. Raises CorruptCache."""
        if slot is not None and slot < NO_MEMORY:
            same = self.carried.record(NO_MEMORY - 1 - slot)
            if same.oid == oid:
                return slot
        number = slot if slot is not None and slot >= 0 else self.base.number_at(path)
        return number if number is not None and self.base.memories.oid(number) == oid else None

    def read(self, path: str, oid: str, data: bytes) -> int:
        """Read a memory and return its slot."""
        try:
            memory = document.read(data, path, self.categories)
        except document.Unreadable as error:
            self.carried.problems.extend(error.problems)
            return NO_MEMORY
        return self.carried.slot(Record(memory, path, oid))

    def changes(self) -> int:
        """Return how much there is beside the segment."""
        return len(self.dead) + len(self.living())

    def living(self) -> list[int]:
        """Return the memories in no segment that count, by their numbers among the carried."""
        gone = {NO_MEMORY - 1 - slot for slot in self.seen.dropped if slot < NO_MEMORY}
        return [number for number in range(len(self.carried.texts)) if number not in gone]

    def shelved(self) -> tuple[list[int], bytes]:
        """Return the numbers of these by path, and their shelf, which is made once."""
        if self._shelved is None:
            records = sorted((self.carried.record(n).path, n) for n in self.living())
            numbers = [number for _path, number in records]
            memories = [self.carried.record(number) for number in numbers]
            raw = shelving.pack(memories, self.categories, self.kept_problems())
            self._shelved = numbers, raw
        return self._shelved

    def build(self, *, anew: bool = False) -> None:
        """Read every file, and take the segment of them or build it; `anew` in any case."""
        top = self.repository.top
        self.state = None
        self.carried = Carried(None)
        self.dead, self.renewed = set(), set()
        self.taken_ns = time.time_ns()
        self.seen = check(top, self.wanted.directory, None, exact=True)
        found: list[tuple[state.Folder, str, str, str, bytes]] = []
        self.blob_id = tree.blob_hash(self.repository.object_format)  # quicker, once imported
        for folder, name, _slot, data in self.unread():
            if isinstance(data, Problem):
                folder.problems = (*folder.problems, data)
            else:
                path = f"{folder.path}/{name}"
                found.append((folder, name, path, self.blob_id(data), data))
        identity = [(path, oid) for _folder, _name, path, oid, _data in found]
        from memtool.search import cache  # only here, as what is not needed for a few changes

        name_ = cache.name_of([*identity, ("", self.wanted.key)])
        kept = None if anew else self.kept_base(name_)
        if kept is not None:
            self.base = kept
            paths = [kept.memories.path(number) for number in range(kept.memories.count)]
        else:
            is_there = anew or os.path.exists(os.path.join(self.folder, name_))
            paths = self.make(name_, [row[2:] for row in found], is_damaged=is_there)
        numbers = {path: number for number, path in enumerate(paths)}
        for folder, name, path, _oid, _data in found:
            folder.files[name] = (folder.files[name][0], numbers.get(path, NO_MEMORY))

    def kept_base(self, name: str) -> Base | None:
        """Return a segment that is kept, None where there is none that can be used."""
        try:
            return open_base(self.repository, name)
        except CorruptCache:
            return None

    def make(
        self, name: str, files: Iterable[tuple[str, str, bytes]], *, is_damaged: bool
    ) -> list[str]:
        """Build a segment of files and keep it. Return the paths of its memories in order."""
        from memtool.search import builder, cache  # bm25s and numpy: 15 interpreter starts

        records, problems = [], []
        read = document.Reader(self.categories).read
        for path, oid, data in files:
            try:
                records.append(Record(read(data, path), path, oid))
            except document.Unreadable as error:
                problems.extend(error.problems)
        contents = builder.build(Document(record.path, fields(record)) for record in records)
        contents[shelf.FILE] = shelving.pack(records, self.categories, problems)
        place = os.path.join(self.folder, name)
        self.note = cache.store(self.folder, place, contents, is_damaged=is_damaged)
        views = {file: memoryview(data) for file, data in contents.items()}
        self.base = Base(name, Segment(views), Shelf(views[shelf.FILE]))
        return sorted(record.path for record in records)

    def parts(self, as_of: int | None) -> Parts:
        """Return what is to be searched, without what was written after a second."""
        carried, living = self.carried, self.living()
        found = [Part(self.base.index, self.base.memories, 0, frozenset(self.dead))]
        if living:
            if carried.fresh or len(living) < len(carried.texts):
                numbers, raw = self.shelved()
                beside = Shelf(memoryview(raw))
            else:
                assert carried.old is not None
                numbers, beside = living, carried.old
            index = Overlay([carried.texts[number] for number in numbers])
            found.append(Part(index, beside, self.base.index.count, frozenset()))
        return Parts(without_later(found, as_of))

    def problems(self) -> list[Problem]:
        """Return what is wrong with single files and folders."""
        known = self.base.memories.problems
        found = [problem for problem in known if problem.path not in self.renewed]
        found += self.kept_problems()
        for folder in self.seen.folders.values():
            found += folder.problems
        if self.state is not None:
            for path, own in self.state.problems.items():
                if path not in self.seen.folders and path not in self.seen.vanished:
                    found += own
        return found

    def kept_problems(self) -> list[Problem]:
        """Return what is wrong with files that are no memories, in no segment."""
        old = self.carried.old.problems if self.carried.old is not None else []
        kept = [problem for problem in old if problem.path not in self.seen.moved]
        return kept + self.carried.problems

    def status(self, path: str) -> Stat | None:
        """Return the status that a file had when it was looked at."""
        place, _slash, name = path.rpartition("/")
        folder = self.seen.folders.get(place)
        if folder is not None:
            return folder.files[name][0] if name in folder.files else None
        return self.state.status_of(path) if self.state is not None else None

    def is_worth_keeping(self) -> bool:
        """Tell whether a new state saves later starts more than it costs now."""
        kept = self.state
        if kept is None:
            return True
        if len(self.carried.fresh) >= FEW_READ + kept.files // READ_SHARE:
            return True
        certain_ns = self.taken_ns - state.DOUBT_NS
        return all(
            folder.status[2] <= certain_ns
            and all(status[2] <= certain_ns for status, _slot in folder.files.values())
            for folder in self.seen.folders.values()
        )

    def keep_if_worth(self) -> None:
        """Write the state, if it is of use."""
        if not self.note and self.is_worth_keeping():
            self.keep()

    def keep(self) -> None:
        """Write the state as it was seen."""
        from memtool.search import keeping

        numbers, shelved = self.shelved()
        slots = {NO_MEMORY - 1 - n: NO_MEMORY - 1 - new for new, n in enumerate(numbers)}
        folders = dict(self.seen.folders)
        kept = self.state
        if kept is not None:
            for path in kept.carrying:
                number = kept.place_of(path)
                if number is not None and path not in folders and path not in self.seen.vanished:
                    folders[path] = kept.folder(number)
        for folder in folders.values():
            for name, (status, slot) in folder.files.items():
                if slot < NO_MEMORY:
                    folder.files[name] = (status, slots[slot])
        texts = [self.carried.texts[number] for number in numbers]
        unchanged = None
        if kept is not None:
            places = [
                place
                for place, path in enumerate(kept.folders)
                if path not in folders and path not in self.seen.vanished
            ]
            unchanged = (kept, places)
        data = keeping.pack(
            (
                self.wanted.key,
                self.base.name,
                tuple(sorted(self.dead)),
                tuple(sorted(self.renewed)),
            ),
            self.taken_ns,
            folders,
            unchanged,
            (shelved, overlay.pack(texts)),
        )
        self.note = self.note or keeping.store(self.repository.git_dir, data)


def renewed(wanted: Wanted, look: Look | None) -> Renewal:
    """Return the worktree as it is now, by what a look found; without one nothing is trusted."""
    found = Renewal(wanted, look)
    if look is not None:
        try:
            if look.kept is None or look.seen is None:
                found.build()
            else:
                found.take(look.kept, look.seen)
                if found.changes() > most_changes(found.base.index.count):
                    found.build()
            found.keep_if_worth()
            return found
        except CorruptCache:
            found = Renewal(wanted, None)
    found.build(anew=True)
    found.keep_if_worth()
    return found


def most_changes(count: int) -> int:
    """Return how many changes may stand beside a segment of so many memories."""
    return max(LEAST_KEPT, count // KEPT_SHARE, min(MOST_KEPT, count // 4))


def blob_hash(object_format: str) -> Callable[[bytes], str]:
    """Return the function that names bytes as git does."""
    if object_format != "sha1":
        return tree.blob_hash(object_format)
    from _sha1 import sha1  # type: ignore[import-not-found]  # hashlib would import OpenSSL

    return lambda data: str(sha1(b"blob %d\0%b" % (len(data), data)).hexdigest())
