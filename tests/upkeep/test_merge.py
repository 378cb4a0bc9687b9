"""Merging: one memory for each claim, made of the evidence of all, and the same in every clone."""

from __future__ import annotations

import itertools

import pytest
from conftest import Sandbox, make_memory
from hypothesis import given
from hypothesis import strategies as st
from upkeep.inputs import inputs, tree_of

from memtool.memory import document
from memtool.memory.memory import FieldValue
from memtool.store.tree import Tree
from memtool.upkeep import merge
from memtool.upkeep.merge import UnmergedGroup
from memtool.upkeep.plan import project_tree
from memtool.upkeep.steps import UpkeepStep

SAID = "Deploys to production need the company VPN to be connected first, and a second person.\n"
SAME: dict[str, FieldValue] = {"type": "semantic", "title": "Deploys need the VPN"}


def same(sandbox: Sandbox, id_: str, body: str = SAID, **fields: FieldValue) -> str:
    """Write a memory that says what the others say."""
    return sandbox.memory(id_, body, **SAME | fields)


def planned(
    tree: Tree, *contradicted: str, **overrides: int
) -> tuple[list[UpkeepStep], list[UnmergedGroup]]:
    """Plan the merging of a tree."""
    return merge.plan(tree, inputs(**overrides), contradicted)


def summarize(steps: list[UpkeepStep]) -> list[tuple[str, str]]:
    """Return kind and memory of each step, `new` for a created one."""
    return [(step.do, "new" if step.memory else step.id) for step in steps]


def test_confirmed_ones_are_superseded_by_one_with_all_evidence(sandbox: Sandbox):
    """Lists are united, the surer, more important and longer-lived of each counts."""
    same(
        sandbox,
        "sem-a",
        tags=("net",),
        importance="0.9",
        confidence="low",
        checked={"at": "2026-02-25T00:00:00Z", "by": "Bob"},
        related_to=("dec-x", "sem-b"),
    )
    same(
        sandbox,
        "sem-b",
        source=("human:Bob",),
        files=("deploy.sh",),
        confidence="high",
        timestamp="2026-02-24T00:00:00Z",
        temporal_class="eternal",
    )
    sandbox.memory("sem-c", "Another thing.\n", type="semantic")
    steps, parted = planned(tree_of(sandbox))
    assert (steps, parted) == ([], [])  # one names the other: both are meant
    same(
        sandbox,
        "sem-a",
        tags=("net",),
        importance="0.9",
        confidence="low",
        checked={"at": "2026-02-25T00:00:00Z", "by": "Bob"},
        related_to=("dec-x",),
    )
    steps, parted = planned(tree_of(sandbox))
    assert (summarize(steps), parted) == ([("merge", "new")], [])
    made = steps[0].memory
    assert made is not None
    assert made.supersedes == ("sem-a", "sem-b")
    assert made.items("source") == ("human:Bob", "human:Ada")
    assert (made.items("tags"), made.items("files")) == (("net",), ("deploy.sh",))
    assert made.items("related_to") == ("dec-x",)
    assert (made.confidence, made.importance) == ("high", 0.9)
    assert made.text("temporal_class") == "eternal"
    assert made.table("checked")["by"] == "Bob"
    assert made.text("timestamp") == "2026-02-24T00:00:00Z"
    assert document.read(document.write(made), steps[0].path) == made


def test_a_candidate_gives_way_to_what_stands(sandbox: Sandbox):
    """It is deprecated, and names what says the same; the confirmed memory stays as it is."""
    same(sandbox, "sem-a")
    same(sandbox, "sem-b", status="candidate", confidence="high", importance="1")
    steps, _parted = planned(tree_of(sandbox))
    assert summarize(steps) == [("deprecate", "sem-b")]
    assert steps[0].changes == {"status": "deprecated", "related_to": ("sem-a",)}


def test_the_best_candidate_gets_the_sources_of_the_others(sandbox: Sandbox):
    """Its own come first."""
    same(sandbox, "sem-a", status="candidate", source=("session:one#1",))
    same(sandbox, "sem-b", status="candidate", source=("session:two#4",), confidence="high")
    steps, _parted = planned(tree_of(sandbox))
    assert summarize(steps) == [("strengthen", "sem-b"), ("deprecate", "sem-a")]
    assert steps[0].changes == {"source": ("session:two#4", "session:one#1")}


def test_candidates_name_the_memory_that_is_made(sandbox: Sandbox):
    """If two memories are merged, a third that repeats them names the new one."""
    same(sandbox, "sem-a")
    same(sandbox, "sem-b")
    same(sandbox, "sem-c", status="candidate")
    steps, _parted = planned(tree_of(sandbox))
    assert summarize(steps) == [("merge", "new"), ("deprecate", "sem-c")]
    assert steps[1].changes["related_to"] == (steps[0].id,)


def test_a_pinned_one_stays_pinned(sandbox: Sandbox):
    """The merged memory is pinned if one of them was."""
    same(sandbox, "sem-a", status="pinned")
    same(sandbox, "sem-b")
    (step,) = planned(tree_of(sandbox))[0]
    assert step.memory is not None
    assert step.memory.status == "pinned"


@pytest.mark.parametrize(
    "fields",
    [
        {"valid_through": "2027-01-01"},
        {"valid_from": "2026-01-01"},
        {"environment": "Windows"},
        {"scope": "global"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_holds_elsewhere_is_only_told(sandbox: Sandbox, fields: dict[str, str]):
    """The same words at another time or place are another claim: a person decides."""
    same(sandbox, "sem-a", **fields)
    same(sandbox, "sem-b")
    steps, parted = planned(tree_of(sandbox))
    assert steps == []
    assert [group.ids for group in parted] == [("sem-a", "sem-b")]


@pytest.mark.parametrize("key", ["related_to", "derived_from", "conflicts_accepted"])
def test_twins_that_know_of_each_other_are_both_meant(sandbox: Sandbox, key: str):
    """In either direction."""
    same(sandbox, "sem-a", **{key: ("sem-b",)})
    same(sandbox, "sem-b")
    assert planned(tree_of(sandbox)) == ([], [])


def test_contradictions_and_frozen_files_are_left_alone(sandbox: Sandbox):
    """Nothing is merged with them."""
    path = same(sandbox, "sem-a")
    same(sandbox, "sem-b")
    tree = tree_of(sandbox)
    assert planned(tree, "sem-a") == ([], [])
    assert merge.plan(tree, inputs(frozen=frozenset({path})), ()) == ([], [])


def test_what_opposes_is_never_taken_for_the_same(sandbox: Sandbox):
    """One word more or less may turn a claim round."""
    same(sandbox, "sem-a", "Always rotate the signing keys of the release server every month.\n")
    same(sandbox, "sem-b", "Never rotate the signing keys of the release server every month.\n")
    assert planned(tree_of(sandbox))[0] == []


def test_a_merge_that_was_taken_back_is_not_made_again(sandbox: Sandbox):
    """Who deleted the merged memory did not want it; that is told instead."""
    same(sandbox, "sem-a")
    same(sandbox, "sem-b")
    (step,) = planned(tree_of(sandbox))[0]
    assert step.memory is not None
    gone = step.memory.with_fields(status="deleted", deleted={"at": "2026-02-28T00:00:00Z"})
    sandbox.write(step.path, document.write(gone))
    steps, parted = planned(tree_of(sandbox))
    assert steps == []
    assert "was taken back" in parted[0].why


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"tags": tuple(f"{'long' * 20}-{n}" for n in range(110))}, "no memory"),
        ({"environment": "AKIA" + "Q3EGRZXT5MPLHV2B"}, "a secret"),
    ],
)
def test_what_cannot_be_written_is_not_merged(
    sandbox: Sandbox, fields: dict[str, FieldValue], why: str
):
    """Too large together, or with a secret that history holds already: it is told."""
    same(sandbox, "sem-a", **fields)
    other = {
        key: tuple(f"x{i}" for i in v) if isinstance(v, tuple) else v for key, v in fields.items()
    }
    same(sandbox, "sem-b", **other)
    steps, parted = planned(tree_of(sandbox))
    assert steps == []
    assert why in parted[0].why


def test_accepted_conflicts_stay_accepted(sandbox: Sandbox):
    """The merged memory accepts what any of them accepted, and what accepted them."""
    sandbox.memory("sem-other", "Something else.\n", type="semantic", conflicts_accepted=("sem-b",))
    same(sandbox, "sem-a", conflicts_accepted=("dec-z",))
    same(sandbox, "sem-b")
    (step,) = planned(tree_of(sandbox))[0]
    assert step.memory is not None
    assert set(step.memory.items("conflicts_accepted")) == {"dec-z", "sem-other"}


@given(
    kinds=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(("confirmed", "candidate", "pinned"))),
        max_size=14,
    )
)
def test_in_the_end_nothing_is_left_to_merge(sandbox: Sandbox, kinds: list[tuple[int, str]]):
    """However many say the same, one plan suffices, no claim is lost, and none that stands edited.

    The sandbox stays empty: the memories are imagined.
    """
    texts = (SAID, SAID.replace("first", "before"), SAID.replace("company ", ""), "Else.\n")
    memories = [
        make_memory(f"sem-{number:02}", texts[text], status=status, **SAME)
        for number, (text, status) in enumerate(kinds)
    ]
    written = [
        UpkeepStep("new", memory.id, memory.title, f"{memory.id}.md", "", {}, memory)
        for memory in memories
    ]
    tree = project_tree(tree_of(sandbox), written)
    steps, _parted = planned(tree)
    after = project_tree(tree, steps)
    assert planned(after)[0] == []
    heads = {memory.memory.body for memory in inputs().find_living(after)}
    stated = {texts[text] for text, _status in kinds}
    assert ("Else.\n" in heads) == ("Else.\n" in stated)
    assert bool(heads) == bool(stated)
    for memory in memories:
        assert memory.status == "candidate" or after[memory.id].memory == memory


def test_the_order_of_files_does_not_matter(sandbox: Sandbox):
    """The plan depends on what the memories say, not on how they lie."""
    for number, status in itertools.product(range(3), ("confirmed", "candidate")):
        same(sandbox, f"sem-{status}-{number}", status=status)
    first = planned(tree_of(sandbox))
    tree = tree_of(sandbox)
    tree._records = tuple(reversed(tree._records))
    assert planned(tree) == first
