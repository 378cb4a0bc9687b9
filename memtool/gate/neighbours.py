"""Neighbours: the living memories that a new one may repeat, found by their signatures.

Some memories are held in full, those that changed lately; the others are rows of a table, and
only what may be alike is read. `places` says which are which.
"""

from __future__ import annotations

from memtool.gate.signatures import SHARED, Signature, signature
from memtool.gate.sketches import Damaged, Row, Table
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from memtool.memory.memory import Memory

MOST_CHANGED = 48
"""With more memories changed since, a table moves on to the tree of HEAD; with more judged, all
of its rows are read at once."""
MOST_HOLDING = 1_000
"""A number that more memories share is a common phrase, and leads to none."""
VERIFIED = 5
"""Candidates that are compared in full: those that share most numbers, then by path."""
DEAD = frozenset({"deprecated", "archived", "deleted"})
"""Statuses of memories that are not in use: what they said may be said again."""


class Found(Value):
    """A memory that may say the same; `is_exact` where it does so in the same words."""

    record: Record
    is_exact: bool


class Neighbours:
    """The memories of one tree by their signatures: a table, and what has changed since."""

    def __init__(
        self,
        changed: Iterable[Record],
        table: Table | None = None,
        hidden: Collection[str] = (),
        read: Callable[[Sequence[str]], Mapping[str, Memory]] = lambda _oids: {},
        renewed: Callable[[], Neighbours] | None = None,
    ) -> None:
        """Take records in full, and below them a table whose paths in `hidden` do not count.

        `read` gets memories by the ids of their blobs, `renewed` the same without the table.
        """
        self._changed = sorted(changed, key=lambda record: record.path)
        self._table = table
        self._hidden = hidden
        self._read = read
        self._renewed = renewed
        self._holding: dict[int, list[int]] = {}
        self._saying: dict[int, list[int]] = {}
        self._superseded: set[str] = set()
        self._known: dict[tuple[str, str], Signature] = {}
        for at, record in enumerate(self._changed):
            own = signature(record.memory)
            self._known[record.path, record.oid] = own
            self._saying.setdefault(own.fingerprint, []).append(at)
            for number in own.numbers:
                self._holding.setdefault(number, []).append(at)
            if record.memory.status != "deleted":
                self._superseded.update(record.memory.supersedes)

    def of(self, judged: Sequence[Record]) -> list[list[Found]]:
        """Return for each memory those that it may repeat, the exact ones first.

        They are heads in use. None is the memory itself, another file with its id, or what it
        replaces.
        """
        try:
            return self._of(judged)
        except Damaged:
            if self._renewed is None:
                raise
            return self._renewed().of(judged)

    def _of(self, judged: Sequence[Record]) -> list[list[Found]]:
        if self._table is not None and len(judged) > MOST_CHANGED:  # reading all rows is cheaper
            for row in self._table.rows():
                self._known[row.path, row.oid] = Signature(row.fingerprint, row.numbers)
        stored = [self._stored(record) for record in judged]
        read = self._read(sorted({row.oid for rows in stored for row, _is_exact in rows}))
        found = []
        for record, rows in zip(judged, stored, strict=True):
            near = [
                Found(Record(read[row.oid], row.path, row.oid), is_exact)
                for row, is_exact in rows
                if row.oid in read
            ]
            near += self._near(record)
            found.append(sorted(near, key=lambda one: (not one.is_exact, one.record.path)))
        return found

    def _signature(self, record: Record) -> Signature:
        known = self._known.get((record.path, record.oid)) if record.oid else None
        return known or signature(record.memory)

    def _stored(self, judged: Record) -> list[tuple[Row, bool]]:
        """Return the rows of the table that a memory may repeat."""
        table = self._table
        if table is None:
            return []
        own = self._signature(judged)
        exact = table.saying(own.fingerprint)
        found: list[tuple[Row, bool]] = []
        for at in _likely(exact, map(table.holding, own.numbers)):
            row = table.row(at)
            if row.path not in self._hidden and self._counts(row.id, row.path, row.status, judged):
                found.append((row, at in exact))
                if len(found) == VERIFIED:
                    break
        return found

    def _near(self, judged: Record) -> list[Found]:
        """Return the changed memories that a memory may repeat."""
        own = self._signature(judged)
        exact = self._saying.get(own.fingerprint, [])
        found: list[Found] = []
        for at in _likely(exact, (self._holding.get(number, ()) for number in own.numbers)):
            record = self._changed[at]
            if self._counts(record.id, record.path, record.memory.status, judged):
                found.append(Found(record, at in exact))
                if len(found) == VERIFIED:
                    break
        return found

    def _counts(self, id_: str, path: str, status: str, judged: Record) -> bool:
        return not (
            status in DEAD
            or path == judged.path
            or id_ == judged.id
            or id_ in judged.memory.supersedes
            or self.is_superseded(id_)
        )

    def is_superseded(self, id_: str) -> bool:
        """Tell whether some memory of the tree supersedes an id."""
        if id_ in self._superseded:
            return True
        table = self._table
        return table is not None and any(
            table.row(at).path not in self._hidden for at in table.newer(id_)
        )


def _likely(exact: Sequence[int], postings: Iterable[Sequence[int]]) -> list[int]:
    """Return the exact ones, then by falling number of shared numbers, then in their order."""
    counts: dict[int, int] = {}
    for rows in postings:
        if len(rows) <= MOST_HOLDING:
            for at in rows:
                counts[at] = counts.get(at, 0) + 1
    likely = [at for at, count in counts.items() if count >= SHARED and at not in exact]
    return [*exact, *sorted(likely, key=lambda at: (-counts[at], at))]
