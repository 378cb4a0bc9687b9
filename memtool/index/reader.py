"""The reader: the memories of a tree and the index over them, without reading what nobody asks for.

An `IndexReader` searches several indexes as one collection, such as those of the repositories of a
fleet. Each answers with its own documents and the statistics of the whole, without those that do
not count. Since scores are made of integers alone, an answer does not depend on how documents are
spread over them.

A `Catalog` is a tree with an index. One of a worktree is made of the rows of its index: its
memories are read when they are asked for, so iterating over all of them costs what reading the tree
costs; a search touches few. Its `lineage` knows only the memories that supersede others or are
superseded. See `index.open`.
"""

from __future__ import annotations

from itertools import groupby

from memtool.index import scoring
from memtool.index.scoring import Statistics
from memtool.memory.lifecycle import ALIVE
from memtool.memory.lineage import Lineage, LineageRow
from memtool.memory.memory import cited_path, is_file
from memtool.memory.visibility import GONE
from memtool.store.cache import CorruptCache
from memtool.store.tree import Tree, duplicate, newest
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
    """An index, the memories in it, and those that do not count here. Numbers begin at `first`."""

    def __init__(
        self,
        postings: PostingRows,
        memories: MemoryRows,
        first: int = 0,
        dead: frozenset[int] = frozenset(),
    ) -> None:
        self.postings = postings
        self.memories = memories
        self.first = first
        self.dead = dead

    def holds(self, number: int) -> bool:
        """Tell whether a number of the collection is one of these."""
        return 0 <= number - self.first < self.memories.size

    def living(self, numbers: Iterable[int]) -> list[int]:
        """Return those of some memories here that count, by their numbers in the collection."""
        first, dead = self.first, self.dead
        return [first + number for number in numbers if number not in dead]


class IndexReader:
    """The living documents of all parts; each has one number, and a path that no other has."""

    def __init__(self, parts: Sequence[LeafReader], note: str = "") -> None:
        """Take the parts; `note` is what the user should hear about them."""
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
        """Return the same documents, some of which count for no statistics.

        How rare a word is, and how long a text, is a matter of what may be shown: of eighty
        versions of a memory one is. A word that only hidden documents hold counts as one's.
        """
        known = frozenset(hidden)
        if not known:
            return self
        if self._counting is None or self._counting[0] != known:
            view = IndexReader(self.parts, self.note)
            view._records, view._candidates = self._records, self._candidates
            view._is_view = True
            view.count = max(1, self.count - len(known))
            view._uncounted = [
                part.dead.union(n - part.first for n in known if part.holds(n))
                for part in self.parts
            ]
            self._counting = known, view
        return self._counting[1]

    @property
    def has_threads(self) -> bool:
        """Whether any of the memories are in a thread."""
        return any(part.memories.has_threads for part in self.parts)

    @cached_property
    def lineage(self) -> Lineage:
        """Who supersedes whom, among the memories that supersede or are superseded."""
        rows: list[LineageRow] = []
        named: set[str] = set()
        for part in self.parts:
            for local, id_, is_proposed, olds in part.memories.links:
                if local not in part.dead:
                    both = ((), olds) if is_proposed else (olds, ())
                    rows.append(LineageRow(id_, *both))
                    named.update(olds)
        return Lineage(rows, [id_ for id_ in sorted(named) if self._is_there(id_)])

    def _is_there(self, id_: str) -> bool:
        """Tell whether a document has an id, quickly where it is that of a superseded one."""
        return any(
            number not in part.dead for part in self.parts for number in self._numbers_in(part, id_)
        )

    def _numbers_in(self, part: LeafReader, id_: str) -> Sequence[int]:
        """Return the documents of a part with an id that another memory supersedes."""
        known = part.memories.targets.get(id_)
        if known is not None or len(self.parts) == 1:
            return known or ()
        return part.memories.numbers_of(id_)

    @cached_property
    def superseded(self) -> frozenset[int]:
        """The documents that others supersede."""
        return frozenset(self.numbers_of_any(self.lineage.superseded_by))

    @cached_property
    def twins(self) -> list[list[int]]:
        """The documents that share an id, by id and then by path."""
        wanted = {id_ for part in self.parts for id_ in part.memories.twins}
        for part in self.parts[1:]:  # few memories, which may have the id of one of the first
            wanted.update(id_ for id_, _path, _number in part.memories.by_id())
        return [same for id_ in sorted(wanted) if len(same := self.numbers_of(id_)) > 1]

    @property
    def read(self) -> int:
        """How many memories and texts were read so far, and are kept."""
        return max(len(self._records), len(self._candidates))

    def part(self, number: int) -> tuple[LeafReader, int]:
        """Return where a document is: its part, and its number there."""
        for part in reversed(self.parts):
            if number >= part.first:
                return part, number - part.first
        raise IndexError(number)

    def load(self, numbers: Iterable[int]) -> None:
        """Read documents at once that are asked for next."""
        for part in self.parts:
            part.memories.load(n - part.first for n in numbers if part.holds(n))

    def path(self, number: int) -> str:
        """Return the path of a document. Raises CorruptCache."""
        part, local = self.part(number)
        return part.memories.path(local)

    def record(self, number: int) -> Record:
        """Return a document as a record, the same one every time. Raises CorruptCache."""
        found = self._records.get(number)
        if found is None:
            part, local = self.part(number)
            found = self._records[number] = part.memories.record(local)
        return found

    def text(self, number: int) -> bytes:
        """Return a document's text as terms. Raises CorruptCache."""
        return self._candidate(number)[0]

    def number_at(self, path: str) -> int | None:
        """Return the document at a path. Raises CorruptCache."""
        for part in self.parts:
            local = part.memories.number_at(path)
            if local is not None and local not in part.dead:
                return part.first + local
        return None

    def stamps(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield number, path and blob of each document that counts, as bytes.

        They are unchecked: it is who asks that compares them with git's.
        """
        for part in self.parts:
            for number, path, oid in part.memories.stamps():
                if number not in part.dead:
                    yield part.first + number, path, oid

    def numbers_of(self, id_: str) -> list[int]:
        """Return the documents with an id, by path. Raises CorruptCache."""
        found = [n for part in self.parts for n in part.living(part.memories.numbers_of(id_))]
        return sorted(found, key=self.path) if len(found) > 1 else found

    def numbers_of_any(self, ids: Iterable[str]) -> set[int]:
        """Return the documents with one of some ids, quickly where these are superseded ones."""
        wanted = list(ids)
        found: set[int] = set()
        for part in self.parts:
            known = part.memories.targets
            for id_ in wanted:
                numbers = known[id_] if id_ in known else part.memories.numbers_of(id_)
                found.update(part.living(numbers))
        return found

    def expired(self, now: int) -> set[int]:
        """Return the documents whose life is over at a second, and not because somebody ended it.

        Raises:
            CorruptCache: a section of the stored fields is damaged.
        """
        return {
            part.first + number
            for part in self.parts
            for number, kind in part.memories.ended(now)
            if number not in part.dead and part.memories.kinds[kind].status not in GONE
        }

    def df(self, term: str) -> int:
        """Return the number of documents that hold a term, of those that count."""
        return self._frequency(term)[0]

    def statistics(self, terms: Iterable[str]) -> Statistics:
        """Return the numbers of the collection for the terms of a question."""
        found = {term: self._frequency(term) for term in terms}
        length, head_length = self._lengths()
        return Statistics(
            self.count,
            length,
            head_length,
            {term: df for term, (df, _heads) in found.items() if df},
            {term: heads for term, (df, heads) in found.items() if df},
        )

    def holding_any(self, terms: Iterable[str]) -> set[int]:
        """Return the documents that hold one of some terms."""
        wanted = list(terms)
        found: set[int] = set()
        for part in self.parts:
            held: set[int] = set()
            held.update(*map(part.postings.holding, wanted))
            held -= part.dead
            found = held if not part.first else found.union(part.first + n for n in held)
        return found

    def beginning(self, prefix: str, most: int) -> list[str]:
        """Return the first `most` terms that begin with a prefix, in sorted order."""
        found: set[str] = set()
        for part in self.parts:
            found.update(part.postings.beginning(prefix, most, part.dead))
        return sorted(found)[:most]

    def best(
        self, weights: Mapping[str, float], limit: int, allowed: Callable[[int], bool]
    ) -> list[tuple[int, float]]:
        """Return the best documents by words, by score and then by path. Raises CorruptCache."""
        statistics = self.statistics(weights)
        found: list[tuple[int, float]] = []
        for part in self.parts:
            first = part.first
            best = part.postings.best(weights, limit, _admitting(part, allowed), statistics)
            found += [(first + local, score) for local, score in best] if first else best
        if len(self.parts) > 1:
            found = scoring.ranked(found, self.path)
        return found[: max(limit, 0)]

    def close(self, asked: Question, best: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """Look closely at the best by words, and return them in order. Raises CorruptCache."""
        statistics = self.statistics(asked.weights)
        return scoring.closely(asked, statistics, best, self._candidate, self.path)

    def _candidate(self, number: int) -> tuple[bytes, int]:
        found = self._candidates.get(number)
        if found is None:
            part, local = self.part(number)
            found = self._candidates[number] = part.postings.candidate(local)
        return found

    def _frequency(self, term: str) -> tuple[int, int]:
        """Return in how many documents a term stands, and in how many heads."""
        known = self._df.get(term)
        if known is None:
            df, heads = self._frequency_without(term, [part.dead for part in self.parts])
            if self._is_view:
                counted, counted_heads = self._frequency_without(term, self._uncounted)
                df, heads = max(counted, min(df, 1)), max(counted_heads, min(heads, 1))
            known = self._df[term] = (df, heads)
        return known

    def _frequency_without(self, term: str, without: Sequence[Collection[int]]) -> tuple[int, int]:
        """Return the same without some documents of each part."""
        df = heads = 0
        for part, gone in zip(self.parts, without, strict=True):
            held = part.postings.statistics((term,))
            lost, lost_heads = part.postings.among(term, gone) if gone else (0, 0)
            df += held.df.get(term, 0) - lost
            heads += held.head_df.get(term, 0) - lost_heads
        return df, heads

    def _lengths(self) -> tuple[int, int]:
        """Return how many terms all documents have, and how many of them in their heads."""
        if self._length is None:
            length = head_length = 0
            for part, gone in zip(self.parts, self._uncounted, strict=True):
                length += part.postings.length
                head_length += part.postings.head_length
                part.memories.load(gone)
                for local in gone:
                    own = part.postings.lengths(local)
                    length -= own[0]
                    head_length -= own[1]
            self._length = (length, head_length)
        return self._length


def _admitting(part: LeafReader, allowed: Callable[[int], bool]) -> Callable[[int], bool]:
    first, dead = part.first, part.dead
    if not first and not dead:
        return allowed
    return lambda local: local not in dead and allowed(first + local)


EXACT, DIR_EXACT = "exact", "dir-exact"


class Catalog(Tree):
    """The memories of one snapshot, and the index over them.

    `freshness` says what was checked: `exact` means every file, `dir-exact` every folder and each
    file of those that changed. `notes` is what the user should hear beside the answer. Whatever
    asks it may raise `CorruptCache`.
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
        """Return the record with a number of the index."""
        found = self.index.record(number)
        self._numbers[found.path] = number
        return found

    def records_of(self, numbers: Collection[int]) -> list[Record]:
        """Return the records with some numbers, in their order, read at once."""
        self.index.load(numbers)
        return list(map(self.record, numbers))

    def number_of(self, record: Record) -> int | None:
        """Return the number of a record that came from here."""
        known = self._numbers.get(record.path)
        return self.index.number_at(record.path) if known is None else known

    def numbers_of(self, ids: Iterable[str]) -> set[int]:
        """Return the numbers of all memories with one of some ids."""
        if ids is self.lineage.superseded_by:
            return set(self.index.superseded)
        return self.index.numbers_of_any(ids)

    def withheld(self) -> list[str]:
        """Return the paths of the memories in which secrets are masked, sorted."""
        return sorted(one.path for one in self.records if one.memory.withheld)

    def verify(self, records: Iterable[Record]) -> bool:
        """Tell whether the files of records are still those that were read.

        Where not, only opening it again with an exact check is sure to see the change.
        """
        return all(self.is_unchanged(record.path) for record in records)

    def is_unchanged(self, path: str) -> bool:
        """Tell whether the file at a path is still the one that was read."""
        del path  # all were read while this catalog was opened
        return True


class ReadCatalog(Catalog):
    """The memories of a snapshot that was read as a whole; their index is opened when asked for."""

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
    """The memories of a worktree as the rows of its index have them, each opened when asked for."""

    def __init__(
        self,
        location: Location,
        index: IndexReader,
        problems: Iterable[Problem],
        is_unchanged: Callable[[str], bool],
        categories: Mapping[str, Category],
    ) -> None:
        """Take the index and what is wrong with files; `is_unchanged` looks at a file again."""
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
        return tuple(self.records_of([number for _id, _path, number in self._order]))

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        found = self._file_problems.copy()
        for numbers in self.index.twins:
            same = [self.record(number) for number in numbers]
            for other in same[1:]:
                found += [duplicate(same[0], other), duplicate(other, same[0])]
        found.sort(key=lambda problem: (problem.path, problem.line, problem.code))
        return tuple(found)

    def get(self, id_: str) -> Record | None:
        if id_ not in self._firsts:
            numbers = self.index.numbers_of(id_)
            self._firsts[id_] = self.record(numbers[0]) if numbers else None
        return self._firsts[id_]

    def __getitem__(self, id_: str) -> Record:
        record = self.get(id_)
        if record is None:  # who asks knows the id from here
            raise CorruptCache(f"the memory {id_} is not found by its id")
        return record

    @property
    def count(self) -> int:
        return self.index.count

    @property
    def cache_dir(self) -> str:
        return self.location.repository.cache_dir

    @property
    def lineage(self) -> Lineage:
        """Who supersedes whom, among the memories that supersede or are superseded."""
        return self.index.lineage

    @cached_property
    def ids(self) -> list[str]:
        return list(dict.fromkeys(id_ for id_, _path, _number in self._order))

    @cached_property
    def _order(self) -> list[tuple[str, str, int]]:
        """Id, path and number of all memories, sorted."""
        found = [
            (id_, path, part.first + number)
            for part in self.index.parts
            for id_, path, number in part.memories.by_id()
            if number not in part.dead
        ]
        return sorted(found) if len(self.index.parts) > 1 else found

    @cached_property
    def blobs(self) -> dict[str, str]:
        return {
            path.decode(errors="surrogatepass"): oid.hex()
            for _number, path, oid in self.index.stamps()
        }

    @property
    def moments(self) -> list[int]:
        found = []
        for part in self.index.parts:
            numbers = part.memories.numbers()
            part.memories.load(numbers)
            found += [part.memories.written(n) for n in numbers if n not in part.dead]
        return found

    def count_by(self, key: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for part in self.index.parts:
            held = part.memories.count_by(key)
            for number in part.dead:
                held[getattr(part.memories.kind(number), key)] -= 1
            for value, count in held.items():
                found[value] = found.get(value, 0) + count
        return {value: count for value, count in sorted(found.items()) if count}

    def withheld(self) -> list[str]:
        return sorted(map(self.index.path, self._numbers_in(lambda shelf: shelf.withheld)))

    def with_ids(self, ids: Collection[str]) -> list[Record]:
        found = self.records_of(self.numbers_of(ids))
        return sorted(found, key=lambda record: (record.id, record.path))

    # What is asked about one record

    def _place(self, record: Record) -> tuple[MemoryRows, int] | None:
        """Return where the row of a record is, None for another version of the file."""
        number = self.number_of(record)
        if number is None:
            return None
        part, local = self.index.part(number)
        return (part.memories, local) if part.memories.oid(local) == record.oid else None

    def state(self, record: Record, now: int) -> str:
        place = self._place(record)
        if place is not None and place[0].row(place[1]).is_alive(now):
            return ALIVE
        return super().state(record, now)

    def is_due(self, record: Record, now: int) -> bool:
        place = self._place(record)
        if place is None:
            return super().is_due(record, now)
        due = place[0].row(place[1]).due
        return due is not None and due < now

    def stored_text(self, record: Record) -> bytes:
        number = self.number_of(record)
        return b"" if number is None else self.index.text(number)

    # What is asked about all of them

    def _numbers_in(self, look: Callable[[MemoryRows], Iterable[int]]) -> list[int]:
        """Return the numbers that a look at the rows of each part finds."""
        return [n for part in self.index.parts for n in part.living(look(part.memories))]

    def _look(self, look: Callable[[MemoryRows], Iterable[int]]) -> list[Record]:
        return self.records_of(self._numbers_in(look))

    def alive(self, now: int) -> list[Record]:
        return self._look(lambda shelf: set(shelf.numbers()) - shelf.not_alive(now))

    def not_alive(self, now: int) -> list[Record]:
        return self._look(lambda shelf: shelf.not_alive(now))

    def due(self, now: int) -> list[Record]:
        return self._look(lambda shelf: shelf.due(now))

    def written_after(self, second: int) -> list[Record]:
        return self._look(lambda shelf: shelf.later_than(second))

    def of_kinds(self, fits: Callable[[Memory], bool]) -> list[Record]:
        return self._look(lambda shelf: shelf.of_kinds(fits))

    def naming(self, id_: str) -> list[Record]:
        return self._look(lambda shelf: shelf.naming(id_))

    def naming_files(self, fits: Callable[[str], bool]) -> list[Record]:
        def cited(source: str) -> bool:
            return is_file(source) and fits(cited_path(source))

        return self._look(
            lambda shelf: shelf.listing("files", fits) | shelf.listing("source", cited)
        )

    def latest_of_kinds(self, fits: Callable[[Memory], bool]) -> Iterator[Record]:
        """Yield the memories whose kind fits, the newest first; of thousands few are opened."""
        places: list[tuple[int, int]] = []
        for part in self.index.parts:
            numbers = [local for local in part.memories.of_kinds(fits) if local not in part.dead]
            part.memories.load(numbers)
            places += [(-part.memories.written(local), part.first + local) for local in numbers]
        places.sort()
        for _written, same in groupby(places, key=lambda place: place[0]):
            records = self.records_of([number for _written, number in same])
            yield from sorted(records, key=newest)

    def is_unchanged(self, path: str) -> bool:
        return self._is_unchanged(path)
