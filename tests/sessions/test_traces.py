"""Traces: failing runs until a command worked, by error signature, over sessions."""

from __future__ import annotations

from conftest import Sandbox

from memtool.inject import session_seen
from memtool.memory import timestamps
from memtool.sessions import lifecycle, store, traces
from memtool.sessions.model import Message

MISSING = "E   ModuleNotFoundError: No module named 'tomli_w'"
REFUSED = "ConnectionError: the pool is exhausted"


def ran(text: str, *, is_ok: bool, call: str = "pytest -q", moment: int = 0) -> Message:
    return Message(0, "tool", text, moment=moment, tool="Bash", call=call, is_ok=is_ok)


def failed(text: str, **options: int) -> Message:
    return ran(text, is_ok=False, moment=options.get("moment", 0))


WORKED = ran("4 passed", is_ok=True)


def heard(sandbox: Sandbox, name: str, started: int, *messages: Message) -> None:
    ws = sandbox.context()
    sessions = store.open_sessions(ws)
    head = lifecycle.begin_session(ws, sessions, id=name, agent="claude", started=started)
    lifecycle.start(ws, sessions, head)
    store.add(sessions, name, list(messages), ws.clock.now)


def test_failing_runs_count_until_the_command_works() -> None:
    """Another failure of the same command on the way counts; another command does not."""
    messages = [
        failed(MISSING),
        ran("no", is_ok=False, call="make"),
        failed(REFUSED),
        failed(MISSING),
        ran("x", is_ok=True, call="cat a"),
        WORKED,
        failed(REFUSED),
        failed("no words"),
    ]
    numbered = [message.replace(number=n) for n, message in enumerate(messages, 1)]
    attempts = [
        (attempt.signature, attempt.runs, attempt.is_green)
        for attempt in traces.find_attempts(numbered, "s")
    ]
    assert attempts == [
        (MISSING.removeprefix("E   "), 3, True),
        (REFUSED, 2, True),
        (REFUSED, 2, False),
    ]


def test_what_comes_back_and_whether_a_memory_was_at_hand(sandbox: Sandbox) -> None:
    """A memory counts if the session was shown it and it is older than the failure."""
    signature = MISSING.removeprefix("E   ")
    sandbox.memory("epi-fix", "uv sync\n", type="episodic", error_signature=signature)
    moment = timestamps.parse("2026-02-25T10:00:00Z")
    heard(
        sandbox,
        "ses-one",
        moment,
        failed(MISSING, moment=moment),
        failed(MISSING),
        failed(MISSING),
        WORKED,
    )
    heard(sandbox, "ses-two", moment + 60, failed(MISSING, moment=moment + 60), WORKED)
    heard(sandbox, "ses-open", moment + 90, failed("\x1b[31mOSError: \x07boom"))
    cache = sandbox.context().repository.cache_dir
    session_seen.add(cache, "ses-two", [("epi-fix", "1234")])
    session_seen.add(cache, "ses-one", [("epi-other", "1234")])
    boom, row = sorted(sandbox.json("stats", "--traces")["traces"], key=lambda trace: trace["runs"])
    assert row == {
        "signature": signature,
        "command": "pytest -q",
        "sessions": 2,
        "attempts": 2,
        "runs": 4,
        "green": 2,
        "regressions": 1,
        "with_memory": 1,
        "to_green": 2.0,
        "to_green_with_memory": 1.0,
        "to_green_without": 3.0,
    }
    assert (boom["to_green"], boom["green"]) == (None, 0)
    shown = sandbox.run("stats", "--traces").stdout
    assert "4 failing runs in 2 sessions, 2 runs until it worked, regressions: 1" in shown
    assert "shown in 1 of 2 attempts: 1 runs with it, 3 without" in shown
    assert "\x07" not in shown
    assert len(sandbox.json("stats", "--traces", "--limit", "1")["traces"]) == 1
    assert sandbox.json("stats")["traces"] is None
    assert "failing runs" not in sandbox.run("stats").stdout


def test_without_sessions_there_are_no_traces(sandbox: Sandbox) -> None:
    """This is reported, and is not an error."""
    sandbox.memory("dec-a")
    assert "nothing failed in a captured session" in sandbox.run("stats", "--traces").stdout
