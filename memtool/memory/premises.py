"""Premises: what a memory rests on, and whether that still holds.

A conclusion rests on its premises, and no longer stands when one of them is out: replaced,
forgotten, deprecated, missing, past its end, or broken by a change of the code. What took it out is
a cause, which flows up to everything that rests on the conclusion, until somebody settles it.

A cause is a text. `memory:ID` says that a premise is now ID, and `without:ID` that ID no longer
holds. The key `settled_on` of a conclusion has those that somebody accepted.

Nothing here recurses, and each memory has at most `MAX_CAUSES`, so circles, long chains and dense
graphs are harmless.
"""

from __future__ import annotations

from memtool.memory.fields import CAUSE_KINDS, SETTLED
from memtool.memory.memory import has_reason_added, is_generated
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Protocol

    from memtool.memory.lineage import Lineage
    from memtool.memory.memory import Memory

    class Ground(Protocol):
        """What the walk asks about the memories of one tree at one moment."""

        @property
        def lineage(self) -> Lineage:
            """Which memory replaces which."""

        def find_fault(self, id_: str) -> str:
            """Return why a memory no longer holds: one of `FAULTS`, empty if it does."""

        def says_same(self, old: str, new: str) -> bool:
            """Return whether two memories have the same title and body."""

        def list_settled(self, id_: str) -> Collection[str]:
            """Return the causes that a memory accepts."""


MAX_CAUSES = 16
"""The nearest causes that a memory has, by depth and then by name; others are left out."""

MEMORY, WITHOUT = (f"{kind}:" for kind in CAUSE_KINDS)
"""The beginnings of causes: what a premise is now, and what no longer holds."""

REPLACED, FORGOTTEN, DEPRECATED = "replaced", "forgotten", "deprecated"
MISSING, ENDED, BROKEN = "missing", "ended", "broken"
FAULTS: dict[str, str] = {
    FORGOTTEN: "{} was forgotten",
    DEPRECATED: "{} is deprecated",
    MISSING: "{} is not here",
    ENDED: "{} has expired",
    BROKEN: "what {} cites is gone",
}
"""Why a memory no longer holds, with a clause about its id. A replaced one has a new version."""
FAULT_BY_STATUS = {"deleted": FORGOTTEN, DEPRECATED: DEPRECATED}
"""The fault of a memory by its status; other statuses are none."""
ACTS = (
    ("it still holds", "memtool confirm {} --still-holds"),
    ("it has changed", "memtool supersede {} TITLE"),
    ("it no longer holds", "memtool forget {} --reason TEXT"),
)
"""The acts that settle a conclusion: when each is right, and the command about its id."""


class Cause(Value):
    """A cause of one conclusion.

    `name` is the cause as a text and `reason` is `REPLACED` or one of `FAULTS`. `via` is the
    premise that it comes through: the one that is out, or one that is unsettled itself.
    """

    name: str
    reason: str
    via: str
    is_direct: bool

    @property
    def id(self) -> str:
        """The memory that the cause names."""
        return self.name.partition(":")[2]


def find_premises(memory: Memory) -> tuple[str, ...]:
    """Return the ids that a memory rests on, in its order.

    These are its sources `memory:ID` and `derived_from`, without itself and what it replaces. A
    digest rests on nothing, since it is rebuilt from current memories.
    """
    cited = [source for source in memory.items("source") if source.startswith(MEMORY)]
    derived_from = memory.items("derived_from")
    if not (cited or derived_from) or is_generated(memory):
        return ()
    ids = dict.fromkeys((*(source.removeprefix(MEMORY) for source in cited), *derived_from))
    own = {memory.id, *memory.supersedes}
    return tuple(id_ for id_ in ids if id_ not in own)


def accept(memory: Memory, causes: Iterable[str]) -> tuple[str, ...]:
    """Return the causes that a memory accepts together with others, each once, sorted."""
    return tuple(sorted({*memory.items(SETTLED), *causes}))


def says_same(old: Memory, new: Memory) -> bool:
    """Return whether two memories have the same title and body.

    The reason that `resolve` and `undo` add to the text that holds makes no difference.
    """
    return old.title == new.title and (
        new.body.split() == old.body.split() or has_reason_added(new.body, old.body)
    )


def find_causes(
    premises: Mapping[str, Iterable[str]], ground: Ground
) -> dict[str, dict[str, Cause]]:
    """Return the causes of each conclusion, perhaps none, by its id and their names.

    `premises` are those of some conclusions by id. For each of these, the premises of its premises
    must be there too.

    The result is the least fixpoint, level by level: first the causes of premises that are out,
    then those of what rests on these conclusions, and so on.
    """
    settled: dict[str, Collection[str]] = {}
    carried_by: dict[str, list[str]] = {}
    level: list[tuple[str, str, str, str, bool]] = []
    for conclusion, ids in premises.items():
        accepted = settled[conclusion] = ground.list_settled(conclusion)
        for premise in ids:
            direct, carriers = _resolve(conclusion, premise, accepted, ground)
            level += [(conclusion, cause.name, cause.via, cause.reason, True) for cause in direct]
            for carrier in carriers:
                carried_by.setdefault(carrier, []).append(conclusion)
    causes: dict[str, dict[str, Cause]] = {conclusion: {} for conclusion in premises}
    while level:
        reached: list[tuple[str, str, str, str, bool]] = []
        for conclusion, name, via, reason, is_direct in sorted(level):
            own = causes[conclusion]
            if name in own or name in settled[conclusion] or len(own) >= MAX_CAUSES:
                continue
            own[name] = Cause(name, reason, via, is_direct)
            reached += [
                (upper, name, conclusion, reason, False) for upper in carried_by.get(conclusion, ())
            ]
        level = reached
    return causes


def _resolve(
    conclusion: str, premise: str, accepted: Collection[str], ground: Ground
) -> tuple[list[Cause], list[str]]:
    """Return the causes that a premise gives a conclusion, and what passes its own causes on."""
    lineage = ground.lineage
    if lineage.is_head(premise):
        fault = ground.find_fault(premise)
        gone = [Cause(WITHOUT + premise, fault, premise, is_direct=True)] if fault else []
        return gone, [premise] if fault in ("", BROKEN) else []
    heads = lineage.find_heads(premise)
    if not heads:  # a circle of memories that supersede each other
        return [Cause(WITHOUT + premise, REPLACED, premise, is_direct=True)], []
    direct: list[Cause] = []
    carriers: list[str] = []
    for head in heads:
        if head == conclusion:  # it corrects what it rested on
            continue
        if MEMORY + head not in accepted and not ground.says_same(premise, head):
            direct.append(Cause(MEMORY + head, REPLACED, premise, is_direct=True))
            continue
        fault = ground.find_fault(head)
        if fault:
            direct.append(Cause(WITHOUT + head, fault, head, is_direct=True))
        if fault in ("", BROKEN):
            carriers.append(head)
    return direct, carriers


def find_chain(causes: Mapping[str, Mapping[str, Cause]], conclusion: str, name: str) -> list[str]:
    """Return the ids from a conclusion down to the premise that gave a cause, both included."""
    chain = [conclusion]
    while True:
        cause = causes[chain[-1]][name]
        chain.append(cause.via)
        if cause.is_direct:
            return chain


def describe_cause(cause: Cause, shorten: Callable[[str], str] = str) -> str:
    """Return a cause as a clause, such as `dec-k3f9 is now dec-b7x2`; `shorten` formats ids.

    A carried cause does not know what was replaced, only what takes its place. Describe the cause
    that the lowest conclusion has to name both.
    """
    id_, via = shorten(cause.id), shorten(cause.via)
    if cause.name.startswith(MEMORY):
        return f"{via} is now {id_}" if cause.is_direct else f"{via} rests on what is now {id_}"
    if cause.reason == REPLACED:
        clause = f"{id_} is replaced in a circle"
    else:
        clause = FAULTS[cause.reason].format(id_)
    return clause if cause.is_direct else f"{via} is unsettled: {clause}"
