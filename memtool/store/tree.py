"""Trees: the memories of one snapshot, read, with their lineage and with what is wrong."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.lineage import Lineage
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from memtool.memory.memory import Memory
    from memtool.memory.problem import Problem
    from memtool.store.snapshot import Snapshot


class Record(Value):
    """A memory and where it lies: its path from the top, and the id of its bytes as a blob."""

    memory: Memory
    path: str
    oid: str

    @property
    def id(self) -> str:
        return self.memory.id


class Tree:
    """All readable memories of a snapshot, sorted by id. Files that are none become problems.

    `as_of` leaves out what was written after that second, as if it had not happened yet.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        categories: Collection[str] = DEFAULT_CATEGORIES,
        as_of: int | None = None,
    ) -> None:
        from memtool.memory import document  # a warm catalog reads no file
        from memtool.memory.problem import Problem

        self.snapshot = snapshot
        records = []
        problems = list(snapshot.problems)
        hash_blob = blob_hash(snapshot.repository.object_format)
        read = document.Reader(categories).read
        for entry, data in snapshot.read():
            if isinstance(data, Problem):
                problems.append(data)
                continue
            try:
                memory = read(data, entry.path)
            except document.Unreadable as error:
                problems.extend(error.problems)
                continue
            if as_of is None or memory.timestamp <= as_of:
                records.append(Record(memory, entry.path, entry.oid or hash_blob(data)))
        records.sort(key=lambda record: (record.memory.id, record.path))
        self.records = tuple(records)
        self.by_id: dict[str, Record] = {}
        for record in self.records:
            first = self.by_id.setdefault(record.id, record)
            if first is not record:
                problems.extend(
                    duplicate(one, other) for one, other in ((first, record), (record, first))
                )
        problems.sort(key=lambda problem: (problem.path, problem.line, problem.code))
        self.problems = tuple(problems)

    @cached_property
    def lineage(self) -> Lineage:
        """Who supersedes whom among these memories."""
        return Lineage(record.memory for record in self.records)

    @cached_property
    def ids(self) -> list[str]:
        """The ids of all memories, sorted, each once."""
        return list(self.by_id)

    @cached_property
    def blobs(self) -> dict[str, str]:
        """The blob of each memory by its path."""
        return {record.path: record.oid for record in self.records}

    def count(self, key: str) -> dict[str, int]:
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
    def pinned(self) -> Sequence[Record]:
        """The pinned memories, by path."""
        found = [record for record in self.by_id.values() if record.memory.status == "pinned"]
        return sorted(found, key=lambda record: record.path)

    def find(self, wanted: str) -> Record:
        """Return the memory with an id, or the only one whose id begins so.

        Raises:
            MemtoolError: none does, or several do; the hint names them.
        """
        if wanted in self.by_id:
            return self.by_id[wanted]
        if wanted.startswith(self.snapshot.directory + "/"):
            wanted = wanted.rpartition("/")[2].removesuffix(".md")
            if wanted in self.by_id:
                return self.by_id[wanted]
        known = self.ids
        matches = [id_ for id_ in known if id_.startswith(wanted)] if wanted else []
        if len(matches) == 1:
            return self.by_id[matches[0]]
        if matches:
            shown = ", ".join(matches[:5]) + (", …" if len(matches) > 5 else "")
            raise MemtoolError(
                f"{len(matches)} memories begin with {wanted!r}",
                hint=f"name one: {shown}",
                code="ambiguous-id",
            )
        broken = [p for p in self.problems if wanted and p.path.endswith(f"/{wanted}.md")]
        if broken:
            raise MemtoolError(
                f"{broken[0].path} is not readable: line {broken[0].line}, {broken[0].message}",
                hint=broken[0].hint,
                code=broken[0].code,
            )
        from memtool.memory import ids

        near = ids.nearest(wanted, known)
        raise MemtoolError(
            f"no memory has the id {wanted!r}",
            hint=f"did you mean {' or '.join(near)}?" if near else "memtool list shows every id",
            code="unknown-id",
        )


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
    from memtool.memory.problem import Problem

    return Problem(tree.by_id[id_].path, 1, code, message, hint, id=id_)


def duplicate(one: Record, other: Record) -> Problem:
    """Return the problem of a memory whose id another one has too."""
    from memtool.memory.problem import Problem  # ids rarely stand twice

    return Problem(
        one.path,
        1,
        "duplicate-id",
        f"{other.path} has the same id {one.id}",
        "give one of them another id and file name",
        id=one.id,
    )


def blob_hash(object_format: str) -> Callable[[bytes], str]:
    """Return the function that names bytes as git does; `.memory` is never filtered."""
    import hashlib

    digest = getattr(hashlib, object_format)  # `hashlib.new` looks it up each time

    def blob_id(data: bytes) -> str:
        found: str = digest(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
        return found

    return blob_id
