"""Neighbours: the living memories that a new one may repeat, found by their signatures.

Of the rows of a census only those are read whose signatures say that they may be alike.
"""

from __future__ import annotations

from memtool.gate.census import Census
from memtool.gate.sketches import SHARED, Row
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.gate.census import Stamp
    from memtool.memory.memory import Memory

MOST_SIGNED = 48
"""With more memories judged whose signatures are not at hand, all rows are read for them."""
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


def row_of(memory: Memory, path: str, oid: str) -> Row:
    """Return the row of a memory."""
    from memtool.gate.signatures import signature  # what was signed before needs no terms

    own = signature(memory)
    replaced = () if memory.status == "deleted" else memory.supersedes
    return Row(memory.id, path, memory.status, replaced, oid, own.fingerprint, own.numbers)


def among(records: Iterable[Record]) -> Neighbours:
    """Return the neighbours among some records alone."""
    held = {(record.path, record.oid): record.memory for record in records}
    rows = [row_of(memory, path, oid) for (path, oid), memory in held.items()]
    return Neighbours(Census(rows, held))


class Neighbours:
    """The memories of one tree by their signatures."""

    def __init__(self, census: Census) -> None:
        self.census = census
        self._signed: dict[Stamp, tuple[int, Sequence[int]]] = {}
        self._told: dict[Stamp, list[Found]] = {}

    def of(self, judged: Sequence[Record]) -> list[list[Found]]:
        """Return for each memory those that it may repeat, the exact ones first.

        They are heads in use. None is the memory itself, another file with its id, or what it
        replaces.
        """
        rest = [record for record in judged if (record.path, record.oid) not in self._told]
        found = dict(zip(map(id, rest), self.census.asked(lambda: self._of(rest)), strict=True))
        for record in rest:
            if record.oid:  # a draft has no id yet, and several may be asked about
                self._told[record.path, record.oid] = found[id(record)]
        return [
            found[id(record)] if id(record) in found else self._told[record.path, record.oid]
            for record in judged
        ]

    def worth(self, judged: Sequence[Record], threshold: float) -> list[list[Found]]:
        """Return the neighbours that are worth comparing with a memory: here, all of them."""
        del threshold
        return self.of(judged)

    def share(self, one: Record, other: Record) -> float | None:
        """Return how alike two memories are, where that was kept."""
        del one, other
        return None

    def compared(self, one: Record, other: Record, share: float) -> None:
        """Hear how alike two memories are."""

    def save(self) -> None:
        """Keep what was found for the next time, where that is of use."""

    def _of(self, judged: Sequence[Record]) -> list[list[Found]]:
        self._sign(judged)
        likely = [self._likely(record) for record in judged]
        read = self.census.memories([row for rows in likely for row, _is_exact in rows])
        found = []
        for rows in likely:
            near = [
                Found(Record(read[row.path, row.oid], row.path, row.oid), is_exact)
                for row, is_exact in rows
                if (row.path, row.oid) in read
            ]
            found.append(sorted(near, key=lambda one: (not one.is_exact, one.record.path)))
        return found

    def _sign(self, judged: Sequence[Record]) -> None:
        """Make the signatures of memories known, by the cheaper way."""
        known = self.census.known()
        for _way in range(2):
            for row in known:
                self._signed[row.path, row.oid] = row.fingerprint, row.numbers
            if sum((record.path, record.oid) not in self._signed for record in judged) <= (
                MOST_SIGNED
            ):
                return
            known = self.census.all()

    def _signature(self, record: Record) -> tuple[int, Sequence[int]]:
        """Return fingerprint and numbers of a memory."""
        known = self._signed.get((record.path, record.oid)) if record.oid else None
        if known is None:
            row = row_of(record.memory, record.path, record.oid)
            known = row.fingerprint, row.numbers
        return known

    def _likely(self, judged: Record) -> list[tuple[Row, bool]]:
        """Return the rows that a memory may repeat: the exact ones, then those most alike."""
        fingerprint, numbers = self._signature(judged)
        exact = self.census.saying(fingerprint)
        found: list[tuple[Row, bool]] = []
        for at in (*exact, *self._alike(numbers, exact)):
            row = self.census.row(at)
            if self._counts(row, judged):
                found.append((row, at in exact))
                if len(found) == VERIFIED:
                    break
        return found

    def _alike(self, numbers: Sequence[int], exact: Sequence[int]) -> Iterable[int]:
        """Yield rows by falling number of shared numbers, then by path."""
        counts: dict[int, int] = {}
        for number in numbers:
            rows = self.census.holding(number)
            if len(rows) <= MOST_HOLDING:
                for at in rows:
                    counts[at] = counts.get(at, 0) + 1
        likely = [at for at, count in counts.items() if count >= SHARED and at not in exact]
        return sorted(likely, key=lambda at: (-counts[at], self.census.place(at)))

    def _counts(self, row: Row, judged: Record) -> bool:
        return not (
            row.status in DEAD
            or row.path == judged.path
            or row.id == judged.id
            or row.id in judged.memory.supersedes
            or self.census.newer(row.id)
        )
