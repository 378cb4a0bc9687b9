"""Importance learned from use: how much, of what, and that it goes again."""

from __future__ import annotations

import pytest
from conftest import Sandbox
from hypothesis import given
from hypothesis import strategies as st
from upkeep.inputs import SECOND, ago, inputs, tree_of

from memtool.memory import timestamps
from memtool.store.ledger import UsageCount
from memtool.upkeep import importance
from memtool.upkeep.importance import MAX_LEARNED, base_importance, learn_importance
from memtool.upkeep.inputs import PlanInputs, Uses
from memtool.upkeep.plan import project_tree
from memtool.upkeep.steps import UpkeepStep


def using(days: float = 1, **times: int) -> PlanInputs:
    """Inputs in which memories were used so often, days ago, with learning on."""
    second = SECOND - round(days * timestamps.DAY_S)
    used = {id_: [second] * count for id_, count in times.items()}
    counted = Uses({"any": UsageCount("any", 1, SECOND)}, used=used)
    return inputs(counted, importance_learn=True)


def steps(sandbox: Sandbox, given_inputs: PlanInputs) -> list[UpkeepStep]:
    return list(importance.build_steps(tree_of(sandbox), given_inputs))


@given(base=st.floats(0, 1), uses=st.integers(0, 10_000))
def test_use_adds_something_and_never_too_much(base: float, uses: int) -> None:
    """At least the base, at most 0.3 more, and never over what only a person gives."""
    base = round(base, 4)
    learned = learn_importance(base, uses)
    assert base <= learned <= max(base, min(MAX_LEARNED, round(base + 0.3, 4)))
    assert learn_importance(base, uses + 1) >= learned
    assert learn_importance(base, 0) == base


def test_what_is_used_gains_and_what_no_longer_is_loses_it(sandbox: Sandbox) -> None:
    """The base comes back to the digit, and the key goes."""
    sandbox.memory("sem_a", "Logs are JSON lines.\n", type="semantic", importance="0.55")
    tree = tree_of(sandbox)
    (step,) = importance.build_steps(tree, using(sem_a=10))
    assert (step.do, step.changes["importance"]) == ("weigh", "0.7")
    assert step.why == "it was used 10 times in 90 days, importance 0.55 becomes 0.7"
    after = project_tree(tree, [step])
    assert base_importance(after["sem_a"].memory) == 0.55
    assert list(importance.build_steps(after, using(sem_a=10))) == []
    (later_step,) = importance.build_steps(after, using(sem_a=90))
    assert later_step.changes["importance"] == "0.8"
    (less,) = importance.build_steps(after, using(91, sem_a=10))
    assert less.changes == {"importance": "0.55", "learned": None}
    gone = project_tree(after, [less])
    assert "learned" not in gone["sem_a"].memory.fields


def test_who_sets_another_importance_sets_another_base(sandbox: Sandbox) -> None:
    """A value that a person sets later replaces the base."""
    row = {"at": ago(3), "by": "memtool maintain", "was": "0.5", "to": "0.65"}
    sandbox.memory("sem_a", "One.\n", type="semantic", importance="0.2", learned=row)
    (step,) = steps(sandbox, using(sem_a=10))
    assert step.changes["importance"] == "0.35"
    assert base_importance(tree_of(sandbox)["sem_a"].memory) == 0.2


@pytest.mark.parametrize("status", ["candidate", "pinned", "archived", "deprecated"])
def test_only_what_somebody_confirmed_learns(sandbox: Sandbox, status: str) -> None:
    """A candidate would be made important by being asked for."""
    sandbox.memory("sem_a", "One.\n", type="semantic", status=status)
    assert steps(sandbox, using(sem_a=10)) == []


def test_nothing_is_learned_unless_it_is_switched_on(sandbox: Sandbox) -> None:
    """Nor where this clone counted nothing, nor of what a person has open."""
    path = sandbox.memory("sem_a", "One.\n", type="semantic")
    on = using(sem_a=10)
    assert [step.id for step in steps(sandbox, on)] == ["sem_a"]
    assert steps(sandbox, on.replace(config=inputs().config)) == []
    assert steps(sandbox, on.replace(uses=Uses())) == []
    assert steps(sandbox, on.replace(frozen=frozenset({path}))) == []


def test_a_damaged_key_is_no_base(sandbox: Sandbox) -> None:
    """A value that is not a number is ignored."""
    row = {"at": ago(3), "was": "much", "to": "0.5"}
    sandbox.memory("sem_a", "One.\n", type="semantic", importance="0.5", learned=row)
    assert base_importance(tree_of(sandbox)["sem_a"].memory) == 0.5
