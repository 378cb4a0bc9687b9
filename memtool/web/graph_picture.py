"""The picture of a graph of memories: boxes in columns, and curves between them.

A box is as high as its title needs. Columns go from left to right, so that each memory is to the
right of all that it comes from; in a column the oldest is at the top.
"""

from __future__ import annotations

from memtool.value import Value
from memtool.web.picture import LINE_PX, STATES, Box, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Any

    from memtool.store.tree import Tree

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
    is_main: bool
    path: str


class Relation(Value):
    """A relation that is drawn: its name, the memory that has it, and the one that it names."""

    name: str
    owner: str
    target: str


def draw_graph(
    tree: Tree,
    here: str,
    ids: Collection[str],
    relations: Iterable[Relation],
    levels: Collection[str],
    states: Mapping[str, str],
) -> dict[str, Any]:
    """Return the values of the template: the picture of memories of a tree, with one as `here`.

    Relations with a name in `levels` put their owner to the right of their target; they are whole
    lines, the others are dashed. `states` are those of the memories by id.
    """
    drawn = [edge for edge in relations if {edge.owner, edge.target} <= set(ids)]
    older: dict[str, list[str]] = {}
    for edge in drawn:
        if edge.name in levels:
            older.setdefault(edge.owner, []).append(edge.target)
    columns = arrange_levels(ids, older, lambda id_: (tree[id_].memory.timestamp, id_))
    nodes = _place_nodes(tree, columns, here, states)
    by_id = {node.id: node for node in nodes}
    return {
        "id": here,
        "nodes": nodes,
        "edges": [
            GraphEdge(
                edge.name,
                edge.target,
                edge.owner,
                edge.name in levels,
                _draw_curve(by_id[edge.target], by_id[edge.owner]),
            )
            for edge in drawn
            if edge.owner != edge.target
        ],
        "state_words": STATES,
        "pad": PAD,
        "line": LINE_PX,
        "width": max(node.box.x + node.box.width for node in nodes) + GAP_X // 2,
        "height": max(node.box.y + node.box.height for node in nodes),
    }


def arrange_levels(
    ids: Collection[str],
    older: Mapping[str, Iterable[str]],
    sort_key: Callable[[str], tuple[int, str]],
) -> list[list[str]]:
    """Return memories in columns: each to the right of those that `older` has for it.

    A circle is cut where it would repeat.
    """
    level: dict[str, int] = {}

    def place(id_: str, above: frozenset[str]) -> int:
        if id_ not in level:
            path = above | {id_}
            places = [place(near, path) for near in older.get(id_, ()) if near not in path]
            level[id_] = 1 + max(places, default=-1)
        return level[id_]

    for id_ in ids:
        place(id_, frozenset())
    columns: list[list[str]] = [[] for _level in range(max(level.values()) + 1)]
    for id_ in sorted(ids, key=sort_key):
        columns[level[id_]].append(id_)
    return columns


def _place_nodes(
    tree: Tree, columns: list[list[str]], here: str, states: Mapping[str, str]
) -> list[GraphNode]:
    nodes = []
    for across, column in enumerate(columns):
        y = 0
        for id_ in column:
            title = tree[id_].memory.title
            lines = wrap(title, BOX_WIDTH - 2 * PAD)
            height = (len(lines) + 1) * LINE_PX + 2 * PAD  # the last line has the state
            box = Box(across * (BOX_WIDTH + GAP_X), y, BOX_WIDTH, height)
            nodes.append(GraphNode(id_, title, lines, states[id_], box, id_ == here))
            y += height + GAP_Y
    return nodes


def find_state(tree: Tree, id_: str) -> str:
    """Return the state of a memory by its status and what replaces it, one of `STATES`."""
    if not tree.lineage.is_head(id_):
        return "superseded"
    status = tree[id_].memory.status
    return status if status in STATES else "active"


def _draw_curve(start: GraphNode, end: GraphNode) -> str:
    """Return the curve between two boxes; it passes over neither of them."""
    first, second = sorted((start.box, end.box), key=lambda box: box.x)
    bend = GAP_X // 2
    x1, y1 = first.x + BOX_WIDTH, first.y + first.height / 2
    is_below = first.x == second.x  # one below the other: a bow at their right
    x2, y2 = (x1 if is_below else second.x), second.y + second.height / 2
    turn = x2 + bend if is_below else x2 - bend
    return f"M{x1} {y1:g}C{x1 + bend} {y1:g} {turn} {y2:g} {x2} {y2:g}"
