"""The page of a lineage: who replaces and names whom, as a picture and as a list below it.

Memories stand in columns by what they replace, the oldest on the left, and in rows by age. The
picture is drawn here and holds at most `MOST` memories; the list holds the same ones.
"""

from __future__ import annotations

from memtool.commands.show import show
from memtool.index import index
from memtool.memory.fields import RELATIONS
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from memtool.store.context import Context
    from memtool.store.tree import Record, Tree
    from memtool.web.page import PageQuery

MOST = 60
"""Memories of one picture; nobody finds anything in a larger one."""
BOX_WIDTH, BOX_HEIGHT = 210, 44
GAP_X, GAP_Y = 60, 16
MOST_TITLE = 30
"""Characters of a title in its box."""


class GraphNode(Value):
    """A memory in the picture: the corner of its box in pixels, and how it is shown."""

    id: str
    title: str
    short: str
    status: str
    x: int
    y: int
    is_here: bool
    is_head: bool


class GraphEdge(Value):
    """A relation of two memories as a curve; `name` is its kind, such as supersedes."""

    name: str
    start: str
    end: str
    path: str


def graph(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the lineage of a memory with what it is related to, placed for a picture."""
    here = show(context, query.text("id"), at=query.text("at") or None)
    tree = index.open(context, query.text("at") or None)
    ids = around(tree, here.id, tree.naming(here.id))
    notes = list(dict.fromkeys(context.notes))
    return picture(tree, here.id, ids) | {"notes": notes}


def picture(tree: Tree, id_: str, ids: list[str]) -> dict[str, Any]:
    """Return the picture of a memory among those around it, the first ones where they are many."""
    shown = ids[:MOST]
    columns = levels(tree, shown)
    nodes = _nodes(tree, columns, id_)
    by_id = {node.id: node for node in nodes}
    return {
        "title": f"Lineage: {tree[id_].memory.title}",
        "id": id_,
        "nodes": nodes,
        "edges": _edges(tree, by_id),
        "hidden": len(ids) - len(shown),
        "box": (BOX_WIDTH, BOX_HEIGHT),
        "width": max(node.x for node in nodes) + BOX_WIDTH,
        "height": max(node.y for node in nodes) + BOX_HEIGHT,
        "notes": [],
    }


def around(tree: Tree, id_: str, naming: Iterable[Record]) -> list[str]:
    """Return a memory, its lineage, and what these are related to, in that order, each once.

    `naming` are the records that name it in one of their relations, and perhaps others.
    """
    lineage = tree.lineage.as_proposed
    line = [id_, *lineage.predecessors(id_), *lineage.successors(id_)]
    forks = [newer for old in line for newer in lineage.successors(old)]
    found = dict.fromkeys([*line, *forks])
    for one in tuple(found):
        if one in tree:
            for name in RELATIONS:
                found.update(dict.fromkeys(tree[one].memory.items(name)))
    for record in naming:
        named = {other for name in RELATIONS for other in record.memory.items(name)}
        if id_ in named:
            found.setdefault(record.id)
    return [one for one in found if one in tree]


def levels(tree: Tree, ids: list[str]) -> list[list[str]]:
    """Return memories in columns: each stands right of all that it replaces.

    A circle, which no sound tree has, ends where it would begin again.
    """
    chosen = set(ids)
    level: dict[str, int] = {}

    def place(id_: str, above: frozenset[str]) -> int:
        if id_ not in level:
            older = [one for one in tree[id_].memory.supersedes if one in chosen - above - {id_}]
            level[id_] = 1 + max((place(one, above | {id_}) for one in older), default=-1)
        return level[id_]

    for one in ids:
        place(one, frozenset())
    columns: list[list[str]] = [[] for _level in range(max(level.values()) + 1)]
    for one in sorted(ids, key=lambda one: (tree[one].memory.timestamp, one)):
        columns[level[one]].append(one)
    return columns


def _nodes(tree: Tree, columns: list[list[str]], here: str) -> list[GraphNode]:
    found = []
    for across, column in enumerate(columns):
        for down, id_ in enumerate(column):
            memory = tree[id_].memory
            title = memory.title
            short = title if len(title) <= MOST_TITLE else f"{title[: MOST_TITLE - 1]}…"
            found.append(
                GraphNode(
                    id_,
                    title,
                    short,
                    memory.status,
                    across * (BOX_WIDTH + GAP_X),
                    down * (BOX_HEIGHT + GAP_Y),
                    id_ == here,
                    tree.lineage.is_head(id_),
                )
            )
    return found


def _edges(tree: Tree, nodes: dict[str, GraphNode]) -> list[GraphEdge]:
    found = []
    for id_, end in nodes.items():
        for name in RELATIONS:
            for other in tree[id_].memory.items(name):
                if other in nodes and other != id_:
                    start = nodes[other]
                    found.append(GraphEdge(name.replace("_", " "), other, id_, _curve(start, end)))
    return found


def _curve(start: GraphNode, end: GraphNode) -> str:
    """Return the curve from the right of one box to the left of another."""
    x1, y1 = start.x + BOX_WIDTH, start.y + BOX_HEIGHT // 2
    x2, y2 = end.x, end.y + BOX_HEIGHT // 2
    bend = GAP_X // 2
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
