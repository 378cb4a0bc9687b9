"""Kin: the lineage around some memories, without reading the tree that they lie in.

`Kin` knows every memory of a tree by id: where it lies, whether it is deleted, what it supersedes
and what supersedes it. It is made from a tree that was read, or asks the rows of one.
"""

from __future__ import annotations

from memtool.memory.lineage import Lineage
from memtool.memory.memory import Memory
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memtool.gate.near_duplicates import Rows

MOST_KIN = 20_000
"""Memories of one lineage that are followed; a longer one is cut, and circles in it not seen."""


class Row(Value):
    """What is known of one memory file. A deleted memory supersedes nothing.

    `oid` is its blob, and `bits` its words (see `near_duplicates.bits_of`), where they are known.
    """

    id: str
    path: str
    status: str
    supersedes: tuple[str, ...]
    oid: str = ""
    bits: int = 0


class Kin:
    """Which memory supersedes which in one tree."""

    def __init__(self, rows: Iterable[Row], tree: Rows | None = None) -> None:
        """Take rows, and those of a tree that knows all the others, and may know these too."""
        self._rows: dict[str, list[Row]] = {}
        self._newer: dict[str, set[str]] = {}
        self._paths: set[str] = set()
        for row in rows:
            self._rows.setdefault(row.id, []).append(row)
            self._paths.add(row.path)
            for old in row.supersedes:
                self._newer.setdefault(old, set()).add(row.id)
        self._tree = tree

    def rows(self, id_: str) -> list[Row]:
        """Return the files that have an id, sorted by path."""
        found = list(self._rows.get(id_, ()))
        if self._tree is not None:
            found += self._others(self._tree.called(id_))
        return sorted(found, key=lambda row: row.path)

    def newer(self, id_: str) -> tuple[str, ...]:
        """Return the ids of the memories that supersede this one directly, sorted."""
        found = set(self._newer.get(id_, ()))
        if self._tree is not None:
            found.update(row.id for row in self._others(self._tree.newer(id_)))
        return tuple(sorted(found))

    def _others(self, rows: Iterable[Row]) -> Iterator[Row]:
        return (row for row in rows if row.path not in self._paths)

    def supersedes(self, id_: str) -> tuple[str, ...]:
        """Return what a memory supersedes, missing ids included, sorted."""
        return tuple(sorted({old for row in self.rows(id_) for old in row.supersedes}))

    def is_there(self, id_: str) -> bool:
        """Tell whether some file has this id."""
        return bool(self.rows(id_))

    def around(self, ids: Iterable[str]) -> Lineage:
        """Return the lineage of these memories and of all that are linked to them."""
        seen: set[str] = set()
        todo = sorted(set(ids), reverse=True)
        while todo and len(seen) < MOST_KIN:
            id_ = todo.pop()
            if id_ in seen:
                continue
            seen.add(id_)
            todo += [near for near in (*self.supersedes(id_), *self.newer(id_)) if near not in seen]
        return Lineage(
            Memory(fields={"id": id_, "supersedes": self.supersedes(id_)}, body="")
            for id_ in sorted(seen)
            if self.is_there(id_)
        )


def row_of(memory: Memory, path: str) -> Row:
    """Return the row of a memory that was read; a deleted one replaces nothing."""
    replaced = () if memory.status == "deleted" else memory.supersedes
    return Row(memory.id, path, memory.status, replaced)
