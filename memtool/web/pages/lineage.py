"""The page of a lineage: successors, predecessors and relations, as a picture and as a list.

Memories are placed in columns by what they replace, the oldest on the left. Picture and list have
the same memories, at most `MAX_NODES`.
"""

from __future__ import annotations

from memtool.commands.show import show
from memtool.index import index
from memtool.memory.fields import RELATIONS
from memtool.web.graph_picture import MAX_NODES, Relation, draw_graph, find_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from memtool.store.context import Context
    from memtool.store.tree import Record, Tree
    from memtool.web.page import PageQuery

SUPERSEDES = "supersedes"
LEGEND = (
    "A line leads from left to right, to what replaced it; a dashed one joins memories that are "
    "related."
)
ALONE = "It stands alone: it replaces no memory and names none, and no memory replaces or names it."


def graph(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the lineage of a memory and its related memories, placed for a picture."""
    here = show(context, query.text("id"), at=query.text("at") or None)
    tree = index.open(context, query.text("at") or None)
    if here.id not in tree:  # on the trusted branch, which this one is behind
        return {"title": f"Lineage: {here.title}", "id": here.id, "nodes": (), "notes": ()}
    ids = find_nearby(tree, here.id, tree.naming(here.id))
    notes = list(dict.fromkeys(context.notes))
    return build_picture(tree, here.id, ids) | {"notes": notes}


def build_picture(tree: Tree, id_: str, ids: list[str]) -> dict[str, Any]:
    """Return the picture of a memory among its neighbours, the first ones if there are many."""
    shown = ids[:MAX_NODES]
    relations = [
        Relation(name.replace("_", " "), owner, target)
        for owner in shown
        for name in RELATIONS
        for target in tree[owner].memory.items(name)
    ]
    states = {shown_id: find_state(tree, shown_id) for shown_id in shown}
    return draw_graph(tree, id_, shown, relations, (SUPERSEDES,), states) | {
        "title": f"Lineage: {tree[id_].memory.title}",
        "hidden": len(ids) - len(shown),
        "legend": LEGEND,
        "alone": ALONE,
        "notes": [],
    }


def has_lineage(tree: Tree, id_: str) -> bool:
    """Return whether a memory has a picture: it replaces or names another one, or is named."""
    return len(find_nearby(tree, id_, tree.naming(id_))) > 1


def find_nearby(tree: Tree, id_: str, naming: Iterable[Record]) -> list[str]:
    """Return a memory, its lineage, and the memories related to these, in that order, each once.

    `naming` are the records that name it in one of their relations, and perhaps others.
    """
    lineage = tree.lineage.as_proposed
    line = [id_, *lineage.find_predecessors(id_), *lineage.find_successors(id_)]
    forks = [newer for old in line for newer in lineage.find_successors(old)]
    nearby = dict.fromkeys([*line, *forks])
    for nearby_id in tuple(nearby):
        if nearby_id in tree:
            for name in RELATIONS:
                nearby.update(dict.fromkeys(tree[nearby_id].memory.items(name)))
    for record in naming:
        named = {other for name in RELATIONS for other in record.memory.items(name)}
        if id_ in named:
            nearby.setdefault(record.id)
    return [id_ for id_ in nearby if id_ in tree]
