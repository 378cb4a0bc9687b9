"""Candidates: a day of quarantine, then confirmed or less important, once."""

from __future__ import annotations

import pytest
from conftest import Sandbox
from upkeep.grounds import ago, grounds, seen, tree_of, uses

from memtool.upkeep import plan
from memtool.upkeep.steps import Imagined, Uses

SOMETHING = {"dec-other": seen(1)}
"""That anything was counted at all."""


@pytest.mark.parametrize(
    ("days", "times", "expected"),
    [
        (0.9, 0, []),
        (0.9, 2, []),
        (0.9, 3, ["confirm"]),
        (1.1, 0, ["fade"]),
        (1.1, 1, ["confirm"]),
        (-1, 0, []),
    ],
)
def test_a_day_decides(sandbox: Sandbox, days: float, times: int, expected: list[str]):
    """Before its end only three accesses confirm; from then on one does, and none lets it fade."""
    sandbox.memory("dec-a", status="candidate", timestamp=ago(days), importance="0.6")
    counted = uses(**SOMETHING | ({"dec-a": seen(0.1, times)} if times else {}))
    steps = plan.candidate_steps(tree_of(sandbox), grounds(counted), ())
    assert [step.do for step in steps] == expected
    after = Imagined(tree_of(sandbox), steps)
    assert plan.candidate_steps(after, grounds(counted), ()) == []
    memory = after.by_id["dec-a"].memory
    assert memory.importance == (0.48 if expected == ["fade"] else 0.6)
    assert memory.status == ("confirmed" if expected == ["confirm"] else "candidate")


def test_what_is_injected_vouches_for_nothing(sandbox: Sandbox):
    """A candidate that agents got without asking fades like one that nobody saw."""
    sandbox.memory("dec-a", status="candidate", timestamp=ago(9))
    injected = uses(**{"dec-a": seen(1, 5)}).replace(asked={})
    (step,) = plan.candidate_steps(tree_of(sandbox), grounds(injected), ())
    assert step.do == "fade"


def test_what_faded_is_confirmed_when_somebody_looks_later(sandbox: Sandbox):
    """Fading is not the end."""
    sandbox.memory("dec-a", status="candidate", timestamp=ago(9),
                   faded={"at": ago(8), "by": "memtool maintain", "was": "0.5"})  # fmt: skip
    (step,) = plan.candidate_steps(tree_of(sandbox), grounds(uses(**{"dec-a": seen(1)})), ())
    assert step.changes == {"status": "confirmed"}


def test_who_is_no_candidate_or_may_not_be_touched_is_left_alone(sandbox: Sandbox):
    """Confirmed and superseded ones, frozen files, contradictions, clones that count nothing."""
    sandbox.memory("dec-a", timestamp=ago(9))
    sandbox.memory("dec-b", status="candidate", timestamp=ago(9))
    path = sandbox.memory("dec-c", status="candidate", timestamp=ago(9), supersedes=("dec-b",))
    sandbox.memory("dec-d", status="candidate", timestamp=ago(9))
    tree = tree_of(sandbox)
    frozen = frozenset({path})
    assert plan.candidate_steps(tree, grounds(uses(**SOMETHING), frozen), ("dec-d",)) == []
    assert plan.candidate_steps(tree, grounds(Uses()), ()) == []
