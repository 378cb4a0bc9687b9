"""Threads lend each other: what answers beside the words that ask for it gains of their score."""

from __future__ import annotations

from memtool.index.threads import thread_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memtool.index.reader import IndexReader
    from memtool.store.tree import Record

LENT = (0.4, 0.2)
"""Memories of one session, task or parent are a thread, in which an answer often stands beside the
words that ask for it. Recall@5 on a public set of ten long conversations, on the five that this
was chosen by and on the five others: turns .553 and .542 without, .633 and .634 with it,
observations .652 and .611, .688 and .634. This is what the next memory of a thread, and the second
next, lends of its score ..."""

THREAD = 0.3
"""... and what the thread that answers best adds to each memory of it ..."""

MOST_OF_THREAD = 3
"""... where a thread answers as well as so many of its best memories together."""


class Threads:
    """The threads of a collection, asked by the numbers of its documents."""

    def __init__(self, index: IndexReader) -> None:
        self._index = index
        self._members: dict[str, list[int]] = {}
        self._places: dict[int, int] = {}

    def name(self, number: int) -> str:
        """Return the name of a document's thread; empty where it is in none."""
        part, local = self._index.part(number)
        return part.memories.thread_of(local)

    def neighbours(self, number: int) -> list[tuple[int, int]]:
        """Return what stands near to a document in its thread, with the distance."""
        name = self.name(number)
        if not name:
            return []
        members = self._thread(name)
        at = self._places[number]
        near = range(max(0, at - len(LENT)), min(len(members), at + len(LENT) + 1))
        return [(members[place], abs(place - at)) for place in near if place != at]

    def lend(
        self,
        first: Sequence[int],
        scores: Mapping[int, float],
        by_words: Callable[[set[int]], Mapping[int, float]],
        trust: Callable[[Record], str] | None,
    ) -> dict[int, float]:
        """Return the scores of documents with what those of one thread lend each other.

        These are the first ones and their neighbours. What `scores` lacks of these is asked for by
        their own words, and stays out where it has none. Nothing depends on what else has a score.

        Only memories of one level of `trust` lend each other: any file may name somebody's session.
        """
        near = {one for number in first for one, _gap in self.neighbours(number)}
        found = dict(scores)
        others = near - found.keys()
        if others:
            found.update(by_words(others))
        own = {number: found[number] for number in near.union(first) if number in found}
        parts = {
            number: (name, "" if trust is None else trust(self._index.record(number)))
            for number in own
            if (name := self.name(number))
        }
        held: dict[tuple[str, str], list[float]] = {}
        for number, part in parts.items():
            score = own[number]
            held.setdefault(part, []).append(score)
            for other, gap in self.neighbours(number):
                if parts.get(other) == part:
                    found[other] += LENT[gap - 1] * score
        sums = {part: sum(sorted(each)[-MOST_OF_THREAD:]) for part, each in held.items()}
        most = max(sums.values(), default=1.0)
        for number, part in parts.items():
            found[number] += THREAD * sums[part] / most
        return found

    def _thread(self, name: str) -> list[int]:
        """Return the documents of a thread in their order."""
        known = self._members.get(name)
        if known is None:
            each = [part.living(part.memories.thread(name)) for part in self._index.parts]
            known = self._members[name] = [number for numbers in each for number in numbers]
            if sum(map(bool, each)) > 1:
                known.sort(key=lambda number: thread_order(self._index.record(number)))
            self._places.update((number, place) for place, number in enumerate(known))
        return known
