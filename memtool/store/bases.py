"""Bases: the commits that rows of the shared database are about.

Rows such as citations hold for one commit. After plain commits on top of it most of them hold as
they are, so a worktree has a basis that moves on with its HEAD: rows of touched paths are written
anew, the others stay. A basis of another worktree, or of a commit that is not checked out, stays
where it is.
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
    from collections.abc import Callable, Iterable, Iterator
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
_TABLES = ("citation",)
"""Those whose rows begin with the number of a basis."""


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
        "rev-list", "--parents", "--topo-order", f"--max-count={STEPS_MOST}",
        "--end-of-options", f"{old}..{new}", allowed=(0, 128),
    )  # fmt: skip
    at = new
    for row in answer.decode().splitlines():
        commit, *parents = row.split()
        if commit != at or len(parents) != 1:
            return False
        at = parents[0]
    return at == old


def move(
    cache_dir: str, basis: BasisRow, head: str, change: Callable[[Rows], None]
) -> BasisRow | None:
    """Change the rows of a basis to those of another commit; return it there, None if it stays."""
    moved = basis.replace(head=head, used=int(time.time()))

    def advance(rows: Rows) -> None:
        if not basis.is_held(rows):
            raise Unavailable("another process has moved this basis")
        change(rows)
        rows.put("basis", *moved.cells)

    return moved if facts.write(cache_dir, advance) else None


def add(cache_dir: str, basis: BasisRow, fill: Callable[[Rows, int], None]) -> None:
    """Keep a basis with its rows if that is possible, and drop those that are out of use.

    `fill` writes the rows, and gets the number of the basis.
    """

    def change(rows: Rows) -> None:
        kept = sorted(map(_of, rows.some("basis", "1")), key=lambda one: -one.used)
        own = (basis.scope, basis.trust, basis.head, basis.worktree)
        like = [one for one in kept if (one.scope, one.worktree) == (basis.scope, basis.worktree)]
        left = {one.number for one in like[KEPT - 1 :] + kept[MAX_BASES - 1 :]}
        for one in kept:
            is_same = (one.scope, one.trust, one.head, one.worktree) == own
            if is_same or one.number in left or one.used < basis.used - UNUSED_S:
                for table in (*_TABLES, "basis"):
                    rows.remove(table, one.number)
        number = 1 + max((one.number for one in kept), default=0)
        rows.put("basis", *basis.replace(number=number).cells)
        fill(rows, number)

    facts.write(cache_dir, change)
