"""Importance learned from use: what people look at gains some, and loses it again when they stop.

Used is what `show` printed, or what stood among the first answers of a search: being injected is
nobody's choice, and being listed far down is none either. A memory keeps the importance that a
person gave it as its base, in the key `learned`; use in the last 90 days adds up to 0.3 to it. Who
sets another importance sets another base. Candidates learn nothing, so that none is made important
by being asked for; neither do pinned memories, which come first anyway, nor digests.

The same commit, ledger and second give the same steps, and carrying them out leaves none.
"""

from __future__ import annotations

from collections.abc import Iterator

from memtool.memory import memory, timestamps
from memtool.memory.memory import Memory
from memtool.store.tree import Record, Tree
from memtool.upkeep.inputs import PlanInputs
from memtool.upkeep.steps import UpkeepStep, changing

SETTING = "importance.learn"
WINDOW_S = 90 * timestamps.DAY_S
"""How far back use counts."""
MOST_GAIN = 0.3
HALF_USES = 10
"""Uses that give half of the most gain."""
MOST = 0.95
"""No use makes a memory as important as a person can."""
GRAIN = 20
"""Importance is learned in steps of one twentieth, so that not every answer changes a file."""
BY = "memtool maintain"


def steps(tree: Tree, inputs: PlanInputs) -> Iterator[UpkeepStep]:
    """Yield the step for each memory whose use says another importance."""
    if not inputs.config.setting(SETTING) or not inputs.uses.is_known:
        return
    for record in inputs.living(tree):
        is_open = record.memory.status == "confirmed" and record.path not in inputs.frozen
        if is_open and not memory.is_generated(record.memory):
            step = _step(record, inputs)
            if step is not None:
                yield step


def _step(record: Record, inputs: PlanInputs) -> UpkeepStep | None:
    now = record.memory.importance
    base = base_of(record.memory)
    uses = inputs.uses.used_since(record.memory, inputs.now - WINDOW_S)
    wanted = learned(base, uses)
    if wanted == now:
        return None
    times = "once" if uses == 1 else f"{uses} times"
    why = f"it was used {times} in 90 days, importance {now:g} becomes {wanted:g}"
    row = {"at": timestamps.render(inputs.now), "by": BY, "was": f"{base:g}", "to": f"{wanted:g}"}
    # Without anything learned the key would say nothing, and goes.
    key = row if wanted != base else None
    return changing("weigh", record, why, importance=f"{wanted:g}", learned=key)


def base_of(memory: Memory) -> float:
    """Return the importance that a memory has without what was learned."""
    row = memory.table("learned")
    try:
        if float(row.get("to", "")) == memory.importance:
            return float(row.get("was", ""))
    except ValueError:
        pass
    return memory.importance


def learned(base: float, uses: int) -> float:
    """Return the importance of a memory that was used so often; at least its base."""
    gain = MOST_GAIN * uses / (uses + HALF_USES)
    most = max(base, MOST)
    return min(most, round(base + int(gain * GRAIN + 1e-9) / GRAIN, 4))
