"""Importance learned from use: memories that people look at gain some, and lose it again later.

A memory is used if `show` printed it, or if it was among the first results of a search. Being
injected does not count, since no person chose it, and neither does being listed far down. The
importance that a person set is the base, stored in the key `learned`; use in the last 90 days adds
up to 0.3. If a person sets another importance, that is the new base. Candidates learn nothing, so
that none becomes important just by being requested. Pinned memories come first anyway, and digests
learn nothing either.

The same commit, ledger and second give the same steps, and carrying them out leaves none.
"""

from __future__ import annotations

from collections.abc import Iterator

from memtool.memory import memory, timestamps
from memtool.memory.memory import Memory
from memtool.store.tree import Record, Tree
from memtool.upkeep.inputs import PlanInputs
from memtool.upkeep.steps import UpkeepStep, build_change

SETTING = "importance.learn"
WINDOW_S = 90 * timestamps.DAY_S
"""How far back use counts."""
MAX_GAIN = 0.3
HALF_USES = 10
"""Number of uses that give half of the maximum gain."""
MAX_LEARNED = 0.95
"""Maximum learned importance: only a person can set a higher one."""
GRAIN = 20
"""Importance is learned in steps of one twentieth, so that not every answer changes a file."""
BY = "memtool maintain"


def build_steps(tree: Tree, inputs: PlanInputs) -> Iterator[UpkeepStep]:
    """Yield the step for each memory whose use suggests another importance."""
    if not inputs.config.setting(SETTING) or not inputs.uses.is_known:
        return
    for record in inputs.find_living(tree):
        is_open = record.memory.status == "confirmed" and record.path not in inputs.frozen
        if is_open and not memory.is_generated(record.memory):
            step = _build_step(record, inputs)
            if step is not None:
                yield step


def _build_step(record: Record, inputs: PlanInputs) -> UpkeepStep | None:
    now = record.memory.importance
    base = base_importance(record.memory)
    uses = inputs.uses.count_used_since(record.memory, inputs.now - WINDOW_S)
    wanted = learn_importance(base, uses)
    if wanted == now:
        return None
    times = "once" if uses == 1 else f"{uses} times"
    why = f"it was used {times} in 90 days, importance {now:g} becomes {wanted:g}"
    row = {"at": timestamps.render(inputs.now), "by": BY, "was": f"{base:g}", "to": f"{wanted:g}"}
    # If nothing is learned, the key is dropped.
    key = row if wanted != base else None
    return build_change("weigh", record, why, importance=f"{wanted:g}", learned=key)


def base_importance(memory: Memory) -> float:
    """Return a memory's importance without the learned part."""
    row = memory.table("learned")
    try:
        if float(row.get("to", "")) == memory.importance:
            return float(row.get("was", ""))
    except ValueError:
        pass
    return memory.importance


def learn_importance(base: float, uses: int) -> float:
    """Return the importance of a memory after a number of uses; at least its base."""
    gain = MAX_GAIN * uses / (uses + HALF_USES)
    maximum = max(base, MAX_LEARNED)
    return min(maximum, round(base + int(gain * GRAIN + 1e-9) / GRAIN, 4))
