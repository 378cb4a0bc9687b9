"""What each verb says of a memory that rests on what no longer holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import Sandbox
from tower import NEW, NORTH, OLD, PLAN, replace_premise, write_tower

CHANGED = f"{OLD} is now {NEW}"
DEEP = f"{CHANGED} (through {NORTH})"


@pytest.fixture
def tower(sandbox: Sandbox) -> Sandbox:
    write_tower(sandbox)
    return sandbox


def find_row(answer: dict[str, Any], id_: str) -> dict[str, Any]:
    (row,) = [row for row in answer.get("results", answer.get("memories", ())) if row["id"] == id_]
    return row


def settle(sandbox: Sandbox, id_: str, **fields: Any) -> None:
    """Write a memory of the tower again, with causes that it accepts."""
    cited = (
        {"source": ("human:Ada", f"memory:{OLD}")} if id_ == NORTH else {"derived_from": (NORTH,)}
    )
    sandbox.memory(id_, f"{id_} holds.\n", **(cited | fields))
    sandbox.commit()


def test_search_and_list_mark_the_hits(tower: Sandbox):
    for call in (("search", "tower", "review"), ("list",)):
        answer = tower.json(*call)
        states = {NEW: "", NORTH: CHANGED, PLAN: DEEP}
        assert {id_: find_row(answer, id_)["unsettled"] for id_ in states} == states
    text = tower.run("search", "north", "tower").stdout
    assert "! [UNSETTLED] sem-k3f9 is now sem-b7x2\n" in text
    assert "! [UNSETTLED] sem-k3f9 is now sem-b7x2 (through dec-2g54)\n" in text
    listed = tower.run("list").stdout.splitlines()
    assert sum("  unsettled  " in line for line in listed) == 2
    rows = map(json.loads, tower.run("list", "--format", "jsonl").stdout.splitlines())
    assert {row["id"]: row["unsettled"] for row in rows}[PLAN] == DEEP


def test_a_mark_goes_once_it_is_settled(tower: Sandbox):
    """Settling the lowest settles what rests on it; the next change unsettles both again."""
    settle(tower, NORTH, settled_on=(f"memory:{NEW}",))
    assert {row["unsettled"] for row in tower.json("list")["memories"]} == {""}
    shown = tower.json("show", NORTH)
    assert (shown["causes"], shown["premises"][0]["state"]) == ([], "replaced")
    tower.memory("sem-third", "Over 60 floors.\n", supersedes=(NEW,))
    assert find_row(tower.json("list"), PLAN)["unsettled"].startswith(f"{OLD} is now sem-third")


def test_nothing_is_marked_before_the_change_or_at_an_older_commit(sandbox: Sandbox):
    write_tower(sandbox, is_replaced=False)
    assert {row["unsettled"] for row in sandbox.json("list")["memories"]} == {""}
    assert sandbox.json("status")["unsettled"] == []
    assert "you can act on it" in sandbox.json("why", NORTH)["advice"]
    replace_premise(sandbox)
    assert sandbox.json("show", NORTH)["unsettled"] == CHANGED
    assert sandbox.json("show", NORTH, "--at", "HEAD~1")["unsettled"] == ""


def test_show_has_premises_conclusions_and_acts(tower: Sandbox):
    shown = tower.json("show", NORTH)
    assert [(row["id"], row["state"]) for row in shown["premises"]] == [(OLD, "replaced")]
    assert [(row["id"], row["state"]) for row in shown["conclusions"]] == [(PLAN, "unsettled")]
    assert shown["causes"] == [
        {"name": f"memory:{NEW}", "reason": "replaced", "text": CHANGED, "chain": [NORTH, OLD]}
    ]
    lines = tower.run("show", NORTH).stdout.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("! Unsettled"))
    assert [" ".join(line.split()) for line in lines[start : start + 7]] == [
        "! Unsettled sem-k3f9 is now sem-b7x2: Towers over 50 floors need a class F review",
        "it still holds memtool confirm dec-2g54 --still-holds",
        "it has changed memtool supersede dec-2g54 TITLE",
        "it no longer holds memtool forget dec-2g54 --reason TEXT",
        "Premises sem-k3f9 Towers over 40 floors need a class F review (replaced)",
        "Conclusions sem-r8d3 The plan of the north tower allows nine weeks (unsettled)",
        "Source human:Ada",
    ]
    deep = tower.run("show", PLAN).stdout
    assert "memtool confirm dec-2g54 --still-holds" in deep
    assert "Derived from" not in deep


def test_show_counts_many_conclusions(sandbox: Sandbox):
    sandbox.memory("dec-p", status="deprecated")
    for number in range(30):
        sandbox.memory(f"dec-c{number:02}", source=("memory:dec-p",))
    short, whole = sandbox.run("show", "dec-p").stdout, sandbox.run("show", "dec-p", "--all").stdout
    assert "and 20 more (--all shows them)" in short
    assert (short.count("(unsettled)"), whole.count("(unsettled)")) == (10, 30)
    assert len(sandbox.json("show", "dec-p")["conclusions"]) == 30


def test_a_digest_and_what_is_out_of_use_have_no_mark(tower: Sandbox):
    tower.memory("dec-x", "Archived.\n", source=(f"memory:{OLD}",), status="archived")
    row = find_row(tower.json("list", "is:archived"), "dec-x")
    assert row["unsettled"] == ""
    assert "! Unsettled" not in tower.run("show", "dec-x").stdout


@pytest.mark.parametrize(
    ("fields", "clause", "state"),
    [
        ({"status": "deprecated"}, "dec-p is deprecated", "deprecated"),
        (
            {
                "status": "deleted",
                "deleted": {"at": "2026-02-23T00:00:00Z", "by": "ada", "was": "confirmed"},
            },
            "dec-p was forgotten",
            "forgotten",
        ),
        ({"valid_through": "2026-02-25"}, "dec-p has expired", "ended"),
        ({"files": ("app.py",)}, "what dec-p cites is gone", "broken"),
    ],
)
def test_each_fault_is_told_in_its_words(
    sandbox: Sandbox, fields: dict[str, Any], clause: str, state: str
):
    sandbox.write("app.py", "x = 1\n")
    sandbox.memory("dec-p", "First.\n", **fields)
    sandbox.memory("dec-c", "Second.\n", source=("memory:dec-p",))
    sandbox.commit()
    (sandbox.path / "app.py").unlink()
    sandbox.commit()
    shown = sandbox.json("show", "dec-c")
    assert (shown["unsettled"], shown["premises"][0]["state"]) == (clause, state)
    assert f"since {clause}; if dec-c still holds" in sandbox.json("why", "dec-c")["advice"]


def test_a_missing_premise_has_no_title(sandbox: Sandbox):
    sandbox.memory("dec-c", source=("memory:dec-gone",))
    shown = sandbox.json("show", "dec-c")
    assert shown["premises"] == [{"id": "dec-gone", "title": "", "state": "missing"}]
    assert "! Unsettled  dec-gone is not here\n" in sandbox.run("show", "dec-c").stdout


def test_why_follows_the_chain_and_ends_honestly(tower: Sandbox):
    answer = tower.json("why", PLAN)
    (north,) = [ground for ground in answer["sources"] if ground["kind"] == "derived_from"]
    (old,) = [ground for ground in north["sources"] if ground["kind"] == "memory"]
    assert (north["cause"], old["cause"]) == ("unsettled", CHANGED)
    assert answer["advice"] == (
        f"look before you act on it: it is unsettled, since {DEEP}; if {NORTH} still holds: "
        f"memtool confirm {NORTH} --still-holds"
    )
    lines = tower.run("why", PLAN).stdout.splitlines()
    assert lines[3].endswith("[unsettled, sources: weak]")
    assert lines[5].endswith("[sem-k3f9 is now sem-b7x2]")
    assert "cause" not in json.dumps(tower.json("why", NEW))


def test_verify_takes_the_worst_of_the_chain(tower: Sandbox):
    def verdicts(*ids: str) -> dict[str, str]:
        return {row["id"]: row["verdict"] for row in tower.json("verify", *ids)["memories"]}

    assert verdicts(PLAN) == {PLAN: "weak"}
    (_stated, row) = tower.json("verify", PLAN)["memories"][0]["sources"]
    assert (row["source"], row["status"]) == (f"derived_from:{NORTH}", "unsettled")
    settle(tower, NORTH, settled_on=(f"memory:{NEW}",))
    assert verdicts(PLAN, NORTH) == {PLAN: "unknown", NORTH: "sound"}
    tower.memory(NEW, "Words.\n", supersedes=(OLD,), source=("commit:deadbeef",))
    tower.commit()
    assert verdicts(PLAN, NORTH) == {PLAN: "broken", NORTH: "broken"}
    assert tower.run("verify", PLAN).returncode == 1


def test_verify_ends_in_circles(sandbox: Sandbox):
    sandbox.memory("dec-a", source=("memory:dec-b",))
    sandbox.memory("dec-b", source=("memory:dec-a", "commit:deadbeef"))
    sandbox.commit()
    answer = sandbox.json("verify", "dec-a")["memories"][0]
    assert (answer["verdict"], answer["sources"][0]["status"]) == ("broken", "broken")


def test_status_names_the_lowest_and_counts_the_others(tower: Sandbox):
    answer = tower.json("status")
    assert (answer["unsettled"], answer["to_settle"]) == ([NORTH, PLAN], [NORTH])
    assert "unsettled: 2" in answer["issues"]
    text = tower.run("status").stdout
    assert (
        "Unsettled (1; 1 more rests on these; "
        '"memtool show ID" says what settles it):\n'
        "  dec-2g54  The north tower gets a class F review  sem-k3f9 is now sem-b7x2\n"
    ) in text
    assert text.endswith("No errors. 1 thing needs attention.\n")


def test_status_and_list_leave_out_what_has_expired(tower: Sandbox):
    """Nobody needs to settle a candidate whose days are over."""
    tower.memory(
        "dec-expired",
        timestamp="2025-01-01T00:00:00Z",
        status="candidate",
        source=(f"memory:{OLD}",),
    )
    listed = tower.json("list", "is:unsettled")["memories"]
    ids = tower.json("status")["unsettled"]
    assert ids == sorted(row["id"] for row in listed) == [NORTH, PLAN]


def test_status_needs_no_trusted_branch(tower: Sandbox):
    """A ref of the settings that is missing does not hide what is unsettled."""
    tower.run("config", "trust.ref", "origin/nowhere")
    assert tower.json("status")["unsettled"] == [NORTH, PLAN]


def test_a_fork_is_two_causes(tower: Sandbox):
    tower.memory("sem-fork", "Over 45 floors.\n", supersedes=(OLD,))
    shown = tower.json("show", NORTH)
    assert {cause["name"] for cause in shown["causes"]} == {f"memory:{NEW}", "memory:sem-fork"}
    assert shown["unsettled"].endswith(", and 1 more")
