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

    class Replacing(Protocol):
        """What the lineage is made of, such as a memory."""

        @property
        def id(self) -> str: ...
        @property
        def replaces(self) -> tuple[str, ...]: ...
        @property
        def proposes(self) -> tuple[str, ...]: ...


class LineageRow(Value):
    """What lineage asks of a memory: what it replaces, and what it only proposes to replace."""

    id: str
    replaces: tuple[str, ...] = ()
    proposes: tuple[str, ...] = ()


class FileRow(LineageRow):
    """The row of one memory file."""

    path: str = ""
    status: str = ""

    @property
    def supersedes(self) -> tuple[str, ...]:
        """What it replaces, or would replace if somebody confirmed it."""
        return self.replaces or self.proposes


class Lineage:
    """The supersede graph of one tree at one moment.

    A deleted memory replaces nothing. Neither does one that nobody has confirmed: it proposes to
    replace, until it is confirmed itself or something confirmed replaces it in turn.
    """

    def __init__(self, memories: Iterable[Replacing], others: Iterable[str] = ()) -> None:
        """Take memories, and the ids of others that are there and replace nothing."""
        self._replaces: dict[str, tuple[str, ...]] = dict.fromkeys(others, ())
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
        self.superseded_by: dict[str, tuple[str, ...]] = _reversed(effective)
        """Who replaces each memory directly: the reverse of `supersedes`."""
        self.proposes: dict[str, tuple[str, ...]] = proposes
        """What each memory would replace if somebody confirmed it."""
        self.proposed_by: dict[str, tuple[str, ...]] = _reversed(proposes)
        """Who would replace each memory: the reverse of `proposes`."""

    def without(self, refused: Mapping[str, Collection[str]]) -> Lineage:
        """Return the graph in which some memories do not replace what is given for them."""
        kept = Lineage(())
        kept._replaces, kept._proposes = (
            edges
            | {
                new: tuple(old for old in edges[new] if old not in olds)
                for new, olds in refused.items()
                if new in edges
            }
            for edges in (self._replaces, self._proposes)
        )
        kept._derive()
        return kept

    @cached_property
    def as_proposed(self) -> Lineage:
        """The graph as it would be if somebody confirmed every proposal."""
        if not self.proposes:
            return self
        every = Lineage(())
        every._replaces = self._replaces.copy()
        for id_, olds in self._proposes.items():
            _add(every._replaces, id_, olds)
        every._derive()
        return every

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
        return (id_,) if self.is_head(id_) else self._heads[id_]

    @cached_property
    def _heads(self) -> dict[str, tuple[str, ...]]:
        """The heads of every memory that is superseded, all from one walk.

        A chain of thousands is asked about each of its members, so each takes what the next knows.
        """
        found: dict[str, tuple[str, ...]] = {}
        newer = self.superseded_by
        for component in _components(newer):  # what a memory leads to comes before it
            ahead = {new for id_ in component for new in newer.get(id_, ())}.difference(component)
            lists = {(new,) if new not in newer else found[new] for new in ahead}
            heads = lists.pop() if len(lists) == 1 else tuple(sorted(set().union(*lists)))
            found.update(dict.fromkeys(component, heads))
        return found

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
        """Return every circle of memories that supersede each other, members sorted.

        A circle that a proposal would close counts.
        """
        edges = self.as_proposed.supersedes
        return tuple(
            sorted(
                tuple(sorted(component))
                for component in _components(edges)
                if len(component) > 1 or component[0] in edges[component[0]]
            )
        )

    def dangling(self) -> tuple[tuple[str, str], ...]:
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
    """Add what a memory replaces to what is known of it, each id once."""
    known = edges.get(id_)
    if known and olds:
        edges[id_] = tuple(sorted({*known, *olds}))
    else:
        edges[id_] = known or olds


def _reversed(edges: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    newer: dict[str, set[str]] = {}
    for new, olds in edges.items():
        for old in olds:
            newer.setdefault(old, set()).add(new)
    return {old: tuple(sorted(ids)) for old, ids in newer.items()}


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


def is_replaced(id_: str, newer: Callable[[str], Iterable[FileRow]]) -> bool:
    """Tell whether something confirmed takes the place of a memory, also through a proposal.

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


def row_of(memory: Memory, path: str) -> FileRow:
    """Return the row of a memory that was read."""
    return FileRow(memory.id, memory.replaces, memory.proposes, path, memory.status)
