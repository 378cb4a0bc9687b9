"""Bases: the commits that rows of the shared database belong to.

Rows of some tables begin with a basis and a path, and are valid for one commit. After ordinary
commits on top of it most rows remain valid, so the basis of a worktree moves with its HEAD: only
rows of touched paths are rewritten. A basis of a commit that is not checked out does not move.
"""

from __future__ import annotations

import os
import time

from memtool.store import facts
from memtool.store.facts import DAY_S, MAX_UNUSED_S
from memtool.store.repository import read_head_commit
from memtool.store.state import UnavailableError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from memtool.store.repository import Repository
    from memtool.store.state import Row, Rows

BASES_PER_WORKTREE = 4
"""Bases of one scope that are kept per worktree, since users switch between branches."""
MAX_BASES = 32
MAX_TRIED = 2
"""Older bases that are searched for rows that are still valid."""
MAX_STEPS = 1_000
"""Maximum number of commits between two bases."""
CITATION, DRIFT, LANDING = "citation", "drift", "landing"
"""The tables whose rows begin with the number of a basis and a path."""


class BasisRow(Value):
    """A basis. `number` is 0 before it is stored.

    Rows of one `scope` can be derived from each other; `trust` is what some of their columns also
    depend on. `worktree` is the one that has `head` checked out, empty for none.
    """

    number: int
    scope: str
    trust: str
    head: str
    worktree: bytes
    used: int

    @property
    def cells(self) -> Row:
        """The cells of the database row."""
        return (self.number, self.scope, self.trust, self.head, self.worktree, self.used)

    def is_current(self, rows: Rows) -> bool:
        """Return whether the rows with this number still belong to this commit."""
        row = rows.get("basis", self.number)
        return row is not None and row[:4] == self.cells[:4]


def _to_basis(row: Any) -> BasisRow:
    return BasisRow(*row)


def create(repository: Repository, scope: str, trust: str, head: str) -> BasisRow:
    """Create a basis that is not stored yet."""
    is_checked_out = read_head_commit(repository) == head
    worktree = os.fsencode(repository.git_dir) if is_checked_out else b""
    return BasisRow(0, scope, trust, head, worktree, int(time.time()))


def find_stored(cache_dir: str, wanted: BasisRow) -> tuple[BasisRow | None, list[BasisRow]]:
    """Return the stored basis that equals the wanted one, or None and the others of its scope.

    Those of the same worktree come first, then the most recently used ones.
    """
    rows = facts.read(cache_dir, lambda rows: list(rows.find("basis", "scope = ?", wanted.scope)))
    bases = sorted(
        (_to_basis(row) for row in rows or []),
        key=lambda basis: (basis.worktree != wanted.worktree, -basis.used, basis.number),
    )
    for basis in bases:
        if (basis.trust, basis.head) == (wanted.trust, wanted.head):
            if not 0 <= wanted.used - basis.used < DAY_S:
                _note_use(cache_dir, basis, wanted.used)
            return basis, []
    return None, bases


def _note_use(cache_dir: str, basis: BasisRow, now: int) -> None:
    def change(rows: Rows) -> None:
        if basis.is_current(rows):
            rows.put("basis", *basis.replace(used=now).cells)

    facts.write(cache_dir, change)


def find_straight(
    repository: Repository, older: Iterable[BasisRow], head: str
) -> Iterator[BasisRow]:
    """Yield bases from which a straight history leads to a commit, among the first MAX_TRIED.

    With merges in between even an untouched file may have another last commit.
    """
    if repository.is_partial:
        return  # trees in between may be missing
    for basis in list(older)[:MAX_TRIED]:
        if is_straight(repository, basis.head, head):
            yield basis


def is_straight(repository: Repository, old: str, new: str) -> bool:
    """Return whether at most MAX_STEPS commits without a merge lead from one commit to another.

    Then an untouched path has the same last commit in both.
    """
    answer = repository.git.run(
        "rev-list",
        "--parents",
        "--topo-order",
        f"--max-count={MAX_STEPS}",
        "--end-of-options",
        f"{old}..{new}",
        allowed=(0, 128),
    )
    expected = new
    for row in answer.decode().splitlines():
        commit, *parents = row.split()
        if commit != expected or len(parents) != 1:
            return False
        expected = parents[0]
    return expected == old


def read(
    cache_dir: str,
    table: str,
    basis: BasisRow,
    paths: Iterable[str] | None = None,
    where: str = "",
) -> dict[str, Any] | None:
    """Return the cells of rows by path: of some paths, or of all that satisfy a condition in SQL.

    None means that the rows belong to another commit by now, or cannot be read.
    """

    def read_rows(rows: Rows) -> dict[str, Any] | None:
        if not basis.is_current(rows):
            return None
        if paths is None:
            return dict(read_all(rows, table, basis, where))
        return dict(
            map(_split_row, rows.find_many(table, (basis.number,), map(os.fsencode, paths)))
        )

    return facts.read(cache_dir, read_rows)


def read_all(rows: Rows, table: str, basis: BasisRow, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and cells of each row that satisfies a condition in SQL."""
    condition = f"basis = ? AND ({where})" if where else "basis = ?"
    return map(_split_row, rows.find(table, condition, basis.number))


def _split_row(row: Any) -> tuple[str, Any]:
    _number, path, *cells = row
    return os.fsdecode(path), cells


def write(cache_dir: str, table: str, basis: BasisRow, cells: Mapping[str, Row]) -> None:
    """Write rows, unless the basis belongs to another commit by now, or writing fails."""

    def change(rows: Rows) -> None:
        if basis.is_current(rows):
            _put(rows, table, basis.number, cells)

    facts.write(cache_dir, change)


def _put(rows: Rows, table: str, number: int, cells: Mapping[str, Row]) -> None:
    rows.put_all(table, ((number, os.fsencode(path), *own) for path, own in cells.items()))


def move(
    cache_dir: str,
    table: str,
    basis: BasisRow,
    head: str,
    compute_changes: Callable[[Rows], Mapping[str, Row]],
) -> BasisRow | None:
    """Move a basis to another commit and return it there; None if that fails.

    `compute_changes` returns the rows that differ.
    """
    moved = basis.replace(head=head, used=int(time.time()))

    def change(rows: Rows) -> None:
        if not basis.is_current(rows):
            raise UnavailableError("another process has moved this basis")
        _put(rows, table, basis.number, compute_changes(rows))
        rows.put("basis", *moved.cells)

    return moved if facts.write(cache_dir, change) else None


def add(cache_dir: str, table: str, basis: BasisRow, cells: Mapping[str, Row]) -> BasisRow | None:
    """Store a basis with its rows, and delete unused bases; None if that fails."""
    added = basis

    def change(rows: Rows) -> None:
        nonlocal added
        stored = sorted(
            map(_to_basis, rows.find("basis", "1")), key=lambda candidate: -candidate.used
        )
        key = (basis.scope, basis.trust, basis.head, basis.worktree)
        same_scope = [
            row for row in stored if (row.scope, row.worktree) == (basis.scope, basis.worktree)
        ]
        dropped = {
            row.number for row in same_scope[BASES_PER_WORKTREE - 1 :] + stored[MAX_BASES - 1 :]
        }
        for row in stored:
            is_same = (row.scope, row.trust, row.head, row.worktree) == key
            if is_same or row.number in dropped or row.used < basis.used - MAX_UNUSED_S:
                for name in (CITATION, DRIFT, LANDING, "basis"):
                    rows.remove(name, row.number)
        added = basis.replace(number=1 + max((row.number for row in stored), default=0))
        rows.put("basis", *added.cells)
        _put(rows, table, added.number, cells)

    return added if facts.write(cache_dir, change) else None
