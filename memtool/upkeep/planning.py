"""Planning: what upkeep would do now, worked out of one commit, the ledger and the clock alone.

The same commit, ledger, settings and second give the same plan. Steps are planned on the tree as it
would be after the ones before, so that a plan which was carried out leaves nothing to plan.
"""

from __future__ import annotations

from memtool.gate import conflicts
from memtool.upkeep import candidates, chores, digests, expiring, merging, sourcing
from memtool.upkeep.chores import Chore
from memtool.upkeep.steps import KINDS, Imagined, Step, changing
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from memtool.gate.conflicts import Conflict
    from memtool.sessions.store import Sessions
    from memtool.store.tree import Tree
    from memtool.upkeep.steps import Grounds

NIGHTLY, WEEKLY, MONTHLY = PERIODS = ("nightly", "weekly", "monthly")
UNCOUNTED = (
    "no access was counted in this clone: candidates wait, and nothing outlives its time to live"
)
_ORDER = {do: number for number, do in enumerate(KINDS)}


class Flag(Value):
    """Something for a person to look at: its kind, the memories or the file, and what to do."""

    kind: str
    ids: tuple[str, ...]
    path: str
    message: str
    hint: str


class Plan(Value):
    """What there is to do: steps for the memories, chores for this clone, flags for people."""

    steps: tuple[Step, ...] = ()
    chores: tuple[Chore, ...] = ()
    flags: tuple[Flag, ...] = ()
    notes: tuple[str, ...] = ()


def plan(
    tree: Tree,
    grounds: Grounds,
    sessions: Sessions,
    cache_dir: str,
    periods: Collection[str],
    random: Callable[[int], bytes],
) -> Plan:
    """Return what is due; `random` draws the end of an id for a digest.

    Raises:
        MemtoolError: git or a session cannot be read.
    """
    steps: list[Step] = []
    flags: list[Flag] = []
    due: list[Chore] = []
    notes: list[str] = []
    if WEEKLY in periods:
        steps += expiring.plan(tree, grounds)
        due += chores.left_over(cache_dir, grounds.now)
    if NIGHTLY in periods:
        found, flags = _nightly(Imagined(tree, steps), grounds)
        steps += found
    if WEEKLY in periods:
        steps += _digests(Imagined(tree, steps), grounds, random)
    if MONTHLY in periods:
        flags += [
            Flag(one.code, (one.id,) if one.id else (), one.path, one.message, one.hint)
            for one in sourcing.dangling(tree, grounds)
        ]
        due += chores.rebuilding(cache_dir, grounds.now)
        due += chores.sessions_due(sessions, grounds.now)
        notes += [f"passed over: {wrong}" for wrong in sessions.heads()[1]]
    if tree.records and {NIGHTLY, WEEKLY} & {*periods} and not grounds.uses.is_known:
        notes.append(UNCOUNTED)
    steps.sort(key=lambda step: (_ORDER[step.do], step.id))
    return Plan(tuple(steps), tuple(due), tuple(flags), tuple(notes))


def _nightly(tree: Tree, grounds: Grounds) -> tuple[list[Step], list[Flag]]:
    open_ones = [
        one
        for one in conflicts.contradictions(tree, grounds.now, grounds.config.categories)
        if not one.accepted
    ]
    contradicted = {id_ for one in open_ones for id_ in one.ids}
    steps, parted = merging.plan(tree, grounds, contradicted)
    after = Imagined(tree, steps)
    steps += candidates.plan(after, grounds, contradicted)
    flags = [_contradiction(one) for one in open_ones]
    for one in parted:
        message = f"they say the same, but {one.why}"
        flags.append(Flag("duplicate", one.ids, "", message, _settle(one.ids)))
    return steps, flags


def _contradiction(one: Conflict) -> Flag:
    return Flag(one.kind, one.ids, "", one.reason, _settle(one.ids))


def _settle(ids: Iterable[str]) -> str:
    return f"memtool resolve {' '.join(ids)} --keep newer --why REASON"


def _digests(tree: Tree, grounds: Grounds, random: Callable[[int], bytes]) -> Iterator[Step]:
    """Yield the steps that bring the digests up to date that are there."""
    from memtool.memory import identity

    found = digests.plan_digests(tree, grounds.now, grounds.config.categories, random)
    for one in found:
        if any(record.path in grounds.frozen for record in one.replaces):
            continue
        if one.memory is not None:
            path = f"{grounds.directory}/{identity.place(one.memory)}"
            why = f"what it sums up of {one.category} has changed"
            yield Step("digest", one.memory.id, one.memory.title, path, why, {}, one.memory)
            continue
        why = f"there is nothing left to sum up of {one.category}"
        yield from (changing("archive", record, why, status="archived") for record in one.replaces)
