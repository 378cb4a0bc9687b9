"""Near-duplicates: does another memory of the tree say the same, in the same words or nearly so?

The same words (by `ids.fingerprint`) are an exact twin. A near twin shares so many terms that one
of the two says nothing new; the same sentence with another value, name or sign is none, that is a
conflict. A memory that names its twin in a relation was written knowing it, and may stay.

Candidates share rare terms. Memories that the search index holds are found by its postings;
those that it does not hold, as in a clone without one, are read from git in one batch and searched
for the longest words. Which memory is which follows from path and blob id, so an index that is out
of date costs time, never the answer. Candidates are ranked by the words that they share, and the
best are compared in full.
"""

from __future__ import annotations

import os

from memtool.memory import likeness as measure
from memtool.memory.changes import stem
from memtool.memory.fields import DEFAULT_CATEGORIES, RELATIONS
from memtool.memory.lineage import FileRow, is_replaced, row_of
from memtool.memory.memory import Memory
from memtool.memory.schema import Problem
from memtool.memory.visibility import OUT_OF_USE, is_alive
from memtool.search.comparison import ComparedText, content_of, likeness_of
from memtool.search.word_join import (
    RARE_WORDS,
    TREE,
    WordNumbers,
    joined,
    shared_words,
    words_in,
    words_of,
)
from memtool.store.snapshot import is_memory_path
from memtool.store.tree import Record
from memtool.value import Value, batches, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from memtool.index.reader import IndexReader
    from memtool.memory.fields import Category
    from memtool.search.conflicts import Conflict
    from memtool.store.config import Config
    from memtool.store.repository import Repository
    from memtool.store.tree import Tree
    from memtool.store.versions import Stamp

THRESHOLD_KEY = "check.duplicate_threshold"
"""The setting: least `likeness` of a near twin."""

VERIFIED = 8
"""Candidates that are compared in full: those most alike, then by path."""
MOST_HOLDING = 500
"""A term that more memories of the index hold joins none, unless a text has no rarer one."""
ALL_WORDS = 2.0
"""The score of what surely says it, above that of shared words."""
MOST_NAMESAKES = 50
"""Memories with all terms of a title that are looked at for that title."""
BATCH = 500
"""Blobs that are in memory at once."""


class SimilarMemory(Value):
    """A memory that may say the same; `is_exact` where it does so in the same words."""

    record: Record
    is_exact: bool


PART = "a part of"
TITLED = "something under the same title as"


class Twin(Value):
    """The memory that says it already. `likeness` is 1 for an exact one.

    `how` ends a sentence about another memory: `it says HOW ID`.
    """

    record: Record
    is_exact: bool
    likeness: float
    how: str = "the same as"

    @property
    def is_like(self) -> bool:
        """Whether all of both says the same; else one holds the other, or has its title."""
        return self.how not in (PART, TITLED)


class _Join:
    """Joins some memories with files that nobody has indexed, by their longest words or a title."""

    def __init__(self, judged: Sequence[Record]) -> None:
        self.holding: dict[bytes, list[int]] = {}
        self.titled: dict[str, list[int]] = {}
        self.least = []
        """By memory how many of its words a file has at least."""
        for at, record in enumerate(judged):
            words = sorted(words_in(record.memory), key=lambda word: (-len(word), word))
            for word in words[:RARE_WORDS]:
                self.holding.setdefault(word, []).append(at)
            self.least.append(_least(len(words[:RARE_WORDS])))
            self.titled.setdefault(measure.key(record.memory.title), []).append(at)
        self.found: list[list[tuple[int, Stamp]]] = [[] for _record in judged]
        """By memory how many of its words a file has, negative, and its path and blob."""

    def add(self, stamp: Stamp, data: bytes) -> None:
        """Look at a file."""
        title = _title_in(data)
        shared = dict.fromkeys(self.titled.get(title, ()) if title else (), RARE_WORDS)
        for word in words_of(data) & self.holding.keys():
            for at in self.holding[word]:
                shared[at] = shared.get(at, 0) + 1
        for at, number in shared.items():
            if number >= self.least[at]:
                self.found[at].append((-number, stamp))

    def best(self, at: int) -> list[Stamp]:
        """Return those that have most of the words of a memory, as path and blob."""
        return [stamp for _shared, stamp in sorted(self.found[at])[: TREE.most]]


def _title_in(data: bytes) -> str:
    """Return the title in the head of a file as it is compared, empty if it has none there."""
    at = data.find(b"\ntitle: ")
    end = data.find(b"\n", at + 1)
    return measure.key(data[at + 8 : end].decode(errors="replace")) if at >= 0 else ""


def _least(rare: int) -> int:
    """Return how many of some rare words a candidate has at least."""
    return min(rare, max(1, rare // 4))


class IndexedMemories:
    """Those memories of a tree that the search index holds, by their numbers there."""

    def __init__(self, reader: IndexReader, gone: Collection[int], language: str) -> None:
        """Take the index, and the numbers in it that are not of this tree."""
        self.reader = reader
        self.gone = gone
        self.language = language

    def called(self, id_: str) -> list[Record]:
        """Return the memories with an id. Raises CorruptCache."""
        numbers = self.reader.numbers_of(id_)
        return [self.reader.record(number) for number in numbers if number not in self.gone]

    @cached_property
    def superseding(self) -> dict[str, list[int]]:
        """The memories that supersede an id, or propose to; a deleted one does not."""
        found: dict[str, list[int]] = {}
        for part in self.reader.parts:
            for local, _id, _is_proposed, olds in part.memories.links:
                for old in olds:
                    found.setdefault(old, []).append(part.first + local)
        return found

    def newer(self, id_: str) -> list[Record]:
        """Return the memories that supersede an id. Raises CorruptCache."""
        numbers = self.superseding.get(id_, ())
        return [self.reader.record(number) for number in numbers if number not in self.gone]

    def like(self, memory: Memory) -> list[Record]:
        """Return the memories that share most rare terms with one. Raises CorruptCache."""
        by_df = sorted((self.reader.df(term), term) for term in content_of(memory, self.language))
        held = [(df, term) for df, term in by_df if df]
        rare = ([one for one in held if one[0] <= MOST_HOLDING] or held)[:RARE_WORDS]
        shared: dict[int, int] = {}
        for _df, term in rare:
            for number in self.reader.holding_any((term,)):
                shared[number] = shared.get(number, 0) + 1
        least = _least(len(rare))
        found = [(-n, number) for number, n in shared.items() if n >= least]
        numbers = [number for _n, number in sorted(found) if number not in self.gone]
        numbers = list(dict.fromkeys([*numbers[: TREE.most], *self._namesakes(memory)]))
        return [self.reader.record(number) for number in numbers]

    def _namesakes(self, memory: Memory) -> list[int]:
        """Return the memories that have all terms of a title. Raises CorruptCache."""
        titled = content_of(Memory({"title": memory.title}, ""), self.language)
        by_df = sorted((self.reader.df(term), term) for term in titled)
        if not by_df or not by_df[0][0]:
            return []
        holding: set[int] | None = None
        for _df, term in by_df:
            numbers = set(self.reader.holding_any((term,)))
            holding = numbers if holding is None else holding & numbers
        return sorted((holding or set()) - set(self.gone))[:MOST_NAMESAKES]


class Neighbours:
    """The memories of one tree that a new one may repeat, and what supersedes what among them."""

    def __init__(
        self,
        known: Iterable[Record],
        loose: Iterable[Stamp] = (),
        read: Callable[[Sequence[Stamp]], Iterable[bytes | None]] = lambda _stamps: (),
        categories: Collection[str] = DEFAULT_CATEGORIES,
        indexed: IndexedMemories | None = None,
    ) -> None:
        """Take memories that were read, those that are to be read, and those in the index.

        The blob of a file of the worktree is empty.
        """
        self._known = list(known)
        self._loose = sorted(loose)
        self._read = read
        self._categories = categories
        self._indexed = indexed
        self._rows: list[FileRow] | None = None
        self._likely: dict[Stamp, Sequence[Record]] = {}
        self._found: dict[Stamp, Sequence[SimilarMemory]] = {}

    def called(self, id_: str) -> list[FileRow]:
        """Return the rows of the memories with an id."""
        rows = self._by_id.get(id_, [])
        if self._indexed is None:
            return rows
        return rows + [row_of(one.memory, one.path) for one in self._indexed.called(id_)]

    def newer(self, id_: str) -> list[FileRow]:
        """Return the rows of what supersedes an id, or proposes to."""
        rows = self._superseding.get(id_, [])
        if self._indexed is None:
            return rows
        return rows + [row_of(one.memory, one.path) for one in self._indexed.newer(id_)]

    def of(self, judged: Sequence[Record]) -> list[Sequence[SimilarMemory]]:
        """Return for each memory those that it may repeat, the exact ones first.

        They are heads in use. None is the memory itself, another file with its id, what it
        replaces, or what replaced it.
        """
        rest = [record for record in judged if _stamp(record) not in self._found]
        for record, near in zip(rest, self._likely_of(rest), strict=True):
            self._found[_stamp(record)] = self._best(record, near)
        return [self._found[_stamp(record)] for record in judged]

    def _likely_of(self, judged: Sequence[Record]) -> list[list[Record]]:
        """Return for each memory those that may be like it."""
        unseen = [record for record in judged if _stamp(record) not in self._likely]
        if unseen and self._loose:
            self._scan(unseen)
        found = [[*self._likely.get(_stamp(record), ())] for record in judged]
        if self._known:
            for likely, near in zip(found, self._near_known(judged), strict=True):
                likely.extend(near)
        if self._indexed is not None:
            for record, likely in zip(judged, found, strict=True):
                likely.extend(self._indexed.like(record.memory))
        return found

    def _near_known(self, judged: Sequence[Record]) -> Iterator[list[Record]]:
        """Yield for each memory those that were read and may be like it, or have its title."""
        places = {_stamp(record): at for at, record in enumerate(self._known)}
        texts = [*self._known, *(record for record in judged if _stamp(record) not in places)]
        places = {_stamp(record): at for at, record in enumerate(texts)}
        numbers = WordNumbers()
        words = {at: numbers.of(record.memory) for at, record in enumerate(texts)}
        titled: dict[str, list[int]] = {}
        for at, one in enumerate(self._known):
            titled.setdefault(measure.key(one.memory.title), []).append(at)
        wanted = [places[_stamp(record)] for record in judged]
        for record, (_at, near) in zip(judged, joined(words, TREE, wanted), strict=True):
            namesakes = titled.get(measure.key(record.memory.title), [])[:MOST_NAMESAKES]
            others = dict.fromkeys([*near, *namesakes])
            yield [self._known[at] for at in others if at < len(self._known)]

    def _best(self, judged: Record, likely: Iterable[Record]) -> list[SimilarMemory]:
        """Return the best of some candidates: those that share most words, then by path."""
        from memtool.memory import ids  # most memories are like no other

        words, same = words_in(judged.memory), ids.fingerprint(judged.memory)
        scores = []
        for record in likely:
            memory = record.memory
            if not (
                memory.status in OUT_OF_USE
                or record.path == judged.path
                or memory.id == judged.memory.id
                or memory.id in judged.memory.supersedes
            ):
                theirs = words_in(memory)
                score = shared_words(words, theirs)
                is_said = words <= theirs and measure.is_said_by(judged.memory, memory)
                if is_said or measure.has_title_of(judged.memory, memory):
                    score = ALL_WORDS + (is_said and ids.fingerprint(memory) == same)
                if score and not (
                    is_replaced(memory.id, self.newer) or memory.id in self._heirs(judged.id)
                ):
                    scores.append((-score, record.path, record))
        best = [record for _score, _path, record in sorted(scores, key=lambda one: one[:2])]
        found = [SimilarMemory(one, ids.fingerprint(one.memory) == same) for one in best[:VERIFIED]]
        return sorted(found, key=lambda one: (not one.is_exact, one.record.path))

    def _heirs(self, id_: str) -> set[str]:
        """Return the ids of all that took the place of a memory, over any number of steps."""
        found: set[str] = set()
        ahead = [id_]
        while ahead:
            new = {row.id for row in self.newer(ahead.pop())} - found
            found |= new
            ahead += new
        return found

    @cached_property
    def _by_id(self) -> dict[str, list[FileRow]]:
        """The rows by id, but for those in the index."""
        found: dict[str, list[FileRow]] = {}
        for row in self._unindexed:
            found.setdefault(row.id, []).append(row)
        return found

    @cached_property
    def _superseding(self) -> dict[str, list[FileRow]]:
        """The rows of what supersedes an id, but for those in the index."""
        found: dict[str, list[FileRow]] = {}
        for row in self._unindexed:
            for old in row.supersedes:
                found.setdefault(old, []).append(row)
        return found

    @cached_property
    def _unindexed(self) -> list[FileRow]:
        """The rows of the memories that are in no index; looks at the text of those not read."""
        if self._loose and self._rows is None:
            self._scan(self._known)
        return [*(row_of(one.memory, one.path) for one in self._known), *(self._rows or ())]

    def _scan(self, judged: Sequence[Record]) -> None:
        """Look at every loose memory: its row, and whether it is like one of some memories."""
        join = _Join(judged)
        self._rows = []
        for some in batches(self._loose, BATCH):
            for stamp, data in zip(some, self._read(some), strict=True):
                row = None if data is None else self._row(stamp[0], data)
                if row is not None and data is not None:
                    self._rows.append(row)
                    if row.status not in OUT_OF_USE:
                        join.add(stamp, data)
        for record, found in zip(judged, map(join.best, range(len(judged))), strict=True):
            read = zip(found, self._read(found), strict=True) if found else ()
            self._likely[_stamp(record)] = [
                Record(memory, *stamp)
                for stamp, data in read
                if data and (memory := _parsed(data, self._categories)) is not None
            ]

    def _row(self, path: str, data: bytes) -> FileRow | None:
        """Return the row of a file, None where it is no memory; only what is needed is parsed."""
        head, end, _body = data.partition(b"\n---\n")
        is_plain = end and head.startswith(b"---\n")
        if is_plain and b"\nsupersedes:" not in head and b"\nstatus:" not in head:
            return FileRow(stem(path), path=path, status="confirmed")
        memory = _parsed(data, self._categories)
        return None if memory is None else row_of(memory, path)


def _stamp(record: Record) -> Stamp:
    return record.path, record.oid


def _parsed(data: bytes, categories: Collection[str]) -> Memory | None:
    from memtool.memory import document

    try:
        return document.read(data, "", categories)
    except document.Unreadable:
        return None


_STAGED, _COMMITTED = (b"100644 ", b" 0\t"), (b"100644 blob ", b"\t")
"""What `ls-files --stage` and `ls-tree` print before a blob, and between it and its path."""


def of_index(
    repository: Repository,
    directory: str,
    settings: Config,
    *,
    known: Sequence[Record] = (),
) -> Neighbours:
    """Return the neighbours in what git's index holds; `known` are not read again."""
    listing = repository.git.run("ls-files", "--stage", "-z", "--", directory)
    return _opened(repository, directory, settings, listing, _STAGED, known)


def of_commit(
    repository: Repository, directory: str, settings: Config, revision: str
) -> Neighbours:
    """Return the neighbours in the tree of a commit. Raises MemtoolError where there is none."""
    commit = repository.git.rev(revision)
    listing = repository.git.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", directory)
    return _opened(repository, directory, settings, listing, _COMMITTED)


def of_worktree(repository: Repository, directory: str, settings: Config) -> Neighbours:
    """Return the neighbours among the files on disk."""
    from memtool.store.repository import by_path

    git = repository.git
    listing = git.run("ls-files", "--stage", "-z", "--", directory)
    rows = by_path(git.diff_raw("diff-files", "--no-renames", "--", directory))
    others = git.names("ls-files", "--others", "--exclude-standard", "-z", "--", directory)
    changed = {row.path: row.mode.startswith("100") for row in rows}
    changed |= dict.fromkeys(others, True)
    return _opened(repository, directory, settings, listing, _STAGED, changed=changed)


def _opened(
    repository: Repository,
    directory: str,
    settings: Config,
    listing: bytes,
    form: tuple[bytes, bytes],
    known: Sequence[Record] = (),
    changed: Mapping[str, bool] | None = None,
) -> Neighbours:
    """Return the neighbours among the files that git lists in some form.

    `changed` says of files that differ on disk whether there is one.
    """
    from memtool.index import index

    apart = {os.fsencode(path) for path in changed or ()}
    apart.update(os.fsencode(record.path) for record in known)
    rows = set(listing.split(b"\0")[:-1])
    if apart:
        rows = {row for row in rows if row.partition(b"\t")[2] not in apart}
    indexed = None
    reader = index.last_reader(repository, directory, settings)
    if reader is not None:
        stored: dict[bytes, int] = {}
        before, between = form
        for number, name, blob in reader.stamps():
            stored[b"%b%b%b%b" % (before, blob.hex().encode(), between, name)] = number
        indexed = IndexedMemories(
            reader, {stored[row] for row in stored.keys() - rows}, settings.text("search.language")
        )
        rows -= stored.keys()
    loose = {(path, "") for path, is_file in (changed or {}).items() if is_file}
    for row in rows:
        meta, _tab, raw = row.partition(b"\t")
        mode, *rest = meta.decode().split()
        oid, stage = rest if form is _STAGED else (rest[1], "0")
        if mode.startswith("100") and stage == "0":
            loose.add((os.fsdecode(raw), oid))
    loose = {(path, oid) for path, oid in loose if is_memory_path(path, directory)}

    def read(stamps: Sequence[Stamp]) -> Iterator[bytes | None]:
        from memtool.memory.document import MAX_BYTES
        from memtool.store.files import read_or_none

        oids = [oid for _path, oid in stamps if oid]
        blobs = iter(repository.git.blobs(oids, MAX_BYTES) if oids else ())
        for path, oid in stamps:
            place = os.path.join(repository.top, path)
            yield next(blobs) if oid else read_or_none(place, MAX_BYTES + 1)

    return Neighbours(known, loose, read, settings.categories, indexed)


def twins(
    judged: Sequence[Record],
    neighbours: Neighbours,
    threshold: float,
    now: int,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
) -> list[Twin | None]:
    """Return for each memory the living one that says the same: the most alike, then by id.

    A memory that is itself deleted or archived repeats nothing. A relation that names the near
    twin makes it none.
    """
    known: dict[Stamp, ComparedText] = {}

    def compared(record: Record) -> ComparedText:
        if not record.path or _stamp(record) not in known:
            known[_stamp(record)] = ComparedText(record.memory)
        return known[_stamp(record)]

    def alike(one: Record, other: Record) -> float:
        return likeness_of(compared(one), compared(other), threshold)

    return [
        _best(record, near, alike, threshold, now, categories)
        if near and _lives(record.memory, now, categories)
        else None
        for record, near in zip(judged, neighbours.of(judged), strict=True)
    ]


def _best(
    record: Record,
    near: Sequence[SimilarMemory],
    alike: Callable[[Record, Record], float],
    threshold: float,
    now: int,
    categories: Mapping[str, Category],
) -> Twin | None:
    """Return which of some neighbours says what a memory says."""
    best: Twin | None = None
    for candidate in near:
        other = candidate.record.memory
        if not _lives(other, now, categories):
            continue
        is_related = any(other.id in record.memory.items(key) for key in RELATIONS)
        if is_related and not candidate.is_exact:
            continue
        how, share = _repetition(record, candidate, alike, threshold)
        if share >= threshold:
            twin = Twin(candidate.record, candidate.is_exact, share, how)
            best = twin if best is None else min(best, twin, key=_order)
    return best


def _repetition(
    record: Record,
    candidate: SimilarMemory,
    alike: Callable[[Record, Record], float],
    threshold: float,
) -> tuple[str, float]:
    """Return how far a memory says what another one says, and how that is said."""
    if candidate.is_exact:
        return "the same as", 1.0
    if measure.is_said_by(record.memory, candidate.record.memory):
        return PART, 1.0
    share = alike(record, candidate.record)
    if share < threshold and measure.has_title_of(record.memory, candidate.record.memory):
        return TITLED, threshold
    return f"nearly ({share:.2f}) the same as", share


def _lives(memory: Memory, now: int, categories: Mapping[str, Category]) -> bool:
    """Tell whether a memory is alive and says something itself, as no generated digest does."""
    from memtool.memory.memory import is_generated  # most memories are like no other

    return is_alive(memory, now, categories) and not is_generated(memory)


def _order(twin: Twin) -> tuple[bool, float, str, str]:
    return not twin.is_exact, -twin.likeness, twin.record.id, twin.record.path


def repetitions(
    tree: Tree,
    judged: Sequence[Record],
    neighbours: Neighbours,
    threshold: float,
    now: int,
    categories: Mapping[str, Category],
) -> list[Conflict]:
    """Return which of some living memories say what another one says, as conflicts by ids."""
    from memtool.search import conflicts  # a commit asks for problems alone

    found = {}
    said_by = twins(judged, neighbours, threshold, now, categories)
    for record, twin in zip(judged, said_by, strict=True):
        if twin is not None:
            first, second = sorted((record.id, twin.record.id))
            how = "the same words" if twin.is_exact else f"one says {twin.how} the other"
            accepted = conflicts.is_accepted(tree, (first, second))
            kind = conflicts.DUPLICATE
            found[first, second] = conflicts.Conflict(kind, (first, second), how, accepted, kind)
    return sorted(found.values(), key=conflicts.order)


def problems(
    judged: Sequence[Record],
    neighbours: Neighbours,
    threshold: float,
    now: int,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
    *,
    among: Collection[str] = (),
) -> list[Problem]:
    """Return a problem for each memory that is said already, in their order.

    Of two judged memories that repeat each other only the later one is reported; the paths of
    `among` count as judged for that.
    """
    places = {record.path for record in judged}.union(among)
    found = []
    for record, twin in zip(
        judged, twins(judged, neighbours, threshold, now, categories), strict=True
    ):
        if twin is None or (twin.record.path in places and _age(record) < _age(twin.record)):
            continue
        other = twin.record
        message = f"it says {twin.how} {other.id}, {other.memory.title!r}"
        help_ = hint(other.id, is_exact=twin.is_exact)
        found.append(Problem(record.path, 1, "duplicate", message, help_, id=record.id))
    return found


def hint(id_: str, *, is_exact: bool) -> str:
    """Return what to do about a twin."""
    instead = f"memtool supersede {id_} TITLE replaces it"
    if is_exact:
        return f"leave this one out, or {instead}"
    return f"{instead}; related_to: [{id_}] says that both are meant"


def _age(record: Record) -> tuple[int, str, str]:
    return record.memory.timestamp, record.id, record.path
