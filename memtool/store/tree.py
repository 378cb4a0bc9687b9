"""Trees: the memories of one snapshot, with their lineage and their problems."""

from __future__ import annotations

from memtool.errors import MemtoolError, UnclearIdError
from memtool.memory import lifecycle
from memtool.memory.changes import id_from_path
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.lineage import Lineage
from memtool.memory.memory import to_text
from memtool.memory.mentions import find_mentions
from memtool.memory.premises import find_premises
from memtool.memory.visibility import OUT_OF_USE
from memtool.store.snapshot import build_problem, make_blob_hash
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Protocol

    from memtool.memory.fields import Category
    from memtool.memory.memory import Memory
    from memtool.memory.schema import Problem
    from memtool.memory.short_ids import ShortIds
    from memtool.store.snapshot import Location, Snapshot
    from memtool.store.state import Row

    class Masker(Protocol):
        """Removes secrets from memories and problems before they are shown."""

        def read(self, memory: Memory, data: bytes, oid: str) -> Memory:
            """Return a masked copy of a memory that was read from `data`."""

        def problem(self, problem: Problem) -> Problem:
            """Return a copy of a problem with a masked message."""


MAX_SUGGESTIONS = 5
MAX_WANTED_CHARS = 80
"""Characters of an unknown id that its error shows."""


class Record(Value):
    """A memory with its path, relative to the top of the worktree, and its blob id."""

    memory: Memory
    path: str
    oid: str

    @property
    def id(self) -> str:
        return self.memory.id


class Overlay(Value):
    """Memories of another commit that are shown together with those of a tree.

    `citations` are the rows of the table `citation` of these memories, by path. `notices` are
    sentences about memories of the commit or the tree, by path. `newer` has, by the id of a memory
    of the tree, the ids that replace it in the commit only.
    """

    commit: str
    citations: Mapping[str, Row]
    notices: Mapping[str, str] = {}
    newer: Mapping[str, tuple[str, ...]] = {}


class Tree:
    """The memories of a snapshot by id. If several files have one id, the first by path counts.

    Subclasses implement `records`, `problems` and `get`; everything else follows from these. A tree
    with an index (see `index.reader`) overrides more, to answer without opening the memories.
    """

    is_partial = False
    """Whether this tree has only some of the memories, because there is no full index yet."""
    overlay: Overlay | None = None
    """The memories in this tree that come from a commit that is not checked out."""
    concealed: frozenset[str] = frozenset()
    """The ids of private memories that were left out, which are not missing."""

    def __init__(self, location: Location, categories: Mapping[str, Category]) -> None:
        self.location = location
        self.categories = categories

    def is_from_overlay(self, record: Record) -> bool:
        """Return whether a memory comes from the overlay."""
        return self.overlay is not None and record.path in self.overlay.citations

    def find_notice(self, record: Record) -> str:
        """Return the overlay's notice on a memory; empty if there is none."""
        return "" if self.overlay is None else self.overlay.notices.get(record.path, "")

    def find_newer_ids(self, record: Record) -> tuple[str, ...]:
        """Return the ids that replace a memory in the overlay's commit only."""
        return () if self.overlay is None else self.overlay.newer.get(record.id, ())

    @property
    def records(self) -> tuple[Record, ...]:
        """All memories, by id and then by path."""
        raise NotImplementedError

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of single files, sorted by path, line and code."""
        raise NotImplementedError

    def get(self, id_: str) -> Record | None:
        """Return the memory with an id; None if there is none."""
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
        """Directory for data derived from these memories; empty for none."""
        return ""

    @property
    def count(self) -> int:
        """Number of memories."""
        return len(self.records)

    @cached_property
    def lineage(self) -> Lineage:
        """The lineage of these memories."""
        return Lineage(record.memory for record in self.records)

    @cached_property
    def ids(self) -> list[str]:
        """The distinct ids of all memories, sorted."""
        return list(dict.fromkeys(record.id for record in self.records))

    @cached_property
    def short_ids(self) -> ShortIds:
        """The short forms of these ids."""
        from memtool.memory.short_ids import ShortIds  # only text for people has them

        return ShortIds(self.ids)

    @cached_property
    def blobs(self) -> dict[str, str]:
        """Blob id of each memory, by path."""
        return {record.path: record.oid for record in self.records}

    @property
    def moments(self) -> list[int]:
        """Timestamp of each memory in seconds, in any order."""
        return [record.memory.timestamp for record in self.records]

    def count_by(self, key: str) -> dict[str, int]:
        """Count memories by `type`, `category` or `status`, sorted by value."""
        counts: dict[str, int] = {}
        for record in self.records:
            value = getattr(record.memory, key)
            counts[value] = counts.get(value, 0) + 1
        return dict(sorted(counts.items()))

    def with_ids(self, ids: Collection[str]) -> list[Record]:
        """Return the memories with these ids, sorted by id and then by path."""
        return [record for record in self.records if record.id in ids] if ids else []

    @property
    def pinned(self) -> list[Record]:
        """The pinned memories, sorted by path."""
        pinned = self.of_kinds(lambda kind: kind.status == "pinned")
        firsts = (record for record in pinned if self[record.id].path == record.path)
        return sorted(firsts, key=lambda record: record.path)

    def state(self, record: Record, now: int) -> str:
        """Return the lifecycle state of a memory at a second, such as `alive`."""
        return lifecycle.find_state(record.memory, now, self.categories)

    def stored_text(self, record: Record) -> bytes:  # noqa: ARG002  # used by an index
        """Return the text of a memory as terms (see `scoring.searchable`); empty if not stored."""
        return b""

    def is_due(self, record: Record, now: int) -> bool:
        """Return whether a memory is due for review at a second."""
        return lifecycle.is_due(record.memory, now, self.categories)

    @cached_property
    def imported_ids(self) -> frozenset[str]:
        """The ids of the decisions that were imported from documents."""
        return frozenset(record.id for record in self.records if record.memory.document)

    def find_absent(self, ids: Iterable[str]) -> set[str]:
        """Return those of these ids that no memory has."""
        return set(ids).difference(self.ids)

    @cached_property
    def premises(self) -> dict[str, tuple[str, ...]]:
        """The ids that each memory rests on, by its id; only those that rest on any."""
        firsts = {record.id: record.memory for record in reversed(self.records)}
        return {id_: ids for id_, memory in firsts.items() if (ids := find_premises(memory))}

    def find_kinds(self, fits: Callable[[Memory], bool]) -> dict[str, Memory]:
        """Return the kind of each memory whose kind fits, by its id; see `of_kinds`."""
        firsts = {record.id: record.memory for record in reversed(self.records)}
        return {id_: memory for id_, memory in firsts.items() if fits(memory)}

    def find_conclusions(self, id_: str) -> list[str]:
        """Return the ids of the memories that rest directly on an id, sorted."""
        return self._conclusions.get(id_, [])

    @cached_property
    def _conclusions(self) -> dict[str, list[str]]:
        conclusions: dict[str, list[str]] = {}
        for conclusion, ids in sorted(self.premises.items()):
            for premise in dict.fromkeys(ids):
                conclusions.setdefault(premise, []).append(conclusion)
        return conclusions

    # The following return memories in any order.

    def alive(self, now: int) -> list[Record]:
        """Return the memories that are alive at a second."""
        return [record for record in self.records if self.state(record, now) == lifecycle.ALIVE]

    def not_alive(self, now: int) -> list[Record]:
        """Return the memories that are not alive at a second."""
        return [record for record in self.records if self.state(record, now) != lifecycle.ALIVE]

    def due(self, now: int) -> list[Record]:
        """Return the memories that are due for review at a second."""
        return [record for record in self.records if self.is_due(record, now)]

    def written_after(self, second: int) -> list[Record]:
        """Return the memories that were written after a second."""
        return [record for record in self.records if record.memory.timestamp > second]

    def of_kinds(self, fits: Callable[[Memory], bool]) -> list[Record]:
        """Return the memories whose kind (shared fields, see `index.memories`) fits."""
        return [record for record in self.records if fits(record.memory)]

    def naming(self, id_: str) -> list[Record]:
        """Return every memory that names an id in one of its fields, perhaps with false matches."""
        return [record for record in self.records if _mentions(record.memory, id_)]

    def naming_files(self, fits: Callable[[str], bool]) -> list[Record]:
        """Return the memories that name a matching path in `files` or as a source that is code."""
        return [record for record in self.records if any(map(fits, record.memory.named_paths()))]

    def mentioning(self, path: str) -> list[Record]:
        """Return the imported decisions whose text names a path, as `find_mentions` reads it."""
        return self._mentions.get(path, [])

    @cached_property
    def _mentions(self) -> dict[str, list[Record]]:
        records_by_path: dict[str, list[Record]] = {}
        for record in self.records:
            for path in find_mentions(record.memory):
                records_by_path.setdefault(path, []).append(record)
        return records_by_path

    def latest_of_kinds(self, fits: Callable[[Memory], bool]) -> Iterator[Record]:
        """Yield the memories whose kind fits, newest first; each is opened only when it is due."""
        yield from sorted(self.of_kinds(fits), key=newest_first_key)

    def find(self, wanted: str, *, by_words: bool = True) -> Record:
        """Return the memory that a text means.

        In this order: its id or path, its short id, the beginning of its id, and, unless `by_words`
        is off, words of its id. Of two memories with one short id, the commit of a citation tells
        which; of several with the words, it is the one in use.

        Raises:
            MemtoolError: there is no match, or several; the hint names them.
        """
        from memtool.memory import ids, short_ids

        text = wanted
        wanted, commit = ids.split_citation(text)
        if wanted.startswith(self.location.directory + "/"):
            wanted = id_from_path(wanted)
        if wanted in self:
            return self[wanted]
        broken = [p for p in self.problems if wanted and p.path.endswith(f"/{wanted}.md")]
        if broken:
            line = f"line {broken[0].line}, " if broken[0].line else ""
            raise MemtoolError(
                f"{broken[0].path} cannot be read: {line}{broken[0].message}",
                hint=broken[0].hint,
                code=broken[0].code,
            )
        matches = short_ids.find_begun(wanted, self.ids)
        if len(matches) > 1 and commit:
            matches = [id_ for id_ in matches if self._has_touched(commit, id_)] or matches
        what = "memories"
        if not matches and by_words:
            matches = short_ids.find_by_words(wanted, self.ids)
            in_use = [*filter(self.is_in_use, matches)] if len(matches) > 1 else []
            if in_use:
                matches, what = in_use, "active memories"
        if len(matches) == 1:
            return self[matches[0]]
        if matches:
            raise UnclearIdError(
                f'"{wanted}" matches {len(matches)} {what}:{self.list_titles(matches)}',
                hint=f"memtool show {matches[0]}",
                code="ambiguous-id",
                wanted=text,
                ids=tuple(matches),
            )
        near = ids.find_nearest(wanted, self.ids)
        raise UnclearIdError(
            f'no memory is called "{wanted[:MAX_WANTED_CHARS]}"',
            hint=f"did you mean {' or '.join(near)}?" if near else _suggest_search(wanted),
            code="unknown-id",
            wanted=text,
        )

    def list_titles(self, ids: Sequence[str]) -> str:
        """Return a line `id  title` for each memory, to end a message; many are only counted."""
        from memtool.redaction.find import clean_text  # only refusals list titles

        titles = [self[id_].memory.title for id_ in ids[:MAX_SUGGESTIONS]]
        lines = [f"{id_}  {clean_text(title)}" for id_, title in zip(ids, titles, strict=False)]
        if len(ids) > MAX_SUGGESTIONS:
            lines.append(f"and {len(ids) - MAX_SUGGESTIONS:,} more")
        return "".join(f"\n  {line}" for line in lines)

    def _has_touched(self, commit: str, id_: str) -> bool:
        """Return whether a commit, by its first digits, has changed the file of a memory."""
        git = self.location.repository.git
        return any(
            line.startswith(commit)
            for line in git.line("log", "--format=%H", "--", self[id_].path).splitlines()
        )

    def is_in_use(self, id_: str) -> bool:
        """Return whether a memory is a head whose status is not out of use."""
        return self.lineage.is_head(id_) and self[id_].memory.status not in OUT_OF_USE


class ReadTree(Tree):
    """The memories of a snapshot that was read completely."""

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


def _suggest_search(text: str) -> str:
    """Return a command that looks for a text which is not an id."""
    import shlex  # for an unknown id only

    is_short = text.isprintable() and len(text) <= MAX_WANTED_CHARS
    return f"memtool search {shlex.quote(text)}" if text.strip() and is_short else "memtool list"


def _mentions(memory: Memory, id_: str) -> bool:
    return any(id_ in to_text(value) for value in memory.fields.values())


def newest_first_key(record: Record) -> tuple[int, str]:
    """Return the sort key that puts the newest record first."""
    return (-record.memory.timestamp, record.path)


def read_tree(
    snapshot: Snapshot,
    categories: Mapping[str, Category] = DEFAULT_CATEGORIES,
    as_of: int | None = None,
    mask: Masker | None = None,
    record_by_path: Mapping[str, Record] = {},
) -> ReadTree:
    """Read all memories of a snapshot. Files that are not memories become problems.

    `as_of` leaves out memories written after that second. `mask` removes secrets; without it
    memories are returned as written. `record_by_path` has the files that the caller has already
    read in the same way.
    """
    from memtool.memory import document  # not needed if the index is up to date
    from memtool.memory.schema import Problem
    from memtool.memory.three_way import read_divided

    records = [
        record
        for record in record_by_path.values()
        if as_of is None or record.memory.timestamp <= as_of
    ]
    problems = list(snapshot.problems)
    hash_blob = make_blob_hash(snapshot.repository.object_format)
    read = document.Reader(categories).read
    for entry, data in snapshot.read(record_by_path):
        if isinstance(data, Problem):
            problems.append(data)
            continue
        try:
            memory = read(data, entry.path)
        except document.Unreadable as error:
            conflict = read_divided(data, entry.path, categories)
            faults = error.problems if conflict is None else [conflict.problem]
            problems.extend(faults if mask is None else map(mask.problem, faults))
            if conflict is None:
                continue
            memory = conflict.memory
        if as_of is None or memory.timestamp <= as_of:
            oid = entry.oid or hash_blob(data)
            shown = memory if mask is None else mask.read(memory, data, oid)
            records.append(Record(shown, entry.path, oid))
    firsts: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: record.path):
        first = firsts.setdefault(record.id, record)
        if first is not record:
            problems += [
                build_duplicate_problem(first, record),
                build_duplicate_problem(record, first),
            ]
    problems.sort(key=lambda problem: (problem.path, problem.line, problem.code))
    return ReadTree(snapshot, records, problems, categories)


def find_lineage_problems(tree: Tree, purged: Collection[str] = ()) -> list[Problem]:
    """Return cycles and dangling ids (errors) and forks (warnings), sorted by path.

    Ids in `purged` may be missing.
    """
    problems = [
        _build_problem(
            tree,
            id_,
            "cycle",
            f"it supersedes itself through {', '.join(cycle)}",
            "drop one supersedes of the circle",
        )
        for cycle in tree.lineage.find_cycles()
        for id_ in cycle
    ]
    problems += [
        _build_problem(
            tree,
            newer,
            "dangling",
            f"it supersedes {missing}, which is not here",
            f"git log --all -- '*{missing}.md' tells where it went",
        )
        for newer, missing in tree.lineage.find_dangling()
        if missing not in purged
    ]
    for fork in tree.lineage.find_forks():
        for head in fork.heads:
            problem = _build_problem(
                tree,
                head,
                "fork",
                f"{' and '.join(fork.heads)} both replace {fork.ancestor}",
                f"memtool resolve {' '.join(fork.heads)} --keep newer --reason TEXT",
            )
            problems.append(problem.replace(severity="warning"))
    return sorted(problems, key=lambda problem: (problem.path, problem.code))


def _build_problem(tree: Tree, id_: str, code: str, message: str, hint: str) -> Problem:
    return build_problem(tree[id_].path, 1, code, message, hint, id_)


def build_duplicate_problem(record: Record, other: Record) -> Problem:
    """Build the problem of a memory that has the same id as another one."""
    return build_problem(
        record.path,
        1,
        "duplicate-id",
        f"{other.path} has the same id {record.id}",
        "give one of them another id and file name",
        record.id,
    )
