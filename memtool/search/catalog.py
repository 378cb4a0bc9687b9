"""Catalogs: the memories of a tree and the index over them, without reading what nobody asks for.

A `Catalog` is used like a `store.tree.Tree`: `snapshot`, `records` (by id), `by_id`, `lineage`,
`problems` and `find` mean the same and give the same. Its records are read when they are asked
for, so iterating over all of them costs what reading the tree costs; a search touches few.

    catalog = open_catalog(repository, directory, categories)   # the worktree
    catalog = open_catalog(..., at="HEAD")                      # a revision, or `:index`
    catalog = open_catalog(..., as_of=second)                   # without what came later
    catalog.freshness                                           # "exact" or "dir-exact"
    catalog.notes                                               # what the user should hear
    catalog.verify(records)                                     # are these files still the same

`lineage` knows only the memories that supersede others or are superseded.
"""

from __future__ import annotations

import os
from _bisect import insort_right

from memtool.memory.lineage import Lineage
from memtool.search.layout import Broken
from memtool.search.state import stat_of
from memtool.store.tree import Tree, duplicate
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from memtool.memory.fields import Category
    from memtool.memory.problem import Problem
    from memtool.search.parts import Parts
    from memtool.search.state import Stat
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot
    from memtool.store.tree import Record

    Answer = TypeVar("Answer")
    Lazy = Sequence[Record]
    Known = Mapping[str, Record]
    Taken = Snapshot
else:
    Lazy = Known = Taken = object

EXACT, DIR_EXACT = "exact", "dir-exact"


class Catalog(Tree):
    """The memories of one snapshot.

    `freshness` says what was checked: `exact` means every file, `dir-exact` every folder and each
    file of those that changed. `notes` is what the user should hear beside the answer. `parts` are
    the indexes that hold it, None where the tree was read as a whole; `is_cached` tells whether
    its index may then be kept.
    """

    def __init__(self, tree: Tree, *, is_cached: bool = True) -> None:
        """Take a tree that was read as a whole."""
        self.is_cached = is_cached
        self.snapshot = tree.snapshot
        self.records = tree.records
        self.by_id = tree.by_id
        self.problems = tree.problems
        self.freshness = EXACT
        self.notes: list[str] = []
        self.parts: Parts | None = None
        self.categories: Mapping[str, Category] | None = None

    def verify(self, records: Iterable[Record]) -> bool:
        """Tell whether the files of records are still those that were read."""
        del records  # they were read while this catalog was opened
        return True


class StoredCatalog(Catalog):
    """The memories of a worktree, as its state, a segment and the changes since give them.

    Should what is stored turn out to be damaged, `renew` gives the parts anew, from the files.
    """

    def __init__(
        self,
        taken: Snapshot,
        parts: Parts,
        problems: Iterable[Problem],
        statuses: Callable[[str], Stat | None],
        renew: Callable[[], Parts],
        categories: Mapping[str, Category],
    ) -> None:
        self.snapshot = taken
        self.parts: Parts = parts
        self.is_cached = True
        self.freshness = EXACT
        self.notes = []
        self.categories = categories
        self._problems = list(problems)
        self._statuses = statuses
        self._renew: Callable[[], Parts] | None = renew
        self._numbers: dict[str, int] = {}
        self.records = Records(self)  # type: ignore[assignment]  # a sequence, not a tuple
        self.by_id = ById(self)  # type: ignore[assignment]  # a mapping, not a dict

    def whole(self, ask: Callable[[Parts], Answer]) -> Answer:
        """Ask the parts; where they are damaged, make them anew and ask again.

        That may happen on the way, to what is asked within: the numbers that were had before are
        then those of other memories, and all is asked again.
        """
        parts = self.parts
        try:
            found = ask(parts)
        except Broken:
            if self._renew is None:
                raise
            if self.parts is parts:
                self.parts, self._renew = self._renew(), None
                self._numbers.clear()
                for name in ("_order", "lineage", "problems"):
                    self.__dict__.pop(name, None)
        else:
            if self.parts is parts:
                return found
        return ask(self.parts)

    def record(self, number: int) -> Record:
        """Return the record with a number of the index."""
        found = self.parts.record(number)
        self._numbers[found.path] = number
        return found

    def number_of(self, record: Record) -> int | None:
        """Return the number of a record that came from here."""
        return self._numbers.get(record.path)

    def numbers_of(self, ids: Iterable[str]) -> set[int]:
        """Return the numbers of all memories with one of some ids."""
        wanted = list(ids)
        return self.whole(lambda parts: parts.numbers_of_any(wanted))

    @property
    def pinned(self) -> Sequence[Record]:
        """The pinned memories, by path."""

        def ask(parts: Parts) -> list[Record]:
            return [
                self.record(part.first + local)
                for part in parts.parts
                for local in part.shelf.pinned
                if local not in part.dead
            ]

        found = self.whole(ask)
        return sorted(
            (one for one in found if self.by_id[one.id].path == one.path),
            key=lambda record: record.path,
        )

    @cached_property
    def lineage(self) -> Lineage:
        """Who supersedes whom, among the memories that supersede or are superseded."""
        return self.whole(self._lineage)

    def _lineage(self, parts: Parts) -> Lineage:
        linked: dict[int, Link] = {}
        for part in parts.parts:
            for local, is_deleted, olds in part.shelf.links:
                if local not in part.dead:
                    status = "deleted" if is_deleted else ""
                    linked[part.first + local] = Link(part.shelf.id(local), status, olds)
        named = sorted({old for link in linked.values() for old in link.supersedes})
        for id_ in named:
            if len(parts.parts) > 1:
                numbers = parts.numbers_of(id_)
            else:
                (base,) = parts.parts
                numbers = [n for n in base.shelf.targets.get(id_, ()) if n not in base.dead]
            for number in numbers:
                linked.setdefault(number, Link(id_, "", ()))
        found: Any = (link for _number, link in sorted(linked.items()))
        return Lineage(found)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:  # type: ignore[override]  # found when asked for
        """What is wrong, by path, line and code."""

        def ask(parts: Parts) -> list[Problem]:
            found = []
            fresh = {
                part.shelf.id(local)
                for part in parts.parts[1:]
                for local in range(part.shelf.count)
                if local not in part.dead
            }
            twins = fresh.union(*(part.shelf.twins for part in parts.parts))
            for id_ in sorted(twins):
                same = [self.record(number) for number in parts.numbers_of(id_)]
                for other in same[1:]:
                    found += [duplicate(same[0], other), duplicate(other, same[0])]
            return found

        problems = self._problems + self.whole(ask)
        problems.sort(key=lambda problem: (problem.path, problem.line, problem.code))
        return tuple(problems)

    @cached_property
    def _order(self) -> list[int]:
        """The numbers of all records, by id and then by path."""

        def ask(parts: Parts) -> list[int]:
            def key(number: int) -> tuple[str, str]:
                path = parts.path(number)
                return (path.rpartition("/")[2][:-3], path)

            order: list[int] = []
            for part in parts.parts:
                living = [n for n in part.shelf.by_id() if n not in part.dead]
                if not part.first:
                    order = living
                    continue
                for local in living:
                    insort_right(order, part.first + local, key=key)
            return order

        return self.whole(ask)

    def verify(self, records: Iterable[Record]) -> bool:
        """Tell whether the files of records are still those that were read.

        Where not, only opening it again with an exact check is sure to see the change.
        """
        top = self.snapshot.repository.top
        for record in records:
            try:
                now = os.lstat(f"{top}/{record.path}")
            except OSError:
                return False
            if stat_of(now) != self._statuses(record.path):
                return False
        return True


class Link:
    """What lineage asks of a memory."""

    __slots__ = ("id", "status", "supersedes")

    def __init__(self, id_: str, status: str, supersedes: tuple[str, ...]) -> None:
        self.id = id_
        self.status = status
        self.supersedes = supersedes


class Records(Lazy):
    """All records by id, each made when it is asked for."""

    def __init__(self, catalog: StoredCatalog) -> None:
        self._catalog = catalog

    def __len__(self) -> int:
        return self._catalog.parts.count

    def __getitem__(self, at: Any) -> Any:
        found = self._catalog._order[at]  # noqa: SLF001  # one class in two
        return (
            [self._one(number) for number in found] if isinstance(at, slice) else self._one(found)
        )

    def __iter__(self) -> Iterator[Record]:
        return map(self._one, self._catalog._order)  # noqa: SLF001

    def _one(self, number: int) -> Record:
        return self._catalog.whole(lambda _parts: self._catalog.record(number))


class ById(Known):
    """The records by id, each made when it is asked for; of twins the first by path."""

    def __init__(self, catalog: StoredCatalog) -> None:
        self._catalog = catalog
        self._known: dict[str, Record | None] = {}

    def __getitem__(self, id_: str) -> Record:
        found: Record | None = self.get(id_)
        if found is None:
            raise KeyError(id_)
        return found

    def __contains__(self, id_: object) -> bool:
        return isinstance(id_, str) and self.get(id_) is not None

    def __iter__(self) -> Iterator[str]:
        last = None
        for record in self._catalog.records:
            if record.id != last:
                last = record.id
                yield last

    def __len__(self) -> int:
        return sum(1 for _id in self)

    def __bool__(self) -> bool:
        return self._catalog.parts.count > 0

    def get(self, id_: str, default: Any = None) -> Any:
        """Return the record with an id, or the default."""
        if id_ not in self._known:

            def ask(parts: Parts) -> Record | None:
                numbers = parts.numbers_of(id_)
                return self._catalog.record(numbers[0]) if numbers else None

            self._known[id_] = self._catalog.whole(ask)
        found = self._known[id_]
        return default if found is None else found

    def keys(self) -> Any:
        """Return all ids, sorted."""
        return list(self)

    def values(self) -> Any:
        """Return the record of each id, sorted by id."""
        return [self[id_] for id_ in self]

    def items(self) -> Any:
        """Return each id with its record, sorted."""
        return [(id_, self[id_]) for id_ in self]


class Worktree(Taken):
    """A snapshot of a worktree that lists its files when it is asked for more than where it is."""

    kind = name = "worktree"

    def __init__(self, repository: Repository, directory: str) -> None:
        self.__dict__.update(repository=repository, directory=directory)

    def __getattr__(self, name: str) -> Any:
        """Return what only a listing knows, such as `entries`; it is made once."""
        if name.startswith("__"):
            raise AttributeError(name)
        from memtool.store import snapshot

        taken = snapshot.of_worktree(self.repository, self.directory)
        for field in ("entries", "problems", "read", "replace"):
            self.__dict__[field] = getattr(taken, field)
        return getattr(taken, name)


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
        from memtool.search import opening

        return opening.open_worktree(repository, directory, categories, as_of, exact=exact)
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
