"""Lineage: which memory replaces which, derived from `supersedes` alone.

Nothing here recurses and every walk is bounded by the number of memories, so that chains of
thousands and circles are as harmless as pairs.
"""

from __future__ import annotations

from memtool.memory.memory import Memory
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


class Fork(Value):
    """Two or more heads that supersede the same memory, usually made on two branches."""

    ancestor: str
    heads: tuple[str, ...]


class LineageRow(Value):
    """What lineage asks of a memory."""

    id: str
    status: str
    supersedes: tuple[str, ...]


class Lineage:
    """The supersede graph of one tree at one moment. Deleted memories replace nothing."""

    def __init__(self, memories: Iterable[Memory | LineageRow]) -> None:
        self.supersedes: dict[str, tuple[str, ...]] = {}
        """What each memory replaces, dangling ids included."""
        newer: dict[str, set[str]] = {}
        for memory in memories:
            effective = () if memory.status == "deleted" else memory.supersedes
            if memory.id in self.supersedes:  # an id that two files have: both count
                both = {*self.supersedes[memory.id], *effective}
                self.supersedes[memory.id] = tuple(sorted(both))
            else:
                self.supersedes[memory.id] = effective
            for old in effective:
                newer.setdefault(old, set()).add(memory.id)
        self.superseded_by: dict[str, tuple[str, ...]] = {
            old: tuple(sorted(ids)) for old, ids in newer.items()
        }
        """Who replaces each memory directly: the reverse of `supersedes`."""

    def without(self, refused: Mapping[str, Collection[str]]) -> Lineage:
        """Return the graph in which some memories do not replace what is given for them."""
        kept = Lineage(())
        kept.supersedes = self.supersedes | {
            new: tuple(old for old in self.supersedes[new] if old not in olds)
            for new, olds in refused.items()
        }
        kept.superseded_by = self.superseded_by.copy()
        for old in {old for olds in refused.values() for old in olds}:
            newer = [new for new in kept.superseded_by.pop(old, ()) if old in kept.supersedes[new]]
            if newer:
                kept.superseded_by[old] = tuple(newer)
        return kept

    def is_head(self, id_: str) -> bool:
        """Tell whether nothing supersedes the memory."""
        return id_ not in self.superseded_by

    def successors(self, id_: str) -> tuple[str, ...]:
        """Return all memories that replace this one, directly or through others, sorted."""
        return _reach(id_, self.superseded_by)

    def predecessors(self, id_: str) -> tuple[str, ...]:
        """Return all memories that this one replaces, directly or through others, sorted."""
        return _reach(id_, self.supersedes)

    def heads_of(self, id_: str) -> tuple[str, ...]:
        """Return the heads that a memory leads to: itself where nothing supersedes it.

        Empty for a memory whose every successor lies in a cycle.
        """
        if self.is_head(id_):
            return (id_,)
        return tuple(newer for newer in self.successors(id_) if self.is_head(newer))

    def forks(self) -> tuple[Fork, ...]:
        """Return every memory that two or more heads supersede directly or through others.

        Only the latest such memory of a set of heads is named, sorted by its id.
        """
        found = {}
        for old, newer in self.superseded_by.items():
            if len(newer) < 2 or old not in self.supersedes:
                continue
            heads = self.heads_of(old)
            # A successor that leads to the same heads is the later place where they parted, or
            # lies in a circle with this one.
            if len(heads) > 1 and not any(
                self.heads_of(branch) == heads and old not in (branch, *self.successors(branch))
                for branch in newer
            ):
                found[old] = Fork(old, heads)
        return tuple(found[old] for old in sorted(found))

    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """Return every circle of memories that supersede each other, members sorted."""
        return tuple(
            sorted(
                tuple(sorted(component))
                for component in _components(self.supersedes)
                if len(component) > 1 or component[0] in self.supersedes[component[0]]
            )
        )

    def dangling(self) -> tuple[tuple[str, str], ...]:
        """Return (memory, missing id) for each superseded id that is not in the tree, sorted."""
        return tuple(
            sorted(
                (newer, old)
                for newer, olds in self.supersedes.items()
                for old in olds
                if old not in self.supersedes
            )
        )


def _reach(start: str, edges: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    seen: set[str] = set()
    todo = list(edges.get(start, ()))
    while todo:
        id_ = todo.pop()
        if id_ not in seen:
            seen.add(id_)
            todo.extend(edges.get(id_, ()))
    return tuple(sorted(seen - {start}))


def _components(edges: dict[str, tuple[str, ...]]) -> list[list[str]]:  # noqa: C901  # one walk
    """Strongly connected components, by Tarjan's algorithm (1972) with an explicit stack."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_nodes: list[str] = []
    is_open: set[str] = set()
    components = []
    for root in sorted(edges):
        if root in number:
            continue
        work = [(root, 0)]
        while work:
            node, position = work.pop()
            if position == 0:
                number[node] = low[node] = len(number)
                open_nodes.append(node)
                is_open.add(node)
            targets = edges.get(node, ())
            if position > 0:  # back from the target before this one
                low[node] = min(low[node], low[targets[position - 1]])
            while position < len(targets):
                target = targets[position]
                position += 1
                if target not in edges:
                    low.setdefault(target, len(edges))
                elif target not in number:
                    work.append((node, position))
                    work.append((target, 0))
                    break
                elif target in is_open:
                    low[node] = min(low[node], number[target])
            else:
                if low[node] == number[node]:
                    component: list[str] = []
                    while not component or component[-1] != node:
                        component.append(open_nodes.pop())
                        is_open.discard(component[-1])
                    components.append(component)
    return components
