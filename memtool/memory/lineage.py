"""Lineage: which memory replaces which, derived from `supersedes` alone.

Nothing here recurses and every walk is bounded by the number of memories, so that chains of
thousands and circles are as harmless as pairs.
"""

from __future__ import annotations

from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Protocol

    from memtool.memory.memory import Memory


class Fork(Value):
    """Two or more heads that supersede the same memory, usually made on two branches."""

    ancestor: str
    heads: tuple[str, ...]


if TYPE_CHECKING:

    class Supersession(Protocol):
        """The part of a memory that lineage needs."""

        @property
        def id(self) -> str: ...
        @property
        def replaces(self) -> tuple[str, ...]: ...
        @property
        def proposes(self) -> tuple[str, ...]: ...


class LineageRow(Value):
    """The part of a memory that lineage needs: the ids that it replaces or proposes to."""

    id: str
    replaces: tuple[str, ...] = ()
    proposes: tuple[str, ...] = ()


class FileRow(LineageRow):
    """The row of one memory file."""

    path: str = ""
    status: str = ""

    @property
    def supersedes(self) -> tuple[str, ...]:
        """The ids that it replaces, or would replace after a confirmation."""
        return self.replaces or self.proposes


class Lineage:
    """The supersede graph of one tree at one moment.

    A deleted memory replaces nothing. An unconfirmed one only proposes to replace, until it is
    confirmed or something confirmed replaces it in turn.
    """

    def __init__(self, memories: Iterable[Supersession], other_ids: Iterable[str] = ()) -> None:
        """Take memories, and the ids of others that are there and replace nothing."""
        self._replaces: dict[str, tuple[str, ...]] = dict.fromkeys(other_ids, ())
        self._proposes: dict[str, tuple[str, ...]] = {}
        for memory in memories:  # an id that two files have: both count
            _add(self._replaces, memory.id, memory.replaces)
            if memory.proposes:
                _add(self._proposes, memory.id, memory.proposes)
        self._derive()

    def _derive(self) -> None:
        """Work out which edges take effect."""
        effective, proposes = self._replaces.copy(), self._proposes.copy()
        todo = [old for olds in effective.values() for old in olds] if proposes else []
        while todo:
            id_ = todo.pop()
            if id_ in proposes:  # what replaces it is confirmed, and speaks for it
                todo += proposes[id_]
                _add(effective, id_, proposes.pop(id_))
        self.supersedes: dict[str, tuple[str, ...]] = effective
        """What each memory replaces, dangling ids included."""
        self.superseded_by: dict[str, tuple[str, ...]] = _reverse(effective)
        """The direct successors of each memory: the reverse of `supersedes`."""
        self.proposes: dict[str, tuple[str, ...]] = proposes
        """The ids that each unconfirmed memory would replace."""
        self.proposed_by: dict[str, tuple[str, ...]] = _reverse(proposes)
        """The unconfirmed memories that would replace each memory: the reverse of `proposes`."""

    def without(self, refused: Mapping[str, Collection[str]]) -> Lineage:
        """Return the graph without some edges: by memory, the ids that it does not replace."""
        remaining = Lineage(())
        remaining._replaces, remaining._proposes = (
            edges
            | {
                new: tuple(old for old in edges[new] if old not in olds)
                for new, olds in refused.items()
                if new in edges
            }
            for edges in (self._replaces, self._proposes)
        )
        remaining._derive()
        return remaining

    @cached_property
    def as_proposed(self) -> Lineage:
        """The graph as if every proposal were confirmed."""
        if not self.proposes:
            return self
        every = Lineage(())
        every._replaces = self._replaces.copy()
        for id_, olds in self._proposes.items():
            _add(every._replaces, id_, olds)
        every._derive()
        return every

    def is_head(self, id_: str) -> bool:
        """Return whether nothing supersedes the memory."""
        return id_ not in self.superseded_by

    def find_successors(self, id_: str) -> tuple[str, ...]:
        """Return all memories that replace this one, directly or through others, sorted."""
        return _find_reachable(id_, self.superseded_by)

    def find_predecessors(self, id_: str) -> tuple[str, ...]:
        """Return all memories that this one replaces, directly or through others, sorted."""
        return _find_reachable(id_, self.supersedes)

    def find_heads(self, id_: str) -> tuple[str, ...]:
        """Return the heads that a memory leads to: itself if nothing supersedes it.

        Empty if all of its successors are in a cycle.
        """
        return (id_,) if self.is_head(id_) else self._heads[id_]

    @cached_property
    def _heads(self) -> dict[str, tuple[str, ...]]:
        """The heads of every superseded memory, from one walk.

        Each member of a chain reuses the result of the next one, so a chain of thousands stays
        cheap.
        """
        heads_by_id: dict[str, tuple[str, ...]] = {}
        newer = self.superseded_by
        # Successors come before the memories that lead to them.
        for component in _find_components(newer):
            ahead = {new for id_ in component for new in newer.get(id_, ())}.difference(component)
            lists = {(new,) if new not in newer else heads_by_id[new] for new in ahead}
            heads = lists.pop() if len(lists) == 1 else tuple(sorted(set().union(*lists)))
            heads_by_id.update(dict.fromkeys(component, heads))
        return heads_by_id

    def find_forks(self) -> tuple[Fork, ...]:
        """Return every memory that two or more heads supersede directly or through others.

        Only the latest such memory of a set of heads is named, sorted by its id.
        """
        forks = {}
        for old, newer in self.superseded_by.items():
            if len(newer) < 2 or old not in self.supersedes:
                continue
            heads = self.find_heads(old)
            # If a successor leads to the same heads, they parted at the successor, or it is in a
            # circle with this memory.
            if len(heads) > 1 and not any(
                self.find_heads(branch) == heads
                and old not in (branch, *self.find_successors(branch))
                for branch in newer
            ):
                forks[old] = Fork(old, heads)
        return tuple(forks[old] for old in sorted(forks))

    def find_cycles(self) -> tuple[tuple[str, ...], ...]:
        """Return every circle of memories that supersede each other, members sorted.

        A circle that a proposal would close counts.
        """
        edges = self.as_proposed.supersedes
        return tuple(
            sorted(
                tuple(sorted(component))
                for component in _find_components(edges)
                if len(component) > 1 or component[0] in edges[component[0]]
            )
        )

    def find_dangling(self) -> tuple[tuple[str, str], ...]:
        """Return (memory, missing id) for each superseded id that is not in the tree, sorted."""
        return tuple(
            sorted(
                (newer, old)
                for newer, olds in self.as_proposed.supersedes.items()
                for old in olds
                if old not in self.supersedes
            )
        )


def _add(edges: dict[str, tuple[str, ...]], id_: str, olds: tuple[str, ...]) -> None:
    """Add the ids that a memory replaces to those already known, each once."""
    existing = edges.get(id_)
    if existing and olds:
        edges[id_] = tuple(sorted({*existing, *olds}))
    else:
        edges[id_] = existing or olds


def _reverse(edges: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    newer: dict[str, set[str]] = {}
    for new, olds in edges.items():
        for old in olds:
            newer.setdefault(old, set()).add(new)
    return {old: tuple(sorted(ids)) for old, ids in newer.items()}


def _find_reachable(start: str, edges: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    seen: set[str] = set()
    todo = list(edges.get(start, ()))
    while todo:
        id_ = todo.pop()
        if id_ not in seen:
            seen.add(id_)
            todo.extend(edges.get(id_, ()))
    return tuple(sorted(seen - {start}))


def _find_components(edges: dict[str, tuple[str, ...]]) -> list[list[str]]:  # noqa: C901  # one walk
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


def is_replaced(id_: str, newer: Callable[[str], Iterable[FileRow]]) -> bool:
    """Return whether something confirmed takes the place of a memory, also through a proposal.

    `newer` gives what supersedes an id, proposals too.
    """
    seen = {id_}
    todo = [id_]
    while todo:
        for row in newer(todo.pop()):
            if row.replaces:
                return True
            if row.id not in seen:
                seen.add(row.id)
                todo.append(row.id)
    return False


def build_row(memory: Memory, path: str) -> FileRow:
    """Return the row of a memory that was read."""
    return FileRow(memory.id, memory.replaces, memory.proposes, path, memory.status)
