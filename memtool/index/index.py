"""The index of a worktree: opened as it is stored, refreshed where files changed, or built.

    catalog = open_catalog(repository, directory, categories)   # the worktree
    catalog = open_catalog(..., at="HEAD")                      # a revision, or `:index`
    catalog = open_catalog(..., as_of=second)                   # without what came later
    catalog.freshness                                           # "exact" or "dir-exact"
    catalog.notes                                               # what the user should hear
    catalog.verify(records)                                     # are these files still the same

Where nothing changed, the manifest and the segment that it names are mapped, every folder is looked
at, and that is all. A process that asks again finds both mapped still, as long as their files are
the same. Where few files changed, they are read, and searched beside the segment; where several
did, the manifest is written again with them. Where very many did, or no manifest can be used, every
file is read, and their segment taken from the cache or built.

`<cache>/index/<hash>/` is one segment, named by its content, that never changes, so readers need no
lock. Writers build beside it and rename; the loser of a race uses what the winner wrote. A cache
that is missing, damaged, of another version or not writable costs time, never the answer.
"""

from __future__ import annotations

import os
import sys
import time

from memtool.index import manifest, postings, reader, scoring, stored_fields
from memtool.index.analyzer import TOKENIZER
from memtool.index.manifest import NO_MEMORY, Manifest, check
from memtool.index.postings import CorruptCache, Segment
from memtool.index.reader import (
    DIR_EXACT,
    EXACT,
    Catalog,
    Delta,
    IndexReader,
    LeafReader,
    StoredCatalog,
    Worktree,
)
from memtool.index.scoring import Document
from memtool.index.stored_fields import StoredFields, fields
from memtool.store import tree
from memtool.store.tree import Record, Tree
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from memtool.index.manifest import Changes, Stat
    from memtool.index.scoring import Hit, Question, Statistics
    from memtool.memory.categories import Category
    from memtool.memory.problem import Problem
    from memtool.store.repository import Repository

    Answer = TypeVar("Answer")


MOST_HELD = 4
"""Worktrees that one process keeps open."""

MOST_READ = 2_000
"""Memories that are kept as they were read, about 10 MB; then all of it is opened anew."""

_held: dict[str, Held] = {}
"""What is kept open, by git directory."""


class OpenRequest(Value):
    """What is to be opened, and the key that its state must have."""

    repository: Repository
    directory: str
    categories: Mapping[str, Category]
    exact: bool
    key: str


class Scan(Value):
    """What a look at the worktree found: when it began, the state, and how it differs."""

    taken_ns: int
    kept: Manifest | None
    seen: Changes | None


class BaseSegment:
    """The segment that holds most memories, and their shelf. Numbers are the same in both."""

    def __init__(self, name: str, index: Segment, memories: StoredFields) -> None:
        """Take the two. Raises Broken where they are not of the same memories."""
        if index.count != memories.count:
            raise CorruptCache("the index is not of these memories")
        self.name = name
        self.index = index
        self.memories = memories

    def number_at(self, path: str) -> int | None:
        """Return the number of the memory at a path. Raises Broken."""
        id_ = path.rpartition("/")[2][:-3]
        numbers = self.memories.numbers_of(id_)
        return next((n for n in numbers if self.memories.path(n) == path), None)


class Held:
    """A state, the segment that it names, and both as one collection, to be searched again."""

    def __init__(self, kept: Manifest, base: BaseSegment, stamp: tuple[Stat, ...]) -> None:
        """Take what was opened; `stamp` says which files it was. Raises Broken."""
        self.kept = kept
        self.base = base
        self.stamp = stamp
        self.carried = StoredFields(kept.shelf()) if kept.carrying or kept.renewed else None
        self.parts = self.parts_as_of(None)

    def parts_as_of(self, second: int | None) -> IndexReader:
        """Return what is to be searched, without what was written after a second. Raises Broken."""
        base, carried = self.base, self.carried
        found = [LeafReader(base.index, base.memories, 0, self.kept.dead)]
        if carried is not None and carried.count:
            from memtool.index import reader  # only where files changed lately

            texts = reader.unpack_texts(self.kept.overlay())
            found.append(LeafReader(reader.Delta(texts), carried, base.index.count, frozenset()))
        return IndexReader(without_later(found, second))


class Unchanged:
    """A worktree that is as its state says. Raises Broken, as all that reads it may."""

    note = ""

    def __init__(self, held: Held, seen: Changes) -> None:
        self.held = held
        self.seen = seen

    def parts(self, as_of: int | None) -> IndexReader:
        """Return what is to be searched, without what was written after a second."""
        return self.held.parts if as_of is None else self.held.parts_as_of(as_of)

    def problems(self) -> list[Problem]:
        """Return what is wrong with single files and folders."""
        kept, carried = self.held.kept, self.held.carried
        known = self.held.base.memories.problems
        found = [problem for problem in known if problem.path not in kept.renewed]
        found += carried.problems if carried is not None else []
        for own in kept.problems.values():
            found += own
        return found

    def status(self, path: str) -> Stat | None:
        """Return the status that a file has."""
        return self.held.kept.status_of(path)


def open_worktree(
    repository: Repository,
    directory: str,
    categories: Mapping[str, Category],
    as_of: int | None,
    *,
    exact: bool,
) -> StoredCatalog:
    """Open the memories of a worktree that lies on disk as a whole."""
    key = key_of(repository, directory, categories)
    wanted = OpenRequest(repository, directory, categories, exact, key)
    try:
        view = _looked_at(wanted)
        parts, problems = view.parts(as_of), view.problems()
    except CorruptCache:
        view = _renewed(wanted, None)
        parts, problems = view.parts(as_of), view.problems()

    def renew() -> IndexReader:
        return _renewed(wanted, None).parts(as_of)

    taken = Worktree(repository, directory)
    found = StoredCatalog(taken, parts, problems, view.status, renew, categories)
    found.freshness = EXACT if view.seen.is_exact else DIR_EXACT
    found.notes += filter(None, [view.note])
    return found


def _looked_at(wanted: OpenRequest) -> Unchanged | Refresh:
    """Return the worktree as its state says, or as it differs from that. Raises Broken."""
    taken_ns = time.time_ns()
    held = _still_held(wanted)
    kept = held.kept if held is not None else manifest.load(wanted.repository.git_dir)
    if kept is not None and kept.key != wanted.key:
        kept = None
    if kept is None:
        return _renewed(wanted, Scan(taken_ns, None, None))
    seen = check(wanted.repository.top, wanted.directory, kept, exact=wanted.exact)
    if seen.folders or seen.vanished:
        return _renewed(wanted, Scan(taken_ns, kept, seen))
    return Unchanged(held or _hold(wanted.repository, kept), seen)


def _still_held(wanted: OpenRequest) -> Held | None:
    """Return what an earlier call of this process opened, if these are the same files still."""
    held = _held.get(wanted.repository.git_dir)
    if held is None:
        return None
    place = _place(wanted.repository, held.kept.segment)
    if held.parts.read > MOST_READ or _stamp(wanted.repository, place) != held.stamp:
        return None
    postings.touch(place)
    return held


def _hold(repository: Repository, kept: Manifest) -> Held:
    """Open the segment of a state, for this call and those after it. Raises Broken."""
    stamp = _stamp(repository, _place(repository, kept.segment))
    held = Held(kept, open_base(repository, kept.segment), stamp)
    while len(_held) >= MOST_HELD:
        _held.pop(next(iter(_held)), None)
    _held[repository.git_dir] = held
    return held


def _stamp(repository: Repository, place: str) -> tuple[Stat, ...]:
    """Return what the files of a state and its segment look like; nothing where one is missing."""
    files = [os.path.join(place, name) for name in (stored_fields.FILE, *postings.FILES)]
    try:
        return tuple(
            manifest.stat_of(os.stat(path))
            for path in (os.path.join(repository.git_dir, manifest.FILE), *files)
        )
    except OSError:
        return ()


def _renewed(wanted: OpenRequest, look: Scan | None) -> Refresh:
    _held.pop(wanted.repository.git_dir, None)

    return refresh(wanted, look)


def without_later(parts: list[LeafReader], as_of: int | None) -> list[LeafReader]:
    """Return the parts without what was written after a second."""
    if as_of is not None:
        for part in parts:
            part.dead |= part.shelf.later_than(as_of)
    return parts


def open_base(repository: Repository, name: str) -> BaseSegment:
    """Map a segment with its memories, and say that it is in use. Raises Broken."""
    place = _place(repository, name)
    try:
        memories = StoredFields(postings.mapped(os.path.join(place, stored_fields.FILE)))
    except (OSError, ValueError) as error:
        raise CorruptCache(str(error)) from None
    found = BaseSegment(name, Segment.open(place), memories)
    postings.touch(place)
    return found


def _place(repository: Repository, name: str) -> str:
    return os.path.join(repository.cache_dir, postings.FOLDER, name)


def key_of(repository: Repository, directory: str, categories: Mapping[str, Category]) -> str:
    """Return what a state and a segment depend on beside the files: settings and versions."""
    from _blake2 import blake2b  # hashlib would import OpenSSL

    parts = [postings.FORMAT, TOKENIZER, sys.byteorder, directory]
    parts += [repository.object_format]
    parts += [f"{name} {categories[name].ttl_days}" for name in sorted(categories)]
    text = "\0".join(parts).encode(errors="surrogatepass")
    return str(blake2b(text, digest_size=16).hexdigest())


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

    def __init__(self, kept: Manifest | None) -> None:
        """Take those of a state. Raises Broken."""
        self.old = StoredFields(kept.shelf()) if kept else None
        self.texts = reader.unpack_texts(kept.overlay()) if kept else []
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


class Refresh:
    """A worktree that is read again where it differs from its state, or as a whole."""

    def __init__(self, wanted: OpenRequest, look: Scan | None) -> None:
        self.wanted = wanted
        self.repository = wanted.repository
        self.categories = wanted.categories
        self.folder = os.path.join(self.repository.cache_dir, postings.FOLDER)
        self.blob_id = blob_hash(self.repository.object_format)
        self.note = ""
        self.dead: set[int] = set()
        self.renewed: set[str] = set()
        self.taken_ns = look.taken_ns if look is not None else time.time_ns()
        self.state = look.kept if look is not None else None
        self._shelved: tuple[list[int], bytes] | None = None

    def take(self, kept: Manifest, seen: Changes) -> None:
        """Read what differs from the state. Raises Broken."""
        self.base = open_base(self.repository, kept.segment)
        self.carried = Carried(kept)
        self.seen = seen
        self.dead = set(kept.dead)
        for folder, name, slot, data in self.unread():
            path = f"{folder.path}/{name}"
            if not isinstance(data, bytes):
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

    def unread(self) -> Iterator[tuple[manifest.Folder, str, int | None, bytes | Problem]]:
        """Yield the files that are to be read: folder, name, slot that it had, and bytes."""
        rows = self.seen.unread
        for folder, name, _slot in rows:
            if folder.problems:
                path = f"{folder.path}/{name}"
                folder.problems = tuple(one for one in folder.problems if one.path != path)
        from memtool.store import snapshot  # only where files changed

        top = self.repository.top
        for folder, name, slot in rows:
            yield folder, name, slot, snapshot.read_file(top, f"{folder.path}/{name}")

    def known(self, path: str, oid: str, slot: int | None) -> int | None:
        """Return the slot that holds a file as it is now, None where none does. Raises Broken."""
        if slot is not None and slot < NO_MEMORY:
            same = self.carried.record(NO_MEMORY - 1 - slot)
            if same.oid == oid:
                return slot
        number = slot if slot is not None and slot >= 0 else self.base.number_at(path)
        return number if number is not None and self.base.memories.oid(number) == oid else None

    def read(self, path: str, oid: str, data: bytes) -> int:
        """Read a memory and return its slot."""
        from memtool.memory import document  # only where files changed

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
            raw = stored_fields.pack(memories, self.categories, self.kept_problems())
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
        found: list[tuple[manifest.Folder, str, str, str, bytes]] = []
        self.blob_id = tree.blob_hash(self.repository.object_format)  # quicker, once imported
        for folder, name, _slot, data in self.unread():
            if not isinstance(data, bytes):
                folder.problems = (*folder.problems, data)
            else:
                path = f"{folder.path}/{name}"
                found.append((folder, name, path, self.blob_id(data), data))
        identity = [(path, oid) for _folder, _name, path, oid, _data in found]

        name_ = name_of([*identity, ("", self.wanted.key)])
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

    def kept_base(self, name: str) -> BaseSegment | None:
        """Return a segment that is kept, None where there is none that can be used."""
        try:
            return open_base(self.repository, name)
        except CorruptCache:
            return None

    def make(
        self, name: str, files: Iterable[tuple[str, str, bytes]], *, is_damaged: bool
    ) -> list[str]:
        """Build a segment of files and keep it. Return the paths of its memories in order."""
        from memtool.index import build  # bm25s and numpy: 15 interpreter starts

        records, problems = [], []
        from memtool.memory import document

        read = document.Reader(self.categories).read
        for path, oid, data in files:
            try:
                records.append(Record(read(data, path), path, oid))
            except document.Unreadable as error:
                problems.extend(error.problems)
        contents = build.build(Document(record.path, fields(record)) for record in records)
        contents[stored_fields.FILE] = stored_fields.pack(records, self.categories, problems)
        place = os.path.join(self.folder, name)
        self.note = store_segment(self.folder, place, contents, is_damaged=is_damaged)
        views = {file: memoryview(data) for file, data in contents.items()}
        self.base = BaseSegment(name, Segment(views), StoredFields(views[stored_fields.FILE]))
        return sorted(record.path for record in records)

    def parts(self, as_of: int | None) -> IndexReader:
        """Return what is to be searched, without what was written after a second."""
        carried, living = self.carried, self.living()
        found = [LeafReader(self.base.index, self.base.memories, 0, frozenset(self.dead))]
        if living:
            if carried.fresh or len(living) < len(carried.texts):
                numbers, raw = self.shelved()
                beside = StoredFields(memoryview(raw))
            else:
                assert carried.old is not None
                numbers, beside = living, carried.old
            index = Delta([carried.texts[number] for number in numbers])
            found.append(LeafReader(index, beside, self.base.index.count, frozenset()))
        return IndexReader(without_later(found, as_of))

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
        certain_ns = self.taken_ns - manifest.DOUBT_NS
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
        from memtool.index import manifest

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
        data = manifest.pack(
            (
                self.wanted.key,
                self.base.name,
                tuple(sorted(self.dead)),
                tuple(sorted(self.renewed)),
            ),
            self.taken_ns,
            folders,
            unchanged,
            (shelved, reader.pack_texts(texts)),
        )
        self.note = self.note or manifest.store(self.repository.git_dir, data)


def refresh(wanted: OpenRequest, look: Scan | None) -> Refresh:
    """Return the worktree as it is now, by what a look found; without one nothing is trusted."""
    found = Refresh(wanted, look)
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
            found = Refresh(wanted, None)
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


KEPT = 4
"""Segments that stay: those last used, since branches and worktrees share a cache."""

TEMP_PREFIX = ".tmp-"

STALE_S = 3600
"""Age at which what a killed writer left behind is swept away."""


class Index:
    """A segment with the means to make it anew, should its files turn out to be damaged.

    `note` is what the user should hear about the cache, empty if there is nothing to say.
    """

    def __init__(
        self,
        held: Segment,
        rebuild: Callable[[], tuple[Segment, str]] | None,
        note: str = "",
    ) -> None:
        self.segment = held
        self.note = note
        self._rebuild = rebuild

    @property
    def count(self) -> int:
        return self.segment.count

    def search(
        self,
        asked: Question,
        limit: int,
        allowed: Callable[[int], bool] | None = None,
        statistics: Statistics | None = None,
    ) -> list[Hit]:
        """Return the best documents; see `Segment.search`."""
        return self.whole(lambda held: held.search(asked, limit, allowed, statistics))

    def key(self, number: int) -> str:
        """Return the key of a document."""
        return self.whole(lambda held: held.key(number))

    def df(self, term: str) -> int:
        """Return the number of documents that hold a term."""
        return self.whole(lambda held: held.df(term))

    def whole(self, ask: Callable[[Segment], Answer]) -> Answer:
        """Ask the segment; where it is damaged, build it anew and ask again."""
        try:
            return ask(self.segment)
        except CorruptCache:
            if self._rebuild is None:
                raise
            (self.segment, self.note), self._rebuild = self._rebuild(), None
        return ask(self.segment)


def open_index(
    cache_dir: str,
    documents: Callable[[], Iterable[Document]],
    identity: Sequence[tuple[str, str]],
) -> Index:
    """Return the index of a set of documents, from the cache or built now.

    `documents` is called only to build. `identity` says which ones they are: the key of each and
    an id of its content, in any order.
    """
    folder = os.path.join(cache_dir, postings.FOLDER)
    path = os.path.join(folder, name_of(identity))

    def build(*, is_damaged: bool) -> tuple[Segment, str]:
        from memtool.index import build  # bm25s and numpy: 15 times an interpreter start

        files = build.build(documents())
        note = store_segment(folder, path, files, is_damaged=is_damaged)
        return Segment({name: memoryview(data) for name, data in files.items()}), note

    try:
        found = Segment.open(path)
    except CorruptCache:
        made, note = build(is_damaged=False)
        return Index(made, None, note)
    postings.touch(path)
    return Index(found, lambda: build(is_damaged=True))


def built_index(documents: Iterable[Document]) -> Index:
    """Return the index of documents, built now and kept nowhere."""
    from memtool.index import build

    files = build.build(documents)
    return Index(Segment({name: memoryview(data) for name, data in files.items()}), None)


def name_of(identity: Iterable[tuple[str, str]]) -> str:
    """Return the name of the segment of these documents, 32 hexadecimal digits.

    Keys and ids are paths and hashes: they hold no NUL, which parts them here.
    """
    from _blake2 import blake2b  # hashlib would import OpenSSL

    settings = (postings.FORMAT, TOKENIZER, sys.byteorder, str(scoring.K1), str(scoring.B))
    parts = [*settings, *(part for pair in sorted(identity) for part in pair)]
    return blake2b("\0".join(parts).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def store_segment(folder: str, path: str, files: Mapping[str, bytes], *, is_damaged: bool) -> str:
    """Put the files of a segment in their place; return a note if that is impossible.

    `is_damaged` says that what stands there now must go, although it can be opened.
    """
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        temp = os.path.join(folder, f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}")
        os.mkdir(temp, 0o700)
        try:
            for name, data in files.items():
                with open(os.path.join(temp, name), "wb") as file:
                    file.write(data)
            _put_in_place(temp, path, is_damaged=is_damaged)
        finally:
            _remove(temp)  # nothing is there after a rename
        _sweep(folder, path)
    except OSError as error:
        return f"the search index is not kept: {folder}: {os.strerror(error.errno or 0)}"
    return ""


def _put_in_place(temp: str, path: str, *, is_damaged: bool) -> None:
    """Rename a new segment to its name. Who comes second leaves what is there, if it is whole."""
    from contextlib import suppress

    with suppress(OSError):  # a directory that is not empty stands there
        os.rename(temp, path)
        return
    if not is_damaged:
        with suppress(CorruptCache):
            Segment.open(path)
            return
    aside = f"{temp}-damaged"
    try:
        os.rename(path, aside)
        os.rename(temp, path)
    finally:
        _remove(aside)


def _sweep(folder: str, newest: str) -> None:
    """Remove segments that were not used lately, and what killed writers left."""
    from contextlib import suppress

    ages = []
    now = os.stat(newest).st_mtime  # just made; another process may differ by a little
    for name in sorted(os.listdir(folder)):
        place = os.path.join(folder, name)
        with suppress(OSError):
            ages.append((os.stat(place).st_mtime, place))
    ages.sort(reverse=True)
    kept = 0
    for used, place in ages:
        if os.path.basename(place).startswith(TEMP_PREFIX):
            if used < now - STALE_S:
                _remove(place)
        elif place != newest:
            kept += 1
            if kept >= KEPT:
                _remove(place)


def _remove(place: str) -> None:
    """Remove a directory with its files, as far as possible; readers keep what they mapped."""
    from contextlib import suppress

    with suppress(OSError):
        if not os.path.isdir(place):
            os.unlink(place)
            return
        for name in os.listdir(place):
            os.unlink(os.path.join(place, name))
        os.rmdir(place)


def open_catalog(
    repository: Repository,
    directory: str,
    categories: Mapping[str, Category],
    *,
    at: str | None = None,
    as_of: int | None = None,
    exact: bool = False,
    cached: bool = True,
) -> Catalog:
    """Open the memories of the worktree, or of a revision (`:index` is git's index).

    `directory` is the memory directory, relative to the top. `as_of` leaves out what was written
    after that second. `exact` checks every file, however many there are; `cached=False` reads
    everything anew and writes nothing, which gives the same answers.

    Raises:
        MemtoolError: the revision does not exist, or a bare repository is asked for its worktree.
    """
    if at is None and cached and not repository.is_bare and _is_ordinary(repository, directory):
        return open_worktree(repository, directory, categories, as_of, exact=exact)
    from memtool.store import snapshot

    if at == ":index":
        taken = snapshot.of_index(repository, directory)
    elif at is not None:
        taken = snapshot.of_commit(repository, directory, at)
    else:
        taken = snapshot.of_worktree(repository, directory)
    return Catalog(Tree(taken, categories, as_of), is_cached=cached)


def _is_ordinary(repository: Repository, directory: str) -> bool:
    """Tell whether the files on disk are all there is: no sparse checkout, no link above them."""
    if os.path.exists(os.path.join(repository.git_dir, "info", "sparse-checkout")):
        return False
    place = repository.top
    for name in directory.split("/"):
        place = f"{place}/{name}"
        if os.path.islink(place):
            return False
    return True
