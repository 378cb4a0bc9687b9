"""The page of a lineage: successors, predecessors and relations, as a picture and as a list.

Memories are placed in columns by what they replace, the oldest on the left, and in rows by age. A
box is as high as its title needs. Picture and list have the same memories, at most `MAX_NODES`.
"""

from __future__ import annotations

from memtool.commands.show import show
from memtool.index import index
from memtool.memory.fields import RELATIONS
from memtool.value import Value
from memtool.web.picture import LINE_PX, STATES, Box, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from memtool.store.context import Context
    from memtool.store.tree import Record, Tree
    from memtool.web.page import PageQuery

MAX_NODES = 60
"""Memories of one picture; a larger one would be unreadable."""
BOX_WIDTH, PAD = 220, 9
GAP_X, GAP_Y = 60, 16


class GraphNode(Value):
    """A memory in the picture: its box, and the lines of its title. `state` is one of `STATES`."""

    id: str
    title: str
    lines: tuple[str, ...]
    state: str
    box: Box
    is_here: bool


class GraphEdge(Value):
    """A relation of two memories as a curve; `name` is its kind, such as supersedes."""

    name: str
    start: str
    end: str
    path: str


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
    columns = arrange_levels(tree, shown)
    nodes = _place_nodes(tree, columns, id_)
    by_id = {node.id: node for node in nodes}
    return {
        "title": f"Lineage: {tree[id_].memory.title}",
        "id": id_,
        "nodes": nodes,
        "edges": _build_edges(tree, by_id),
        "hidden": len(ids) - len(shown),
        "state_words": STATES,
        "pad": PAD,
        "line": LINE_PX,
        "width": max(node.box.x + node.box.width for node in nodes) + GAP_X // 2,
        "height": max(node.box.y + node.box.height for node in nodes),
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


def arrange_levels(tree: Tree, ids: list[str]) -> list[list[str]]:
    """Return memories in columns: each to the right of all that it replaces.

    A circle, which no valid tree has, is cut where it would repeat.
    """
    chosen = set(ids)
    level: dict[str, int] = {}

    def place(id_: str, above: frozenset[str]) -> int:
        if id_ not in level:
            older = [
                older_id
                for older_id in tree[id_].memory.supersedes
                if older_id in chosen - above - {id_}
            ]
            level[id_] = 1 + max((place(older_id, above | {id_}) for older_id in older), default=-1)
        return level[id_]

    for id_ in ids:
        place(id_, frozenset())
    columns: list[list[str]] = [[] for _level in range(max(level.values()) + 1)]
    for id_ in sorted(ids, key=lambda id_: (tree[id_].memory.timestamp, id_)):
        columns[level[id_]].append(id_)
    return columns


def _place_nodes(tree: Tree, columns: list[list[str]], here: str) -> list[GraphNode]:
    nodes = []
    for across, column in enumerate(columns):
        y = 0
        for id_ in column:
            memory = tree[id_].memory
            lines = wrap(memory.title, BOX_WIDTH - 2 * PAD)
            height = (len(lines) + 1) * LINE_PX + 2 * PAD  # the last line has the state
            box = Box(across * (BOX_WIDTH + GAP_X), y, BOX_WIDTH, height)
            state = _find_state(tree, id_)
            nodes.append(GraphNode(id_, memory.title, lines, state, box, id_ == here))
            y += height + GAP_Y
    return nodes


def _find_state(tree: Tree, id_: str) -> str:
    if not tree.lineage.is_head(id_):
        return "superseded"
    status = tree[id_].memory.status
    return status if status in STATES else "active"


def _build_edges(tree: Tree, nodes: dict[str, GraphNode]) -> list[GraphEdge]:
    edges = []
    for id_, end in nodes.items():
        for name in RELATIONS:
            for other in tree[id_].memory.items(name):
                if other in nodes and other != id_:
                    start = nodes[other]
                    edges.append(
                        GraphEdge(name.replace("_", " "), other, id_, _draw_curve(start, end))
                    )
    return edges


def _draw_curve(start: GraphNode, end: GraphNode) -> str:
    """Return the curve between two boxes; it passes over neither of them."""
    first, second = sorted((start.box, end.box), key=lambda box: box.x)
    bend = GAP_X // 2
    x1, y1 = first.x + BOX_WIDTH, first.y + first.height / 2
    is_below = first.x == second.x  # one below the other: a bow at their right
    x2, y2 = (x1 if is_below else second.x), second.y + second.height / 2
    turn = x2 + bend if is_below else x2 - bend
    return f"M{x1} {y1:g}C{x1 + bend} {y1:g} {turn} {y2:g} {x2} {y2:g}"
