from __future__ import annotations

from conftest import make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.importing.base import without_circles
from memtool.memory.lineage import Lineage

IDS = [f"dec-{letter}" for letter in "abcdef"]
EDGES = st.lists(st.sampled_from(IDS), unique=True, max_size=4).map(tuple)
GRAPHS = st.fixed_dictionaries(dict.fromkeys(IDS, EDGES))


def _cycles(older):
    return Lineage(make_memory(id_, supersedes=olds) for id_, olds in older.items()).cycles()


@given(GRAPHS)
def test_no_circle_is_left(older):
    """What is kept has no circle, and kept and dropped together are all edges."""
    kept, dropped = without_circles(older)
    assert _cycles(kept) == ()
    edges = {(newer, old) for newer, olds in kept.items() for old in olds} | set(dropped)
    assert edges == {(newer, old) for newer, olds in older.items() for old in olds}


@given(GRAPHS)
def test_no_edge_is_dropped_without_need(older):
    """A graph without circles keeps every edge, and a dropped edge would close a circle."""
    kept, dropped = without_circles(older)
    if not _cycles(older):
        assert dropped == []
    for newer, old in dropped:
        assert _cycles(kept | {newer: (*kept[newer], old)})


def test_long_chains_do_not_recurse():
    """A chain of thousands that bites its tail loses just one edge."""
    names = [f"dec-{number:05}" for number in range(20_000)]
    older = {one: (two,) for one, two in zip(names, [*names[1:], names[0]], strict=True)}
    _kept, dropped = without_circles(older)
    assert dropped == [(names[-1], names[0])]
