"""The moment that counts as now, and parsing of moments that users write."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Clock:
    """The clock of one call, which shows the same moment throughout. `MEMTOOL_NOW` sets it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    @classmethod
    def fixed_at(cls, second: int) -> Clock:
        """Return a clock that shows a given moment, in seconds since 1970."""
        clock = cls({})
        clock.now = second
        return clock

    @cached_property
    def now(self) -> int:
        """The current moment in seconds since 1970. Raises MemtoolError for a bad MEMTOOL_NOW."""
        value = self._env.get("MEMTOOL_NOW")
        if not value:
            import time

            return int(time.time())
        try:
            return timestamps.start(value)
        except ValueError:
            raise MemtoolError(
                f"MEMTOOL_NOW must be a moment, not {value!r}",
                hint="MEMTOOL_NOW=2026-02-22T19:33:00Z\nunset MEMTOOL_NOW",
                code="bad-time",
            ) from None

    def parse_moment(self, text: str, now: int | None = None) -> int:
        """Parse a moment, a date or an age such as `30d`. Raises MemtoolError if it is none."""
        try:
            return timestamps.parse_when(text, self.now if now is None else now)
        except ValueError:
            raise MemtoolError(
                f"{text!r} is not a time",
                hint="write 2026-02-22, 2026-02-22T19:33:00Z, or an age such as 30d",
                code="bad-time",
            ) from None

    def parse_as_of(self, as_of: str | None) -> int:
        """Parse the value of `--as-of`; None means now."""
        return self.now if as_of is None else self.parse_moment(as_of)
