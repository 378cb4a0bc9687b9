"""Lineage: derived from any graph, in any order, always the same and always ending."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from conftest import make_memory
from effort import count_calls
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory.lineage import Fork, Lineage
from memtool.memory.memory import Memory

Graph = dict[str, tuple[str, ...]]

NAMES = [f"m{number:02}" for number in range(12)]
GRAPHS = st.dictionaries(
    st.sampled_from(NAMES[:-2]),  # the last two are only ever named: dangling
    st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple),
    max_size=10,
)


def memories(graph: Graph) -> list[Memory]:
    return [make_memory(id_, supersedes=olds) for id_, olds in graph.items()]


def derived(lineage: Lineage, ids: list[str]) -> object:
    return (
        lineage.find_forks(),
        lineage.find_cycles(),
        lineage.find_dangling(),
        lineage.superseded_by,
        {
            id_: (
                lineage.is_head(id_),
                lineage.find_heads(id_),
                lineage.find_successors(id_),
                lineage.find_predecessors(id_),
            )
            for id_ in ids
        },
    )


def reach(graph: Graph, start: str) -> set[str]:
    """The oracle: everything that a node leads to, by repeating until nothing is added."""
    reached = set(graph.get(start, ()))
    while True:
        wider = reached.union(*(graph.get(id_, ()) for id_ in reached))
        if wider == reached:
            return reached
        reached = wider


@given(GRAPHS, st.randoms(use_true_random=False))
def test_the_order_of_the_files_does_not_matter(graph: Graph, rng: random.Random) -> None:
    """Any order of the same memories gives the same lineage."""
    shuffled = memories(graph)
    rng.shuffle(shuffled)
    assert derived(Lineage(memories(graph)), NAMES) == derived(Lineage(shuffled), NAMES)


@given(GRAPHS)
def test_lineage_is_reachability(graph: Graph) -> None:
    """Successors, heads, circles and dangling ids agree with the simplest possible definition."""
    lineage = Lineage(memories(graph))
    newer: Graph = {}
    for id_, olds in graph.items():
        for old in olds:
            newer[old] = (*newer.get(old, ()), id_)
    for id_ in NAMES:
        after = reach(newer, id_)
        assert set(lineage.find_successors(id_)) == after - {id_}
        assert set(lineage.find_predecessors(id_)) == reach(graph, id_) - {id_}
        assert lineage.is_head(id_) == (not newer.get(id_))
        heads = {other for other in after if not newer.get(other)}
        assert set(lineage.find_heads(id_)) == (heads if newer.get(id_) else {id_})
    in_circles = {id_ for id_ in graph if id_ in reach(graph, id_)}
    assert {id_ for circle in lineage.find_cycles() for id_ in circle} == in_circles
    for circle in lineage.find_cycles():
        assert all(set(circle) <= reach(graph, id_) for id_ in circle)
    assert set(lineage.find_dangling()) == {
        (id_, old) for id_, olds in graph.items() for old in olds if old not in graph
    }


@given(GRAPHS)
def test_forks_are_where_heads_part(graph: Graph) -> None:
    """Every memory with two heads has its heads named once, at the latest place they part."""
    lineage = Lineage(memories(graph))
    forks = lineage.find_forks()
    assert len({fork.ancestor for fork in forks}) == len(forks)
    for fork in forks:
        assert len(fork.heads) > 1
        assert lineage.find_heads(fork.ancestor) == fork.heads
    for id_ in graph:
        heads = lineage.find_heads(id_)
        if len(heads) > 1:
            assert heads in {fork.heads for fork in forks}
            later = [fork for fork in forks if fork.ancestor in lineage.find_successors(id_)]
            named = [fork for fork in forks if fork.ancestor == id_]
            assert named or any(fork.heads == heads for fork in later)


@given(GRAPHS, GRAPHS, GRAPHS)
def test_the_union_of_branches_is_the_merge(base: Graph, left: Graph, right: Graph) -> None:
    """The order of merges does not matter, and merging again adds nothing."""
    only_left = {id_: olds for id_, olds in left.items() if id_ not in base}
    only_right = {
        id_: olds for id_, olds in right.items() if id_ not in base and id_ not in only_left
    }
    first, other = base | only_left | only_right, base | only_right | only_left
    assert derived(Lineage(memories(first)), NAMES) == derived(Lineage(memories(other)), NAMES)
    twice = memories(first) + memories(other)
    assert derived(Lineage(memories(first)), NAMES) == derived(Lineage(twice), NAMES)


@given(GRAPHS, GRAPHS)
def test_an_id_that_stands_twice_counts_in_both_files(left: Graph, right: Graph) -> None:
    """Which of two files with one id is read first makes no difference."""
    both = memories(left) + memories(right)
    assert derived(Lineage(both), NAMES) == derived(Lineage(reversed(both)), NAMES)


@pytest.mark.parametrize(
    ("graph", "forks"),
    [
        ({"a": (), "b": ("a",), "c": ("a",)}, [("a", "b", "c")]),
        ({"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}, []),
        ({"a": (), "b": ("a",), "c": ("b",), "d": ("b",)}, [("b", "c", "d")]),
        (
            {"a": (), "b": ("a",), "c": ("a",), "d": ("b",), "e": ("b",)},
            [("a", "c", "d", "e"), ("b", "d", "e")],
        ),
        ({"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ("c",)}, [("c", "d", "e")]),
        ({"a": ("b",), "b": ("a",), "c": ("a",), "d": ("a",)}, [("a", "c", "d")]),
        ({"b": ("gone",), "c": ("gone",)}, []),
        ({"a": ("a",)}, []),
    ],
)
def test_forks_by_example(graph: Graph, forks: list[tuple[str, ...]]) -> None:
    """A fork is named by the ancestor of its heads, until one memory supersedes them all."""
    result = Lineage(memories(graph)).find_forks()
    assert tuple(Fork(ancestor, tuple(heads)) for ancestor, *heads in forks) == result


def test_deleted_memories_replace_nothing() -> None:
    """Deleting the successor makes its predecessor a head again."""
    old = make_memory("old")
    new = make_memory("new", supersedes=("old",), status="deleted")
    assert Lineage([old, new]).is_head("old")
    assert not Lineage([old, new.with_fields(status="archived")]).is_head("old")


@pytest.mark.parametrize("is_circle", [False, True])
def test_chains_of_thousands_are_walked_without_recursion(is_circle: bool) -> None:  # noqa: FBT001
    """Two thousand corrections of one memory are a chain or a circle like any other."""
    ids = [f"m{number:04}" for number in range(2_000)]
    graph: Graph = {id_: (old,) for old, id_ in pairwise(ids)}
    graph[ids[0]] = (ids[-1],) if is_circle else ()
    lineage = Lineage(memories(graph))
    assert lineage.find_heads(ids[0]) == (() if is_circle else (ids[-1],))
    assert lineage.find_cycles() == ((tuple(ids),) if is_circle else ())
    assert len(lineage.find_successors(ids[0])) == 1_999
    assert lineage.find_forks() == lineage.find_dangling() == ()


PUT_AWAY = {"at": "2026-02-23T00:00:00Z", "by": "Ada", "was": "candidate"}


@pytest.mark.parametrize(
    ("fields", "replaces"),
    [
        ({"status": "confirmed"}, True),
        ({"status": "pinned"}, True),
        ({"status": "deprecated"}, True),
        ({"status": "archived"}, True),
        ({"status": "candidate"}, False),
        ({"status": "deprecated", "retired": PUT_AWAY}, False),
        ({"status": "archived", "retired": PUT_AWAY}, False),
        ({"status": "confirmed", "retired": PUT_AWAY}, True),
        ({"status": "deleted"}, False),
    ],
)
def test_what_nobody_confirmed_replaces_nothing(fields: dict[str, Any], replaces: bool) -> None:  # noqa: FBT001
    """A candidate leaves what it supersedes a head, also when it is put away; the rest replace."""
    old, new = make_memory("old"), make_memory("new", supersedes=("old",), **fields)
    lineage = Lineage([old, new])
    assert lineage.is_head("old") != replaces
    is_proposed = not replaces and fields["status"] != "deleted"
    assert lineage.proposed_by == ({"old": ("new",)} if is_proposed else {})


def test_what_is_confirmed_speaks_for_the_proposal_that_it_replaces() -> None:
    """A correction of a candidate takes the place of what the candidate would have replaced."""
    old, first = make_memory("old"), make_memory("p1", supersedes=("old",), status="candidate")
    second = make_memory("p2", supersedes=("p1",), status="candidate")
    assert Lineage([old, first, second]).superseded_by == {}
    lineage = Lineage([old, first, second.with_fields(status="confirmed")])
    assert lineage.find_heads("old") == ("p2",)
    assert lineage.proposes == {}
    assert lineage.without({"p2": {"p1"}}).is_head("old")


@given(GRAPHS, st.sets(st.sampled_from(NAMES)))
def test_proposals_only_wait(graph: Graph, candidates: set[str]) -> None:
    """Edges take effect or wait, none is lost; if all are confirmed the graph is the usual one."""
    mixed = [
        memory.with_fields(status="candidate" if memory.id in candidates else "confirmed")
        for memory in memories(graph)
    ]
    lineage, whole = Lineage(mixed), Lineage(memories(graph))
    assert derived(lineage.as_proposed, NAMES) == derived(whole, NAMES)
    for id_, olds in graph.items():
        assert {*lineage.supersedes[id_], *lineage.proposes.get(id_, ())} == {*olds}
        is_replaced = bool(lineage.superseded_by.get(id_))
        assert (id_ in lineage.proposes) == (bool(olds) and id_ in candidates and not is_replaced)
    assert lineage.find_cycles() == whole.find_cycles()
    assert lineage.find_dangling() == whole.find_dangling()


def test_every_member_of_a_long_chain_is_asked_for_its_head_with_linear_work() -> None:
    """A search asks this of each old memory that holds a word of the question."""

    def find_all_heads(count: int) -> None:
        ids = [f"m{number:05}" for number in range(count)]
        lineage = Lineage(memories({id_: (old,) for old, id_ in pairwise(ids)} | {ids[0]: ()}))
        assert {lineage.find_heads(id_) for id_ in ids} == {(ids[-1],)}

    assert count_calls(find_all_heads, 4_000) < 5 * count_calls(find_all_heads, 1_000)
