from __future__ import annotations

from typing import Any

import pytest
from conftest import Sandbox

from memtool.mcp import call as calls
from memtool.mcp.call import Answer, ServedRepository
from memtool.mcp.tools import tools

TOOLS = tools()


def call(sandbox: Sandbox, name: str, **given: Any) -> Answer:
    return calls.call(TOOLS[name], given, ServedRepository(str(sandbox.path), sandbox.env))


def test_an_answer_does_not_fill_the_window(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch):
    """Rows and text have an end, and what was left out is said."""
    monkeypatch.setattr(calls, "MOST_ROWS", 3)
    monkeypatch.setattr(calls, "MOST_CHARS", 200)
    for number in range(9):
        sandbox.memory(f"dec-{number}")
    answer = call(sandbox, "list")
    assert answer.structured is not None
    assert len(answer.structured["memories"]) == 3
    assert answer.structured["total"] == 9
    assert answer.text.endswith("Title of dec-1\n")
    assert answer.notes == (
        "memories: the first 3 of 9",
        f"the text ends here, after {len(answer.text)} characters; ask for less",
    )


def test_a_block_ends_as_it_was_written(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch):
    """It has a budget, and a frame that must be closed."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    whole = call(sandbox, "inject", prompt="sessions")
    monkeypatch.setattr(calls, "MOST_CHARS", 10)
    assert call(sandbox, "inject", prompt="sessions") == whole


def test_nothing_invisible_reaches_an_agent(sandbox: Sandbox):
    """Neither in the text nor in any value: hidden words would be read by a model alone."""
    sandbox.memory("dec-a", "Use Redis.\U000e0041\u202e\x1b[2J\n")
    answer = call(sandbox, "show", id="dec-a")
    assert answer.structured is not None
    assert answer.structured["body"] == "Use Redis.\\U000e0041\\u202e\\x1b[2J\n"
    assert "\\u202e" in answer.text


def test_a_bug_is_an_answer(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch):
    """It names the log, and whoever asked can go on."""

    def broken(_value: object) -> str:
        raise RuntimeError("surprise")

    sandbox.memory("dec-a")
    tool = TOOLS["list"].replace(face=TOOLS["list"].face.replace(render=broken))
    answer = calls.call(tool, {}, ServedRepository(str(sandbox.path), sandbox.env))
    assert answer.error is not None
    assert (answer.error["code"], answer.error["recoverable"]) == ("bug", False)
    assert "RuntimeError: surprise" in answer.text
    assert "Traceback" not in answer.text


def test_a_dry_run_leaves_no_trace(sandbox: Sandbox):
    """What an agent only tries is written nowhere, not even as a statistic."""
    sandbox.memory("dec-a")
    sandbox.commit()
    before = sorted(path for path in sandbox.path.rglob("*"))
    for name, given in (
        ("new", {"type": "decision", "title": "Use Postgres", "body": "For all."}),
        ("pin", {"id": "dec-a"}),
        ("forget", {"wanted": "dec-a", "why": "gone"}),
    ):
        answer = call(sandbox, name, **given, dry_run=True, commit=True)
        assert answer.error is None
    assert sorted(path for path in sandbox.path.rglob("*")) == before


def test_calls_are_noted_like_those_of_the_command_line(sandbox: Sandbox):
    """What an agent was shown is in the log of injections."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    assert call(sandbox, "inject", prompt="where do sessions live?").text
    answer = call(sandbox, "log", injected=True)
    assert answer.structured is not None
    assert [one["id"] for one in answer.structured["injections"]] == ["dec-a"]


def test_what_an_agent_writes_is_told_from_what_a_person_says(sandbox: Sandbox):
    """The agent is named; it is the source of its own words, not of those that it wrote down."""
    sandbox.run("init")
    place = ServedRepository(str(sandbox.path), sandbox.env, agent="acme")
    for name, given, kind in (
        ("new", {"type": "decision", "title": "Use Postgres", "body": "For all."}, "tool:acme"),
        (
            "new",
            {"type": "state", "title": "Half done", "source": ["url:https://x.org"]},
            "url:https://x.org",
        ),
        ("remember", {"text": "Deploys run on Tuesdays only."}, "human:Ada"),
    ):
        answer = calls.call(TOOLS[name], given, place)
        assert answer.structured is not None, answer.text
        memory = sandbox.context().tree().find(answer.structured["id"]).memory
        assert memory.text("agent") == "acme"
        assert memory.items("source") == (kind,)
