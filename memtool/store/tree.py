"""Trees: the memories of one snapshot, with their lineage and with what is wrong."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory import lifecycle
from memtool.memory.changes import stem
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.lineage import Lineage
from memtool.memory.memory import as_text
from memtool.store.snapshot import blob_hash, problem_at
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import Protocol

    from memtool.memory.fields import Category
    from memtool.memory.memory import Memory
    from memtool.memory.schema import Problem
    from memtool.store.snapshot import Location, Snapshot

    class Masking(Protocol):
        """What takes secrets out of memories and problems that are to be shown."""

        def read(self, memory: Memory, data: bytes, oid: str) -> Memory:
            """Return a memory that was read from some bytes, masked."""

        def problem(self, problem: Problem) -> Problem:
            """Return a problem with a masked message."""


class Record(Value):
    """A memory and where it lies: its path from the top, and the id of its bytes as a blob."""

    memory: Memory
    path: str
    oid: str

    @property
    def id(self) -> str:
        return self.memory.id


class Tree:
    """The memories of a snapshot by id. Of several files with one id, the first by path counts.

    Each kind of tree says how it holds them: `records`, `problems` and `get`. All else follows
    from these; a tree with columns (see `index.reader`) answers it without opening the memories.
    """

    is_partial = False
    """Whether only some of the memories are here, until there is an index of all."""

    def __init__(self, location: Location, categories: Mapping[str, Category]) -> None:
        self.location = location
        self.categories = categories

    @property
    def records(self) -> tuple[Record, ...]:
        """All memories, by id and then by path."""
        raise NotImplementedError

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with single files, by path, line and code."""
        raise NotImplementedError

    def get(self, id_: str) -> Record | None:
        """Return the memory with an id."""
        raise NotImplementedError

    def __getitem__(self, id_: str) -> Record:
        record = self.get(id_)
        if record is None:
            raise KeyError(id_)
        return record

    def __contains__(self, id_: str) -> bool:
        return self.get(id_) is not None

    @property
    def cache_dir(self) -> str:
        """Where to keep what follows from these memories, empty for nowhere."""
        return ""

    @property
    def count(self) -> int:
        """How many memories there are."""
        return len(self.records)

    @cached_property
    def lineage(self) -> Lineage:
        """Which of these memories supersedes which."""
        return Lineage(record.memory for record in self.records)

    @cached_property
    def ids(self) -> list[str]:
        """The ids of all memories, sorted, each once."""
        return list(dict.fromkeys(record.id for record in self.records))

    @cached_property
    def blobs(self) -> dict[str, str]:
        """The blob of each memory by its path."""
        return {record.path: record.oid for record in self.records}

    @property
    def moments(self) -> list[int]:
        """The second at which each memory was written, in any order."""
        return [record.memory.timestamp for record in self.records]

    def count_by(self, key: str) -> dict[str, int]:
        """Return how many memories have each value of `type`, `category` or `status`, sorted."""
        found: dict[str, int] = {}
        for record in self.records:
            value = getattr(record.memory, key)
            found[value] = found.get(value, 0) + 1
        return dict(sorted(found.items()))

    def with_ids(self, ids: Collection[str]) -> list[Record]:
        """Return the memories with one of some ids, by id and then by path."""
        return [record for record in self.records if record.id in ids] if ids else []

    @property
    def pinned(self) -> list[Record]:
        """The pinned memories, by path."""
        found = self.of_kinds(lambda kind: kind.status == "pinned")
        firsts = (record for record in found if self[record.id].path == record.path)
        return sorted(firsts, key=lambda record: record.path)

    def state(self, record: Record, now: int) -> str:
        """Return the lifecycle state of a memory at a second, such as `alive`."""
        return lifecycle.state(record.memory, now, self.categories)

    def stored_text(self, record: Record) -> bytes:  # noqa: ARG002  # of an index
        """Return the text of a memory as terms (see `scoring.searchable`), empty if not stored."""
        return b""

    def is_due(self, record: Record, now: int) -> bool:
        """Tell whether a memory is due for review at a second."""
        return lifecycle.is_due(record.memory, now, self.categories)

    # In any order:

    def alive(self, now: int) -> list[Record]:
        """Return the memories that are alive at a second."""
        return [one for one in self.records if self.state(one, now) == lifecycle.ALIVE]

    def not_alive(self, now: int) -> list[Record]:
        """Return the memories that are not alive at a second."""
        return [one for one in self.records if self.state(one, now) != lifecycle.ALIVE]

    def due(self, now: int) -> list[Record]:
        """Return the memories that are due for review at a second."""
        return [one for one in self.records if self.is_due(one, now)]

    def written_after(self, second: int) -> list[Record]:
        """Return the memories that were written after a second."""
        return [one for one in self.records if one.memory.timestamp > second]

    def of_kinds(self, fits: Callable[[Memory], bool]) -> list[Record]:
        """Return the memories whose kind fits: what all of a kind have, see `index.memories`."""
        return [one for one in self.records if fits(one.memory)]

    def naming(self, id_: str) -> list[Record]:
        """Return every memory that names an id in one of its fields, and perhaps others."""
        return [one for one in self.records if _names(one.memory, id_)]

    def naming_files(self, fits: Callable[[str], bool]) -> list[Record]:
        """Return the memories that name a path that fits in `files` or as a source."""
        return [one for one in self.records if any(map(fits, one.memory.named_paths()))]

    def latest_of_kinds(self, fits: Callable[[Memory], bool]) -> Iterator[Record]:
        """Yield the memories whose kind fits, the newest first, each opened when it is taken."""
        yield from sorted(self.of_kinds(fits), key=newest)

    def find(self, wanted: str, *, by_words: bool = True) -> Record:
        """Return the memory with an id or a citation, or the only one that a part can mean.

        A part is the beginning of an id, or, unless `by_words` is off, words that it holds.

        Raises:
            MemtoolError: none does, or several do; the hint names them.
        """
        from memtool.memory import ids

        wanted = ids.without_commit(wanted)
        if wanted.startswith(self.location.directory + "/"):
            wanted = stem(wanted)
        if wanted in self:
            return self[wanted]
        broken = [p for p in self.problems if wanted and p.path.endswith(f"/{wanted}.md")]
        if broken:
            line = f"line {broken[0].line}, " if broken[0].line else ""
            raise MemtoolError(
                f"{broken[0].path} is not readable: {line}{broken[0].message}",
                hint=broken[0].hint,
                code=broken[0].code,
            )
        matches = ids.meant(wanted, self.ids, by_words=by_words)
        if len(matches) == 1:
            return self[matches[0]]
        if matches:
            shown = ", ".join(matches[:5]) + (", …" if len(matches) > 5 else "")
            how = "begin with" if matches[0].startswith(wanted) else "hold the words"
            raise MemtoolError(
                f"{len(matches)} memories {how} {wanted!r}",
                hint=f"name one: {shown}",
                code="ambiguous-id",
            )
        near = ids.nearest(wanted, self.ids)
        raise MemtoolError(
            f"no memory has the id {wanted!r}",
            hint=f"did you mean {' or '.join(near)}?" if near else "memtool list shows every id",
            code="unknown-id",
        )


class ReadTree(Tree):
    """The memories of a snapshot that was read as a whole."""

    def __init__(
        self,
        location: Location,
        records: Iterable[Record] = (),
        problems: Iterable[Problem] = (),
        categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
    ) -> None:
        super().__init__(location, categories)
        self._records = tuple(sorted(records, key=lambda record: (record.id, record.path)))
        self._problems = tuple(problems)
        self._by_id: dict[str, Record] = {}
        for record in self._records:
            self._by_id.setdefault(record.id, record)

    @property
    def records(self) -> tuple[Record, ...]:
        return self._records

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self._problems

    def get(self, id_: str) -> Record | None:
        return self._by_id.get(id_)


def _names(memory: Memory, id_: str) -> bool:
    return any(id_ in as_text(value) for value in memory.fields.values())


def newest(record: Record) -> tuple[int, str]:
    """Return the key by which records come newest first."""
    return (-record.memory.timestamp, record.path)


def read_tree(
    snapshot: Snapshot,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
    as_of: int | None = None,
    mask: Masking | None = None,
    known: Mapping[str, Record] = {},
) -> ReadTree:
    """Read all memories of a snapshot. Files that are none become problems.

    `as_of` leaves out what was written after that second, as if it had not happened yet. `mask`
    takes secrets out of what is to be shown; without it memories are as they were written. `known`
    are files by path that somebody has read before, in the same way.
    """
    from memtool.memory import document  # a warm catalog reads no file
    from memtool.memory.schema import Problem
    from memtool.memory.three_way import divided

    records = [one for one in known.values() if as_of is None or one.memory.timestamp <= as_of]
    problems = list(snapshot.problems)
    hash_blob = blob_hash(snapshot.repository.object_format)
    read = document.Reader(categories).read
    for entry, data in snapshot.read(known):
        if isinstance(data, Problem):
            problems.append(data)
            continue
        try:
            memory = read(data, entry.path)
        except document.Unreadable as error:
            both = divided(data, entry.path, categories)
            faults = error.problems if both is None else [both.problem]
            problems.extend(faults if mask is None else map(mask.problem, faults))
            if both is None:
                continue
            memory = both.memory
        if as_of is None or memory.timestamp <= as_of:
            oid = entry.oid or hash_blob(data)
            seen = memory if mask is None else mask.read(memory, data, oid)
            records.append(Record(seen, entry.path, oid))
    firsts: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: record.path):
        first = firsts.setdefault(record.id, record)
        if first is not record:
            problems += [duplicate(first, record), duplicate(record, first)]
    problems.sort(key=lambda problem: (problem.path, problem.line, problem.code))
    return ReadTree(snapshot, records, problems, categories)


def lineage_problems(tree: Tree, purged: Collection[str] = ()) -> list[Problem]:
    """Return circles and dangling ids (errors) and forks (warnings) as problems, by path.

    What was purged may be missing.
    """
    found = [
        _of(
            tree,
            id_,
            "cycle",
            f"it supersedes itself through {', '.join(cycle)}",
            "drop one supersedes of the circle",
        )
        for cycle in tree.lineage.cycles()
        for id_ in cycle
    ]
    found += [
        _of(
            tree,
            newer,
            "dangling",
            f"it supersedes {missing}, which is not here",
            f"git log --all -- '*{missing}.md' tells where it went",
        )
        for newer, missing in tree.lineage.dangling()
        if missing not in purged
    ]
    for fork in tree.lineage.forks():
        for head in fork.heads:
            problem = _of(
                tree,
                head,
                "fork",
                f"{' and '.join(fork.heads)} both replace {fork.ancestor}",
                f"memtool supersede {fork.heads[0]} TITLE --supersedes {fork.heads[1]}",
            )
            found.append(problem.replace(severity="warning"))
    return sorted(found, key=lambda problem: (problem.path, problem.code))


def _of(tree: Tree, id_: str, code: str, message: str, hint: str) -> Problem:
    return problem_at(tree[id_].path, 1, code, message, hint, id_)


def duplicate(one: Record, other: Record) -> Problem:
    """Return the problem of a memory whose id another one has too."""
    return problem_at(
        one.path,
        1,
        "duplicate-id",
        f"{other.path} has the same id {one.id}",
        "give one of them another id and file name",
        one.id,
    )
