"""Threads: pass part of a score to memories of the same session, task or parent."""

from __future__ import annotations

from memtool.index.threads import thread_sort_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memtool.index.reader import IndexReader
    from memtool.store.provenance import TrustLevels

PASSED_SHARES = (0.4, 0.2)
"""Shares of its score that a memory passes to the next ones of its thread, at distance 1 and 2."""
# A thread has the memories of one session, task or parent; an answer is often near the words that
# ask for it. Recall@5 on a public set of ten long conversations, on the five used for tuning and
# on the five others: turns .553 and .542 without, .633 and .634 with it; observations .652 and
# .611, .688 and .634.

THREAD_GAIN = 0.3
"""Added to each memory of the best thread; other threads get a proportional part."""

MAX_OF_THREAD = 3
"""A thread's score is the sum of this many best memories."""


class Threads:
    """The threads of a collection, by the numbers of its documents."""

    def __init__(self, index: IndexReader) -> None:
        self._index = index
        self._members: dict[str, list[int]] = {}
        self._places: dict[int, int] = {}

    def name(self, number: int) -> str:
        """Return the name of a document's thread; empty if it has none."""
        part, local = self._index.find_part(number)
        return part.memories.find_thread(local)

    def find_adjacent(self, number: int) -> list[tuple[int, int]]:
        """Return the documents near a document in its thread, with their distance."""
        name = self.name(number)
        if not name:
            return []
        members = self._thread(name)
        at = self._places[number]
        near = range(
            max(0, at - len(PASSED_SHARES)), min(len(members), at + len(PASSED_SHARES) + 1)
        )
        return [(members[place], abs(place - at)) for place in near if place != at]

    def propagate_scores(
        self,
        first: Sequence[int],
        scores: Mapping[int, float],
        by_words: Callable[[set[int]], Mapping[int, float]],
        trust: TrustLevels | None,
    ) -> dict[int, float]:
        """Return the scores, with those passed within threads added.

        Only the first documents and those adjacent to them take part. Missing scores of these are
        computed by their words; documents without a matching word stay out. Other scores have no
        influence.

        Scores are passed only between memories of one trust level, because any file may name any
        session.
        """
        near = {near_number for number in first for near_number, _gap in self.find_adjacent(number)}
        propagated = dict(scores)
        added = near - propagated.keys()
        if added:
            propagated.update(by_words(added))
        own = {number: propagated[number] for number in near.union(first) if number in propagated}
        names = {number: name for number in own if (name := self.name(number))}
        parts = {number: (name, "") for number, name in names.items()}
        if trust is not None:
            records = {number: self._index.record(number) for number in names}
            trust.prefetch(records.values())
            parts = {number: (name, trust(records[number])) for number, name in names.items()}
        by_thread: dict[tuple[str, str], list[float]] = {}
        for number, part in parts.items():
            score = own[number]
            by_thread.setdefault(part, []).append(score)
            for other, gap in self.find_adjacent(number):
                if parts.get(other) == part:
                    propagated[other] += PASSED_SHARES[gap - 1] * score
        sums = {part: sum(sorted(each)[-MAX_OF_THREAD:]) for part, each in by_thread.items()}
        largest = max(sums.values(), default=1.0)
        for number, part in parts.items():
            propagated[number] += THREAD_GAIN * sums[part] / largest
        return propagated

    def _thread(self, name: str) -> list[int]:
        """Return the documents of a thread in order."""
        members = self._members.get(name)
        if members is None:
            each = [
                part.select_living(part.memories.list_thread(name)) for part in self._index.parts
            ]
            members = self._members[name] = [number for numbers in each for number in numbers]
            if sum(map(bool, each)) > 1:
                members.sort(key=lambda number: thread_sort_key(self._index.record(number)))
            self._places.update((number, place) for place, number in enumerate(members))
        return members
