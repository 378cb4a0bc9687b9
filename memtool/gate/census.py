"""Census: every memory of one tree as a row, found by id, by what it says, by what it replaces.

Most rows lie in a table that an earlier tree left in the cache; those of files that changed since
stand above it, and hide what the table says of their paths. So the answers are those of one table
of the whole tree, wherever the one in the cache stands. A table that turns out to be damaged is
made anew, and the question is asked again.
"""

from __future__ import annotations

from _bisect import bisect_left

from memtool.gate.sketches import Damaged, Row, Table
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import TypeVar

    from memtool.memory.memory import Memory

    Answer = TypeVar("Answer")

Stamp = tuple[str, str]
"""Path and blob id; the id is empty for a file that git has not seen."""


def _nothing(_oids: Sequence[str]) -> Mapping[str, Memory]:
    return {}


class Census:
    """The rows of one tree by their numbers: those of the table from 0, the others below 0."""

    def __init__(
        self,
        changed: Sequence[Row],
        held: Mapping[Stamp, Memory],
        table: Table | None = None,
        gone: Collection[str] = (),
        read: Callable[[Sequence[str]], Mapping[str, Memory]] = _nothing,
        renewed: Callable[[], Census] | None = None,
    ) -> None:
        """Take the rows of changed files, and below them a table that knows nothing of them.

        `gone` are further paths at which the table no longer holds. Memories that are not `held`
        are read by the ids of their blobs; `renewed` gives the census with a new table.
        """
        self.table = table
        self._changed = sorted(changed, key=lambda row: row.path)
        self._held = held
        self._gone = gone
        self._read = read
        self._renewed = renewed
        self._every: dict[int, list[int]] = {}

    def asked(self, question: Callable[[], Answer]) -> Answer:
        """Answer a question about this census; once more, should its table be damaged."""
        try:
            return question()
        except Damaged:
            if self._renewed is None:
                raise
            self.__dict__ = self._renewed().__dict__
            return question()

    def row(self, at: int) -> Row:
        """Return a row by its number; one of the table comes without its signature's numbers."""
        if at < 0 or self.table is None:
            return self._changed[~at]
        return self.table.row(at)

    def called(self, id_: str) -> list[Row]:
        """Return the rows with an id."""
        found = list(self._named.get(id_, ()))
        if self.table is not None:
            found += [self.table.row(at) for at in self._counting(self.table.called(id_))]
        return found

    def newer(self, id_: str) -> list[Row]:
        """Return the rows of what supersedes an id."""
        found = list(self._newer.get(id_, ()))
        if self.table is not None:
            found += [self.table.row(at) for at in self._counting(self.table.newer(id_))]
        return found

    def saying(self, fingerprint: int) -> list[int]:
        """Return the rows with a fingerprint, by path."""
        found = list(self._saying.get(fingerprint, ()))
        if self.table is not None:
            found += self._counting(self.table.saying(fingerprint))
        return sorted(found, key=self.place)

    def holding(self, number: int) -> list[int]:
        """Return the rows whose signature holds a number."""
        if self._every:
            return self._every.get(number, [])
        found = self._holding.get(number, [])
        if self.table is None:
            return found
        return found + self._counting(self.table.holding(number))

    def place(self, at: int) -> tuple[float, int]:
        """Return the sort key of a row: they stand in the order of their paths."""
        if at >= 0:
            return at, 0
        if ~at not in self._places:
            self._places[~at] = self._before(self._changed[~at].path) - 0.5
        return self._places[~at], ~at

    def known(self) -> Iterator[Row]:
        """Yield the rows whose numbers cost nothing to tell."""
        yield from self._changed

    def all(self) -> Iterator[Row]:
        """Yield every row with its numbers; whose numbers they are is looked up faster behind."""
        yield from self._changed
        every = {number: [*rows] for number, rows in self._holding.items()}
        if self.table is not None:
            for at, row in enumerate(self.table.rows()):
                if at not in self._hidden:
                    for number in row.numbers:
                        every.setdefault(number, []).append(at)
                    yield row
        self._every = every

    def counts(self) -> dict[int, int]:
        """Return for each number how many rows hold it."""
        if not self._every:
            for _row in self.all():
                pass
        return {number: len(rows) for number, rows in self._every.items()}

    def memories(self, rows: Sequence[Row]) -> dict[Stamp, Memory]:
        """Return the memories of rows; what is none any more is left out."""
        stamps = {(row.path, row.oid) for row in rows}
        read = self._read(sorted({oid for path, oid in stamps if (path, oid) not in self._held}))
        found = {}
        for stamp in stamps:
            memory = self._held.get(stamp) or read.get(stamp[1])
            if memory is not None:
                found[stamp] = memory
        return found

    def _counting(self, rows: list[int]) -> list[int]:
        """Leave out the rows of the table at whose paths something else stands now."""
        hidden = self._hidden
        return [at for at in rows if at not in hidden] if hidden else rows

    @cached_property
    def _hidden(self) -> frozenset[int]:
        table = self.table
        if table is None:
            return frozenset()
        paths = {row.path for row in self._changed}.union(self._gone)
        places = ((path, self._before(path)) for path in paths)
        return frozenset(
            at for path, at in places if at < table.count and table.row(at).path == path
        )

    @cached_property
    def _named(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self._changed:
            found.setdefault(row.id, []).append(row)
        return found

    @cached_property
    def _newer(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self._changed:
            for old in dict.fromkeys(row.supersedes):
                found.setdefault(old, []).append(row)
        return found

    @cached_property
    def _saying(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for at, row in enumerate(self._changed):
            found.setdefault(row.fingerprint, []).append(~at)
        return found

    @cached_property
    def _holding(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for at, row in enumerate(self._changed):
            for number in row.numbers:
                found.setdefault(number, []).append(~at)
        return found

    @cached_property
    def _places(self) -> dict[int, float]:
        return {}

    def _before(self, path: str) -> int:
        """Return how many rows of the table have a lesser path."""
        table = self.table
        if table is None:
            return 0
        return bisect_left(range(table.count), path, key=lambda at: table.row(at).path)
