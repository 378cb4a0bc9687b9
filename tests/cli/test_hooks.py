"""A hook costs what its answer costs: no process, no library, no file more than `inject` itself."""

from __future__ import annotations

import json

import pytest
from conftest import Sandbox
from test_hot import ALLOWED, LEFT_ALONE, drive, project, warm

__all__ = ["project"]

PROMPT = "where do sessions live?"
QUICK_JSON = "_json"
"""The one library more: the scanner in C that `json` is made of."""


def call(**event: object) -> tuple[str, ...]:
    """Return a prompt event as arguments."""
    told = json.dumps({"prompt": PROMPT, "hook_event_name": "UserPromptSubmit"} | event)
    return ("hook", "claude", "user-prompt-submit", "--input", told)


@pytest.mark.parametrize("session", ["", "s"])
def test_a_warm_hook_loads_little(project: Sandbox, session: str):
    """What `inject` loads, a reader of JSON, and the contracts; also where a session is known."""
    _answer, found = warm(project, *call(session_id=session))
    loaded = {name.partition(".")[0].partition("_3_")[0] for name in found["loaded"]}
    assert loaded - ALLOWED - {"memtool", QUICK_JSON} == set()
    assert set(found["loaded"]) & LEFT_ALONE == set()
    _answer, plain = warm(project, "inject", "--prompt", PROMPT)
    more = set(found["loaded"]) - set(plain["loaded"]) - {QUICK_JSON}
    assert more <= {
        "memtool.cli.hooks", "memtool.commands.hook", "memtool.hosts", "memtool.hosts.contracts",
        "memtool.hosts.log", "memtool.hosts.wire", "memtool.inject.session_seen",
    }  # fmt: skip


def test_a_warm_hook_starts_no_process(project: Sandbox):
    """Once the caches are there, git is not needed; not even to be installed."""
    expected, _found = warm(project, *call())
    answer, found = drive(project, *call(), PATH="/nowhere")
    assert answer == expected != b""
    assert found["started"] == []


def test_a_warm_hook_opens_no_memory(project: Sandbox):
    """Few files, whatever the number of memories."""
    _answer, found = warm(project, *call(session_id="s"))
    inside = [path for path in found["opened"] if path.startswith(str(project.path))]
    assert [path for path in inside if path.endswith(".md")] == []
    assert len(inside) <= 34


def test_a_warm_stop_loads_next_to_nothing(project: Sandbox):
    """At the end of each turn nothing is searched."""
    args = ("hook", "claude", "stop", "--input", '{"session_id": "s"}')
    _answer, found = warm(project, *args)
    assert not any(
        name.startswith(("memtool.search", "memtool.inject")) for name in found["loaded"]
    )
    assert found["started"] == []
