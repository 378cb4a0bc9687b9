"""Cut-offs: how much a search looks at, so that nobody waits for it.

A time limit makes an answer depend on the machine. So there is one only where a clock is given: a
replay (`--as-of`, `--at`, a fixed clock) gives none, and then nothing is ever cut off by time.
"""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_S = 0.2
SLOW_MS = 300.0
"""Where the slowest twentieth of the answers took longer than this, less is looked at."""
LEAST_SAMPLES = 5


class Cutoffs(Value):
    """Most candidates that are weighed, and how many of the best may be shown."""

    candidates: int = 500
    shown: int = 15


USUAL = Cutoffs()
NARROW = Cutoffs(candidates=100, shown=5)


def plan(p95_ms: float, samples: int) -> Cutoffs:
    """Return the cut-offs for a place where answers took so long, as the ledger has it."""
    return NARROW if samples >= LEAST_SAMPLES and p95_ms > SLOW_MS else USUAL


class Deadline:
    """When a search is to stop. `clock` gives seconds that only grow; without one it is never."""

    def __init__(self, clock: Callable[[], float] | None, limit_s: float = LIMIT_S) -> None:
        self._clock = clock
        self._end = clock() + limit_s if clock is not None else 0.0

    def has_passed(self) -> bool:
        """Tell whether the time is up."""
        return self._clock is not None and self._clock() >= self._end
