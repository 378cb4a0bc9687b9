"""A hook costs what its answer costs: no process, no library, no file more than `inject` itself."""

from __future__ import annotations

import json

import pytest
from conftest import Sandbox
from test_hot import ALLOWED, HEAVY
from watched import drive, libraries, warm

PROMPT = "where do sessions live?"


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    """A committed and published store with settings, a supersession, a pinned memory."""
    sandbox.write(".memory/config.toml", "# settings\n[search]\nlimit = 7\n")
    sandbox.memory("dec-pinned", "Never force-push.\n", status="pinned")
    sandbox.memory("dec-old", "Sessions live in Redis.\n", title="Sessions in Redis")
    sandbox.memory("dec-new", "Sessions live in Postgres.\n", supersedes=("dec-old",))
    for number in range(60):
        sandbox.memory(f"sem-{number:02}", f"Note {number} about part {number}.\n", type="semantic")
    sandbox.commit()
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
    sandbox.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    return sandbox


def call(**event: object) -> tuple[str, ...]:
    """Return a prompt event as arguments."""
    payload = json.dumps({"prompt": PROMPT, "hook_event_name": "UserPromptSubmit"} | event)
    return ("hook", "claude", "user-prompt-submit", "--input", payload)


@pytest.mark.parametrize("session", ["", "s"])
def test_a_warm_hook_loads_little(project: Sandbox, session: str):
    """The modules of `inject`, a JSON reader, and the contracts; also in a known session."""
    _answer, trace = warm(project, *call(session_id=session))
    assert libraries(trace) & HEAVY <= ALLOWED["hook"]


def test_a_warm_hook_starts_no_process(project: Sandbox):
    """Once the caches are there, git is not needed; not even to be installed."""
    expected, _trace = warm(project, *call())
    answer, trace = drive(project, *call(), PATH="/nowhere")
    assert answer == expected != b""
    assert trace["started"] == []


def test_a_warm_hook_opens_no_memory(project: Sandbox):
    """Few files, whatever the number of memories."""
    _answer, trace = warm(project, *call(session_id="s"))
    inside = [path for path in trace["opened"] if path.startswith(str(project.path))]
    assert [path for path in inside if path.endswith(".md")] == []
    assert len(inside) <= 34


def test_a_warm_stop_loads_next_to_nothing(project: Sandbox):
    """At the end of each turn nothing is searched."""
    args = ("hook", "claude", "stop", "--input", '{"session_id": "s"}')
    _answer, trace = warm(project, *args)
    assert not any(
        name.startswith(("memtool.search", "memtool.inject")) for name in trace["loaded"]
    )
    assert trace["started"] == []


@pytest.mark.parametrize("before", [("-C", "."), ("-C", "nowhere"), ("--json",)])
def test_a_hook_never_fails_wherever_it_is_asked(sandbox: Sandbox, before: tuple[str, ...]) -> None:
    """Options before the verb change nothing: another exit code would stop the agent."""
    done = sandbox.run(*before, "hook", "claude", "user-prompt-submit", stdin="{no event")
    assert (done.returncode, done.stdout) == (0, "")
