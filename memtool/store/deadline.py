"""Time limits, measured with a monotonic clock."""

from __future__ import annotations

from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NEVER = float("inf")


class Deadline:
    """The end of a time limit that starts now; without a limit it is never reached."""

    def __init__(self, limit_s: float | None, clock: Callable[[], float] = monotonic) -> None:
        self._limit_s = _NEVER if limit_s is None else limit_s
        self._clock = clock
        self._begin = clock()

    def has_passed(self, share: float = 1.0) -> bool:
        """Return whether the time limit, or a share of it, has passed."""
        return self._clock() - self._begin >= self._limit_s * share

    def remaining_s(self) -> float:
        """Return the remaining seconds, at least 0."""
        return max(0.0, self._limit_s - (self._clock() - self._begin))

    def timeout_s(self) -> float:
        """Return the remaining seconds to wait. Raises TimeoutError if there are none."""
        remaining = self.remaining_s()
        if not remaining:
            raise TimeoutError
        return remaining
