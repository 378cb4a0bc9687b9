"""Planning: the parts of a plan fit together, and a plan that was carried out leaves none."""

from __future__ import annotations

from conftest import Sandbox, make_memory
from hypothesis import given
from hypothesis import strategies as st
from upkeep.grounds import ago, grounds, seen, tree_of, uses

from memtool.memory import document, fields
from memtool.memory.changes import changed_keys, is_claim
from memtool.memory.memory import Memory
from memtool.sessions.store import Sessions
from memtool.store.tree import Tree
from memtool.upkeep import plan
from memtool.upkeep.plan import PERIODS, MaintenancePlan
from memtool.upkeep.steps import (
    KINDS,
    MOST_LINE,
    MOST_LINES,
    Imagined,
    PlanInputs,
    UpkeepStep,
    Uses,
    body,
    edits,
    subject,
)

BODIES = ("Deploys need the VPN.\n", "Never deploy on a Friday.\n", "Deploy on a Friday.\n",
          "Sessions live in Postgres, in the table of the same name.\n")  # fmt: skip
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
        kept = {key: str(row[key]) for key in ("status", "category", "timestamp", "importance")}
        made = make_memory(f"sem-{number}", str(row["body"]), type="semantic", **kept)
        memories.append(made.with_fields(title="Deploying", supersedes=olds))
        if row["seen"]:
            counted[made.id] = seen(0.2, int(row["seen"]))
    steps = [UpkeepStep("new", one.id, one.title, f"{one.id}.md", "", {}, one) for one in memories]
    return Imagined(tree_of(sandbox), steps), uses(**counted)


def planned(tree: Tree, ground: PlanInputs) -> MaintenancePlan:
    """Plan what is due every night and week."""
    sessions = Sessions("/nowhere")
    return plan.plan(tree, ground, sessions, "/nowhere", PERIODS[:2], lambda n: b"\0" * n)


@given(rows=MEMORIES, most=st.integers(1, 6))
def test_once_is_enough_and_no_claim_changes(
    sandbox: Sandbox, rows: list[dict[str, str | int]], most: int
):
    """After the steps nothing is left to plan; nothing is removed, no claim that stands edited."""
    tree, counted = tree_with(sandbox, rows)
    ground = grounds(counted, maintain_most_alive=most, maintain_kept_alive=most - 1)
    first = planned(tree, ground)
    after = Imagined(tree, first.steps)
    assert planned(after, ground).steps == ()
    assert tree.by_id.keys() <= after.by_id.keys()
    assert {step.do for step in first.steps} <= KINDS.keys()
    for id_, record in tree.by_id.items():
        new = after.by_id[id_].memory
        if record.memory.status != "candidate":
            assert not any(map(is_claim, changed_keys(record.memory, new)))
    for record in after.records:
        assert document.read(document.write(record.memory)) == record.memory
    assert planned(tree, ground) == first


def test_the_message_of_a_large_plan_stays_readable():
    """It tells two hundred steps, counts the rest, and no line is endless."""
    steps = [UpkeepStep("archive", f"dec-{n}", "", f"{n}.md", "because " * n) for n in range(300)]
    lines = body(steps).splitlines()
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == "and 100 more, which the diff shows"
    assert max(map(len, lines)) <= MOST_LINE
    assert subject(steps) == "memory: maintain: 300 archived"


def test_steps_on_one_file_are_one_edit(sandbox: Sandbox):
    """What two steps say of the same memory stands in it together, everything else as it was."""
    path = sandbox.memory("dec-a", "Odd   spacing stays.\n")
    data = (sandbox.path / path).read_bytes()
    steps = [UpkeepStep("confirm", "dec-a", "", path, "", {"status": "pinned"}),
             UpkeepStep("fade", "dec-a", "", path, "", {"importance": "0.4"})]  # fmt: skip
    (edit,) = edits(steps, {path: data}.__getitem__, grounds().config.categories)
    assert edit.before == data
    assert edit.after == data.replace(b"confidence:", b"status: pinned\nconfidence:").replace(
        b"---\nOdd", b"importance: 0.4\n---\nOdd"
    )
