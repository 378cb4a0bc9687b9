"""Bases: the commits that rows of the shared database are about.

Rows of some tables begin with a basis and a path, and hold for one commit. After plain commits on
top of it most of them hold as they are, so a worktree has a basis that moves on with its HEAD: rows
of touched paths are written anew, the others stay. A basis of another worktree, or of a commit that
is not checked out, stays where it is.
"""

from __future__ import annotations

import os
import time

from memtool.store import facts
from memtool.store.facts import DAY_S, UNUSED_S
from memtool.store.repository import head_commit
from memtool.store.state import Unavailable
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from memtool.store.repository import Repository
    from memtool.store.state import Row, Rows

KEPT = 4
"""Bases of one scope that stay for each worktree: branches come back."""
MAX_BASES = 32
TRIED = 2
"""Older bases that are looked at for rows that still hold."""
STEPS_MOST = 1_000
"""Commits between two states that are looked at one by one."""
CITATION, DRIFT = "citation", "drift"
"""The tables whose rows begin with the number of a basis and a path."""


class BasisRow(Value):
    """A basis. `number` is 0 before it is kept.

    Rows of one `scope` can be made from each other; `trust` is what some of their columns depend on
    besides. `worktree` is the one that has `head` checked out, empty for none.
    """

    number: int
    scope: str
    trust: str
    head: str
    worktree: bytes
    used: int

    @property
    def cells(self) -> Row:
        """The row of the database."""
        return (self.number, self.scope, self.trust, self.head, self.worktree, self.used)

    def is_held(self, rows: Rows) -> bool:
        """Tell whether the database still has rows of this commit under this number."""
        found = rows.one("basis", self.number)
        return found is not None and found[:4] == self.cells[:4]


def _of(row: Any) -> BasisRow:
    return BasisRow(*row)


def new(repository: Repository, scope: str, trust: str, head: str) -> BasisRow:
    """Return a basis that is not kept yet."""
    is_checked_out = head_commit(repository) == head
    worktree = os.fsencode(repository.git_dir) if is_checked_out else b""
    return BasisRow(0, scope, trust, head, worktree, int(time.time()))


def known(cache_dir: str, wanted: BasisRow) -> tuple[BasisRow | None, list[BasisRow]]:
    """Return the kept basis that is the wanted one, and the others of its scope.

    Those of the same worktree come first, then those that were used last.
    """
    rows = facts.read(cache_dir, lambda rows: list(rows.some("basis", "scope = ?", wanted.scope)))
    found = sorted(
        (_of(row) for row in rows or []),
        key=lambda one: (one.worktree != wanted.worktree, -one.used, one.number),
    )
    for one in found:
        if (one.trust, one.head) == (wanted.trust, wanted.head):
            if not 0 <= wanted.used - one.used < DAY_S:
                _note_use(cache_dir, one, wanted.used)
            return one, []
    return None, found


def _note_use(cache_dir: str, basis: BasisRow, now: int) -> None:
    def change(rows: Rows) -> None:
        if basis.is_held(rows):
            rows.put("basis", *basis.replace(used=now).cells)

    facts.write(cache_dir, change)


def straight(repository: Repository, older: Iterable[BasisRow], head: str) -> Iterator[BasisRow]:
    """Yield some bases from which a straight history leads to a commit.

    Elsewhere even a file that nobody touched may have another last commit.
    """
    if repository.is_partial:
        return  # trees in between may be absent
    for one in list(older)[:TRIED]:
        if is_straight(repository, one.head, head):
            yield one


def is_straight(repository: Repository, old: str, new: str) -> bool:
    """Tell whether a few commits without a merge among them lead from one commit to another.

    Then what they did not touch has the same last commit in both.
    """
    answer = repository.git.run(
        "rev-list",
        "--parents",
        "--topo-order",
        f"--max-count={STEPS_MOST}",
        "--end-of-options",
        f"{old}..{new}",
        allowed=(0, 128),
    )
    at = new
    for row in answer.decode().splitlines():
        commit, *parents = row.split()
        if commit != at or len(parents) != 1:
            return False
        at = parents[0]
    return at == old


def read(
    cache_dir: str, table: str, basis: BasisRow, paths: Iterable[str] | None = None
) -> dict[str, Any] | None:
    """Return the cells of rows by path, of some paths or of all.

    None is for rows that are no longer those of this commit, or cannot be read.
    """

    def ask(rows: Rows) -> dict[str, Any] | None:
        if not basis.is_held(rows):
            return None
        if paths is None:
            return dict(all_of(rows, table, basis))
        return dict(map(_parted, rows.many(table, (basis.number,), map(os.fsencode, paths))))

    return facts.read(cache_dir, ask)


def all_of(rows: Rows, table: str, basis: BasisRow) -> Iterator[tuple[str, Any]]:
    """Return path and cells of each row."""
    return map(_parted, rows.some(table, "basis = ?", basis.number))


def _parted(row: Any) -> tuple[str, Any]:
    _number, path, *cells = row
    return os.fsdecode(path), cells


def write(cache_dir: str, table: str, basis: BasisRow, cells: Mapping[str, Row]) -> None:
    """Write rows if they still are those of this commit, and that is possible."""

    def change(rows: Rows) -> None:
        if basis.is_held(rows):
            _put(rows, table, basis.number, cells)

    facts.write(cache_dir, change)


def _put(rows: Rows, table: str, number: int, cells: Mapping[str, Row]) -> None:
    rows.put_all(table, ((number, os.fsencode(path), *own) for path, own in cells.items()))


def move(
    cache_dir: str,
    table: str,
    basis: BasisRow,
    head: str,
    changed: Callable[[Rows], Mapping[str, Row]],
) -> BasisRow | None:
    """Let the rows of a basis be those of another commit; return it there, None if it stays.

    `changed` returns the rows that differ.
    """
    moved = basis.replace(head=head, used=int(time.time()))

    def change(rows: Rows) -> None:
        if not basis.is_held(rows):
            raise Unavailable("another process has moved this basis")
        _put(rows, table, basis.number, changed(rows))
        rows.put("basis", *moved.cells)

    return moved if facts.write(cache_dir, change) else None


def add(cache_dir: str, table: str, basis: BasisRow, cells: Mapping[str, Row]) -> BasisRow | None:
    """Keep a basis with its rows, and drop others out of use; None if that is impossible."""
    added = basis

    def change(rows: Rows) -> None:
        nonlocal added
        kept = sorted(map(_of, rows.some("basis", "1")), key=lambda one: -one.used)
        own = (basis.scope, basis.trust, basis.head, basis.worktree)
        like = [one for one in kept if (one.scope, one.worktree) == (basis.scope, basis.worktree)]
        left = {one.number for one in like[KEPT - 1 :] + kept[MAX_BASES - 1 :]}
        for one in kept:
            is_same = (one.scope, one.trust, one.head, one.worktree) == own
            if is_same or one.number in left or one.used < basis.used - UNUSED_S:
                for name in (CITATION, DRIFT, "basis"):
                    rows.remove(name, one.number)
        added = basis.replace(number=1 + max((one.number for one in kept), default=0))
        rows.put("basis", *added.cells)
        _put(rows, table, added.number, cells)

    return added if facts.write(cache_dir, change) else None
