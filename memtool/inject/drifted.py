"""Drifted memories in a block: marked, and few of those whose files are gone.

Half of a store may be broken after a rewrite of the code; the places are for what still holds.
"""

from __future__ import annotations

from memtool.inject.candidates import PINNED, Signal
from memtool.inject.tiers import Cap
from memtool.memory.drift import BROKEN, mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from memtool.inject.candidates import Candidate, Eligibility
    from memtool.search.retrieve import Scope
    from memtool.store.tree import Record

MAX_BROKEN = 2
"""Broken memories that a block shows with their marks, beside those that are pinned."""
LEVEL = "drift_level"


def signal(scope: Scope) -> Signal | None:
    """Return what drift tells of the memories of a scope; None where nobody looks at files."""
    drift = scope.drift
    if drift is None:
        return None

    def details(record: Record) -> Mapping[str, Any]:
        change = drift(record)
        return {} if change is None else {"drift": change.share, LEVEL: change.level}

    return Signal(lambda record: mark(drift(record)), details)


def broken_cap(sides: Sequence[Eligibility]) -> Cap:
    """Return the limit on broken memories of all sides: one line tells of those left out."""
    by_scope = {grounds.scope: grounds for grounds in sides}

    def holds(one: Candidate) -> bool:
        if one.tier == PINNED:
            return False
        return by_scope[one.scope].details(one.record).get(LEVEL) == BROKEN

    def said(count: int) -> str:
        what = "1 more answers" if count == 1 else f"{count} more answer"
        return f"[DRIFTED] {what} this, left out: what they name is gone (`memtool drift`)"

    reason = f"a block holds {MAX_BROKEN} that have drifted from the code"
    return Cap(holds, reason, MAX_BROKEN, notice=said)
