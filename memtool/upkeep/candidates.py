"""Candidates after their first day: confirmed where somebody looked at them, else less important.

To be injected is not to be looked at: a candidate would vouch for itself. What is looked at often
need not wait for the day to end. Where this clone counted nothing at all,
as in CI, nobody can tell, and candidates wait. What contradicts another memory waits for people.
"""

from __future__ import annotations

from memtool.memory import moments
from memtool.sessions.promote import quarantine
from memtool.upkeep.steps import BY, Grounds, Step, changing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from memtool.store.tree import Record, Tree


def plan(tree: Tree, grounds: Grounds, contradicted: Collection[str]) -> list[Step]:
    """Return the step for each candidate that has one."""
    if not grounds.uses.is_known:
        return []
    found = [
        _of(record, grounds)
        for record in grounds.living(tree)
        if record.memory.status == "candidate"
        and record.path not in grounds.frozen
        and record.id not in contradicted
    ]
    return [step for step in found if step is not None]


def _of(record: Record, grounds: Grounds) -> Step | None:
    memory = record.memory
    count = grounds.uses.count_asked(memory)
    often = grounds.config.count("maintain.often")
    verdict = quarantine(memory.status, memory.importance, memory.timestamp, count, grounds.now)
    if verdict.state == "confirm" or count >= often:
        times = "once" if count == 1 else f"{count} times"
        return changing("confirm", record, f"it was looked at {times}", status="confirmed")
    if verdict.state == "fade" and not memory.table("faded"):
        now = moments.render(grounds.now)
        faded = {"at": now, "by": BY, "was": f"{memory.importance:g}"}
        why = "nobody looked at it on its first day"
        return changing("fade", record, why, importance=f"{verdict.importance:g}", faded=faded)
    return None
