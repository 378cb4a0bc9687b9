"""Drifted memories in a block: marked, and only a few whose files are gone.

After a rewrite of the code half of a store may be broken; the places are for current memories.
"""

from __future__ import annotations

from memtool.inject.candidates import PINNED, Signal
from memtool.inject.tiers import Cap
from memtool.memory.drift import BROKEN, format_renamed_mark, summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from memtool.inject.candidates import Candidate, Eligibility
    from memtool.search.retrieve import Scope
    from memtool.store.tree import Record

MAX_BROKEN = 2
"""Broken memories that a block shows with their marks, in addition to pinned ones."""
LEVEL = "drift_level"


def read_signal(scope: Scope) -> Signal | None:
    """Return the signal of drift for a scope; None if files are not examined."""
    drift = scope.drift
    if drift is None:
        return None

    def details(record: Record) -> Mapping[str, Any]:
        change = drift(record)
        return {} if change is None else {"drift": change.share, LEVEL: change.level}

    def describe_drift(record: Record) -> str:
        change = drift(record)
        if change is None:
            return ""
        if change.level == BROKEN:
            return f"DRIFTED: {summarize(change)}; check the code first"
        return format_renamed_mark(change.renames).replace("[RENAMED]", "RENAMED:")

    return Signal(describe_drift, details)


def cap_broken(sides: Sequence[Eligibility]) -> Cap:
    """Return the cap on broken memories; one notice counts those left out."""
    by_scope = {grounds.scope: grounds for grounds in sides}

    def holds(candidate: Candidate) -> bool:
        if candidate.tier == PINNED:
            return False
        return by_scope[candidate.scope].details(candidate.record).get(LEVEL) == BROKEN

    def describe(candidates: Sequence[Candidate]) -> list[str]:
        count = len(candidates)
        what = "1 more that answers is" if count == 1 else f"{count} more that answer are"
        return [f"{what} left out: the code that they name is gone (`memtool drift`)."]

    reason = f"a block holds {MAX_BROKEN} that have drifted from the code"
    return Cap(holds, reason, MAX_BROKEN, notice=describe)
