"""Near-duplicates: memories that repeat another memory of the tree, word for word or nearly so.

The same words (by `ids.fingerprint`) make an exact duplicate. A near duplicate shares so many terms
that one of the two adds nothing. The same sentence with another value, name or sign is a conflict,
not a duplicate. A memory that names the other in a relation was written knowing it, and may stay.

Candidates share rare terms. Memories in the search index are found by its postings. The others, as
in a clone without an index, are read from git in one batch and searched for the longest words.
Memories are identified by path and blob id, so an outdated index costs time, never the answer.
Candidates are ranked by the words that they share, and the best are compared in full.
"""

from __future__ import annotations

import os

from memtool.memory import likeness as measure
from memtool.memory.changes import id_from_path
from memtool.memory.fields import DEFAULT_CATEGORIES, RELATIONS
from memtool.memory.lineage import FileRow, build_row, is_replaced
from memtool.memory.memory import Memory
from memtool.memory.schema import Problem
from memtool.memory.visibility import OUT_OF_USE, is_alive
from memtool.search.comparison import ComparedText, compute_likeness, content_terms
from memtool.search.word_join import (
    RARE_WORDS,
    TREE,
    WordNumbers,
    find_word_beginnings,
    find_words,
    join_similar,
    measure_shared_words,
)
from memtool.store.snapshot import is_memory_path
from memtool.store.tree import Record
from memtool.value import Value, cached_property, split_batches

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
"""The setting with the minimum `likeness` of a near duplicate."""

MAX_COMPARED = 8
"""Candidates that are compared in full: the most similar ones, then by path."""
MAX_DOCUMENT_FREQUENCY = 500
"""A term in more memories does not find candidates, unless the text has no rarer term."""
CERTAIN_SCORE = 2.0
"""The score of a certain duplicate, above every score of shared words."""
MAX_NAMESAKES = 50
"""Memories with all terms of a title that are compared with that title."""
BATCH_BLOBS = 500
"""Blobs in memory at the same time."""


class SimilarMemory(Value):
    """A possible duplicate; `is_exact` if it has the same words."""

    record: Record
    is_exact: bool


PART_OF = "a part of"
SAME_TITLE_AS = "something under the same title as"


class Duplicate(Value):
    """The memory that is repeated. `likeness` is 1 for an exact duplicate.

    `how` completes a message about the repeating memory: `it says HOW ID`.
    """

    record: Record
    is_exact: bool
    likeness: float
    how: str = "the same as"

    @property
    def is_whole(self) -> bool:
        """Whether both say the same as a whole, not only a part or the title."""
        return self.how not in (PART_OF, SAME_TITLE_AS)


class _WordMatcher:
    """Finds files that are not indexed for some memories, by their longest words or title."""

    def __init__(self, judged: Sequence[Record]) -> None:
        self.memories_by_word: dict[bytes, list[int]] = {}
        self.memories_by_title: dict[str, list[int]] = {}
        self.min_shared = []
        """For each memory, how many of its words a file must have."""
        for at, record in enumerate(judged):
            words = sorted(find_words(record.memory), key=lambda word: (-len(word), word))
            for word in words[:RARE_WORDS]:
                self.memories_by_word.setdefault(word, []).append(at)
            self.min_shared.append(_min_shared_terms(len(words[:RARE_WORDS])))
            self.memories_by_title.setdefault(measure.key(record.memory.title), []).append(at)
        self.matches: list[list[tuple[int, Stamp]]] = [[] for _record in judged]
        """For each memory, the matching files: shared words (negative), and path and blob id."""

    def add(self, stamp: Stamp, data: bytes) -> None:
        title = _read_title(data)
        shared = dict.fromkeys(self.memories_by_title.get(title, ()) if title else (), RARE_WORDS)
        for word in find_word_beginnings(data) & self.memories_by_word.keys():
            for at in self.memories_by_word[word]:
                shared[at] = shared.get(at, 0) + 1
        for at, number in shared.items():
            if number >= self.min_shared[at]:
                self.matches[at].append((-number, stamp))

    def find_best(self, at: int) -> list[Stamp]:
        """Return the files with most words of a memory, as path and blob id."""
        return [stamp for _shared, stamp in sorted(self.matches[at])[: TREE.max_words]]


def _read_title(data: bytes) -> str:
    """Return the title in a file's head, normalized; empty if there is none."""
    at = data.find(b"\ntitle: ")
    end = data.find(b"\n", at + 1)
    return measure.key(data[at + 8 : end].decode(errors="replace")) if at >= 0 else ""


def _min_shared_terms(rare: int) -> int:
    return min(rare, max(1, rare // 4))


class IndexedMemories:
    """The memories of a tree that are in the search index."""

    def __init__(self, reader: IndexReader, gone: Collection[int], language: str) -> None:
        """Take the index, and its numbers that do not belong to this tree."""
        self.reader = reader
        self.gone = gone
        self.language = language

    def find_by_id(self, id_: str) -> list[Record]:
        """Return the memories with an id. Raises CorruptCache."""
        numbers = self.reader.find_by_id(id_)
        return [self.reader.record(number) for number in numbers if number not in self.gone]

    @cached_property
    def superseding(self) -> dict[str, list[int]]:
        """The numbers of the memories that supersede an id, or propose to; not of deleted ones."""
        numbers_by_old: dict[str, list[int]] = {}
        for part in self.reader.parts:
            for local, _id, _is_proposed, olds in part.memories.links:
                for old in olds:
                    numbers_by_old.setdefault(old, []).append(part.first + local)
        return numbers_by_old

    def find_newer(self, id_: str) -> list[Record]:
        """Return the memories that supersede an id. Raises CorruptCache."""
        numbers = self.superseding.get(id_, ())
        return [self.reader.record(number) for number in numbers if number not in self.gone]

    def find_similar(self, memory: Memory) -> list[Record]:
        """Return the memories that share most rare terms with a memory. Raises CorruptCache."""
        by_df = sorted(
            (self.reader.df(term), term) for term in content_terms(memory, self.language)
        )
        indexed_terms = [(df, term) for df, term in by_df if df]
        rare = (
            [pair for pair in indexed_terms if pair[0] <= MAX_DOCUMENT_FREQUENCY] or indexed_terms
        )[:RARE_WORDS]
        shared: dict[int, int] = {}
        for _df, term in rare:
            for number in self.reader.find_containing((term,)):
                shared[number] = shared.get(number, 0) + 1
        min_shared = _min_shared_terms(len(rare))
        ranked = [(-n, number) for number, n in shared.items() if n >= min_shared]
        numbers = [number for _n, number in sorted(ranked) if number not in self.gone]
        numbers = list(dict.fromkeys([*numbers[: TREE.max_words], *self._find_namesakes(memory)]))
        return [self.reader.record(number) for number in numbers]

    def _find_namesakes(self, memory: Memory) -> list[int]:
        """Return the memories that have all terms of a title. Raises CorruptCache."""
        titled = content_terms(Memory({"title": memory.title}, ""), self.language)
        by_df = sorted((self.reader.df(term), term) for term in titled)
        if not by_df or not by_df[0][0]:
            return []
        holding: set[int] | None = None
        for _df, term in by_df:
            numbers = set(self.reader.find_containing((term,)))
            holding = numbers if holding is None else holding & numbers
        return sorted((holding or set()) - set(self.gone))[:MAX_NAMESAKES]


class DuplicateIndex:
    """The memories of one tree that a new one may repeat, with their supersede rows."""

    def __init__(
        self,
        parsed: Iterable[Record],
        loose: Iterable[Stamp] = (),
        read: Callable[[Sequence[Stamp]], Iterable[bytes | None]] = lambda _stamps: (),
        categories: Collection[str] = DEFAULT_CATEGORIES,
        indexed: IndexedMemories | None = None,
    ) -> None:
        """Take memories: `parsed` ones, `loose` ones to be read, and indexed ones.

        The blob id of a loose file of the worktree is empty.
        """
        self._parsed = list(parsed)
        self._loose = sorted(loose)
        self._read = read
        self._categories = categories
        self._indexed = indexed
        self._rows: list[FileRow] | None = None
        self._matches: dict[Stamp, Sequence[Record]] = {}
        self._similar: dict[Stamp, Sequence[SimilarMemory]] = {}

    def find_by_id(self, id_: str) -> list[FileRow]:
        """Return the rows of the memories with an id."""
        rows = self._by_id.get(id_, [])
        if self._indexed is None:
            return rows
        return rows + [
            build_row(record.memory, record.path) for record in self._indexed.find_by_id(id_)
        ]

    def find_newer(self, id_: str) -> list[FileRow]:
        """Return the rows of the memories that supersede an id, or propose to."""
        rows = self._superseding.get(id_, [])
        if self._indexed is None:
            return rows
        return rows + [
            build_row(record.memory, record.path) for record in self._indexed.find_newer(id_)
        ]

    def find_similar(self, judged: Sequence[Record]) -> list[Sequence[SimilarMemory]]:
        """Return for each memory those that it may repeat, exact duplicates first.

        They are heads in use. The memory itself, other files with its id, and memories that it
        supersedes or that superseded it are left out.
        """
        new_records = [record for record in judged if _make_stamp(record) not in self._similar]
        for record, near in zip(new_records, self._find_candidates(new_records), strict=True):
            self._similar[_make_stamp(record)] = self._rank(record, near)
        return [self._similar[_make_stamp(record)] for record in judged]

    def _find_candidates(self, judged: Sequence[Record]) -> list[list[Record]]:
        """Return the candidates for each memory, from all sources."""
        unseen = [record for record in judged if _make_stamp(record) not in self._matches]
        if unseen and self._loose:
            self._scan(unseen)
        candidates = [[*self._matches.get(_make_stamp(record), ())] for record in judged]
        if self._parsed:
            for likely, near in zip(candidates, self._match_parsed(judged), strict=True):
                likely.extend(near)
        if self._indexed is not None:
            for record, likely in zip(judged, candidates, strict=True):
                likely.extend(self._indexed.find_similar(record.memory))
        return candidates

    def _match_parsed(self, judged: Sequence[Record]) -> Iterator[list[Record]]:
        """Yield for each memory the parsed ones that share words or have its title."""
        places = {_make_stamp(record): at for at, record in enumerate(self._parsed)}
        texts = [*self._parsed, *(record for record in judged if _make_stamp(record) not in places)]
        places = {_make_stamp(record): at for at, record in enumerate(texts)}
        numbers = WordNumbers()
        words = {at: numbers.number(record.memory) for at, record in enumerate(texts)}
        places_by_title: dict[str, list[int]] = {}
        for at, parsed_record in enumerate(self._parsed):
            places_by_title.setdefault(measure.key(parsed_record.memory.title), []).append(at)
        wanted = [places[_make_stamp(record)] for record in judged]
        for record, (_at, near) in zip(judged, join_similar(words, TREE, wanted), strict=True):
            namesakes = places_by_title.get(measure.key(record.memory.title), [])[:MAX_NAMESAKES]
            matches = dict.fromkeys([*near, *namesakes])
            yield [self._parsed[at] for at in matches if at < len(self._parsed)]

    def _rank(self, judged: Record, likely: Iterable[Record]) -> list[SimilarMemory]:
        """Return the best candidates: those that share most words, then by path."""
        from memtool.memory import ids  # most memories have no candidates

        words, fingerprint = find_words(judged.memory), ids.compute_fingerprint(judged.memory)
        scores = []
        for record in likely:
            memory = record.memory
            if not (
                memory.status in OUT_OF_USE
                or record.path == judged.path
                or memory.id == judged.memory.id
                or memory.id in judged.memory.supersedes
            ):
                other_words = find_words(memory)
                score = measure_shared_words(words, other_words)
                is_said = words <= other_words and measure.is_said_by(judged.memory, memory)
                if is_said or measure.has_same_title(judged.memory, memory):
                    score = CERTAIN_SCORE + (
                        is_said and ids.compute_fingerprint(memory) == fingerprint
                    )
                if score and not (
                    is_replaced(memory.id, self.find_newer)
                    or memory.id in self._find_successors(judged.id)
                ):
                    scores.append((-score, record.path, record))
        best = [record for _score, _path, record in sorted(scores, key=lambda item: item[:2])]
        similar_memories = [
            SimilarMemory(candidate, ids.compute_fingerprint(candidate.memory) == fingerprint)
            for candidate in best[:MAX_COMPARED]
        ]
        return sorted(similar_memories, key=lambda item: (not item.is_exact, item.record.path))

    def _find_successors(self, id_: str) -> set[str]:
        """Return the ids of all memories that supersede a memory, over any number of steps."""
        successors: set[str] = set()
        ahead = [id_]
        while ahead:
            new = {row.id for row in self.find_newer(ahead.pop())} - successors
            successors |= new
            ahead += new
        return successors

    @cached_property
    def _by_id(self) -> dict[str, list[FileRow]]:
        """The rows of memories outside the index, by id."""
        rows_by_id: dict[str, list[FileRow]] = {}
        for row in self._unindexed:
            rows_by_id.setdefault(row.id, []).append(row)
        return rows_by_id

    @cached_property
    def _superseding(self) -> dict[str, list[FileRow]]:
        """The rows of memories outside the index, by superseded id."""
        rows_by_old: dict[str, list[FileRow]] = {}
        for row in self._unindexed:
            for old in row.supersedes:
                rows_by_old.setdefault(old, []).append(row)
        return rows_by_old

    @cached_property
    def _unindexed(self) -> list[FileRow]:
        """The rows of memories outside the index; loose ones are read for this."""
        if self._loose and self._rows is None:
            self._scan(self._parsed)
        return [
            *(build_row(record.memory, record.path) for record in self._parsed),
            *(self._rows or ()),
        ]

    def _scan(self, judged: Sequence[Record]) -> None:
        """Read every loose memory: build its row, and match it with these memories."""
        matcher = _WordMatcher(judged)
        self._rows = []
        for stamps in split_batches(self._loose, BATCH_BLOBS):
            for stamp, data in zip(stamps, self._read(stamps), strict=True):
                row = None if data is None else self._read_row(stamp[0], data)
                if row is not None and data is not None:
                    self._rows.append(row)
                    if row.status not in OUT_OF_USE:
                        matcher.add(stamp, data)
        for record, best_stamps in zip(
            judged, map(matcher.find_best, range(len(judged))), strict=True
        ):
            read = zip(best_stamps, self._read(best_stamps), strict=True) if best_stamps else ()
            self._matches[_make_stamp(record)] = [
                Record(memory, *stamp)
                for stamp, data in read
                if data and (memory := _parse(data, self._categories)) is not None
            ]

    def _read_row(self, path: str, data: bytes) -> FileRow | None:
        """Return the row of a file, None if it is not a memory; it is only parsed if necessary."""
        head, end, _body = data.partition(b"\n---\n")
        is_plain = end and head.startswith(b"---\n")
        if is_plain and b"\nsupersedes:" not in head and b"\nstatus:" not in head:
            return FileRow(id_from_path(path), path=path, status="confirmed")
        memory = _parse(data, self._categories)
        return None if memory is None else build_row(memory, path)


def _make_stamp(record: Record) -> Stamp:
    return record.path, record.oid


def _parse(data: bytes, categories: Collection[str]) -> Memory | None:
    from memtool.memory import document

    try:
        return document.read(data, "", categories)
    except document.Unreadable:
        return None


_STAGED, _COMMITTED = (b"100644 ", b" 0\t"), (b"100644 blob ", b"\t")
"""Output of `ls-files --stage` and `ls-tree` before a blob id, and between id and path."""


def from_index(
    repository: Repository,
    directory: str,
    settings: Config,
    *,
    parsed: Sequence[Record] = (),
) -> DuplicateIndex:
    """Return the memories in git's index; `parsed` ones are not read again."""
    listing = repository.git.run("ls-files", "--stage", "-z", "--", directory)
    return _from_listing(repository, directory, settings, listing, _STAGED, parsed)


def from_commit(
    repository: Repository, directory: str, settings: Config, revision: str
) -> DuplicateIndex:
    """Return the memories in the tree of a commit. Raises MemtoolError if it does not exist."""
    commit = repository.git.resolve(revision)
    listing = repository.git.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", directory)
    return _from_listing(repository, directory, settings, listing, _COMMITTED)


def from_worktree(repository: Repository, directory: str, settings: Config) -> DuplicateIndex:
    """Return the memories on disk."""
    from memtool.store.repository import keep_one_per_path

    git = repository.git
    listing = git.run("ls-files", "--stage", "-z", "--", directory)
    rows = keep_one_per_path(git.diff_raw("diff-files", "--no-renames", "--", directory))
    untracked = git.names("ls-files", "--others", "--exclude-standard", "-z", "--", directory)
    changed = {row.path: row.mode.startswith("100") for row in rows}
    changed |= dict.fromkeys(untracked, True)
    return _from_listing(repository, directory, settings, listing, _STAGED, changed=changed)


def _from_listing(
    repository: Repository,
    directory: str,
    settings: Config,
    listing: bytes,
    form: tuple[bytes, bytes],
    parsed: Sequence[Record] = (),
    changed: Mapping[str, bool] | None = None,
) -> DuplicateIndex:
    """Return the memories that git lists, in the format `form`.

    `changed` has the files that differ on disk, and whether they exist there.
    """
    from memtool.index import index

    excluded = {os.fsencode(path) for path in changed or ()}
    excluded.update(os.fsencode(record.path) for record in parsed)
    rows = set(listing.split(b"\0")[:-1])
    if excluded:
        rows = {row for row in rows if row.partition(b"\t")[2] not in excluded}
    indexed = None
    reader = index.open_last_reader(repository, directory, settings)
    if reader is not None:
        stored: dict[bytes, int] = {}
        before, between = form
        for number, name, blob in reader.read_stamps():
            stored[b"%b%b%b%b" % (before, blob.hex().encode(), between, name)] = number
        indexed = IndexedMemories(
            reader, {stored[row] for row in stored.keys() - rows}, settings.text("search.language")
        )
        rows -= stored.keys()
    loose = {(path, "") for path, is_file in (changed or {}).items() if is_file}
    for row in rows:
        meta, _tab, raw = row.partition(b"\t")
        mode, *columns = meta.decode().split()
        oid, stage = columns if form is _STAGED else (columns[1], "0")
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

    return DuplicateIndex(parsed, loose, read, settings.categories, indexed)


def find_duplicates(
    judged: Sequence[Record],
    duplicate_index: DuplicateIndex,
    threshold: float,
    now: int,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
) -> list[Duplicate | None]:
    """Return for each memory the active one that it repeats: the most similar, then by id.

    A memory that is itself not active repeats nothing. A relation that names a near duplicate
    accepts it.
    """
    compared_texts: dict[Stamp, ComparedText] = {}

    def to_compared(record: Record) -> ComparedText:
        if not record.path or _make_stamp(record) not in compared_texts:
            compared_texts[_make_stamp(record)] = ComparedText(record.memory)
        return compared_texts[_make_stamp(record)]

    def measure_likeness(record: Record, other: Record) -> float:
        return compute_likeness(to_compared(record), to_compared(other), threshold)

    return [
        _find_best(record, near, measure_likeness, threshold, now, categories)
        if near and _is_active(record.memory, now, categories)
        else None
        for record, near in zip(judged, duplicate_index.find_similar(judged), strict=True)
    ]


def _find_best(
    record: Record,
    candidates: Sequence[SimilarMemory],
    measure_likeness: Callable[[Record, Record], float],
    threshold: float,
    now: int,
    categories: Mapping[str, Category],
) -> Duplicate | None:
    """Return the best of the candidates that a memory repeats."""
    best: Duplicate | None = None
    for candidate in candidates:
        other = candidate.record.memory
        if not _is_active(other, now, categories):
            continue
        is_related = any(other.id in record.memory.items(key) for key in RELATIONS)
        if is_related and not candidate.is_exact:
            continue
        how, share = _compare(record, candidate, measure_likeness, threshold)
        if share >= threshold:
            duplicate = Duplicate(candidate.record, candidate.is_exact, share, how)
            best = duplicate if best is None else min(best, duplicate, key=_sort_key)
    return best


def _compare(
    record: Record,
    candidate: SimilarMemory,
    measure_likeness: Callable[[Record, Record], float],
    threshold: float,
) -> tuple[str, float]:
    """Return how a memory repeats another, in words, and its likeness."""
    if candidate.is_exact:
        return "the same as", 1.0
    if measure.is_said_by(record.memory, candidate.record.memory):
        return PART_OF, 1.0
    share = measure_likeness(record, candidate.record)
    if share < threshold and measure.has_same_title(record.memory, candidate.record.memory):
        return SAME_TITLE_AS, threshold
    return f"nearly ({share:.2f}) the same as", share


def _is_active(memory: Memory, now: int, categories: Mapping[str, Category]) -> bool:
    """Return whether a memory is active and not a generated digest."""
    from memtool.memory.memory import is_generated  # most memories have no candidates

    return is_alive(memory, now, categories) and not is_generated(memory)


def _sort_key(duplicate: Duplicate) -> tuple[bool, float, str, str]:
    return not duplicate.is_exact, -duplicate.likeness, duplicate.record.id, duplicate.record.path


def find_repetitions(
    tree: Tree,
    judged: Sequence[Record],
    duplicate_index: DuplicateIndex,
    threshold: float,
    now: int,
    categories: Mapping[str, Category],
) -> list[Conflict]:
    """Return the duplicates among active memories as conflicts, sorted."""
    from memtool.search import conflicts  # a commit only needs problems

    conflicts_by_ids = {}
    duplicates = find_duplicates(judged, duplicate_index, threshold, now, categories)
    for record, duplicate in zip(judged, duplicates, strict=True):
        if duplicate is not None:
            first, second = sorted((record.id, duplicate.record.id))
            how = "the same words" if duplicate.is_exact else f"one says {duplicate.how} the other"
            accepted = conflicts.is_accepted(tree, (first, second))
            kind = conflicts.DUPLICATE
            conflicts_by_ids[first, second] = conflicts.Conflict(
                kind, (first, second), how, accepted, kind
            )
    return sorted(conflicts_by_ids.values(), key=conflicts.sort_key)


def find_problems(
    judged: Sequence[Record],
    duplicate_index: DuplicateIndex,
    threshold: float,
    now: int,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
    *,
    among: Collection[str] = (),
) -> list[Problem]:
    """Return a problem for each memory that repeats another, in their order.

    Of two judged memories that repeat each other only the later one is reported; the paths in
    `among` count as judged for that.
    """
    places = {record.path for record in judged}.union(among)
    duplicate_problems = []
    for record, duplicate in zip(
        judged, find_duplicates(judged, duplicate_index, threshold, now, categories), strict=True
    ):
        if duplicate is None or (
            duplicate.record.path in places and _age_key(record) < _age_key(duplicate.record)
        ):
            continue
        other = duplicate.record
        message = f"it says {duplicate.how} {other.id}, {other.memory.title!r}"
        help_ = make_hint(other.id, is_exact=duplicate.is_exact)
        duplicate_problems.append(
            Problem(record.path, 1, "duplicate", message, help_, id=record.id)
        )
    return duplicate_problems


def make_hint(id_: str, *, is_exact: bool) -> str:
    """Return the hint about a duplicate."""
    instead = f"memtool supersede {id_} TITLE"
    if is_exact:
        return f"remove this one, or: {instead}"
    return f"{instead}; to keep both, add related_to: [{id_}]"


def _age_key(record: Record) -> tuple[int, str, str]:
    return record.memory.timestamp, record.id, record.path
