"""Acquaintance: the neighbours in a whole tree, kept from one check of it to the next.

Whom a memory may repeat follows from the signatures around it. So of a kept answer only those
memories are asked about again that changed, that share numbers with one that changed, or whose
neighbour did; the answer is that of asking about all.
"""

from __future__ import annotations

from memtool.gate import kept
from memtool.gate.neighbours import MOST_HOLDING, Found, Neighbours
from memtool.store.tree import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from memtool.gate.census import Census

KIND = "near"
MOST_MOVED = 300
"""With more memories changed since all were asked about, all are asked about again."""

Row = tuple[str, str, tuple[str, ...]]
"""Path, blob and what it replaces, of one memory."""


class Acquaintance(Neighbours):
    """The memories of one tree, with what an earlier check found out about them.

    `records` are all that the tree holds. Where nothing is kept under the name, all is asked.
    """

    def __init__(
        self, census: Census, records: Sequence[Record], cache_dir: str, name: str
    ) -> None:
        super().__init__(census)
        self._cache_dir = cache_dir
        self._name = name
        self._by_path = {record.path: record for record in records}
        self._near: dict[str, list[tuple[str, bool]]] = {}
        self._shares: dict[tuple[str, str], float] = {}
        self._edges: dict[int, bool] = {}
        self._left = 0
        self._is_changed = True
        was = kept.load(cache_dir, KIND, name)
        if was is not None:
            census.asked(lambda: self._take(was))

    def share(self, one: Record, other: Record) -> float | None:
        """Return how alike two memories are, None where nobody has compared them."""
        return self._shares.get((one.path, other.path))

    def compared(self, one: Record, other: Record, share: float) -> None:
        """Keep how alike two memories are."""
        self._shares[one.path, other.path] = share
        self._is_changed = True

    def worth(self, judged: Sequence[Record], threshold: float) -> list[list[Found]]:
        """Return the neighbours as `of` does, none for a memory that is known to repeat nothing."""
        asked = [record for record in judged if not self._is_alone(record.path, threshold)]
        found = {record.path: near for record, near in zip(asked, self.of(asked), strict=True)}
        return [found.get(record.path, []) for record in judged]

    def _is_alone(self, path: str, threshold: float) -> bool:
        near = self._near.get(path)
        return near is not None and not any(
            is_exact or self._shares.get((path, other), 1.0) >= threshold
            for other, is_exact in near
        )

    def _of(self, judged: Sequence[Record]) -> list[list[Found]]:
        fresh = [record for record in judged if record.path not in self._near]
        if fresh:
            for record, near in zip(fresh, super()._of(fresh), strict=True):
                self._near[record.path] = [(one.record.path, one.is_exact) for one in near]
            self._is_changed = True
        return [
            [
                Found(self._by_path[path], is_exact)
                for path, is_exact in self._near[record.path]
                if path in self._by_path
            ]
            for record in judged
        ]

    def save(self) -> None:
        """Keep what is known by now."""
        if not self._is_changed:
            return
        if not self._left:
            self._left = MOST_MOVED
            self._edges = dict(self._found_edges())
        rows = [_row(self._by_path[path]) for path in sorted(self._by_path)]
        number = {path: at for at, (path, _oid, _olds) in enumerate(rows)}
        near = [
            [
                (number[other], is_exact, self._shares.get((path, other), -1.0))
                for other, is_exact in self._near[path]
                if other in number
            ]
            if path in self._near
            else None
            for path, _oid, _olds in rows
        ]
        edges = sorted(self._edges.items())
        kept.store(self._cache_dir, KIND, self._name, [rows, near, edges, self._left])
        self._is_changed = False

    def _take(self, was: Any) -> None:
        """Take over what still holds of what was kept."""
        rows, near, edges, left = was
        before = {path: (oid, olds) for path, oid, olds in rows}
        come = [r for r in self._by_path.values() if before.get(r.path, ("",))[0] != r.oid]
        gone = {
            path
            for path, (oid, _olds) in before.items()
            if path not in self._by_path or self._by_path[path].oid != oid
        }
        left -= len(come) + len(gone)
        if left <= 0 or any(self._is_common(number) != was for number, was in edges):
            return
        self._left, self._edges = left, dict(edges)
        self._is_changed = bool(come or gone)
        replaced = {old for path in gone for old in before[path][1]}
        replaced.update(old for record in come for old in _row(record)[2])
        doubtful = gone.union(self._around(come, replaced))
        for (path, _oid, _olds), known in zip(rows, near, strict=True):
            if known is None or path in doubtful:
                continue
            others = [(rows[at][0], is_exact, share) for at, is_exact, share in known]
            if gone.isdisjoint(other for other, _is_exact, _share in others):
                self._near[path] = [(other, is_exact) for other, is_exact, _share in others]
                for other, _is_exact, share in others:
                    if share >= 0:
                        self._shares[path, other] = share

    def _around(self, come: Sequence[Record], ids: Iterable[str]) -> Iterator[str]:
        """Yield the paths of memories that may have other neighbours.

        They are like one that came, or one that has a successor now, or none any more.
        """
        shifted = [self.census.called(id_) for id_ in sorted(ids)]
        there = [self._by_path[row.path] for rows in shifted for row in rows
                 if row.path in self._by_path]  # fmt: skip
        for record in (*come, *there):
            yield record.path
            fingerprint, numbers = self._signature(record)
            for at in (*self.census.saying(fingerprint), *self._alike(numbers, ())):
                yield self.census.row(at).path

    def _is_common(self, number: int) -> bool:
        return len(self.census.holding(number)) > MOST_HOLDING

    def _found_edges(self) -> Iterator[tuple[int, bool]]:
        """Yield the numbers that so many changes could make common, or uncommon."""
        for number, count in self.census.counts().items():
            if abs(count - MOST_HOLDING) <= MOST_MOVED:
                yield number, count > MOST_HOLDING


def _row(record: Record) -> Row:
    memory = record.memory
    olds = () if memory.status == "deleted" else memory.supersedes
    return record.path, record.oid, olds
