"""Effort: how much is looked at for one answer.

It is all, unless the setting search.degrade is on: then an answer has a time limit, and less is
looked at where the last answers were slow. Without that setting no answer depends on how fast a
machine is.
"""

from __future__ import annotations

from memtool.store.deadline import Deadline
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_S = 0.2
"""Seconds after which an answer is given as far as it is known, where search.degrade is on."""

SLOW = "answers were slow of late, so less was looked at (search.degrade)"


class Effort(Value):
    """How much is looked at: the best by words are `weighed` by all factors for a query.

    So many `candidates` are weighed for a text. The pairs, titles and grams of half as many as are
    `weighed` are looked at (`scoring.CANDIDATES`), and what has none of these is far behind; 500
    would cost three interpreter starts. `clock` gives seconds for the time limit, without one there
    is none. `is_narrow` tells that it is less than usual.
    """

    weighed: int = 60
    candidates: int = 500
    clock: Callable[[], float] | None = None
    is_narrow: bool = False

    @property
    def notes(self) -> list[str]:
        """What the user should hear about it."""
        return [SLOW] if self.is_narrow else []

    def deadline(self) -> Deadline:
        """Return when a search that begins now is to stop."""
        return Deadline(LIMIT_S, self.clock) if self.clock else Deadline(None)


FULL = Effort()
