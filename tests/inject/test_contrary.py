"""What cannot both hold is marked in the block, with the other side beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import make_memory

from memtool.gate import contradictions
from memtool.inject.effective_lineage import EffectiveLineage
from memtool.inject.select import clashes, known
from memtool.memory.lineage import Lineage

if TYPE_CHECKING:
    from conftest import Sandbox

    from memtool.memory.memory import FieldValue, Memory

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "gate" / "data" / "conflicts.jsonl")
    .read_text().splitlines()
]  # fmt: skip


def memory(id: str, title: str, body: str = "", **fields: FieldValue) -> Memory:
    return make_memory(id, f"{body or title}\n", title=title, **{"type": "semantic", **fields})


@pytest.mark.parametrize("row", PAIRS, ids=lambda row: row["a"][0])
def test_the_block_marks_what_the_gate_finds(row: dict):
    """Whichever memory comes first."""
    one, other = (
        memory(f"sem-{name}", *row[name], type=row.get("type", "semantic"),
               tags=tuple(row.get("tags", ()))) for name in "ab"
    )  # fmt: skip
    expected = [(0, 1)] if contradictions.between(one, other) else []
    assert clashes([one, other]) == clashes([other, one]) == expected


def test_a_number_that_names_a_thing_contradicts_no_other():
    """Two versions have a schedule each; only what is said of a thing can be otherwise."""
    schedules = [
        memory(f"sem-{minor}", f"Python 3.{minor} Release Schedule",
               f"This is the schedule of Python 3.{minor}.") for minor in (11, 12)
    ]  # fmt: skip
    assert clashes(schedules) == []
    limits = [
        memory(f"sem-{limit}", f"Lines are at most {limit} characters") for limit in (88, 100)
    ]
    assert clashes(limits) == [(0, 1)]


@pytest.mark.parametrize("side", [0, 1])
def test_what_is_accepted_is_no_conflict(side: int):
    """It is enough that one names the other in conflicts_accepted."""
    texts = ("Use tabs for indentation", "Never use tabs for indentation")
    both = [memory(f"sem-{number}", text) for number, text in enumerate(texts)]
    assert clashes(both) == [(0, 1)]
    both[side] = both[side].with_fields(conflicts_accepted=(both[1 - side].id,))
    assert clashes(both) == []


def test_only_rules_contradict():
    """Traces and states were true at their time."""
    texts = ("Use tabs for indentation", "Never use tabs for indentation")
    assert clashes([memory(f"epi-{text[0]}", text, type="episodic") for text in texts]) == []


def test_what_lineage_disputes_is_not_told_twice():
    """Two heads of a fork have their mark already."""
    both = [memory("sem-a", "Use tabs here"), memory("sem-b", "Never use tabs here"),
            memory("sem-c", "Never use tabs here, please")]  # fmt: skip
    forks = {"sem-a": (("sem-a", "sem-b"),), "sem-b": (("sem-a", "sem-b"),)}
    found = known(EffectiveLineage(Lineage(both), forks, {}, {}), both)
    assert found.contrary == {"sem-a": ("sem-c",), "sem-c": ("sem-a",)}
    assert found.marks("sem-a") == (
        "[CONFLICT] with sem-b: they replace the same memory",
        "[CONFLICT] with sem-c: they may contradict each other",
    )
    assert found.conflicts("sem-a") == ("sem-b", "sem-c")


def test_both_sides_stand_in_the_block_with_the_other_ones_id(sandbox: Sandbox):
    """The weaker one comes beside the better, however far below the threshold it is."""
    sandbox.memory("dec-redis", "Sessions live in Redis for a day, as the cookie does.\n",
                   title="Sessions live in Redis")  # fmt: skip
    sandbox.memory("dec-away", "Sessions do not live in Redis.\n" + "Other words stand here. " * 30,
                   title="Storage", status="candidate")  # fmt: skip
    sandbox.memory("dec-other", "Sessions are signed by the gateway.\n", title="Signed sessions")
    sandbox.commit()
    asked = ("inject", "--prompt", "do sessions live in redis for a day?")
    found = sandbox.json(*asked)
    conflicts = {one["id"]: one["conflicts"] for one in found["items"]}
    assert conflicts["dec-redis"] == ["dec-away"]
    assert conflicts["dec-away"] == ["dec-redis"]
    assert "[CONFLICT] with dec-away: they may contradict each other\n" in found["text"]
    assert "[CONFLICT] with dec-redis: they may contradict each other\n" in found["text"]
    assert found["text"].count("[CONFLICT]") == 2
    assert list(conflicts).index("dec-away") == list(conflicts).index("dec-redis") + 1
    reasons = {one["id"]: one["reason"] for one in sandbox.json(*asked, "--explain")["explain"]}
    assert reasons["dec-redis"].endswith("; contradicts dec-away")
    assert sandbox.run(*asked).stdout == found["text"]


def test_a_pinned_memory_and_a_found_one_mark_each_other(sandbox: Sandbox):
    """What is always shown is no less disputed."""
    sandbox.memory("dec-push", "Never force-push to main.\n", title="Pushes", status="pinned")
    sandbox.memory("dec-loud", "Force-push to main, a rebase needs it.\n", title="Rebase")
    sandbox.commit()
    found = sandbox.json("inject", "--prompt", "may I force-push to main after a rebase?")
    assert {one["id"]: one["conflicts"] for one in found["items"]} == {
        "dec-push": ["dec-loud"], "dec-loud": ["dec-push"]
    }  # fmt: skip
