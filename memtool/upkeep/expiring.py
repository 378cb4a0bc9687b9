"""Expiring: what becomes of memories whose time is over, and of the least important of too many.

Nothing is destroyed: what is archived keeps its file and all that it says. A memory that was looked
at often outlives its time to live, which then counts anew; one that says itself how long it is
valid does not.
"""

from __future__ import annotations

from memtool.memory import decay, lifecycle, moments
from memtool.memory.decay import Fading
from memtool.upkeep.steps import BY, Grounds, Imagined, Step, changing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.store.tree import Record, Tree

AHEAD_S = 7 * moments.DAY_S
"""So long before its end a memory that is in use is renewed: until the next weekly run."""
LATELY_S = moments.DAY_S
"""What was looked at in this time is not archived, however many there are."""
_GONE = frozenset({"archived", "deleted"})


def plan(tree: Tree, grounds: Grounds) -> list[Step]:
    """Return the steps for what has expired or is about to, then for what is too much."""
    steps = [step for record in tree.records if (step := _of(record, tree, grounds)) is not None]
    return steps + _surplus(Imagined(tree, steps), grounds)


def _of(record: Record, tree: Tree, grounds: Grounds) -> Step | None:
    memory, categories = record.memory, grounds.config.categories
    if memory.status in _GONE or record.path in grounds.frozen:
        return None
    end = lifecycle.expires_at(memory, categories)
    if end is None or end > grounds.now + AHEAD_S or not tree.lineage.is_head(record.id):
        return None
    is_over = lifecycle.state(memory, grounds.now, categories) == lifecycle.EXPIRED
    if memory.text("valid_through"):
        why = f"it was valid through {memory.text('valid_through')}"
        return changing("archive", record, why, status="archived") if is_over else None
    row = categories[memory.category]
    count = grounds.uses.count_since(memory, lifecycle.confirmed_at(memory))
    if count >= grounds.config.count("maintain.often") and memory.status != "deprecated":
        # The commit at which somebody looked at the code stays: nobody has done so now.
        checked = memory.table("checked") | {"at": moments.render(grounds.now), "by": BY}
        days = f"the {row.ttl_days} days of the category {row.name}"
        why = f"it was looked at {count} times in {days}"
        return changing("renew", record, why, checked=checked)
    why = f"the {row.ttl_days} days of the category {row.name} were over on {moments.date(end)}"
    return changing("archive", record, why, status="archived") if is_over else None


def _surplus(tree: Tree, grounds: Grounds) -> list[Step]:
    """Return the steps that archive the least important memories where there are too many.

    Eternal ones go last, pinned ones and those that were looked at lately not at all.
    """
    living = grounds.living(tree)
    most = grounds.config.count("maintain.most_alive")
    if len(living) <= most:
        return []
    kept = min(most, grounds.config.count("maintain.kept_alive"))
    why = f"{len(living):,} memories are alive, and it is among the least important"
    free = [record for record in living if _may_go(record, grounds)]
    ordered = _by_worth(free, grounds)
    return [
        changing("archive", record, why, status="archived")
        for record in ordered[: len(living) - kept]
    ]


def _may_go(record: Record, grounds: Grounds) -> bool:
    last = grounds.uses.last(record.memory)
    is_late = last is not None and last > grounds.now - LATELY_S
    return record.memory.status != "pinned" and record.path not in grounds.frozen and not is_late


def _by_worth(records: Iterable[Record], grounds: Grounds) -> list[Record]:
    """Return records, the least worth first: by importance, then by what is left of them."""
    config = grounds.config
    fading = Fading(config.text("decay.formula"), config.number("decay.half_life_days"))

    def worth(record: Record) -> tuple[bool, float, float, int, str]:
        memory = record.memory
        count = grounds.uses.count(memory) if grounds.uses.is_known else None
        left = decay.kept(memory, grounds.now, config.categories, fading, count)
        is_eternal = memory.text("temporal_class") == "eternal"
        return is_eternal, memory.importance, left, memory.timestamp, record.id

    return sorted(records, key=worth)
