"""The check of premises: new and changed memories that rest on one that is out."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Sandbox
from tower import NEW, NORTH, OLD, PLAN, write_tower


def check(sandbox: Sandbox, *args: str) -> list[dict[str, Any]]:
    """Return the problems of a check about premises."""
    answer = sandbox.json("check", *args)
    return [problem for problem in answer["problems"] if problem["code"] == "unsettled"]


@pytest.fixture
def tower(sandbox: Sandbox) -> Sandbox:
    write_tower(sandbox)
    return sandbox


def test_only_new_and_changed_memories_are_warned_of(tower: Sandbox):
    """`status` and `list is:unsettled` have the others."""
    assert check(tower) == []
    tower.memory("dec-late", source=("human:Ada", f"memory:{OLD}"))
    (problem,) = check(tower)
    assert (problem["id"], problem["severity"]) == ("dec-late", "warning")
    assert problem["message"] == f"it rests on a memory that is out: {OLD} is now {NEW}"
    text = (tower.path / problem["path"]).read_text().splitlines()
    assert text[problem["line"] - 1].strip() == f"- memory:{OLD}"
    tower.git("add", ".")
    assert [row["id"] for row in check(tower, "--staged")] == ["dec-late"]
    before = tower.git("rev-parse", "HEAD").strip()
    tower.commit()
    assert [row["id"] for row in check(tower, "--range", f"{before}..HEAD")] == ["dec-late"]


@pytest.mark.parametrize(
    ("status", "clause"),
    [("deprecated", f"{NEW} is deprecated"), ("archived", ""), ("confirmed", "")],
)
def test_the_status_of_the_premise_decides(tower: Sandbox, status: str, clause: str):
    tower.memory(NEW, "Other words.\n", supersedes=(OLD,), status=status)
    tower.commit()
    tower.memory("dec-late", source=(f"memory:{NEW}",))
    tower.git("add", ".")
    for where in ((), ("--staged",)):
        messages = [row["message"].partition(": ")[2] for row in check(tower, *where)]
        assert messages == [clause] * bool(clause)


def test_what_has_ended_is_out(sandbox: Sandbox):
    sandbox.memory("dec-p", valid_through="2026-02-25")
    sandbox.memory("dec-c", source=("memory:dec-p",))
    assert [row["message"] for row in check(sandbox)] == [
        "it rests on a memory that is out: dec-p has expired"
    ]


def test_what_corrects_a_memory_may_cite_it(tower: Sandbox):
    """What a memory supersedes is not its premise, and who is replaced rests on nothing."""
    tower.memory(
        "dec-c", "Now by the new rule.\n", supersedes=(NORTH,), source=(f"memory:{NORTH}",)
    )
    assert check(tower) == []
    tower.memory(PLAN, "The plan allows ten weeks.\n", derived_from=(OLD,), status="deprecated")
    tower.memory("dec-d", "The plan is gone.\n", supersedes=(PLAN,))
    assert check(tower) == []
