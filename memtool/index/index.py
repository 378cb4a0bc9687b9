"""The index of a worktree: opened as it is stored, updated where files changed, or built.

    catalog = index.open(context)                       # the worktree
    catalog = index.open(context, "HEAD")               # a revision, or `:index`
    catalog = index.open(context, as_of="2026-02-22")   # without what came later
    catalog.freshness                                   # "exact" or "dir-exact"
    catalog.verify(records)                             # are these files still the same

A worktree has one database (see `schema`) in its own git directory. Where nothing changed, every
folder is looked at, and that is all. Files that changed are read, and their rows replaced. Where
very many did, or there is no database, every file is read and the database built. A new worktree
begins with a copy of another one's. The index of a revision is a database, too, named by its
content and built when it is searched.

A database that is missing, of another version or not writable costs time, never the answer. One
that turns out to be damaged raises `CorruptCache`: who called drops it (`drop`) and asks again.
"""

from __future__ import annotations

import os
import sys

from memtool import redaction
from memtool.index import memories, postings, scoring, stamps
from memtool.index.analyzer import TOKENIZER
from memtool.index.memories import Entry, MemoryRows
from memtool.index.postings import PostingRows
from memtool.index.reader import (
    DIR_EXACT,
    EXACT,
    Catalog,
    IndexReader,
    LeafReader,
    StoredCatalog,
    Worktree,
)
from memtool.index.schema import SCHEMA
from memtool.index.scoring import Document
from memtool.index.stamps import NEVER, NO_MEMORY, Changes, Stamps, check, is_ordinary
from memtool.index.text import fields
from memtool.store import cache, snapshot
from memtool.store.cache import CorruptCache
from memtool.store.snapshot import Record, blob_hash, read_tree
from memtool.store.state import LOCKED, State, thread_number
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from memtool.index.postings import Posting
    from memtool.index.stamps import Folder, Stat
    from memtool.memory.fields import Category
    from memtool.memory.schema import Problem
    from memtool.memory.three_way import Divided
    from memtool.redaction.mask import Mask
    from memtool.store.config import Config
    from memtool.store.context import Context
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot
    from memtool.store.state import Rows

    Filed = tuple[Record, Document]
    """A memory, and what is searched of it."""

FOLDER = os.path.join("memtool", "index")
"""Where the database of a worktree is, below the worktree's own git directory."""
TREES = "trees"
"""Where those of revisions are, below the cache directory that all worktrees share."""
MOST_TREES = 4
"""Databases of revisions that stay: those last used."""
MOST_OPEN = 4
"""Worktrees that one process keeps open."""
MOST_READ = 2_000
"""Memories that are kept as they were read, about 10 MB; then all of it is opened again."""
LEAST_CHANGED = 64
"""So many changes are always written into the rows that there are ..."""
CHANGED_SHARE = 4
"""... and of a larger index one in so many; building it anew is faster from there on."""
FEW_ASKED = 200
"""For so many files the index is asked one by one whether it has them."""
_WAIT_S = 0.15
"""How long an answer waits for another process that writes; then it goes on with a copy."""
LANGUAGE_KEY = "search.language"
ALLOWING = ("redaction.allow_emails", "redaction.allow_domains", "redaction.allow")
"""The settings that allow what would be masked."""

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
        self.all_parts = IndexReader([LeafReader(index, self.memories)], state.note)

    @cached_property
    def stamps(self) -> Stamps:
        """The files as they were when the index was written."""
        return Stamps(self.rows)

    def parts(self, as_of: int | None) -> IndexReader:
        """Return what is to be searched, without what was written after a second."""
        dead = set() if as_of is None else self.memories.later_than(as_of)
        if not dead:
            return self.all_parts
        (part,) = self.all_parts.parts
        return IndexReader([LeafReader(part.index, part.shelf, 0, frozenset(dead))])

    def is_unchanged(self) -> bool:
        """Begin a new snapshot; return whether it has the same rows. Raises CorruptCache."""
        if not self.state.is_current() or self.all_parts.read > MOST_READ:
            return False
        self.rows.__exit__()
        self.rows.__enter__()
        return MemoryRows(self.rows).meta("change") == self.change

    def close(self) -> None:
        """End the snapshot, and close the database."""
        self.rows.__exit__()
        self.state.close()


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
        if len(self.seen.unread) > FEW_ASKED:
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
        return Record(self._mask.read(memory, data, oid), path, oid)

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
        added = documents(record for _folder, _name, record in self.added)
        language = settings.text(LANGUAGE_KEY)
        numbers = []
        if self.is_news:
            numbers = update(rows, self.removed, added, settings.categories, language)
        for (folder, name, _record), number in zip(self.added, numbers, strict=True):
            folder.files[name] = (folder.files[name][0], number)
        self.write_stamps(rows)

    def build(self, rows: Rows, mask: str) -> None:
        """Write an index anew, over whatever the rows are."""
        found = self.records()
        settings = self.context.settings
        filed = documents(record for _folder, _name, record in found)
        fill(rows, filed, settings.categories, settings.text(LANGUAGE_KEY))
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

    def status(self, path: str) -> Stat | None:
        """Return the status that a file had when it was looked at."""
        place, _slash, name = path.rpartition("/")
        folder = self.seen.folders.get(place)
        if folder is not None:
            return folder.files[name][0] if name in folder.files else None
        return self.seen.stamps.status_of(path) if self.seen.stamps is not None else None


def documents(records: Iterable[Record]) -> list[Filed]:
    """Return memories with what is searched of each."""
    return [(record, Document(record.path, fields(record))) for record in records]


def fill(
    rows: Rows, filed: Sequence[Filed], categories: Mapping[str, Category], language: str
) -> None:
    """Write an index anew, its memories numbered in the order given; bm25s scores them."""
    from memtool.index import build  # bm25s and numpy: 15 interpreter starts

    cache.note_event(cache.BUILT)
    for table in SCHEMA.tables:
        rows.remove(table.name)
    built = build.build((document for _record, document in filed), language)
    bodies = [record.memory.body.encode(errors="surrogatepass") for record, _document in filed]
    dictionaries = {
        "body": memories.dictionary(memories.common_words(bodies)),
        "text": memories.dictionary(built.words),
    }
    rows.put_all("dictionary", dictionaries.items())
    entries = [
        Entry(number, record, text, *lengths)
        for number, ((record, _document), text, lengths) in enumerate(
            zip(filed, built.texts, built.lengths, strict=True)
        )
    ]
    memories.store(rows, entries, categories, dictionaries)
    rows.put_all("posting", built.postings)
    count, length = len(entries), sum(entry.length for entry in entries)
    rows.put_all("meta", (("basis_count", count), ("basis_length", length)))
    rows.put_all("meta", _totals(count, length, sum(one.head_length for one in entries), count))
    ids: dict[str, int] = {}
    for record, _document in filed:
        ids[record.id] = ids.get(record.id, 0) + 1
    memories.mark_twins(rows, (id_ for id_, count in ids.items() if count > 1))


def update(
    rows: Rows,
    removed: Iterable[int],
    added: Sequence[Filed],
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
    rows.put_all("meta", _totals(count, length, head_length, old.size + len(entries)))
    return [entry.n for entry in entries]


def _totals(count: int, length: int, head_length: int, size: int) -> list[tuple[str, int | str]]:
    """Return the rows of `meta` that say how much there is, and name this state of it."""
    return [
        ("count", count),
        ("length", length),
        ("head_length", head_length),
        ("next", size),
        ("version", os.urandom(8).hex()),
        ("change", os.urandom(8).hex()),
    ]


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
    is_worktree = at is None and not repository.is_bare
    is_narrow = is_worktree and context.narrowed is not None
    if (
        is_worktree
        and not is_narrow
        and context.is_cached
        and is_ordinary(repository, context.directory)
    ):
        return _open_worktree(context, as_of, exact=exact)
    from memtool.redaction.mask import Mask  # `re`: only where a whole tree is read

    key = key_of(repository, context.directory, settings)
    last = _last(context, key) if context.is_cached else None
    clean = context.clean or (_clean(last.memories) if last is not None else frozenset())
    taken = context.snapshot(at)
    if context.left_out:
        seen = tuple(one for one in taken.entries if one.path not in context.left_out)
        taken = taken.replace(entries=seen)
    if is_narrow:
        few = context.narrowed or ()
        taken = taken.replace(entries=tuple(one for one in taken.entries if one.path in few))
    known = _known(last, taken) if last is not None else {}
    tree = read_tree(taken, settings.categories, as_of, Mask(settings, clean), known)
    whole = f"{key} {mask_key(settings)}"
    return Catalog(tree, lambda: _open_tree(context, whole, tree.records, last))


def last_reader(repository: Repository, directory: str, settings: Config) -> IndexReader | None:
    """Return the index of a worktree as it was last refreshed; None where there is none.

    No file is looked at, so who asks compares paths and blobs (see `IndexReader.stamps`).
    """
    try:
        found = _opened(place_of(repository), key_of(repository, directory, settings))
    except CorruptCache:
        return None
    return None if found is None else found.all_parts


def drop(repository: Repository) -> bool:
    """Remove what is stored of the index; tell whether it is gone."""
    for key in [key for key in _open if key[0] == repository.own_dir]:
        _open.pop(key)
    places = place_of(repository), os.path.join(repository.cache_dir, TREES)
    for place in places:
        cache.drop(place)
    return not any(map(os.path.lexists, places))


def is_built(context: Context) -> bool:
    """Tell whether there is an index of the worktree, which may be out of date."""
    key = key_of(context.repository, context.directory, context.settings)
    return State.last_used(place_of(context.repository), SCHEMA, key=key) > 0


def count_to_build(context: Context) -> int:
    """Return how many files the next answer reads because it must build the index; else 0."""
    repository, directory = context.repository, context.directory
    if repository.is_bare or not context.is_cached or not is_ordinary(repository, directory):
        return 0
    found = _last(context, key_of(repository, directory, context.settings))
    if found is None:
        return len(check(repository.top, directory, None, exact=True).unread)
    try:
        seen = check(repository.top, directory, found.stamps, exact=False)
        return found.stamps.files if seen.count() > most_changes(found.memories.count) else 0
    except CorruptCache:
        return found.stamps.files


def place_of(repository: Repository) -> str:
    """Return the folder of a worktree's index."""
    return os.path.join(repository.own_dir, FOLDER)


def _opened(place: str, key: str) -> OpenIndex | None:
    """Open the index in a folder, None if there is none. Raises CorruptCache."""
    state = State.open(place, SCHEMA, key=key)
    return None if state is None else OpenIndex(state)


def in_memory(records: Sequence[Record], settings: Config, first: int = 0) -> LeafReader:
    """Return an index of few memories that ends with the process. Numbers begin at `first`."""
    filed, language = documents(records), settings.text(LANGUAGE_KEY)
    terms = sum(len(scoring.searchable(document, language)[0]) for _record, document in filed)

    def write(rows: Rows) -> None:
        rows.put_all("meta", (("basis_count", len(filed)), ("basis_length", terms)))
        rows.put_all("meta", _totals(0, 0, 0, 0))
        update(rows, (), filed, settings.categories, language)

    rows = State.in_memory(SCHEMA, write).read().__enter__()
    shelf = MemoryRows(rows)
    return LeafReader(PostingRows(rows, shelf), shelf, first)


def _open_tree(
    context: Context, key: str, records: Sequence[Record], last: OpenIndex | None
) -> IndexReader:
    """Return the index of records, from the cache or built now; it is kept where there is one.

    It begins with a copy of the worktree's, if that differs little.
    """
    settings = context.settings
    categories, language = settings.categories, settings.text(LANGUAGE_KEY)

    def build(rows: Rows) -> None:
        ordered = documents(sorted(records, key=lambda record: record.path))
        fill(rows, ordered, categories, language)

    if not context.is_cached or context.narrowed is not None:
        return OpenIndex(State.in_memory(SCHEMA, build)).all_parts
    place = os.path.join(context.repository.cache_dir, TREES)
    name = name_of(key, [(record.path, record.oid) for record in records])
    try:
        found = _opened(place, name)
    except CorruptCache:
        cache.drop(place)
        found = None
    if found is not None:
        cache.note_event(cache.HIT)
        return found.all_parts
    known = {(path, oid): n for n, path, oid in last.memories.blobs()} if last else {}
    added = [record for record in records if (record.path, record.oid) not in known]
    removed = set(known.values())
    removed.difference_update(known.get((one.path, one.oid), -1) for one in records)
    model = last if len(removed) + len(added) <= most_changes(len(known)) else None

    def adapt(rows: Rows) -> None:
        update(rows, removed, documents(added), categories, language)

    state = State.rebuilt(
        place,
        SCHEMA,
        adapt if model else build,
        key=name,
        copy_of=model.state if model else None,
        most=MOST_TREES,
    )
    found = OpenIndex(state)
    if state.note:
        found.all_parts.note = f"the search index is not kept: {state.note}"
    return found.all_parts


def _open_worktree(context: Context, as_of: int | None, *, exact: bool) -> StoredCatalog:
    """Open the memories of a worktree that is on disk as a whole."""
    repository, settings = context.repository, context.settings
    key = key_of(repository, context.directory, settings)
    try:
        found, refresh = _looked_at(context, key, exact=exact)
    except CorruptCache:
        drop(repository)
        found, refresh = _looked_at(context, key, exact=exact)
    catalog = StoredCatalog(
        Worktree(repository, context.directory),
        found.parts(as_of),
        refresh.problems(),
        refresh.status,
        settings.categories,
    )
    catalog.freshness = EXACT if refresh.seen.is_exact else DIR_EXACT
    if found.state.note:
        catalog.notes.append(f"the search index is not kept: {found.state.note}")
    return catalog


def _looked_at(context: Context, key: str, *, exact: bool) -> tuple[OpenIndex, Refresh]:
    """Return the index of a worktree as the files are, and how they differed from it."""
    repository, directory = context.repository, context.directory
    mask = mask_key(context.settings)
    found = _held(repository, key) or _opened(place_of(repository), key)
    if found is None or found.memories.meta("mask") != mask:
        found, refresh = _built(context, key, mask, None, found)
    else:
        seen = check(repository.top, directory, found.stamps, exact=exact)
        if seen.count() > most_changes(found.memories.count):
            found, refresh = _built(context, key, mask, found.memories, found)
        else:
            found, refresh = _up_to_date(context, key, found, seen)
    _hold(repository, key, found)
    return found, refresh


def _up_to_date(
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
        opened = _opened(os.path.dirname(state.path), key)
        if opened is None:
            return _looked_at(context, key, exact=seen.is_exact)
        refresh.seen.stamps = opened.stamps
        return opened, refresh
    if not state.is_current():  # another process has built a newer one
        return _looked_at(context, key, exact=seen.is_exact)
    if why_not:
        state = state.copied()
        state.note = "" if why_not.endswith(LOCKED) else why_not
        state.write(write)
    opened = OpenIndex(state)
    refresh.seen.stamps = opened.stamps
    return opened, refresh


def _built(
    context: Context, key: str, mask: str, known: MemoryRows | None, unfit: OpenIndex | None
) -> tuple[OpenIndex, Refresh]:
    """Return an index that was built of all files, and what was read of them.

    Those that are `known` are not read again; `unfit` is the index that it replaces.
    """
    repository, directory = context.repository, context.directory
    model = None if unfit else _sibling(repository, key, mask)
    source = known if model is None else model.memories
    refresh: Refresh | None = None

    def write(rows: Rows) -> None:
        nonlocal refresh
        seen = check(repository.top, directory, None, exact=True)
        refresh = Refresh(context, seen, source, _clean(source) if source else ())
        if model is not None:
            refresh.removed = set(model.memories.numbers()) - refresh.kept()
            changed = len(refresh.removed) + len(refresh.added)
            if changed <= most_changes(model.memories.count):
                for path in model.stamps.folders:
                    stamps.forget(rows, path)
                refresh.write(rows)
                return
        refresh.build(rows, mask)

    state = State.rebuilt(
        place_of(repository),
        SCHEMA,
        write,
        key=key,
        instead_of=unfit.state if unfit else None,
        copy_of=model.state if model else None,
    )
    found = OpenIndex(state)
    if refresh is None:  # another process has built it meanwhile
        seen = check(repository.top, directory, found.stamps, exact=True)
        return _up_to_date(context, key, found, seen)
    return found, refresh


def _sibling(repository: Repository, key: str, mask: str) -> OpenIndex | None:
    """Return the index of another worktree of the repository, the one that was last used."""
    common = os.path.dirname(repository.cache_dir)
    try:
        names = os.listdir(os.path.join(common, "worktrees"))
    except OSError:
        return None
    homes = [common, *(os.path.join(common, "worktrees", name) for name in sorted(names))]
    places = [os.path.join(home, FOLDER) for home in homes if home != repository.own_dir]
    for place in sorted(places, key=lambda place: -State.last_used(place, SCHEMA, key=key)):
        try:
            found = _opened(place, key)
        except CorruptCache:
            continue
        if found is not None and found.memories.meta("mask") == mask:
            return found
    return None


def _held(repository: Repository, key: str) -> OpenIndex | None:
    """Return what an earlier call of this process opened, if its rows are the same still."""
    found = _open.get(_holder(repository, key))
    return found if found is not None and found.is_unchanged() else None


def _hold(repository: Repository, key: str, found: OpenIndex) -> None:
    """Keep an index open for later calls of this process."""
    if found.state.path:
        while len(_open) >= MOST_OPEN:
            _open.pop(next(iter(_open)), None)
        _open[_holder(repository, key)] = found


def _holder(repository: Repository, key: str) -> tuple[str, str, int, int]:
    return repository.own_dir, key, os.getpid(), thread_number()


def _last(context: Context, key: str) -> OpenIndex | None:
    """Return the index of the worktree as it was last written, None without one that fits."""
    try:
        found = _held(context.repository, key) or _opened(place_of(context.repository), key)
        fits = found is not None and found.memories.meta("mask") == mask_key(context.settings)
    except CorruptCache:
        return None
    return found if fits else None


def _clean(known: MemoryRows) -> frozenset[str]:
    """Return the blobs of the memories in which nothing is masked."""
    withheld = known.withheld
    return frozenset(oid for number, _path, oid in known.blobs() if number not in withheld)


def _known(last: OpenIndex, taken: Snapshot) -> dict[str, Record]:
    """Return by path the files of a commit that an index has, and in which nothing is wrong."""
    faulty = {one.path for own in last.stamps.problems.values() for one in own}
    wanted = {one.path: one.oid for one in taken.entries if one.oid and one.path not in faulty}
    numbers = {
        path: number for number, path, oid in last.memories.blobs() if wanted.get(path) == oid
    }
    last.memories.load(numbers.values())
    return {path: last.memories.record(number) for path, number in numbers.items()}


def key_of(repository: Repository, directory: str, settings: Config) -> str:
    """Return what an index depends on beside the files: settings and versions."""
    parts = [TOKENIZER, sys.byteorder, str(scoring.K1), str(scoring.B)]
    parts += [directory, repository.object_format, settings.text(LANGUAGE_KEY)]
    parts += [
        f"{row.name} {row.ttl_days} {row.temporal_class}"
        for _name, row in sorted(settings.categories.items())
    ]
    return cache.digest(*parts, size=16)


def mask_key(settings: Config) -> str:
    """Return what masks depend on: the detectors, and what the settings allow to stand."""
    allowed = (sorted(settings.texts(name)) for name in ALLOWING)
    return cache.digest(redaction.version(), *(repr(texts) for texts in allowed))


def name_of(key: str, identity: Iterable[tuple[str, str]]) -> str:
    """Return the name of the index of some files, each a path and an id of its content."""
    return cache.digest(key, *(part for pair in sorted(identity) for part in pair), size=16)


def most_changes(count: int) -> int:
    """Return how many changes may be written into an index of so many memories."""
    return max(LEAST_CHANGED, count // CHANGED_SHARE)
