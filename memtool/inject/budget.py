"""The budget: how many tokens a block may take, and how its tiers share them.

A token is estimated as four bytes of UTF-8, rounded up. That fits English and code in the
tokenizers of today's models. Other scripts cost fewer tokens than estimated, never many more.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.store.config import Config

BYTES_PER_TOKEN = 4


def measure_bytes(text: str) -> int:
    """Return the size of a text in bytes of UTF-8."""
    return len(text.encode())


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-measure_bytes(text) // BYTES_PER_TOKEN)


class Budget(Value):
    """Tokens of one block. The shares never exceed the total.

    `bridge` is for a primer: the state of the work, and news since the session before. `summary` is
    for digests. If the total is too small for all, the shares are granted in the order pinned,
    bridge, retrieval, summary. Unused tokens go to retrieval in the answer to a prompt, and to the
    bridge in a primer, which has no prompt.
    """

    total: int
    pinned: int
    bridge: int
    retrieval: int
    summary: int
    retrieval_most: int = 0
    """The limit on retrieval by the settings, even if other tiers leave tokens unused."""
    added: Mapping[str, int] = {}
    """The tokens of tiers added by a caller, by name, out of what the others leave unused."""

    def for_retrieval(self, pinned: int, summary: int = 0) -> Budget:
        """Return the shares of an answer, given the tokens that two tiers used."""
        available = max(0, self.total - pinned - summary)
        retrieval = min(self.retrieval_most, available)
        return self.replace(pinned=pinned, bridge=0, retrieval=retrieval, summary=summary)

    def for_bridge(self, pinned: int, summary: int) -> Budget:
        """Return the shares of a primer, given the tokens that two tiers used."""
        available = max(0, self.total - pinned - summary)
        return self.replace(pinned=pinned, bridge=available, retrieval=0, summary=summary)

    def plain(self) -> dict[str, int]:
        """Return the JSON shape, with a share for each added tier."""
        names = ("total", "pinned", "bridge", "retrieval", "summary")
        return {name: getattr(self, name) for name in names} | dict(self.added)


ROWS: tuple[tuple[int, tuple[int, int, int, int, int]], ...] = (
    (8_000, (640, 200, 500, 300, 200)),
    (20_000, (1_600, 200, 700, 500, 200)),
    (50_000, (4_000, 320, 1_840, 1_196, 600)),
    (100_000, (5_000, 400, 2_300, 1_500, 600)),
)
"""Tokens remaining in the agent's window, and the (total, pinned, bridge, retrieval, summary) that
a block may take of them. Between rows the numbers are interpolated linearly.
"""


def plan(config: Config, budget: int | None, remaining: int | None) -> Budget:
    """Share out `budget` tokens, else what `remaining` allows, else those of the settings.

    Raises:
        MemtoolError: a number is negative.
    """
    for name, number in (("--budget", budget), ("--remaining", remaining)):
        if number is not None and number < 0:
            raise MemtoolError(
                f"{name} must be 0 or more, not {number}",
                hint=f"{name} is a number of tokens, such as 1500",
            )
    pinned_most = config.count("inject.pinned_tokens")
    retrieval_most = config.count("inject.retrieval_tokens")
    if budget is None and remaining is not None:
        total, pinned, bridge, retrieval, summary = allowed_counts(remaining)
        shares = (min(pinned, pinned_most), bridge, min(retrieval, retrieval_most), summary)
        return _cut(total, shares, retrieval_most)
    total = config.count("inject.budget_tokens") if budget is None else budget
    return _cut(total, (pinned_most, 0, retrieval_most, 0), retrieval_most)


def allowed_counts(remaining: int) -> tuple[int, ...]:
    """Return the row of `ROWS` for a number of remaining tokens, interpolated and rounded down.

    Below the first row the numbers shrink in proportion, above the last they stay the same.
    """
    low, below = 0, (0, 0, 0, 0, 0)
    for high, above in ROWS:
        if remaining <= high:
            part, whole = remaining - low, high - low
            return tuple(b + (a - b) * part // whole for b, a in zip(below, above, strict=True))
        low, below = high, above
    return below


def _cut(total: int, wanted: tuple[int, int, int, int], retrieval_most: int) -> Budget:
    available = total
    granted = []
    for share in wanted:
        granted.append(min(share, available))
        available -= granted[-1]
    pinned, bridge, retrieval, summary = granted
    return Budget(total, pinned, bridge, retrieval, summary, retrieval_most)
