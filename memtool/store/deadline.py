"""Time limits: one clock, which only grows, and the end of a limit by it."""

from __future__ import annotations

from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NEVER = float("inf")


class Deadline:
    """The moment at which a time limit ends, counted from now; without a limit it never comes."""

    def __init__(self, limit_s: float | None, clock: Callable[[], float] = monotonic) -> None:
        self._limit_s = _NEVER if limit_s is None else limit_s
        self._clock = clock
        self._begin = clock()

    def has_passed(self, share: float = 1.0) -> bool:
        """Tell whether the time, or a share of it, is over."""
        return self._clock() - self._begin >= self._limit_s * share

    def left_s(self) -> float:
        """Return the seconds that are left, 0 where none are."""
        return max(0.0, self._limit_s - (self._clock() - self._begin))

    def timeout_s(self) -> float:
        """Return the seconds that are left to wait. Raises TimeoutError where none are."""
        left = self.left_s()
        if not left:
            raise TimeoutError
        return left
