"""Expiring: what is archived, what outlives its time, and who goes first of too many."""

from __future__ import annotations

import pytest
from conftest import Sandbox
from upkeep.grounds import DAY_S, SECOND, ago, grounds, seen, tree_of, uses

from memtool.memory import timestamps
from memtool.memory.fields import CATEGORIES, Category
from memtool.memory.memory import FieldValue
from memtool.upkeep import plan
from memtool.upkeep.steps import BY, Imagined, Uses


def planned(sandbox: Sandbox, counted: Uses | None = None, **given: int) -> list[tuple[str, str]]:
    """What is planned for which memory."""
    found = plan.expiry_steps(tree_of(sandbox), grounds(counted, **given))
    return [(step.do, step.id) for step in found]


@pytest.mark.parametrize("row", CATEGORIES, ids=lambda row: row.name)
def test_each_category_has_its_time(sandbox: Sandbox, row: Category):
    """The day after its last it is archived, the day before not."""
    sandbox.memory("dec-gone", category=row.name, timestamp=ago(row.ttl_days + 1))
    sandbox.memory("dec-here", category=row.name, timestamp=ago(row.ttl_days - 1))
    assert planned(sandbox) == [("archive", "dec-gone")]


def test_the_times_are_those_of_the_contract():
    """Days per category."""
    expected = {"task_progress": 14, "discovery": 21, "file_change": 21, "warning": 30,
                "decision": 90, "error": 90, "pattern": 180, "architecture": 180,
                "preference": 365}  # fmt: skip
    assert {row.name: row.ttl_days for row in CATEGORIES} == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "pinned"},
        {"status": "archived"},
        {"status": "deleted"},
        {"temporal_class": "eternal"},
        {"valid_through": "2099-01-01"},
        {"checked": {"at": ago(5), "by": "Ada"}},
    ],
    ids="-".join,
)
def test_some_have_no_end_or_a_later_one(sandbox: Sandbox, fields: dict[str, FieldValue]):
    """What is pinned, eternal, confirmed since, or gone already is left alone."""
    sandbox.memory("dec-a", timestamp=ago(1000), **fields)
    assert planned(sandbox) == []


def test_what_is_superseded_stays_where_it_is(sandbox: Sandbox):
    """It is out of use already, and history must not change for it."""
    sandbox.memory("dec-a", timestamp=ago(1000))
    sandbox.memory("dec-b", timestamp=ago(1), supersedes=("dec-a",))
    assert planned(sandbox) == []


def test_three_accesses_outlive_the_time(sandbox: Sandbox):
    """Those since the last confirmation count; two are too few, and so are old ones."""
    for name in ("three", "two", "old"):
        sandbox.memory(f"dec-{name}", timestamp=ago(200), checked={"at": ago(91), "by": "Ada"})
    counted = uses(**{"dec-three": seen(50, 3), "dec-two": seen(50, 2), "dec-old": seen(150, 9)})
    assert planned(sandbox, counted) == [
        ("archive", "dec-old"), ("renew", "dec-three"), ("archive", "dec-two"),
    ]  # fmt: skip


def test_a_renewed_memory_begins_its_time_anew(sandbox: Sandbox):
    """It says who renewed it; the commit at which a person looked at the code stays."""
    checked = {"at": ago(91), "by": "Ada", "commit": "0123abcd"}
    sandbox.memory("dec-a", timestamp=ago(200), checked=checked)
    ground = grounds(uses(**{"dec-a": seen(3, 3)}))
    steps = plan.expiry_steps(tree_of(sandbox), ground)
    after = Imagined(tree_of(sandbox), steps)
    assert after.by_id["dec-a"].memory.table("checked") == {
        "at": timestamps.render(SECOND), "by": BY, "commit": "0123abcd",
    }  # fmt: skip
    assert plan.expiry_steps(after, ground) == []


def test_what_is_in_use_is_renewed_before_its_end(sandbox: Sandbox):
    """A week before, so that a clone without a ledger does not archive it first."""
    sandbox.memory("dec-soon", timestamp=ago(84))
    sandbox.memory("dec-later", timestamp=ago(82))
    counted = uses(**{"dec-soon": seen(3, 3), "dec-later": seen(3, 3)})
    assert planned(sandbox, counted) == [("renew", "dec-soon")]
    assert planned(sandbox) == []


def test_no_access_outlives_what_the_memory_says_itself(sandbox: Sandbox):
    """Who wrote until when it is valid knew better."""
    sandbox.memory("dec-a", timestamp=ago(50), valid_through=ago(1)[:10])
    assert planned(sandbox, uses(**{"dec-a": seen(2, 50)})) == [("archive", "dec-a")]


def test_where_details_are_forgotten_the_total_counts(sandbox: Sandbox):
    """As long as the last access is younger than the confirmation."""
    sandbox.memory("dec-a", timestamp=ago(91))
    counted = uses(**{"dec-a": seen(50, 3)})
    late = counted.replace(seconds={}, since=SECOND - DAY_S)
    assert planned(sandbox, late) == [("renew", "dec-a")]
    assert planned(sandbox, uses(**{"dec-a": seen(95, 3)}).replace(since=SECOND)) == [
        ("archive", "dec-a")
    ]


def fill(sandbox: Sandbox, count: int, **fields: FieldValue) -> None:
    """Write living memories, each a little more important than the one before."""
    for number in range(count):
        sandbox.memory(f"dec-{number:02}", importance=f"{number / 100:g}",
                       **{"timestamp": ago(1)} | fields)  # fmt: skip


def test_too_many_are_cut_down_to_the_most_important(sandbox: Sandbox):
    """Nothing happens up to the limit; above it, the least important go."""
    fill(sandbox, 10)
    assert planned(sandbox, maintain_most_alive=10, maintain_kept_alive=7) == []
    found = planned(sandbox, maintain_most_alive=9, maintain_kept_alive=7)
    assert found == [("archive", f"dec-{number:02}") for number in range(3)]


def test_pinned_and_lately_used_ones_are_spared(sandbox: Sandbox):
    """Others go in their place, eternal ones last."""
    fill(sandbox, 10)
    sandbox.memory("dec-00", importance="0", timestamp=ago(1), status="pinned")
    sandbox.memory("dec-02", importance="0", timestamp=ago(1), temporal_class="eternal")
    counted = uses(**{"dec-01": seen(0.9), "dec-03": seen(1.1)})
    found = planned(sandbox, counted, maintain_most_alive=9, maintain_kept_alive=7)
    assert [id_ for _do, id_ in found] == ["dec-03", "dec-04", "dec-05"]


def test_of_equal_importance_the_faded_go_first(sandbox: Sandbox):
    """Value decides, then age, then id: the order is always the same."""
    sandbox.memory("dec-a", timestamp=ago(5))
    sandbox.memory("dec-b", timestamp=ago(50))
    sandbox.memory("dec-c", timestamp=ago(20), category="task_progress", temporal_class="eternal")
    sandbox.memory("dec-d", timestamp=ago(5))
    found = planned(sandbox, maintain_most_alive=3, maintain_kept_alive=1)
    assert [id_ for _do, id_ in found] == ["dec-b", "dec-a", "dec-d"]


def test_what_expires_does_not_count_as_alive(sandbox: Sandbox):
    """What is archived for its age makes room."""
    fill(sandbox, 4)
    sandbox.memory("dec-00", timestamp=ago(1000))
    found = planned(sandbox, maintain_most_alive=3, maintain_kept_alive=1)
    assert found == [("archive", "dec-00")]


def test_frozen_files_are_left_out(sandbox: Sandbox):
    """Neither age nor number touches a file that somebody is working on."""
    path = sandbox.memory("dec-a", timestamp=ago(1000))
    assert plan.expiry_steps(tree_of(sandbox), grounds(frozen=frozenset({path}))) == []
