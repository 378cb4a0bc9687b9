"""Quarantine: what becomes of a candidate after its first day."""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

QUARANTINE_S = 24 * 3600
FADE = 0.8
"""A candidate that nobody looked at weighs this much of its importance."""


class Verdict(Value):
    """`wait`, `confirm`, `fade`, or `none` for what is no candidate; and the importance by then.

    Nothing is written here. `memtool maintain` proposes the change of the file, and commits it when
    it is told to; a file that says `faded` does so no second time.
    """

    state: Literal["none", "wait", "confirm", "fade"]
    importance: float


def quarantine(status: str, importance: float, written: int, accesses: int, now: int) -> Verdict:
    """Return what becomes of a memory; `written` and `now` are seconds, accesses since then.

    A clock that runs behind the one that wrote it lets it wait.
    """
    if status != "candidate":
        return Verdict("none", importance)
    if now - written < QUARANTINE_S:
        return Verdict("wait", importance)
    if accesses > 0:
        return Verdict("confirm", importance)
    return Verdict("fade", round(importance * FADE, 4))
