"""The index of a worktree: opened as it is stored, refreshed where files changed, or built.

    catalog = index.open(context)                       # the worktree
    catalog = index.open(context, "HEAD")               # a revision, or `:index`
    catalog = index.open(context, as_of="2026-02-22")   # without what came later
    catalog.freshness                                   # "exact" or "dir-exact"
    catalog.verify(records)                             # are these files still the same

Where nothing changed, the manifest and the segment that it names are mapped, every folder is looked
at, and that is all. A process that asks again finds both mapped still, as long as their files are
the same. Where few files changed, they are read, and searched beside the segment; where several
did, the manifest is written again with them. Where very many did, or no manifest can be used, every
file is read, and their segment taken from the cache or built. The index of a revision is a segment
too, opened or built when it is searched.

`<cache>/index/<hash>/` is one segment with its stored fields, named by its content, that never
changes, so readers need no lock. A cache that is missing, of another version or not writable costs
time, never the answer. One that turns out to be damaged raises `CorruptCache`: who called drops it
(`drop`) and asks again.
"""

from __future__ import annotations

import os
import sys
import time

from memtool import redaction
from memtool.index import manifest, postings, scoring, stored_fields
from memtool.index.analyzer import TOKENIZER
from memtool.index.manifest import NEVER, NO_MEMORY, Manifest, check, is_ordinary
from memtool.index.postings import Segment
from memtool.index.reader import (
    DIR_EXACT,
    EXACT,
    Catalog,
    Delta,
    IndexReader,
    LeafReader,
    StoredCatalog,
    Worktree,
    pack_texts,
    unpack_texts,
)
from memtool.index.scoring import Document
from memtool.index.stored_fields import StoredFields, fields
from memtool.store import cache, snapshot
from memtool.store.cache import CorruptCache
from memtool.store.snapshot import Record, Tree, blob_hash
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.index.manifest import Changes, Folder, Stat
    from memtool.memory.schema import Problem
    from memtool.memory.three_way import Divided
    from memtool.redaction.mask import Mask
    from memtool.store.config import Config
    from memtool.store.context import Context
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot


MOST_SEGMENTS = 4
"""Segments that stay: those last used, since branches and worktrees share a cache."""
MOST_HELD = 4
"""Worktrees that one process keeps open."""
MOST_READ = 2_000
"""Memories that are kept as they were read, about 10 MB; then all of it is opened again."""
LEAST_KEPT = 64
"""So many changes may be kept next to any segment ..."""
MOST_KEPT = 1_000
"""... so many next to one of a few thousand memories: searching them reads all of them ..."""
KEPT_SHARE = 10
"""... and next to a larger one, as a share of its memories: one in so many."""
FEW_READ = 2
"""So many memories may be read at every start before the manifest is written again with them ...

Sooner, if nothing in it would be doubtful: writing it costs about what reading one of them does.
"""
READ_SHARE = 20_000
"""... and one more for each so many files, since the manifest of many takes longer to write."""

ALLOWING = ("redaction.allow_emails", "redaction.allow_domains", "redaction.allow")
"""The settings that allow what would be masked."""

_held: dict[str, Held] = {}
"""What is kept open, by git directory."""
_bases: dict[str, tuple[tuple[Stat, ...], BaseSegment]] = {}
"""Segments that are kept open, by place, with the status of their files."""


class BaseSegment(Value):
    """The segment that holds most memories, and their stored fields, numbered alike."""

    name: str
    index: Segment
    memories: StoredFields


class Held:
    """A manifest, the segment that it names, and both as one collection, to be searched again."""

    note = ""

    def __init__(self, kept: Manifest, base: BaseSegment, stamp: tuple[Stat, ...]) -> None:
        """Take what was opened; `stamp` says which files it was. Raises CorruptCache."""
        self.kept = kept
        self.base = base
        self.stamp = stamp
        self.carried = StoredFields(kept.memories()) if kept.carrying else None
        self.all_parts = self.parts(None)

    def parts(self, second: int | None) -> IndexReader:
        """Return what is to be searched, without what was written later. Raises CorruptCache."""
        if second is None and "all_parts" in self.__dict__:
            return self.all_parts
        base, carried = self.base, self.carried
        found = [LeafReader(base.index, base.memories, 0, self.kept.dead)]
        if carried is not None and carried.count:
            texts = unpack_texts(self.kept.texts())
            found.append(LeafReader(Delta(texts), carried, base.index.count, frozenset()))
        return IndexReader(_without_later(found, second))

    def problems(self) -> list[Problem]:
        """Return what is wrong with single files and folders."""
        return [problem for own in self.kept.problems.values() for problem in own]

    def status(self, path: str) -> Stat | None:
        """Return the status that a file has."""
        return self.kept.status_of(path)


class Refresh:
    """A worktree that is read again where it differs from its manifest, or as a whole."""

    note = ""

    def __init__(
        self, context: Context, key: str, kept: Manifest | None, seen: Changes | None
    ) -> None:
        """Read what differs from a manifest, or, without one, every file. Raises CorruptCache."""
        self.repository = context.repository
        self.directory = context.directory
        self.settings = context.settings
        self.categories = context.settings.categories
        self.key = key
        self.blob_id = blob_hash(self.repository.object_format)
        self.kept = kept
        self.taken_ns = time.time_ns() if seen is None else seen.taken_ns
        self.dead: set[int] = set()
        self.old: StoredFields | None = None
        """The memories in no segment that the manifest carries; `fresh` were read just now."""
        self.fresh: list[Record] = []
        self.texts: list[bytes] = []
        self._stored: tuple[list[int], bytes] | None = None
        if kept is None or seen is None:
            self.build()
            return
        self.seen = seen
        self.take(kept)
        if len(self.dead) + len(self.living()) > most_changes(self.base.index.count):
            self.build()

    def take(self, kept: Manifest) -> None:
        """Read what differs from the manifest. Raises CorruptCache."""
        self.base = open_base(self.repository.cache_dir, kept.segment)
        self.old, self.texts = StoredFields(kept.memories()), unpack_texts(kept.texts())
        self.dead = set(kept.dead)
        for folder, name, slot, data in self.unread():
            path = f"{folder.path}/{name}"
            oid = self.blob_id(data)
            found = self.known(path, oid, slot)
            if found is None:
                record = self.read(folder, path, oid, data)
                found = NO_MEMORY if record is None else self.carry(record)
            else:
                self.seen.dropped.discard(found)
                self.dead.discard(found)
            folder.files[name] = (folder.files[name][0], found)
        self.dead.update(slot for slot in self.seen.dropped if slot >= 0)

    def unread(self) -> list[tuple[Folder, str, int | None, bytes]]:
        """Return the files that are to be read: folder, name, slot that it had, and bytes."""
        found = []
        ends = snapshot.LineEnds(self.repository, self.directory)
        paths = [f"{folder.path}/{name}" for folder, name, _slot in self.seen.unread]
        ignored = snapshot.ignored(self.repository, self.directory, paths)
        for folder, name, slot in self.seen.unread:
            path = f"{folder.path}/{name}"
            if folder.problems:
                folder.problems = tuple(one for one in folder.problems if one.path != path)
            if path in ignored:
                folder.problems = (*folder.problems, snapshot.not_reviewed(path))
                folder.files[name] = (NEVER, NO_MEMORY)
                continue
            data = ends.read_file(path)
            if isinstance(data, bytes):
                found.append((folder, name, slot, data))
                both = self.divided(path, data) if b"<<<<<<< " in data else None
                if both is not None:
                    folder.problems = (*folder.problems, self.mask.problem(both.problem))
            else:
                folder.problems = (*folder.problems, data)
        return found

    def known(self, path: str, oid: str, slot: int | None) -> int | None:
        """Return the slot that holds a file as it is now, else None. Raises CorruptCache."""
        if slot is not None and slot < NO_MEMORY and self.carried(NO_MEMORY - 1 - slot).oid == oid:
            return slot
        memories = self.base.memories
        number = slot if slot is not None and slot >= 0 else memories.number_at(path)
        return number if number is not None and memories.oid(number) == oid else None

    def read(self, folder: Folder, path: str, oid: str, data: bytes) -> Record | None:
        """Return a file as a memory; what is wrong with one that is none goes to its folder."""
        from memtool.memory import document  # only where files changed

        try:
            memory = document.read(data, path, self.categories)
        except document.Unreadable as error:
            both = self.divided(path, data)
            if both is None:
                folder.problems = (*folder.problems, *map(self.mask.problem, error.problems))
                return None
            memory = both.memory
        return Record(self.mask.read(memory, data, oid), path, oid)

    def divided(self, path: str, data: bytes) -> Divided | None:
        """Return a file whose merge is unfinished as both sides have it, where that is known."""
        from memtool.memory import three_way  # few files are ever in a merge

        return three_way.divided(data, path, self.categories)

    @cached_property
    def mask(self) -> Mask:
        """What takes the secrets out of what is read: nothing of the index holds one."""
        from memtool.redaction.mask import Mask  # `re`: only where files changed

        return Mask(self.settings, _clean(self.repository, self.key))

    def carry(self, record: Record) -> int:
        """Add a memory to those in no segment and return its slot."""
        self.fresh.append(record)
        document = Document(record.path, fields(record))
        self.texts.append(scoring.searchable(document, self.settings.text(LANGUAGE_KEY))[1])
        return NO_MEMORY - len(self.texts)

    def carried(self, number: int) -> Record:
        """Return a memory that is in no segment. Raises CorruptCache."""
        count = self.old.count if self.old else 0
        if self.old and number < count:
            return self.old.record(number)
        return self.fresh[number - count]

    def living(self) -> list[int]:
        """Return the memories in no segment that count, by their numbers among the carried."""
        gone = {NO_MEMORY - 1 - slot for slot in self.seen.dropped if slot < NO_MEMORY}
        return [number for number in range(len(self.texts)) if number not in gone]

    def stored(self) -> tuple[list[int], bytes]:
        """Return the numbers of these by path, and their stored fields, which are made once."""
        if self._stored is None:
            numbers = sorted(self.living(), key=lambda number: self.carried(number).path)
            memories = [self.carried(number) for number in numbers]
            self._stored = numbers, stored_fields.pack(memories, self.categories)
        return self._stored

    def build(self) -> None:
        """Read every file, and take the segment of them or build it."""
        self.kept, self.old, self.fresh, self.texts = None, None, [], []
        self._stored = None
        self.dead = set()
        self.taken_ns = time.time_ns()
        self.seen = check(self.repository.top, self.directory, None, exact=True)
        found = [
            (folder, name, f"{folder.path}/{name}", self.blob_id(data), data)
            for folder, name, _slot, data in self.unread()
        ]
        name_ = name_of(self.key, [(path, oid) for _folder, _name, path, oid, _data in found])
        base = _stored_base(self.repository.cache_dir, name_)
        stored = base.memories.paths() if base is not None else frozenset()
        records = [
            record
            for folder, _name, path, oid, data in found
            if path not in stored and (record := self.read(folder, path, oid, data)) is not None
        ]
        if base is None:
            cache_dir = self.repository.cache_dir
            base, self.note = make_base(cache_dir, name_, records, self.settings)
        self.base = base
        numbers = {base.memories.path(number): number for number in range(base.memories.count)}
        for folder, name, path, _oid, _data in found:
            folder.files[name] = (folder.files[name][0], numbers.get(path, NO_MEMORY))

    def parts(self, as_of: int | None) -> IndexReader:
        """Return what is to be searched, without what was written after a second."""
        found = [LeafReader(self.base.index, self.base.memories, 0, frozenset(self.dead))]
        if self.living():
            numbers, raw = self.stored()
            index = Delta([self.texts[number] for number in numbers])
            beside = StoredFields(memoryview(raw))
            found.append(LeafReader(index, beside, self.base.index.count, frozenset()))
        return IndexReader(_without_later(found, as_of))

    def problems(self) -> list[Problem]:
        """Return what is wrong with single files and folders."""
        found = [problem for folder in self.seen.folders.values() for problem in folder.problems]
        if self.kept is not None:
            for path, own in self.kept.problems.items():
                if path not in self.seen.folders and path not in self.seen.vanished:
                    found += own
        return found

    def status(self, path: str) -> Stat | None:
        """Return the status that a file had when it was looked at."""
        place, _slash, name = path.rpartition("/")
        folder = self.seen.folders.get(place)
        if folder is not None:
            return folder.files[name][0] if name in folder.files else None
        return self.kept.status_of(path) if self.kept is not None else None

    def is_worth_keeping(self) -> bool:
        """Tell whether a new manifest saves later starts more than it costs now."""
        if self.kept is None:
            return True
        if len(self.fresh) >= FEW_READ + self.kept.files // READ_SHARE:
            return True
        certain_ns = self.taken_ns - manifest.DOUBT_NS
        return all(
            folder.status[2] <= certain_ns
            and all(status[2] <= certain_ns for status, _slot in folder.files.values())
            for folder in self.seen.folders.values()
        )

    def keep(self) -> None:
        """Write the manifest of the worktree as it was seen."""
        numbers, stored = self.stored()
        slots = {NO_MEMORY - 1 - n: NO_MEMORY - 1 - new for new, n in enumerate(numbers)}
        folders = dict(self.seen.folders)
        kept = self.kept
        if kept is not None:
            for path in kept.carrying:
                number = kept.place_of(path)
                if number is not None and path not in folders and path not in self.seen.vanished:
                    folders[path] = kept.folder(number)
        for folder in folders.values():
            for name, (status, slot) in folder.files.items():
                if slot < NO_MEMORY:
                    folder.files[name] = (status, slots[slot])
        unchanged = None
        if kept is not None:
            places = [
                place
                for place, path in enumerate(kept.folders)
                if path not in folders and path not in self.seen.vanished
            ]
            unchanged = (kept, places)
        data = manifest.pack(
            (self.key, self.base.name, tuple(sorted(self.dead))),
            self.taken_ns,
            folders,
            unchanged,
            (stored, pack_texts([self.texts[number] for number in numbers])),
        )
        self.note = manifest.store(self.repository.own_dir, data)


def open(  # noqa: A001  # read as index.open
    context: Context, at: str | None = None, as_of: str | None = None, *, exact: bool = False
) -> Catalog:
    """Open the memories of the worktree or a revision, to read only what is asked for.

    `exact` checks every file for a change, however many there are. What the user should hear,
    such as files that are no memories, goes to the notes of the context.

    Raises:
        MemtoolError: there is no memory directory, or it belongs to another tool.
    """
    second = context.moment(as_of) if as_of is not None else None
    opened = context.opened if second is None else None
    kept = None if opened is None else opened.get(at or "")
    if isinstance(kept, Catalog) and (kept.freshness == EXACT or not exact):
        return kept
    if at is None and not context.repository.is_bare:
        context.refuse_absent()  # before anything is stored in the git directory
    found = open_catalog(context, at, second, exact=exact)
    if at is None and not found.by_id:
        context.refuse_foreign()
    context.note_problems(found)
    _note_withheld(context, found)
    context.notes.extend(note for note in found.notes if note not in context.notes)
    if opened is not None:
        opened[at or ""] = found
    return found


def _note_withheld(context: Context, found: Catalog) -> None:
    """Note how many memories are shown masked, once."""
    paths = found.withheld()
    if paths:
        count = "1 memory holds" if len(paths) == 1 else f"{len(paths)} memories hold"
        note = (
            f"{count} a secret or personal data, which is masked here; "
            f"memtool redact {paths[0]} takes it out of the file"
        )
        context.notes += [note] if note not in context.notes else []


def open_catalog(
    context: Context, at: str | None = None, as_of: int | None = None, *, exact: bool = False
) -> Catalog:
    """Open the memories of the worktree, or of a revision (`:index` is git's index).

    What was written after the second `as_of` is left out. `exact` checks every file, however many
    there are. Where the context is not cached, everything is read and nothing written, which gives
    the same answers.

    Raises:
        MemtoolError: the revision does not exist, or a bare repository is asked for its worktree.
        CorruptCache: the index is damaged, as asking the catalog may raise, too.
    """
    repository, settings = context.repository, context.settings
    key = f"{key_of(repository, context.directory, settings)} {mask_key(settings)}"
    is_worktree = at is None and not repository.is_bare
    is_narrow = is_worktree and context.narrowed is not None
    if (
        is_worktree
        and not is_narrow
        and context.is_cached
        and is_ordinary(repository, context.directory)
    ):
        return _open_worktree(context, key, as_of, exact=exact)
    from memtool.redaction.mask import Mask  # `re`: only where a whole tree is read

    clean = context.clean or (_clean(repository, key) if context.is_cached else frozenset())
    taken = context.snapshot(at)
    if context.left_out:
        seen = tuple(one for one in taken.entries if one.path not in context.left_out)
        taken = taken.replace(entries=seen)
    if is_narrow:
        few = context.narrowed or ()
        taken = taken.replace(entries=tuple(one for one in taken.entries if one.path in few))
    known = _known(repository, key, taken) if context.is_cached else {}
    tree = Tree(taken, settings.categories, as_of, Mask(settings, clean), known)
    cache_dir = repository.cache_dir if context.is_cached and not is_narrow else ""
    return Catalog(tree, lambda: _open_tree(cache_dir, key, tree.records, settings))


def last_reader(repository: Repository, directory: str, settings: Config) -> IndexReader | None:
    """Return the index of a worktree as it was last refreshed; None where there is none.

    No file is looked at, so who asks compares paths and blobs (see `IndexReader.stamps`).
    """
    kept = manifest.load(repository.own_dir)
    key = key_of(repository, directory, settings)
    if kept is None or kept.key.partition(" ")[0] != key:  # whatever is masked in it
        return None
    try:
        return Held(kept, open_base(repository.cache_dir, kept.segment), ()).all_parts
    except CorruptCache:
        return None


def drop(repository: Repository) -> bool:
    """Remove what is stored of the index; tell whether it is gone."""
    _held.pop(repository.own_dir, None)
    _bases.clear()
    places = (
        os.path.join(repository.own_dir, manifest.FILE),
        os.path.join(repository.cache_dir, postings.FOLDER),
    )
    for place in places:
        cache.drop(place)
    return not any(map(os.path.lexists, places))


def _open_tree(
    cache_dir: str, key: str, records: Sequence[Record], settings: Config
) -> IndexReader:
    """Return the index of records, from the cache or built now; it is kept where there is one."""
    name = name_of(key, [(record.path, record.oid) for record in records])
    base, note = _stored_base(cache_dir, name) if cache_dir else None, ""
    if base is None:
        base, note = make_base(cache_dir, name, records, settings)
    else:
        cache.note_event(cache.HIT)
    return IndexReader([LeafReader(base.index, base.memories, 0, frozenset())], note)


def _open_worktree(context: Context, key: str, second: int | None, *, exact: bool) -> StoredCatalog:
    """Open the memories of a worktree that lies on disk as a whole."""
    try:
        view, is_exact = _looked_at(context, key, exact=exact)
        parts = view.parts(second)
    except CorruptCache:  # as where another process has swept the segment away
        drop(context.repository)
        view, is_exact = _looked_at(context, key, exact=exact)
        parts = view.parts(second)
    taken = Worktree(context.repository, context.directory)
    categories = context.settings.categories
    found = StoredCatalog(taken, parts, view.problems(), view.status, categories)
    found.freshness = EXACT if is_exact else DIR_EXACT
    found.notes += filter(None, [view.note])
    return found


def _looked_at(context: Context, key: str, *, exact: bool) -> tuple[Held | Refresh, bool]:
    """Return the worktree as its manifest says, or as it differs from that.

    It comes with whether every file was checked.
    """
    repository = context.repository
    held = _still_held(repository)
    kept = held.kept if held is not None else manifest.load(repository.own_dir)
    seen = None
    if kept is not None and kept.key == key:
        seen = check(repository.top, context.directory, kept, exact=exact)
        if not (seen.folders or seen.vanished):
            cache.note_event(cache.HIT)
            return held or _hold(repository, kept), seen.is_exact
    _held.pop(repository.own_dir, None)
    cache.note_event(cache.READ)
    found = Refresh(context, key, kept if seen is not None else None, seen)
    if not found.note and found.is_worth_keeping():
        found.keep()
    return found, found.seen.is_exact


def _still_held(repository: Repository) -> Held | None:
    """Return what an earlier call of this process opened, if these are the same files still."""
    held = _held.get(repository.own_dir)
    if held is None or held.all_parts.read > MOST_READ:
        return None
    place = _place(repository.cache_dir, held.kept.segment)
    if _stamp(repository, place) != held.stamp:
        return None
    cache.touch(place)
    return held


def _hold(repository: Repository, kept: Manifest) -> Held:
    """Open the segment of a manifest, for this call and those after it. Raises CorruptCache."""
    stamp = _stamp(repository, _place(repository.cache_dir, kept.segment))
    held = Held(kept, open_base(repository.cache_dir, kept.segment), stamp)
    while len(_held) >= MOST_HELD:
        _held.pop(next(iter(_held)), None)
    _held[repository.own_dir] = held
    return held


def _stamp(repository: Repository, place: str) -> tuple[Stat, ...]:
    """Return the status of the files of a manifest and its segment; nothing if one is missing."""
    return _status_of(place, os.path.join(repository.own_dir, manifest.FILE))


def _status_of(place: str, *others: str) -> tuple[Stat, ...]:
    own = (os.path.join(place, name) for name in (stored_fields.FILE, *postings.FILES))
    try:
        return tuple(manifest.stat_of(os.stat(path)) for path in (*others, *own))
    except OSError:
        return ()


def _without_later(parts: list[LeafReader], as_of: int | None) -> list[LeafReader]:
    """Return the parts without what was written after a second."""
    if as_of is not None:
        for part in parts:
            part.dead |= part.shelf.later_than(as_of)
    return parts


def open_base(cache_dir: str, name: str) -> BaseSegment:
    """Map a segment with its memories, and note that it is in use. Raises CorruptCache.

    It never changes, so this process opens it once, as long as its files are the same.
    """
    place = _place(cache_dir, name)
    stamp = _status_of(place)
    known, base = _bases.get(place, ((), None))
    if base is None or not stamp or stamp != known:
        base = _mapped_base(place)
        while len(_bases) >= MOST_HELD:
            _bases.pop(next(iter(_bases)), None)
        _bases[place] = stamp, base
    cache.touch(place)
    return base


def _stored_base(cache_dir: str, name: str) -> BaseSegment | None:
    try:
        return open_base(cache_dir, name)
    except CorruptCache:
        return None


def _mapped_base(place: str) -> BaseSegment:
    memories = StoredFields(cache.mapped(os.path.join(place, stored_fields.FILE)))
    index = Segment.open(place)
    if index.count != memories.count:
        raise CorruptCache("the index is not of these memories")
    return BaseSegment(os.path.basename(place), index, memories)


def make_base(
    cache_dir: str, name: str, records: Iterable[Record], settings: Config
) -> tuple[BaseSegment, str]:
    """Build the segment of records and keep it, unless there is no cache.

    Return it with a note, empty if there is nothing to say.
    """
    from memtool.index import build  # bm25s and numpy: 15 interpreter starts

    cache.note_event(cache.BUILT)
    ordered = sorted(records, key=lambda record: record.path)
    documents = (Document(record.path, fields(record)) for record in ordered)
    files = build.build(documents, settings.text(LANGUAGE_KEY))
    files[stored_fields.FILE] = stored_fields.pack(ordered, settings.categories)
    note = ""
    if cache_dir:
        folder = os.path.join(cache_dir, postings.FOLDER)
        note = cache.write_folder(folder, name, files, MOST_SEGMENTS, _is_whole)
    views = {file: memoryview(data) for file, data in files.items()}
    base = BaseSegment(name, Segment(views), StoredFields(views[stored_fields.FILE]))
    return base, f"the search index is not kept: {note}" if note else ""


def _is_whole(place: str) -> bool:
    try:
        _mapped_base(place)
    except CorruptCache:
        return False
    return True


def _place(cache_dir: str, name: str) -> str:
    return os.path.join(cache_dir, postings.FOLDER, name)


LANGUAGE_KEY = "search.language"


def key_of(repository: Repository, directory: str, settings: Config) -> str:
    """Return what a manifest and a segment depend on beside the files: settings and versions."""
    parts = [postings.FORMAT, TOKENIZER, sys.byteorder, str(scoring.K1), str(scoring.B)]
    parts += [directory, repository.object_format, settings.text(LANGUAGE_KEY)]
    parts += [f"{row.name} {row.ttl_days} {row.temporal_class}"
              for _name, row in sorted(settings.categories.items())]  # fmt: skip
    return cache.digest(*parts, size=16)


def mask_key(settings: Config) -> str:
    """Return what masks depend on: the detectors, and what the settings allow to stand."""
    allowed = (sorted(settings.texts(name)) for name in ALLOWING)
    return cache.digest(redaction.version(), *(repr(texts) for texts in allowed))


def _last(repository: Repository, key: str) -> tuple[Manifest, StoredFields] | None:
    """Return the manifest with a key, and the memories of its segment; None without them."""
    kept = manifest.load(repository.own_dir)
    if kept is None or kept.key != key:
        return None
    try:
        return kept, open_base(repository.cache_dir, kept.segment).memories
    except CorruptCache:
        return None


def _clean(repository: Repository, key: str) -> frozenset[str]:
    """Return the blobs that the last index with a key was made of and holds unmasked."""
    found = _last(repository, key)
    return found[1].clean() if found else frozenset()


def _known(repository: Repository, key: str, taken: Snapshot) -> dict[str, Record]:
    """Return by path the files of a commit that the last index with a key holds, and no fault."""
    found = _last(repository, key)
    if found is None:
        return {}
    kept, memories = found
    faulty = {problem.path for own in kept.problems.values() for problem in own}
    wanted = {one.path: one.oid for one in taken.entries if one.oid and one.path not in faulty}
    return memories.at(wanted, kept.dead)


def name_of(key: str, identity: Iterable[tuple[str, str]]) -> str:
    """Return the name of the segment of some files, each a path and an id of its content."""
    return cache.digest(key, *(part for pair in sorted(identity) for part in pair), size=16)


def most_changes(count: int) -> int:
    """Return how many changes may be kept next to a segment of so many memories."""
    return max(LEAST_KEPT, count // KEPT_SHARE, min(MOST_KEPT, count // 4))
