"""The budget: how many tokens a block may take, and how its tiers share them.

A token is estimated as four bytes of UTF-8, rounded up. That is what English and code come to in
the tokenizers of today's models; other scripts cost fewer tokens than this says, never many more.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.store.config import Config

BYTES_PER_TOKEN = 4


def size(text: str) -> int:
    """Return the bytes of a text."""
    return len(text.encode())


def tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-size(text) // BYTES_PER_TOKEN)


class Budget(Value):
    """Tokens of one block. The shares never exceed the total.

    `bridge` leads from the session before to this one: in a primer it holds the state of the work
    and what is new. `summary` holds what sums up others. Whatever is short is taken from the last
    share first, in the order pinned, bridge, retrieval, summary; what stays empty goes to retrieval
    in the answer to a prompt, and to the bridge in a primer, where nothing was asked.
    """

    total: int
    pinned: int
    bridge: int
    retrieval: int
    summary: int
    retrieval_most: int = 0
    """What the settings allow for retrieval, however much stays empty elsewhere."""
    added: Mapping[str, int] = {}
    """What tiers beside these may take of what the others leave, by name."""

    def to_retrieval(self, pinned: int, summary: int = 0) -> Budget:
        """Return what the answer to a prompt has left, by the tokens that two tiers used."""
        left = max(0, self.total - pinned - summary)
        retrieval = min(self.retrieval_most, left)
        return self.replace(pinned=pinned, bridge=0, retrieval=retrieval, summary=summary)

    def to_bridge(self, pinned: int, summary: int) -> Budget:
        """Return the shares of a primer, by the tokens that two tiers used."""
        left = max(0, self.total - pinned - summary)
        return self.replace(pinned=pinned, bridge=left, retrieval=0, summary=summary)

    def plain(self) -> dict[str, int]:
        """Return the JSON shape, with a share for each tier that was added."""
        names = ("total", "pinned", "bridge", "retrieval", "summary")
        return {name: getattr(self, name) for name in names} | dict(self.added)


ROWS: tuple[tuple[int, tuple[int, int, int, int, int]], ...] = (
    (8_000, (640, 200, 500, 300, 200)),
    (20_000, (1_600, 200, 700, 500, 200)),
    (50_000, (4_000, 320, 1_840, 1_196, 600)),
    (100_000, (5_000, 400, 2_300, 1_500, 600)),
)
"""Tokens that the agent's window still has, and the (total, pinned, bridge, retrieval, summary)
that a block may take of them. Between rows the numbers lie on the straight line.
"""


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
        return _cut(total, shares, retrieval_most)
    total = config.count("inject.budget_tokens") if budget is None else budget
    return _cut(total, (pinned_most, 0, retrieval_most, 0), retrieval_most)


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


def _cut(total: int, wanted: tuple[int, int, int, int], retrieval_most: int) -> Budget:
    left = total
    granted = []
    for share in wanted:
        granted.append(min(share, left))
        left -= granted[-1]
    pinned, bridge, retrieval, summary = granted
    return Budget(total, pinned, bridge, retrieval, summary, retrieval_most)
