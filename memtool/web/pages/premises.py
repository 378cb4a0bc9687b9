"""The page of what a memory rests on, and of what rests on it, as a picture and as a list.

Premises are on the left of what rests on them. What replaced a premise is drawn too.
"""

from __future__ import annotations

from memtool.index import index
from memtool.memory.premises import BROKEN
from memtool.search.scope import build_drift_witness
from memtool.search.unsettled import Unsettled
from memtool.web.graph_picture import MAX_NODES, Relation, draw_graph, find_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.store.context import Context
    from memtool.web.page import PageQuery

RESTS_ON, REPLACES = "rests on", "replaces"
LEGEND = (
    "A line leads from left to right, to what rests on it; a dashed one to what replaced it. "
    "Settling the first unsettled memory of a line settles those that rest on it."
)
ALONE = "It rests on no other memory, and no memory in use rests on it."


def premises(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the premises and the conclusions of a memory at any depth, placed for a picture."""
    tree = index.open(context, query.text("at") or None)
    here = tree.find(query.text("id"))
    drift = build_drift_witness(tree, lambda: context.provenance_reader(tree))
    unsettled = Unsettled(tree, context.clock.now, drift)
    ids = find_grounds(unsettled, here.id)
    shown = ids[:MAX_NODES]
    relations = [
        Relation(RESTS_ON, owner, premise)
        for owner in shown
        for premise in unsettled.list_premises(owner)
    ]
    relations += [
        Relation(REPLACES, head, old)
        for old in shown
        for head in tree.lineage.find_heads(old)
        if head != old
    ]
    return draw_graph(
        tree, here.id, shown, relations, (RESTS_ON,), find_states(unsettled, shown)
    ) | {
        "title": f"What it rests on: {here.memory.title}",
        "hidden": len(ids) - len(shown),
        "legend": LEGEND,
        "alone": ALONE,
        "notes": list(dict.fromkeys(context.notes)),
    }


def find_grounds(unsettled: Unsettled, id_: str) -> list[str]:
    """Return a memory, what it rests on with what that is now, and then what rests on it."""
    below = unsettled.list_below((id_, *unsettled.lineage.find_heads(id_)))
    return [*dict.fromkeys((*below, *unsettled.list_above([id_])))]


def find_states(unsettled: Unsettled, ids: list[str]) -> dict[str, str]:
    """Return the states of memories, one of `STATES` of pictures: unsettled ones are marked."""
    causes = unsettled.find(ids)
    states = {id_: find_state(unsettled.tree, id_) for id_ in ids}
    for id_ in ids:
        if unsettled.is_listed(id_):
            if unsettled.find_fault(id_) == BROKEN:
                states[id_] = "drifted"
            elif id_ in causes:
                states[id_] = "unsettled"
    return states
