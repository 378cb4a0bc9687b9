"""The plan: expiry, candidates, and that a plan carried out leaves none."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Sandbox, make_memory
from hypothesis import given
from hypothesis import strategies as st
from upkeep.inputs import DAY_S, SECOND, ago, inputs, seen, tree_of, upholding, uses

from memtool.memory import document, fields
from memtool.memory.changes import find_changed_keys, is_claim
from memtool.memory.fields import CATEGORIES, Category
from memtool.memory.memory import FieldValue, Memory
from memtool.sessions.store import Sessions
from memtool.store import ledger, usage_log
from memtool.store.tree import Tree
from memtool.store.usage_log import Note, ShownItem
from memtool.upkeep import plan
from memtool.upkeep.inputs import PlanInputs, Uses, read_uses
from memtool.upkeep.plan import PERIODS, MaintenancePlan, project_tree
from memtool.upkeep.steps import (
    KINDS,
    MAX_LINE,
    MAX_LINES,
    UpkeepStep,
    build_edits,
    format_body,
    format_summary,
)

BODIES = (
    "Deploys need the VPN.\n",
    "Never deploy on a Friday.\n",
    "Deploy on a Friday.\n",
    "Sessions live in Postgres, in the table of the same name.\n",
)
MEMORIES = st.lists(
    st.fixed_dictionaries(
        {
            "body": st.sampled_from(BODIES),
            "status": st.sampled_from(fields.STATUSES),
            "category": st.sampled_from(("task_progress", "decision", "pattern")),
            "timestamp": st.sampled_from((ago(0.5), ago(10), ago(85), ago(100), ago(400))),
            "importance": st.sampled_from(("0.1", "0.5", "1")),
            "supersedes": st.sampled_from((0, 0, 0, 1, 2)),
            "seen": st.sampled_from((0, 0, 1, 3)),
        }
    ),
    max_size=9,
)


def tree_with(sandbox: Sandbox, rows: list[dict[str, str | int]]) -> tuple[Tree, Uses]:
    """Imagine a tree, and how often each memory of it was looked at."""
    memories: list[Memory] = []
    counted = {"dec-other": seen(1)}
    for number, row in enumerate(rows):
        back = int(row["supersedes"])
        olds = (f"sem-{number - back}",) if 0 < back <= number else ()
        own_fields = {
            key: str(row[key]) for key in ("status", "category", "timestamp", "importance")
        }
        made = make_memory(f"sem-{number}", str(row["body"]), type="semantic", **own_fields)
        memories.append(made.with_fields(title="Deploying", supersedes=olds))
        if row["seen"]:
            counted[made.id] = seen(0.2, int(row["seen"]))
    steps = [
        UpkeepStep("new", memory.id, memory.title, f"{memory.id}.md", "", {}, memory)
        for memory in memories
    ]
    return project_tree(tree_of(sandbox), steps), uses(**counted)


def planned(tree: Tree, given_inputs: PlanInputs) -> MaintenancePlan:
    """Plan what is due every night and week."""
    sessions = Sessions("/nowhere")
    return plan.plan(tree, given_inputs, sessions, "/nowhere", PERIODS[:2], lambda n: b"\0" * n)


@given(rows=MEMORIES, limit=st.integers(1, 6))
def test_once_is_enough_and_no_claim_changes(
    sandbox: Sandbox, rows: list[dict[str, str | int]], limit: int
):
    """After the steps there is nothing left to plan; no memory is removed, no claim edited."""
    tree, counted = tree_with(sandbox, rows)
    given_inputs = inputs(counted, maintain_max_active=limit)
    first = planned(tree, given_inputs)
    after = project_tree(tree, first.steps)
    assert planned(after, given_inputs).steps == ()
    assert set(tree.ids) <= set(after.ids)
    assert {step.do for step in first.steps} <= KINDS.keys()
    for id_ in tree.ids:
        record, new = tree[id_], after[id_].memory
        if record.memory.status != "candidate":
            assert not any(map(is_claim, find_changed_keys(record.memory, new)))
    for record in after.records:
        assert document.read(document.write(record.memory)) == record.memory
    assert planned(tree, given_inputs) == first


def test_the_message_of_a_large_plan_stays_readable():
    """It tells two hundred steps, counts the rest, and no line is endless."""
    steps = [UpkeepStep("archive", f"dec-{n}", "", f"{n}.md", "because " * n) for n in range(300)]
    lines = format_body(steps).splitlines()
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "and 100 more, which the diff shows"
    assert max(map(len, lines)) <= MAX_LINE
    assert format_summary(steps) == "maintain: 300 archived"


def test_steps_on_one_file_are_one_edit(sandbox: Sandbox):
    """Two steps on the same memory are applied together, all else is the same."""
    path = sandbox.memory("dec-a", "Odd   spacing stays.\n")
    data = (sandbox.path / path).read_bytes()
    steps = [
        UpkeepStep("confirm", "dec-a", "", path, "", {"status": "pinned"}),
        UpkeepStep("fade", "dec-a", "", path, "", {"importance": "0.4"}),
    ]
    (edit,) = build_edits(steps, {path: data}.__getitem__, inputs().config.categories)
    assert edit.before == data
    assert edit.after == data.replace(b"confidence:", b"status: pinned\nconfidence:").replace(
        b"---\nOdd", b"importance: 0.4\n---\nOdd"
    )


def expiring(
    sandbox: Sandbox, counted: Uses | None = None, **overrides: int
) -> list[tuple[str, str]]:
    """Return kind and memory of each expiry step."""
    steps = plan.build_expiry_steps(tree_of(sandbox), inputs(counted, **overrides))
    return [(step.do, step.id) for step in steps]


@pytest.mark.parametrize("row", CATEGORIES, ids=lambda row: row.name)
def test_each_category_has_its_time(sandbox: Sandbox, row: Category):
    """The day after its last it is archived, or people are told to look; the day before not."""
    sandbox.memory("dec-gone", category=row.name, timestamp=ago(row.ttl_days + 1))
    sandbox.memory("dec-here", category=row.name, timestamp=ago(row.ttl_days - 1))
    is_passing = row.name in ("task_progress", "file_change")
    assert expiring(sandbox) == ([("archive", "dec-gone")] if is_passing else [])
    assert reviews(sandbox) == ([] if is_passing else ["dec-gone"])


def reviews(sandbox: Sandbox) -> list[str]:
    """Return the memories that people are asked to review."""
    return [flag.ids[0] for flag in plan.find_due(tree_of(sandbox), inputs())]


def test_what_is_due_says_what_to_do(sandbox: Sandbox):
    """Since when, and the two verbs that settle it."""
    sandbox.memory("dec-a", timestamp=ago(100))
    (flag,) = plan.find_due(tree_of(sandbox), inputs())
    assert flag.kind == "due"
    assert flag.message.startswith("the 90 days of the category decision were over on 20")
    assert flag.hint == "memtool confirm dec-a, or memtool archive dec-a --reason REASON"


def test_importance_that_has_decayed_below_the_least_is_named(sandbox: Sandbox):
    """Not if it is pinned, eternal, certain, or due anyway."""
    faint: dict[str, FieldValue] = {"importance": "0.12", "timestamp": ago(80)}
    sandbox.memory("dec-faint", **faint)
    sandbox.memory("dec-fresh", importance="0.12", timestamp=ago(10))
    sandbox.memory("dec-sure", **faint, confidence="high")
    sandbox.memory("dec-pinned", **faint, status="pinned")
    sandbox.memory("dec-eternal", **faint, temporal_class="eternal")
    sandbox.memory("dec-due", importance="0.12", timestamp=ago(100))
    (flag,) = plan.find_faded(tree_of(sandbox), inputs())
    assert (flag.kind, flag.ids) == ("faded", ("dec-faint",))
    assert flag.message == "its importance 0.12 has decayed to 0.09"
    assert flag.hint == "memtool archive dec-faint --reason REASON, or memtool confirm dec-faint"
    off = inputs()
    off = off.replace(config=off.config.replace(values={"decay.minimum_importance": 0.0}))
    assert plan.find_faded(tree_of(sandbox), off) == []


def test_what_a_preset_forgets_is_named(sandbox: Sandbox):
    """A decision of usual importance after two months, but not by the steady preset."""
    sandbox.memory("dec-a", timestamp=ago(60))
    sandbox.memory("dec-sure", timestamp=ago(60), confidence="high")
    sandbox.memory("dec-eternal", timestamp=ago(60), temporal_class="eternal")
    sandbox.memory("dec-fresh", timestamp=ago(10))
    plain = inputs()
    assert plan.find_faded(tree_of(sandbox), plain) == []
    values = {"decay.preset": "exponential"}
    soon = plain.replace(config=plain.config.replace(values=values))
    (flag,) = plan.find_faded(tree_of(sandbox), soon)
    assert flag.ids == ("dec-a",)
    assert flag.message == "its importance 0.5 has decayed to 0.08"


def test_what_is_deprecated_is_archived_when_its_time_is_over(sandbox: Sandbox):
    """It was already declared obsolete, so it needs no review."""
    sandbox.memory("dec-a", timestamp=ago(100), status="deprecated")
    assert expiring(sandbox) == [("archive", "dec-a")]
    assert reviews(sandbox) == []


def test_the_times_are_those_of_the_contract():
    """Days per category."""
    expected = {
        "task_progress": 14,
        "discovery": 21,
        "file_change": 21,
        "warning": 30,
        "decision": 90,
        "error": 90,
        "pattern": 180,
        "architecture": 180,
        "preference": 365,
    }
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
    """Pinned, eternal, newly confirmed and inactive memories are left alone."""
    sandbox.memory("dec-a", timestamp=ago(1000), **fields)
    assert expiring(sandbox) == []


def test_what_is_superseded_stays_where_it_is(sandbox: Sandbox):
    """It is out of use already, and history must not change for it."""
    sandbox.memory("dec-a", timestamp=ago(1000))
    sandbox.memory("dec-b", timestamp=ago(1), supersedes=("dec-a",))
    assert expiring(sandbox) == []


def renewing(sandbox: Sandbox, given_inputs: PlanInputs) -> list[tuple[str, str]]:
    """Return kind and memory of each renewal, for some inputs."""
    return [(step.do, step.id) for step in plan.build_expiry_steps(tree_of(sandbox), given_inputs)]


def test_no_answer_renews(sandbox: Sandbox):
    """However often a memory was listed, injected or opened: no text vouches for itself."""
    sandbox.memory("dec-due", timestamp=ago(91))
    sandbox.memory("dec-soon", timestamp=ago(84))
    sandbox.memory("sta-over", timestamp=ago(15), category="task_progress")
    counted = uses(**{id_: seen(1, 500) for id_ in ("dec-due", "dec-soon", "sta-over")})
    assert expiring(sandbox, counted) == [("archive", "sta-over")]


def test_a_commit_that_upholds_a_memory_renews_it(sandbox: Sandbox):
    """From that commit on, by its author; the commit of the last check stays."""
    checked = {"at": ago(91), "by": "Ada", "commit": "0123abcd"}
    sandbox.memory("dec-a", timestamp=ago(200), checked=checked)
    given_inputs = inputs(upheld=upholding(**{"dec-a": 3}))
    (step,) = steps = plan.build_expiry_steps(tree_of(sandbox), given_inputs)
    assert (step.do, step.why) == ("renew", "commit 0123456 upholds it")
    after = project_tree(tree_of(sandbox), steps)
    assert after["dec-a"].memory.table("checked") == {
        "at": ago(3),
        "by": "Bo",
        "commit": "0123abcd",
    }
    assert plan.build_expiry_steps(after, given_inputs) == []


def test_what_is_upheld_is_renewed_before_its_end(sandbox: Sandbox):
    """A week before; a commit from the future counts as made now, and once."""
    sandbox.memory("dec-soon", timestamp=ago(84))
    sandbox.memory("dec-later", timestamp=ago(82))
    given_inputs = inputs(upheld=upholding(**{"dec-soon": -50, "dec-later": 3}))
    (step,) = steps = plan.build_expiry_steps(tree_of(sandbox), given_inputs)
    assert (step.do, step.id) == ("renew", "dec-soon")
    assert step.changes["checked"] == {"at": ago(0), "by": "Bo"}
    assert plan.build_expiry_steps(project_tree(tree_of(sandbox), steps), given_inputs) == []


@pytest.mark.parametrize(
    ("fields", "days", "expected"),
    [
        ({"timestamp": ago(200)}, 89, ["renew"]),
        ({"timestamp": ago(200)}, 91, []),
        ({"timestamp": ago(200), "checked": {"at": ago(95), "by": "Ada"}}, 96, []),
        ({"timestamp": ago(200), "status": "candidate"}, 3, ["archive"]),
        ({"timestamp": ago(200), "status": "deprecated"}, 3, ["archive"]),
        ({"timestamp": ago(15), "category": "task_progress"}, 3, ["archive"]),
        ({"timestamp": ago(13), "category": "task_progress"}, 3, ["renew"]),
        ({"timestamp": ago(50), "valid_through": ago(1)[:10]}, 3, ["archive"]),
        ({"timestamp": ago(50), "valid_through": ago(-3)[:10]}, 3, []),
    ],
    ids=(
        "upheld",
        "too-old",
        "before-the-confirmation",
        "candidate",
        "deprecated",
        "expired",
        "passing",
        "no-longer-valid",
        "valid-by-itself",
    ),
)
def test_what_a_commit_cannot_renew(
    sandbox: Sandbox, fields: dict[str, FieldValue], days: float, expected: list[str]
):
    """Unconfirmed, expired and dated memories; nor does a commit that is too old."""
    sandbox.memory("dec-a", **fields)
    given_inputs = inputs(upheld=upholding(**{"dec-a": days}))
    assert [do for do, _id in renewing(sandbox, given_inputs)] == expected


def test_what_has_drifted_is_not_renewed(sandbox: Sandbox):
    """A person looks at the code and says that it still holds."""
    sandbox.memory("dec-a", timestamp=ago(91))
    given_inputs = inputs(upheld=upholding(**{"dec-a": 3}))
    assert renewing(sandbox, given_inputs) == [("renew", "dec-a")]
    assert renewing(sandbox, given_inputs.replace(drifted={"dec-a": "its file is gone"})) == []


def test_sides_of_a_conflict_are_not_renewed(sandbox: Sandbox):
    """Neither of a contradiction nor of a fork, until it is decided."""
    sandbox.memory(
        "dec-yes", "Use Redis for sessions.\n", title="Use Redis for sessions", timestamp=ago(91)
    )
    sandbox.memory(
        "dec-no",
        "Do not use Redis for sessions.\n",
        title="Do not use Redis for sessions",
        timestamp=ago(91),
    )
    sandbox.memory("dec-old", "Logs are text.\n", timestamp=ago(300))
    sandbox.memory("dec-one", "Logs are JSON.\n", timestamp=ago(92), supersedes=("dec-old",))
    sandbox.memory("dec-two", "Logs are XML.\n", timestamp=ago(92), supersedes=("dec-old",))
    sandbox.memory("dec-free", "Ports are odd numbers.\n", timestamp=ago(91))
    all_ids = ("dec-yes", "dec-no", "dec-one", "dec-two", "dec-free")
    given_inputs = inputs(upheld=upholding(**dict.fromkeys(all_ids, 3)))
    assert renewing(sandbox, given_inputs) == [("renew", "dec-free")]


def fill(sandbox: Sandbox, count: int, **fields: FieldValue) -> None:
    """Write living memories, each a little more important than the one before."""
    for number in range(count):
        sandbox.memory(
            f"dec-{number:02}", importance=f"{number / 100:g}", **{"timestamp": ago(1)} | fields
        )


def test_too_many_are_cut_down_to_the_most_important(sandbox: Sandbox):
    """Nothing happens up to the limit; above it, the least important go."""
    fill(sandbox, 10)
    assert expiring(sandbox, maintain_max_active=10) == []
    expired = expiring(sandbox, maintain_max_active=7)
    assert expired == [("archive", f"dec-{number:02}") for number in range(3)]
    fill(sandbox, 40)
    assert len(expiring(sandbox, maintain_max_active=30)) == 40 - 27


def test_pinned_and_lately_used_ones_are_spared(sandbox: Sandbox):
    """Others go in their place, eternal ones last."""
    fill(sandbox, 10)
    sandbox.memory("dec-00", importance="0", timestamp=ago(1), status="pinned")
    sandbox.memory("dec-02", importance="0", timestamp=ago(1), temporal_class="eternal")
    counted = uses(**{"dec-01": seen(0.9), "dec-03": seen(1.1)})
    expired = expiring(sandbox, counted, maintain_max_active=7)
    assert [id_ for _do, id_ in expired] == ["dec-03", "dec-04", "dec-05"]


def test_of_equal_importance_the_faded_go_first(sandbox: Sandbox):
    """Value decides, then age, then id: the order is always the same."""
    sandbox.memory("dec-a", timestamp=ago(5))
    sandbox.memory("dec-b", timestamp=ago(50))
    sandbox.memory("dec-c", timestamp=ago(20), category="task_progress", temporal_class="eternal")
    sandbox.memory("dec-d", timestamp=ago(5))
    expired = expiring(sandbox, maintain_max_active=1)
    assert [id_ for _do, id_ in expired] == ["dec-b", "dec-a", "dec-d"]


def test_what_was_important_long_ago_goes_before_what_matters_now(sandbox: Sandbox):
    """Decay scales importance: an old work note yields to a fresh one of a little less."""
    sandbox.memory("sta-a", timestamp=ago(13), importance="0.7", category="task_progress")
    sandbox.memory("sta-b", timestamp=ago(1), importance="0.6", category="task_progress")
    expired = expiring(sandbox, maintain_max_active=1)
    assert ("archive", "sta-a") in expired
    assert ("archive", "sta-b") not in expired


def test_what_expires_does_not_count_as_alive(sandbox: Sandbox):
    """Memories archived for their age make room."""
    fill(sandbox, 4)
    sandbox.memory("dec-00", timestamp=ago(1000), category="task_progress")
    expired = expiring(sandbox, maintain_max_active=3)
    assert expired == [("archive", "dec-00")]


def test_frozen_files_are_left_out(sandbox: Sandbox):
    """Neither age nor number touches a file with uncommitted work."""
    path = sandbox.memory("dec-a", timestamp=ago(1000))
    assert plan.build_expiry_steps(tree_of(sandbox), inputs(frozen=frozenset({path}))) == []


SOMETHING = {"dec-other": seen(1)}
"""That anything was counted at all."""


@pytest.mark.parametrize(
    ("days", "times", "expected"),
    [
        (0.9, 0, []),
        (0.9, 2, []),
        (0.9, 9, []),
        (1.1, 0, ["fade"]),
        (1.1, 1, ["confirm"]),
        (-1, 0, []),
    ],
)
def test_a_day_decides(sandbox: Sandbox, days: float, times: int, expected: list[str]):
    """Before its end nothing happens; from then on one use confirms, and none lets it fade.

    It counts from the commit that added the file, whatever the date in it; without one it waits.
    """
    path = sandbox.memory("dec-a", status="candidate", timestamp=ago(50), importance="0.6")
    counted = uses(**SOMETHING | ({"dec-a": seen(0.1, times)} if times else {}))
    given_inputs = inputs(counted, added={path: SECOND - round(days * DAY_S)})
    steps = plan.build_candidate_steps(tree_of(sandbox), given_inputs, ())
    assert [step.do for step in steps] == expected
    after = project_tree(tree_of(sandbox), steps)
    assert plan.build_candidate_steps(after, given_inputs, ()) == []
    assert plan.build_candidate_steps(tree_of(sandbox), inputs(counted, added={}), ()) == []
    memory = after["dec-a"].memory
    assert memory.importance == (0.48 if expected == ["fade"] else 0.6)
    assert memory.status == ("confirmed" if expected == ["confirm"] else "candidate")


def test_what_is_injected_vouches_for_nothing(sandbox: Sandbox):
    """A candidate that agents got without asking fades like an unseen one."""
    sandbox.memory("dec-a", status="candidate", timestamp=ago(9))
    injected = uses(**{"dec-a": seen(1, 5)}).replace(opened={})
    (step,) = plan.build_candidate_steps(tree_of(sandbox), inputs(injected), ())
    assert step.do == "fade"


def test_being_listed_confirms_nothing(sandbox: Sandbox):
    """Neither soon nor later, however often; a low confidence waits for a person."""
    new = sandbox.memory("dec-new", status="candidate", timestamp=ago(9))
    old = sandbox.memory("dec-old", status="candidate", timestamp=ago(9))
    low = sandbox.memory("dec-low", status="candidate", timestamp=ago(9), confidence="low")
    added = {new: SECOND - 9, old: SECOND - 9 * DAY_S, low: SECOND - 9 * DAY_S}
    tree = tree_of(sandbox)
    ids_ = ("dec-new", "dec-old", "dec-low")
    listed = uses(**{id_: seen(0.01, 50) for id_ in ids_})
    steps = plan.build_candidate_steps(tree, inputs(listed.replace(opened={}), added=added), ())
    assert {step.id: step.do for step in steps} == {"dec-old": "fade", "dec-low": "fade"}
    steps = plan.build_candidate_steps(tree, inputs(listed, added=added), ())
    assert {step.id: step.do for step in steps} == {"dec-old": "confirm"}


def test_what_a_candidate_supersedes_does_not_vouch_for_it(sandbox: Sandbox):
    """Otherwise the use of the old memory would confirm the new one."""
    sandbox.memory("dec-a", timestamp=ago(20))
    sandbox.memory("dec-b", status="candidate", timestamp=ago(9), supersedes=("dec-a",))
    (step,) = plan.build_candidate_steps(
        tree_of(sandbox), inputs(uses(**{"dec-a": seen(12, 9)})), ()
    )
    assert (step.id, step.do) == ("dec-b", "fade")


def test_what_faded_is_confirmed_when_somebody_looks_later(sandbox: Sandbox):
    """Fading is not the end."""
    sandbox.memory(
        "dec-a",
        status="candidate",
        timestamp=ago(9),
        faded={"at": ago(8), "by": "memtool maintain", "was": "0.5"},
    )
    (step,) = plan.build_candidate_steps(tree_of(sandbox), inputs(uses(**{"dec-a": seen(1)})), ())
    assert step.changes == {"status": "confirmed"}


def test_who_is_no_candidate_or_may_not_be_touched_is_left_alone(sandbox: Sandbox):
    """Confirmed and superseded ones, frozen files, contradictions, clones that count nothing."""
    sandbox.memory("dec-a", timestamp=ago(9))
    sandbox.memory("dec-b", status="candidate", timestamp=ago(9))
    path = sandbox.memory("dec-c", timestamp=ago(9), supersedes=("dec-b",))
    sandbox.memory("dec-d", status="candidate", timestamp=ago(9))
    tree = tree_of(sandbox)
    frozen = frozenset({path})
    assert plan.build_candidate_steps(tree, inputs(uses(**SOMETHING), frozen), ("dec-d",)) == []
    assert plan.build_candidate_steps(tree, inputs(Uses()), ()) == []


def test_every_answer_that_showed_a_memory_counts(tmp_path: Path):
    """Whatever the verb: all, those that opened it, and the last."""
    for moment, verb, id_ in ((10, "search", "a"), (20, "inject", "a"), (30, "show", "b")):
        usage_log.append_note(str(tmp_path), Note(moment, verb, 1.0, items=(ShownItem(id_),)))
    ledger.fold(str(tmp_path))
    usage = read_uses(str(tmp_path))
    assert usage.is_known
    memories = [make_memory(id_) for id_ in "abc"]
    assert [usage.count(memory) for memory in memories] == [2, 1, 0]
    assert [usage.count_opened(memory) for memory in memories] == [0, 1, 0]
    assert [usage.find_last(memory) for memory in memories] == [20, 30, None]
    after = make_memory("c", supersedes=("a", "b"))
    assert (usage.count(after), usage.find_last(after)) == (3, 30)


def test_an_absent_ledger_knows_nothing(tmp_path: Path):
    """Unknown use is not the same as no use."""
    usage = read_uses(str(tmp_path))
    assert not usage.is_known
    memory = make_memory("a")
    assert (usage.count(memory), usage.find_last(memory)) == (0, None)


def test_a_file_was_added_when_it_came_last(sandbox: Sandbox) -> None:
    """Edits do not count, a second coming does; of two branches the later, and a merge."""
    untouched, back, both = (sandbox.memory(f"dec-{name}") for name in ("kept", "back", "both"))
    times = [sandbox.commit()]
    (sandbox.path / back).unlink()
    sandbox.memory("dec-kept", "Another text.\n")
    times.append(sandbox.commit())
    sandbox.git("switch", "--quiet", "--orphan", "other")
    sandbox.memory("dec-both")
    times.append(sandbox.commit())
    sandbox.git("switch", "--quiet", "main")
    sandbox.memory("dec-back")
    times.append(sandbox.commit())
    sandbox.git("merge", "--quiet", "--no-commit", "--allow-unrelated-histories", "other")
    merged = sandbox.memory("dec-merged")
    times.append(sandbox.commit())
    seconds = [int(sandbox.git("log", "-1", "--format=%ct", at)) for at in times]
    added = plan.read_added(
        sandbox.context().repository, "HEAD", [untouched, back, both, merged, "none.md"], ".memory"
    )
    expected = {untouched: 0, both: 2, back: 3, merged: 4}
    assert added == {path: seconds[at] for path, at in expected.items()}
