"""Settling: what a confirmation accepts, and what an act leaves unsettled."""

from __future__ import annotations

from memtool.authoring.write import quote_memory
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.premises import MEMORY, WITHOUT, describe_cause, find_premises
from memtool.search.unsettled import Unsettled
from memtool.value import Value, first_few, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from memtool.authoring.selection import Selection
    from memtool.authoring.write import ChangedMemories
    from memtool.memory.memory import Memory
    from memtool.search.drift import DriftWitness
    from memtool.store.context import Context
    from memtool.store.tree import Tree

MAX_CAUSES_SHOWN = 3
MAX_NAMED = 5
LISTED = "memtool list is:unsettled"


class Settling(Value):
    """What confirming some memories settles: by id the causes, perhaps none, and a clause for each.

    `lowest` has the conclusion to settle for the first cause of each memory.
    """

    unsettled: Unsettled
    accepted: dict[str, tuple[str, ...]]
    clauses: dict[str, tuple[str, ...]]
    lowest: dict[str, str]

    def refusal(self, memory: Memory) -> MemtoolError:
        """Build the refusal of a plain confirmation of an unsettled memory."""
        clauses = first_few(self.clauses[memory.id], MAX_CAUSES_SHOWN)
        return MemtoolError(
            f"cannot confirm {quote_memory(memory)}: {clauses}",
            hint=f"memtool supersede {memory.id} TITLE\n"
            f"still true: memtool confirm {self.lowest[memory.id]} --still-holds",
            code="rests-on-change",
        )

    def explain(self, id_: str, *, is_broken: bool) -> str:
        """Return a note on what a memory holds in spite of; empty if nothing speaks against it."""
        clauses = [
            *(["what it cites is gone"] if is_broken else []),
            *self.clauses.get(id_, ()),
        ]
        if not clauses:
            return ""
        return f"{id_} still holds, although {first_few(clauses, MAX_CAUSES_SHOWN)}"

    def describe_reach(self, ids: Collection[str]) -> str:
        """Return a sentence on what else is settled once the memories with `ids` are confirmed."""
        above = [id_ for id_ in self.unsettled.list_above(self.accepted) if id_ not in ids]
        before = self.unsettled.find(above)
        after = self.unsettled.accepting(self.accepted).find(above)
        freed = [id_ for id_ in above if id_ in before and id_ not in after]
        if not freed:
            return ""
        on = "them" if len(self.accepted) > 1 else "it"
        verb = "is" if len(freed) == 1 else "are"
        count = format_count(len(freed), "memory that rests", "memories that rest")
        return f"{count} on {on} {verb} settled too: {first_few(freed, MAX_NAMED)}"


def find_settling(
    context: Context,
    selection: Selection,
    drift: DriftWitness | None,
    broken: Collection[str],
) -> Settling:
    """Return what confirming memories settles, as of now.

    `broken` are those that will hold although drift calls them broken. A superseded or deleted
    memory has no causes, since settling it changes nothing.
    """
    tree = selection.tree
    start = Unsettled(tree, context.clock.now, drift)
    ids = [
        id_
        for id_ in selection.ids
        if tree.lineage.is_head(id_) and tree[id_].memory.status != "deleted"
    ]
    accepted: dict[str, tuple[str, ...]] = dict.fromkeys(broken, ())
    clauses: dict[str, tuple[str, ...]] = {}
    lowest: dict[str, str] = {}
    unsettled = start.accepting(accepted)
    while causes := unsettled.find(ids):  # a memory has a limited number of causes at a time
        for id_, own in causes.items():
            lowest.setdefault(id_, unsettled.find_lowest(id_, next(iter(own))))
            accepted[id_] = (*accepted.get(id_, ()), *own)
            clauses[id_] = (*clauses.get(id_, ()), *map(describe_cause, own.values()))
        unsettled = start.accepting(accepted)
    return Settling(start, accepted, clauses, lowest)


def note_unsettled(context: Context, done: ChangedMemories) -> None:
    """Add a note if memories rest on those whose status was changed, and are unsettled by it."""
    ids = [] if done.dry_run else [change.id for change in done.memories if change.changes]
    note_reach(context, ids)


def note_reach(context: Context, ids: Sequence[str]) -> None:
    """Add a note if memories rest on those with `ids`, which an act has replaced or retired."""
    if not ids:
        return
    tree = index.open(context, exact=True)
    unsettled = Unsettled(tree, context.clock.now)
    above = unsettled.list_above(list_versions(tree, ids))
    heads = {MEMORY + head for id_ in ids for head in tree.lineage.find_heads(id_)}
    named = {*heads, *(WITHOUT + id_ for id_ in ids)}
    reached = [id_ for id_, causes in unsettled.find(above).items() if not named.isdisjoint(causes)]
    if reached:
        count = format_count(len(reached), "memory rests", "memories rest")
        on, verb = ("them" if len(ids) > 1 else "it"), "is" if len(reached) == 1 else "are"
        context.notes.append(f"{count} on {on} and {verb} unsettled ({LISTED})")


def describe_lost_premises(unsettled: Unsettled, new: Memory, olds: Iterable[str]) -> str:
    """Return a note if a correction rests on nothing, and what it replaces did; else empty.

    Premises are a claim, so a correction has only those that its author names.
    """
    lost = [premise for old in olds for premise in unsettled.list_premises(old)]
    if not lost or find_premises(new):
        return ""
    heads = [head for id_ in lost for head in unsettled.lineage.find_heads(id_)]
    current = [MEMORY + id_ for id_ in dict.fromkeys(heads) if not unsettled.find_fault(id_)]
    hint = f"; if it should: --source {current[0]}" if current else ""
    return f"the old memory rested on {first_few(lost, MAX_NAMED)}, the new one on none{hint}"


def find_conclusions(unsettled: Unsettled, replaced: Collection[str]) -> list[str]:
    """Return what rests directly on memories that are replaced now, in words that still hold.

    Also what cites an earlier version of these, unless nobody has settled that change yet.
    """
    versions = list_versions(unsettled.tree, replaced)
    ids = {up for id_ in versions for up in unsettled.find_conclusions(id_)} - {*replaced}
    causes = unsettled.find(sorted(ids))
    open_names = {MEMORY + id_ for id_ in replaced}
    return [id_ for id_ in sorted(ids) if open_names.isdisjoint(causes.get(id_, ()))]


def list_versions(tree: Tree, ids: Iterable[str]) -> list[str]:
    """Return memories and all earlier versions that they replace, directly or not."""
    versions: dict[str, None] = {}
    todo = list(ids)
    while todo:
        id_ = todo.pop()
        if id_ not in versions and id_ in tree:
            versions[id_] = None
            todo += tree[id_].memory.replaces
    return list(versions)


def describe_settled(settled: Sequence[str], replaced: Collection[str], *, dry_run: bool) -> str:
    """Return a sentence on what `supersede --with-conclusions` has settled."""
    on = "them" if len(replaced) > 1 else first_few([*replaced], 1)
    if not settled:
        return f"nothing rests on {on}, so there is nothing to settle"
    verb = "would be" if dry_run else "is" if len(settled) == 1 else "are"
    count = format_count(len(settled), "memory that rests", "memories that rest")
    return f"{count} on {on} {verb} settled: {first_few(settled, MAX_NAMED)}"
