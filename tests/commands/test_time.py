"""Time and answers: confirmed memories stay, expired ones are counted."""

from __future__ import annotations

import json

import pytest
from conftest import Sandbox

DAYS_LATER = {31: "2026-03-26T12:00:00Z", 91: "2026-05-25T12:00:00Z", 400: "2027-04-01T12:00:00Z"}
PROMPT = "may I modify the auth middleware directly?"


@pytest.fixture
def aged(sandbox: Sandbox) -> Sandbox:
    """A warning, a decision and a state of the work about one thing, all written on one day."""
    sandbox.memory(
        "sem-auth",
        "Never modify the auth middleware directly.\n",
        type="semantic",
        category="warning",
        title="Leave the auth middleware",
        files=("auth.py",),
    )
    sandbox.memory(
        "dec-auth",
        "The auth middleware is generated from the schema.\n",
        title="Generate the auth middleware",
        files=("auth.py",),
    )
    sandbox.memory(
        "sta-auth",
        "The auth middleware is half modified.\n",
        type="state",
        title="Modify the auth middleware",
    )
    sandbox.write("auth.py", "x = 1\n")
    sandbox.commit()
    return sandbox


@pytest.mark.parametrize("days", DAYS_LATER)
def test_what_was_confirmed_is_found_and_injected_whatever_its_age(aged: Sandbox, days: int):
    """Search and the block hold the decision and the warning a month, a season and a year later."""
    now = DAYS_LATER[days]
    answer = aged.json("search", "auth middleware", MEMTOOL_NOW=now)
    assert {result["id"] for result in answer["results"]} == {"sem-auth", "dec-auth"}
    block = aged.run("inject", "--prompt", PROMPT, MEMTOOL_NOW=now).stdout
    assert "Never modify the auth middleware directly." in block


def test_what_is_due_is_marked_where_it_is_shown(aged: Sandbox):
    """Search, list and show say it; a block does not, since only a user can confirm it."""
    now = DAYS_LATER[31]
    answer = aged.json("search", "auth middleware", MEMTOOL_NOW=now)
    assert {result["id"]: result["due"] for result in answer["results"]} == {
        "sem-auth": True,
        "dec-auth": False,
    }
    assert " · due\n" in aged.run("search", "never modify", MEMTOOL_NOW=now).stdout
    block = aged.run("inject", "--prompt", PROMPT, MEMTOOL_NOW=now).stdout
    assert "sem-auth@" in block
    assert "2026-03-24" not in block
    rows = aged.run("list", MEMTOOL_NOW=now).stdout.splitlines()
    assert {row.split()[0]: "  due  " in row for row in rows} == {
        "sem-auth": True,
        "dec-auth": False,
    }
    assert "due since" in aged.run("show", "sem-auth", MEMTOOL_NOW=now).stdout


def test_confirming_takes_the_mark_away(aged: Sandbox):
    """The time of the category begins again."""
    now = DAYS_LATER[31]
    assert [
        memory["id"] for memory in aged.json("list", "is:due", MEMTOOL_NOW=now)["memories"]
    ] == ["sem-auth"]
    assert aged.run("confirm", "sem-auth", MEMTOOL_NOW=now).returncode == 0
    assert aged.json("list", "is:due", MEMTOOL_NOW=now)["memories"] == []


def test_what_is_due_ranks_lower(aged: Sandbox):
    """By a factor of its own, which is 1 until then."""

    def factor(now: str) -> float:
        results = aged.json("search", "never modify", MEMTOOL_NOW=now)["results"]
        return next(result["factors"]["due"] for result in results if result["id"] == "sem-auth")

    assert factor("2026-03-24T19:33:00Z") == 1.0
    assert factor("2026-03-24T19:33:01Z") == 0.85


def test_an_answer_says_how_many_expired_memories_it_left_out(aged: Sandbox):
    """On stderr and in the JSON, of search, list and inject; asked for, they are there."""
    now = DAYS_LATER[31]
    note = "1 expired memory matches as well: memtool list is:expired"
    for words in (
        ("search", "auth middleware"),
        ("list",),
        ("list", "type:state"),
        ("search", "type:state"),
        ("search", "modify OR unheard"),
        ("inject", "--prompt", PROMPT),
    ):
        assert note in aged.run(*words, MEMTOOL_NOW=now).stderr, words
        assert aged.json(*words, MEMTOOL_NOW=now)["expired"] == 1, words
    shown = aged.json("search", "middleware", "is:expired", MEMTOOL_NOW=now)
    assert ([result["id"] for result in shown["results"]], shown["expired"]) == (["sta-auth"], 0)


def test_what_would_not_answer_is_not_counted(aged: Sandbox):
    """Unrelated, archived and replaced memories are not counted as expired."""
    now = DAYS_LATER[31]
    assert aged.json("search", "schema", MEMTOOL_NOW=now)["expired"] == 0
    assert aged.json("list", "type:decision", MEMTOOL_NOW=now)["expired"] == 0
    assert aged.json("inject", "--prompt", "which schema is it?", MEMTOOL_NOW=now)["expired"] == 0
    for status in ("archived", "deleted"):
        aged.memory(
            "sta-auth", "The auth middleware is half modified.\n", type="state", status=status
        )
        assert aged.json("search", "auth middleware", MEMTOOL_NOW=now)["expired"] == 0
    aged.memory("sta-auth", "The auth middleware is half modified.\n", type="state")
    aged.memory(
        "sta-next",
        "The auth middleware is done.\n",
        type="state",
        supersedes=("sta-auth",),
        timestamp="2026-03-20T00:00:00Z",
    )
    answer = aged.json("search", "auth middleware", MEMTOOL_NOW=now)
    assert answer["expired"] == 0
    assert "expired" not in aged.run("search", "auth middleware", MEMTOOL_NOW=now).stderr


def test_a_revision_counts_the_same(aged: Sandbox):
    """The index of a commit knows as much as that of the worktree."""
    now = DAYS_LATER[31]
    assert aged.json("search", "auth middleware", "--at", "HEAD", MEMTOOL_NOW=now)["expired"] == 1
    assert (
        aged.json("search", "auth middleware", MEMTOOL_NOW=now, MEMTOOL_NO_CACHE="1")["expired"]
        == 1
    )


def test_what_is_due_is_still_enforced(aged: Sandbox):
    """Review asks for it, the hook names it after an edit, and a contradiction counts."""
    now = DAYS_LATER[400]
    aged.git("checkout", "--quiet", "-b", "side")
    aged.write("auth.py", "x = 2\n")
    aged.commit()
    answer = aged.json("review", "main..HEAD", MEMTOOL_NOW=now)
    assert [(memory["id"], memory["due"]) for memory in answer["files"][0]["memories"]] == [
        ("dec-auth", True),
        ("sem-auth", True),
    ]
    text = aged.run("review", "main..HEAD", MEMTOOL_NOW=now).stdout
    assert "Leave the auth middleware     due\n" in text
    event = {
        "session_id": "s",
        "tool_name": "Edit",
        "hook_event_name": "PostToolUse",
        "tool_input": {"file_path": str(aged.path / "auth.py")},
    }
    done = aged.run("hook", "claude", "post-tool-use", stdin=json.dumps(event), MEMTOOL_NOW=now)
    assert "Never modify the auth middleware directly." in done.stdout
    aged.memory(
        "dec-no",
        "Do not generate the auth middleware.\n",
        title="Do not generate the auth middleware",
        timestamp=now,
    )
    conflicts = aged.json("conflicts", MEMTOOL_NOW=now)["conflicts"]
    assert [conflict["ids"] for conflict in conflicts] == [["dec-auth", "dec-no"]]


def test_status_lists_what_is_due_and_counts_what_has_expired(aged: Sandbox):
    """In the JSON and in the text, with the verbs that settle it and since when."""
    now = DAYS_LATER[400]
    assert aged.json("status", MEMTOOL_NOW=now)["due"] == ["dec-auth", "sem-auth"]
    text = aged.run("status", MEMTOOL_NOW=now).stdout
    assert "\n2 active, 1 expired (3 files)\n" in text
    assert (
        'Due for review (2; "memtool confirm ID" if it still holds, else archive):\n'
        "  sem-auth  Leave the auth middleware     since 2026-03-24\n"
        "  dec-auth  Generate the auth middleware  since 2026-05-23\n"
    ) in text


def test_maintain_proposes_a_review_and_archives_nothing_that_is_confirmed(aged: Sandbox):
    """A year later only the state of the work is put away; the others are told."""
    now = DAYS_LATER[400]
    answer = aged.json("maintain", "--weekly", "--apply", MEMTOOL_NOW=now)
    assert [(step["do"], step["id"]) for step in answer["steps"]] == [("archive", "sta-auth")]
    assert [(flag["kind"], flag["ids"]) for flag in answer["flags"]] == [
        ("due", ["dec-auth"]),
        ("due", ["sem-auth"]),
    ]
    text = aged.run("maintain", "--weekly", MEMTOOL_NOW=now).stdout
    assert "Left to you: 2 due (memtool status, or --all)" in text
    text = aged.run("maintain", "--weekly", "--all", MEMTOOL_NOW=now).stdout
    assert "memtool confirm dec-auth, or memtool archive dec-auth --reason REASON" in text
