"""The reader: the memories of a tree and the index over them, each read only when needed.

An `IndexReader` searches several indexes as one collection, such as those of the repositories of a
fleet. Each index scores its own documents with the statistics of the whole collection, without the
documents that do not count. Scores are computed from integers alone, so an answer does not depend
on how the documents are distributed.

A `Catalog` is a tree with an index. That of a worktree is read from the rows of its index, each
memory when it is needed. Iterating over all of them costs as much as reading the tree; a search
reads few. Its `lineage` only contains memories that supersede others or are superseded. See
`index.open`.
"""

from __future__ import annotations

from itertools import groupby

from memtool.index import scoring
from memtool.index.scoring import Statistics
from memtool.memory.lifecycle import ALIVE
from memtool.memory.lineage import Lineage, LineageRow
from memtool.memory.memory import find_cited_path, is_document, is_file
from memtool.memory.visibility import GONE
from memtool.store.cache import CorruptCacheError
from memtool.store.tree import Tree, build_duplicate_problem, newest_first_key
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from memtool.index.memories import MemoryRows
    from memtool.index.postings import PostingRows
    from memtool.index.scoring import Question
    from memtool.memory.fields import Category
    from memtool.memory.memory import Memory
    from memtool.memory.schema import Problem
    from memtool.store.snapshot import Location
    from memtool.store.tree import ReadTree, Record


class LeafReader:
    """One index of a collection; its documents have numbers from `first` on.

    `dead` documents do not count. Without `is_replacing` its memories supersede no others.
    """

    def __init__(
        self,
        postings: PostingRows,
        memories: MemoryRows,
        first: int = 0,
        dead: frozenset[int] = frozenset(),
        *,
        is_replacing: bool = True,
    ) -> None:
        self.postings = postings
        self.memories = memories
        self.first = first
        self.dead = dead
        self.is_replacing = is_replacing

    def has_number(self, number: int) -> bool:
        """Return whether a number of the collection belongs to this index."""
        return 0 <= number - self.first < self.memories.size

    def select_living(self, numbers: Iterable[int]) -> list[int]:
        """Return the collection's numbers of those of these memories that count."""
        first, dead = self.first, self.dead
        return [first + number for number in numbers if number not in dead]


class IndexReader:
    """The living documents of all parts, each with a unique number and path."""

    def __init__(self, parts: Sequence[LeafReader], note: str = "") -> None:
        """Take the parts; `note` is a note for the user about them."""
        self.parts = parts
        self.note = note
        self.count = sum(part.postings.count - len(part.dead) for part in parts)
        self._is_view = False
        self._uncounted: list[frozenset[int]] = [part.dead for part in parts]
        self._counting: tuple[frozenset[int], IndexReader] | None = None
        self._records: dict[int, Record] = {}
        self._candidates: dict[int, tuple[bytes, int]] = {}
        self._length: tuple[int, int] | None = None
        self._df: dict[str, tuple[int, int]] = {}

    def without_counting(self, hidden: Collection[int]) -> IndexReader:
        """Return a reader of the same documents whose statistics leave out the hidden ones.

        Rarity and average length should only depend on memories that may be shown: of eighty
        versions of a memory that is one. A term in hidden documents alone counts as in one.
        """
        hidden_numbers = frozenset(hidden)
        if not hidden_numbers:
            return self
        if self._counting is None or self._counting[0] != hidden_numbers:
            view = IndexReader(self.parts, self.note)
            view._records, view._candidates = self._records, self._candidates
            view._is_view = True
            view.count = max(1, self.count - len(hidden_numbers))
            view._uncounted = [
                part.dead.union(n - part.first for n in hidden_numbers if part.has_number(n))
                for part in self.parts
            ]
            self._counting = hidden_numbers, view
        return self._counting[1]

    @property
    def has_threads(self) -> bool:
        """Whether any memory is in a thread."""
        return any(part.memories.has_threads for part in self.parts)

    @cached_property
    def lineage(self) -> Lineage:
        """The lineage of the memories that supersede others or are superseded."""
        rows: list[LineageRow] = []
        named: set[str] = set()
        for part in filter(lambda part: part.is_replacing, self.parts):
            for local, id_, is_proposed, olds in part.memories.links:
                if local not in part.dead:
                    both = ((), olds) if is_proposed else (olds, ())
                    rows.append(LineageRow(id_, *both))
                    named.update(olds)
        return Lineage(rows, [id_ for id_ in sorted(named) if self._has_id(id_)])

    def _has_id(self, id_: str) -> bool:
        """Return whether a document has an id; this is fast for ids of superseded memories."""
        return any(
            number not in part.dead
            for part in self.parts
            for number in self._find_superseded(part, id_)
        )

    def _find_superseded(self, part: LeafReader, id_: str) -> Sequence[int]:
        """Return the documents of a part with the id of a superseded memory."""
        numbers = part.memories.targets.get(id_)
        if numbers is not None or len(self.parts) == 1:
            return numbers or ()
        return part.memories.find_by_id(id_)

    @cached_property
    def superseded(self) -> frozenset[int]:
        """The documents that others supersede."""
        return frozenset(self.find_by_ids(self.lineage.superseded_by))

    @cached_property
    def groups_sharing_id(self) -> list[list[int]]:
        """The documents that share an id, by id and then by path."""
        wanted = {id_ for part in self.parts for id_ in part.memories.shared_ids}
        for part in self.parts[1:]:  # small; may repeat ids of the first
            wanted.update(id_ for id_, _number in part.memories.list_ids())
        return [same for id_ in sorted(wanted) if len(same := self.find_by_id(id_)) > 1]

    @property
    def count_cached(self) -> int:
        """The number of memories or texts that are cached, whichever is larger."""
        return max(len(self._records), len(self._candidates))

    def find_part(self, number: int) -> tuple[LeafReader, int]:
        """Return the part of a document, and its number there."""
        for part in reversed(self.parts):
            if number >= part.first:
                return part, number - part.first
        raise IndexError(number)

    def load(self, numbers: Iterable[int]) -> None:
        """Read documents at once; the caller needs each next."""
        for part in self.parts:
            part.memories.load(n - part.first for n in numbers if part.has_number(n))

    def path(self, number: int) -> str:
        """Return the path of a document. Raises CorruptCache."""
        part, local = self.find_part(number)
        return part.memories.path(local)

    def record(self, number: int) -> Record:
        """Return a document as a record, the same one every time. Raises CorruptCache."""
        record = self._records.get(number)
        if record is None:
            part, local = self.find_part(number)
            record = self._records[number] = part.memories.record(local)
        return record

    def text(self, number: int) -> bytes:
        """Return a document's text as terms. Raises CorruptCache."""
        return self._read_candidate(number)[0]

    def find_by_path(self, path: str) -> int | None:
        """Return the document at a path. Raises CorruptCache."""
        for part in self.parts:
            local = part.memories.find_by_path(path)
            if local is not None and local not in part.dead:
                return part.first + local
        return None

    def read_stamps(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield number, path and blob id of each document that counts, as stored.

        Checksums are not verified; the caller compares these with git's.
        """
        for part in self.parts:
            for number, path, oid in part.memories.read_stamps():
                if number not in part.dead:
                    yield part.first + number, path, oid

    def find_by_id(self, id_: str) -> list[int]:
        """Return the documents with an id, by path. Raises CorruptCache."""
        numbers = [
            n for part in self.parts for n in part.select_living(part.memories.find_by_id(id_))
        ]
        return sorted(numbers, key=self.path) if len(numbers) > 1 else numbers

    def match_ids(self, *patterns: str) -> list[str]:
        """Return the distinct ids that match one of some patterns with `*`, `?` or `[…]`, sorted.

        Patterns that begin with other characters than these are fast, even in large stores.
        """
        ids = {
            id_
            for part in self.parts
            for id_, number in part.memories.match_ids(*patterns)
            if number not in part.dead
        }
        return sorted(ids)

    def find_by_ids(self, ids: Iterable[str]) -> set[int]:
        """Return the documents with any of these ids; this is fast for superseded ones."""
        wanted = list(ids)
        all_numbers: set[int] = set()
        for part in self.parts:
            targets = part.memories.targets
            unread = [id_ for id_ in wanted if id_ not in targets]
            numbers = [number for id_ in wanted for number in targets.get(id_, ())]
            numbers += part.memories.find_by_ids(unread) if unread else ()
            all_numbers.update(part.select_living(numbers))
        return all_numbers

    def find_expired(self, now: int) -> set[int]:
        """Return the documents that have expired by a second, without deleted or archived ones.

        Raises:
            CorruptCache: a row is damaged.
        """
        return {
            part.first + number
            for part in self.parts
            for number, kind in part.memories.find_ended(now)
            if number not in part.dead and part.memories.kinds[kind].status not in GONE
        }

    def df(self, term: str) -> int:
        """Return how many of the documents that count contain a term."""
        return self._count_documents(term)[0]

    def statistics(self, terms: Iterable[str]) -> Statistics:
        """Return the statistics of the collection for the terms of a query."""
        frequencies = {term: self._count_documents(term) for term in terms}
        length, head_length = self._sum_lengths()
        return Statistics(
            self.count,
            length,
            head_length,
            {term: df for term, (df, _heads) in frequencies.items() if df},
            {term: heads for term, (df, heads) in frequencies.items() if df},
        )

    def find_containing(self, terms: Iterable[str]) -> set[int]:
        """Return the documents that contain any of these terms."""
        wanted = list(terms)
        numbers: set[int] = set()
        for part in self.parts:
            local_numbers: set[int] = set()
            local_numbers.update(*map(part.postings.find_documents, wanted))
            local_numbers -= part.dead
            numbers = (
                local_numbers
                if not part.first
                else numbers.union(part.first + n for n in local_numbers)
            )
        return numbers

    def find_terms(self, prefix: str, limit: int) -> list[str]:
        """Return the first `limit` terms that begin with a prefix, sorted."""
        terms: set[str] = set()
        for part in self.parts:
            terms.update(part.postings.find_terms(prefix, limit, part.dead))
        return sorted(terms)[:limit]

    def find_best(
        self, weights: Mapping[str, float], limit: int, is_allowed: Callable[[int], bool]
    ) -> list[tuple[int, float]]:
        """Return the best documents by single terms, by score, then path. Raises CorruptCache."""
        statistics = self.statistics(weights)
        hits: list[tuple[int, float]] = []
        for part in self.parts:
            first = part.first
            best = part.postings.find_best(
                weights, limit, _restrict_to_part(part, is_allowed), statistics
            )
            hits += [(first + local, score) for local, score in best] if first else best
        if len(self.parts) > 1:
            hits = scoring.sort_hits(hits, self.path)
        return hits[: max(limit, 0)]

    def rerank(self, question: Question, best: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """Rerank the best documents by pairs, heads and grams. Raises CorruptCache."""
        statistics = self.statistics(question.weights)
        return scoring.rerank(question, statistics, best, self._read_candidate, self.path)

    def _read_candidate(self, number: int) -> tuple[bytes, int]:
        candidate = self._candidates.get(number)
        if candidate is None:
            part, local = self.find_part(number)
            candidate = self._candidates[number] = part.postings.read_candidate(local)
        return candidate

    def _count_documents(self, term: str) -> tuple[int, int]:
        """Return how many documents contain a term, and how many heads."""
        counts = self._df.get(term)
        if counts is None:
            df, heads = self._count_documents_without(term, [part.dead for part in self.parts])
            if self._is_view:
                counted, counted_heads = self._count_documents_without(term, self._uncounted)
                df, heads = max(counted, min(df, 1)), max(counted_heads, min(heads, 1))
            counts = self._df[term] = (df, heads)
        return counts

    def _count_documents_without(
        self, term: str, without: Sequence[Collection[int]]
    ) -> tuple[int, int]:
        """Return the same without the given documents of each part."""
        df = heads = 0
        for part, gone in zip(self.parts, without, strict=True):
            statistics = part.postings.statistics((term,))
            lost, lost_heads = part.postings.count_among(term, gone) if gone else (0, 0)
            df += statistics.df.get(term, 0) - lost
            heads += statistics.head_df.get(term, 0) - lost_heads
        return df, heads

    def _sum_lengths(self) -> tuple[int, int]:
        """Return the number of terms in all documents that count, and in their heads."""
        if self._length is None:
            length = head_length = 0
            for part, gone in zip(self.parts, self._uncounted, strict=True):
                length += part.postings.length
                head_length += part.postings.head_length
                part.memories.load(gone)
                for local in gone:
                    lengths = part.postings.lengths(local)
                    length -= lengths[0]
                    head_length -= lengths[1]
            self._length = (length, head_length)
        return self._length


def _restrict_to_part(part: LeafReader, is_allowed: Callable[[int], bool]) -> Callable[[int], bool]:
    first, dead = part.first, part.dead
    if not first and not dead:
        return is_allowed
    return lambda local: local not in dead and is_allowed(first + local)


EXACT, DIR_EXACT = "exact", "dir-exact"


class Catalog(Tree):
    """The memories of one snapshot, and the index over them.

    `freshness` is what was checked: `exact` means every file, `dir-exact` every folder and the
    files of changed folders. `notes` are for the user, in addition to the answer. Every method may
    raise `CorruptCache`.
    """

    def __init__(self, location: Location, categories: Mapping[str, Category]) -> None:
        super().__init__(location, categories)
        self.freshness = EXACT
        self.notes: list[str] = []
        self._numbers: dict[str, int] = {}

    @property
    def index(self) -> IndexReader:
        """The index over the memories."""
        raise NotImplementedError

    def record(self, number: int) -> Record:
        """Return the record with this number in the index."""
        record = self.index.record(number)
        self._numbers[record.path] = number
        return record

    def read_records(self, numbers: Collection[int]) -> list[Record]:
        """Return the records with these numbers, in this order, read at once."""
        self.index.load(numbers)
        return list(map(self.record, numbers))

    def find_number(self, record: Record) -> int | None:
        """Return the number of a record of this catalog."""
        number = self._numbers.get(record.path)
        return self.index.find_by_path(record.path) if number is None else number

    def find_numbers(self, ids: Iterable[str]) -> set[int]:
        """Return the numbers of all memories with any of these ids."""
        if ids is self.lineage.superseded_by:
            return set(self.index.superseded)
        return self.index.find_by_ids(ids)

    def withheld(self) -> dict[str, tuple[str, ...]]:
        """Return the kinds of the secrets that are masked in memories, by path, sorted."""
        masked = {record.path: record.memory.withheld for record in self.records}
        return {path: masked[path] for path in sorted(masked) if masked[path]}

    def verify(self, records: Iterable[Record]) -> bool:
        """Return whether the files of records are still as they were read.

        If not, only a catalog opened with `exact` is sure to see the change.
        """
        return all(self.is_unchanged(record.path) for record in records)

    def is_unchanged(self, path: str) -> bool:
        """Return whether the file at a path is still as it was read."""
        del path  # all files were read when this catalog was opened
        return True


class ReadCatalog(Catalog):
    """The memories of a snapshot that was read whole; their index is opened when needed."""

    def __init__(self, tree: ReadTree, open_index: Callable[[], IndexReader]) -> None:
        super().__init__(tree.location, tree.categories)
        self._tree = tree
        self._open_index = open_index

    @property
    def records(self) -> tuple[Record, ...]:
        return self._tree.records

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self._tree.problems

    def get(self, id_: str) -> Record | None:
        return self._tree.get(id_)

    @cached_property
    def index(self) -> IndexReader:
        return self._open_index()


class StoredCatalog(Catalog):
    """The memories of a worktree as stored in its index, each read when needed."""

    def __init__(
        self,
        location: Location,
        index: IndexReader,
        problems: Iterable[Problem],
        is_unchanged: Callable[[str], bool],
        categories: Mapping[str, Category],
    ) -> None:
        """Take the index and the problems of files; `is_unchanged` checks a file again."""
        super().__init__(location, categories)
        self._index = index
        self._file_problems = list(problems)
        self._is_unchanged = is_unchanged
        self._firsts: dict[str, Record | None] = {}

    @property
    def index(self) -> IndexReader:
        return self._index

    @cached_property
    def records(self) -> tuple[Record, ...]:
        rows = sorted(
            (id_, path, part.first + number)
            for part in self.index.parts
            for id_, path, number in part.memories.list_by_id()
            if number not in part.dead
        )
        return tuple(self.read_records([number for _id, _path, number in rows]))

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        problems = self._file_problems.copy()
        for numbers in self.index.groups_sharing_id:
            same = [self.record(number) for number in numbers]
            for other in same[1:]:
                problems += [
                    build_duplicate_problem(same[0], other),
                    build_duplicate_problem(other, same[0]),
                ]
        problems.sort(key=lambda problem: (problem.path, problem.line, problem.code))
        return tuple(problems)

    def get(self, id_: str) -> Record | None:
        if id_ not in self._firsts:
            numbers = self.index.find_by_id(id_)
            self._firsts[id_] = self.record(numbers[0]) if numbers else None
        return self._firsts[id_]

    def __getitem__(self, id_: str) -> Record:
        record = self.get(id_)
        if record is None:  # the caller has the id from this catalog
            raise CorruptCacheError(f"the memory {id_} is not found by its id")
        return record

    @property
    def count(self) -> int:
        return self.index.count

    @property
    def cache_dir(self) -> str:
        return self.location.repository.cache_dir

    @property
    def lineage(self) -> Lineage:
        """The lineage of the memories that supersede others or are superseded."""
        return self.index.lineage

    @cached_property
    def ids(self) -> list[str]:
        return sorted(
            {
                id_
                for part in self.index.parts
                for id_, number in part.memories.list_ids()
                if number not in part.dead
            }
        )

    @cached_property
    def blobs(self) -> dict[str, str]:
        return {
            path.decode(errors="surrogatepass"): oid.hex()
            for _number, path, oid in self.index.read_stamps()
        }

    @property
    def moments(self) -> list[int]:
        moments = []
        for part in self.index.parts:
            numbers = part.memories.select_numbers()
            part.memories.load(numbers)
            moments += [part.memories.written(n) for n in numbers if n not in part.dead]
        return moments

    def count_by(self, key: str) -> dict[str, int]:
        totals: dict[str, int] = {}
        for part in self.index.parts:
            counts = part.memories.count_by(key)
            for number in part.dead:
                counts[getattr(part.memories.kind(number), key)] -= 1
            for value, count in counts.items():
                totals[value] = totals.get(value, 0) + count
        return {value: count for value, count in sorted(totals.items()) if count}

    def withheld(self) -> dict[str, tuple[str, ...]]:
        living = self._find_living(lambda rows: rows.withheld)
        records = sorted(self.read_records(living), key=lambda record: record.path)
        return {record.path: record.memory.withheld for record in records}

    def with_ids(self, ids: Collection[str]) -> list[Record]:
        records = self.read_records(self.find_numbers(ids))
        return sorted(records, key=lambda record: (record.id, record.path))

    # One record

    def _find_row(self, record: Record) -> tuple[MemoryRows, int] | None:
        """Return rows and number of a record, None if it is another version of the file."""
        number = self.find_number(record)
        if number is None:
            return None
        part, local = self.index.find_part(number)
        return (part.memories, local) if part.memories.oid(local) == record.oid else None

    def state(self, record: Record, now: int) -> str:
        place = self._find_row(record)
        if place is not None and place[0].row(place[1]).is_alive(now):
            return ALIVE
        return super().state(record, now)

    def is_due(self, record: Record, now: int) -> bool:
        place = self._find_row(record)
        if place is None:
            return super().is_due(record, now)
        due = place[0].row(place[1]).due
        return due is not None and due < now

    def stored_text(self, record: Record) -> bytes:
        number = self.find_number(record)
        return b"" if number is None else self.index.text(number)

    # All records

    def _find_living(self, find: Callable[[MemoryRows], Iterable[int]]) -> list[int]:
        """Return the living numbers that `find` returns for the rows of each part."""
        return [n for part in self.index.parts for n in part.select_living(find(part.memories))]

    def _read_living(self, find: Callable[[MemoryRows], Iterable[int]]) -> list[Record]:
        return self.read_records(self._find_living(find))

    def alive(self, now: int) -> list[Record]:
        return self._read_living(lambda rows: set(rows.select_numbers()) - rows.find_not_alive(now))

    def not_alive(self, now: int) -> list[Record]:
        return self._read_living(lambda rows: rows.find_not_alive(now))

    def due(self, now: int) -> list[Record]:
        return self._read_living(lambda rows: rows.find_due(now))

    def written_after(self, second: int) -> list[Record]:
        return self._read_living(lambda rows: rows.find_written_after(second))

    def of_kinds(self, fits: Callable[[Memory], bool]) -> list[Record]:
        return self._read_living(lambda rows: rows.find_by_kind(fits))

    def naming(self, id_: str) -> list[Record]:
        return self._read_living(lambda rows: rows.find_containing(id_))

    def naming_files(self, fits: Callable[[str], bool]) -> list[Record]:
        def is_cited(source: str) -> bool:
            path = find_cited_path(source)
            return is_file(source) and not is_document(path) and fits(path)

        return self._read_living(
            lambda rows: rows.find_listing("files", fits) | rows.find_listing("source", is_cited)
        )

    def mentioning(self, path: str) -> list[Record]:
        return self._read_living(lambda rows: rows.find_mentioning(path))

    @cached_property
    def imported_ids(self) -> frozenset[str]:
        return frozenset(
            id_
            for part in self.index.parts
            for id_, number in part.memories.list_imported()
            if number not in part.dead
        )

    def find_absent(self, ids: Iterable[str]) -> set[str]:
        parts = self.index.parts
        if len(parts) > 1 or parts[0].dead:
            return super().find_absent(ids)
        return parts[0].memories.find_absent(ids)

    @cached_property
    def premises(self) -> dict[str, tuple[str, ...]]:
        premises: dict[str, tuple[str, ...]] = {}
        for part in self.index.parts:
            for number, id_, premise in part.memories.list_premises():
                if number not in part.dead and part.first + number not in self._shadowed:
                    premises[id_] = (*premises.get(id_, ()), premise)
        return premises

    def find_conclusions(self, id_: str) -> list[str]:
        numbers = self._find_living(lambda rows: rows.find_conclusions(id_))
        numbers = [number for number in numbers if number not in self._shadowed]
        return sorted(record.id for record in self.read_records(numbers))

    def find_kinds(self, fits: Callable[[Memory], bool]) -> dict[str, Memory]:
        return {
            id_: kind
            for part in self.index.parts
            for number, id_, kind in part.memories.find_kinds(fits)
            if number not in part.dead and part.first + number not in self._shadowed
        }

    @cached_property
    def _shadowed(self) -> frozenset[int]:
        """The documents whose id another one has, at a path that sorts before."""
        groups = self.index.groups_sharing_id
        return frozenset(number for numbers in groups for number in numbers[1:])

    def latest_of_kinds(self, fits: Callable[[Memory], bool]) -> Iterator[Record]:
        """Yield the memories whose kind fits, the newest first; each is read when it is yielded."""
        places: list[tuple[int, int]] = []
        for part in self.index.parts:
            places += [
                (-written, part.first + local)
                for written, local in part.memories.find_dated_by_kind(fits)
                if local not in part.dead
            ]
        places.sort()
        for _written, same in groupby(places, key=lambda place: place[0]):
            records = self.read_records([number for _written, number in same])
            yield from sorted(records, key=newest_first_key)

    def is_unchanged(self, path: str) -> bool:
        return self._is_unchanged(path)


def combine_parts(
    tree: Catalog, parts: Sequence[LeafReader], is_unchanged: Callable[[str], bool]
) -> StoredCatalog:
    """Return a catalog of the memories of these parts, without problems of files."""
    catalog = StoredCatalog(
        tree.location,
        IndexReader(parts, tree.index.note),
        (),
        is_unchanged,
        tree.categories,
    )
    catalog.freshness = tree.freshness
    return catalog
