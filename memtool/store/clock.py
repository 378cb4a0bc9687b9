"""The moment that counts as now, and moments as users write them."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Clock:
    """The clock of one call: it stands still. `MEMTOOL_NOW` sets it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    @classmethod
    def stopped_at(cls, second: int) -> Clock:
        """Return a clock that shows a moment, in seconds since 1970."""
        clock = cls({})
        clock.now = second
        return clock

    @cached_property
    def now(self) -> int:
        """The second that counts as now, since 1970. Raises MemtoolError."""
        given = self._env.get("MEMTOOL_NOW")
        if not given:
            import time

            return int(time.time())
        try:
            return timestamps.start(given)
        except ValueError:
            raise MemtoolError(
                f"MEMTOOL_NOW is {given!r}, which is not a moment",
                hint="MEMTOOL_NOW=2026-02-22T19:33:00Z, or unset it",
                code="bad-time",
            ) from None

    def moment(self, text: str, now: int | None = None) -> int:
        """Read a moment, a date or an age such as `30d`. Raises MemtoolError where it is none."""
        try:
            return timestamps.parse_when(text, self.now if now is None else now)
        except ValueError:
            raise MemtoolError(
                f"{text!r} is not a time",
                hint="write 2026-02-22, 2026-02-22T19:33:00Z, or an age such as 30d",
                code="bad-time",
            ) from None

    def moment_of(self, as_of: str | None) -> int:
        """Return the second that a reading verb looks from: `--as-of`, or now."""
        return self.now if as_of is None else self.moment(as_of)
