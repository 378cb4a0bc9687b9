"""The budget: how many tokens a block may cost, and how they are shared among its tiers.

A token is estimated as four bytes of UTF-8, rounded up. That is what English and code come to in
the tokenizers of today's models; other scripts cost fewer tokens than this says, never many more.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.store.config import Config
from memtool.value import Value

BYTES_PER_TOKEN = 4


class Budget(Value):
    """Tokens of one block. The shares never exceed the total.

    `bridge` belongs to the agent, which keeps its own context in it: memtool leaves it empty.
    `summary` belongs to the summaries of sessions. Whatever is short is taken from the last share
    first, in the order pinned, bridge, retrieval, summary.
    """

    total: int
    pinned: int
    bridge: int
    retrieval: int
    summary: int
    wanted: tuple[int, int, int, int] = (0, 0, 0, 0)
    """The shares before anything was cut, in the same order."""

    def after_pinned(self, used: int) -> Budget:
        """Hand what the pinned tier left over to the shares that had to be cut for it."""
        if sum(self.wanted) <= self.total:
            return self
        return _cut(self.total, (used, *self.wanted[1:]))


ROWS: tuple[tuple[int, tuple[int, int, int, int, int]], ...] = (
    (8_000, (640, 200, 500, 300, 200)),
    (20_000, (1_600, 200, 700, 500, 200)),
    (50_000, (4_000, 320, 1_840, 1_196, 600)),
    (100_000, (5_000, 400, 2_300, 1_500, 600)),
)
"""Tokens that the agent's window still has, and the (total, pinned, bridge, retrieval, summary)
that a block may take of them. Between rows the numbers lie on the straight line.
"""


def tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return tokens_of(len(text.encode()))


def tokens_of(size: int) -> int:
    """Estimate the tokens of a number of bytes."""
    return -(-size // BYTES_PER_TOKEN)


def plan(config: Config, budget: int | None, remaining: int | None) -> Budget:
    """Share out the tokens that were given, or that what remains allows, or of the settings.

    Raises:
        MemtoolError: a number is negative.
    """
    for name, number in (("--budget", budget), ("--remaining", remaining)):
        if number is not None and number < 0:
            raise MemtoolError(
                f"{name} {number} is negative",
                hint=f"{name} takes a number of tokens, 0 or more",
                code="bad-budget",
            )
    pinned_most = config.count("inject.pinned_tokens")
    retrieval_most = config.count("inject.retrieval_tokens")
    if budget is None and remaining is not None:
        total, pinned, bridge, retrieval, summary = allowed(remaining)
        shares = (min(pinned, pinned_most), bridge, min(retrieval, retrieval_most), summary)
        return _cut(total, shares)
    total = config.count("inject.budget_tokens") if budget is None else budget
    return _cut(total, (pinned_most, 0, retrieval_most, 0))


def allowed(remaining: int) -> tuple[int, ...]:
    """Return the row of the table for a number of remaining tokens, rounded down.

    Below the first row its numbers shrink in proportion, above the last they stay.
    """
    low, below = 0, (0, 0, 0, 0, 0)
    for high, above in ROWS:
        if remaining <= high:
            part, whole = remaining - low, high - low
            return tuple(b + (a - b) * part // whole for b, a in zip(below, above, strict=True))
        low, below = high, above
    return below


def _cut(total: int, wanted: tuple[int, int, int, int]) -> Budget:
    left = total
    granted = []
    for share in wanted:
        granted.append(min(share, left))
        left -= granted[-1]
    pinned, bridge, retrieval, summary = granted
    return Budget(total, pinned, bridge, retrieval, summary, wanted)
