"""Effort: how much is examined for one answer.

It is everything, unless the setting search.degrade is on. Then an answer has a time limit, and less
is examined if recent answers were slow. Without that setting no answer depends on the machine's
speed.
"""

from __future__ import annotations

from memtool.store.deadline import Deadline
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_S = 0.2
"""With search.degrade on, an answer returns what it has after this time."""

SLOW = "answers were slow of late, so less was looked at (search.degrade)"


class Effort(Value):
    """Limits for one search: the best hits by words that are `weighed` by all factors for a query.

    `candidates` is the limit for a text. Pairs, titles and grams are examined for half as many as
    are `weighed` (`scoring.CANDIDATES`); hits without any of these are far behind, and 500 would
    cost three interpreter starts. `clock` returns seconds for the time limit; None for no limit.
    `is_narrow` means less than usual.
    """

    weighed: int = 60
    candidates: int = 500
    clock: Callable[[], float] | None = None
    is_narrow: bool = False

    @property
    def notes(self) -> list[str]:
        """Notes for the user."""
        return [SLOW] if self.is_narrow else []

    def deadline(self) -> Deadline:
        """Return the deadline of a search that begins now."""
        return Deadline(LIMIT_S, self.clock) if self.clock else Deadline(None)


FULL = Effort()
