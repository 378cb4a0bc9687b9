"""Notes of a hook about a failed command, and their way into a trace."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox

from memtool.commands.verify import verify
from memtool.memory.environment import CLEAN, REDACTED, FailureEnvironment, read_environment
from memtool.memory.memory import split_sections
from memtool.redaction.find import NOTHING
from memtool.sessions import failure_state, rerun
from memtool.sessions.model import Message
from memtool.sessions.store import MEGABYTE, Sessions, open_sessions
from memtool.value import digest

SESSION = "8c35adc1-5d0e-4a0f-9a53-1f6f0a2f7c11"
AT = "2026-03-01T11:00:00Z"
FAILED = "Exit code 1\nValueError: no port"


@pytest.fixture
def project(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A Python project with a lock file and a failing check, and a generous timeout."""
    monkeypatch.setattr(failure_state, "BUDGET_S", 60.0)
    monkeypatch.setattr(failure_state, "VERSION_S", 20.0)
    for name in rerun.UNATTENDED:  # the tests themselves may run in CI
        sandbox.env.pop(name, None)
    sandbox.write("pyproject.toml", "[project]\nname = 'a'\n")
    sandbox.write("uv.lock", "version = 1\n")
    sandbox.write("check.sh", "echo 'ValueError: no port'; exit 1\n")
    sandbox.write("sub/sub/keep", "")
    sandbox.memory("dec-a")
    sandbox.commit("one")
    return sandbox


def seen(project: Sandbox, command: str = "sh check.sh", **options: Any) -> FailureEnvironment:
    """Return what is noted of a command that fails now."""
    context = project.context(**options.pop("env", {}))
    directory = str(options.pop("directory", project.path))
    sessions = Sessions(open_sessions(context).directory, NOTHING, MEGABYTE, MEGABYTE)
    return failure_state.observe(context, command, directory, FAILED, sessions)


def test_a_clean_worktree_is_known_whole(project: Sandbox) -> None:
    """Command, directory, exit code, commit, system, interpreter, and lock files."""
    state = seen(project)
    lock = hashlib.sha256(b"version = 1\n").hexdigest()
    facts = dict(state.facts)
    assert (state.argv, state.cwd, state.exit) == (("sh", "check.sh"), ".", 1)
    assert (state.commit, state.diff) == (project.git("rev-parse", "HEAD").strip(), CLEAN)
    assert (facts["os"], facts["arch"]) == (os.uname().sysname.lower(), os.uname().machine)
    assert facts["python"].startswith("3.")
    assert facts["lock uv.lock"] == lock
    assert state.obstacle == ""


def test_changes_are_a_hash_and_those_of_memories_none(project: Sandbox) -> None:
    """A file that git does not know counts as well, as a test may need it."""
    project.memory("dec-b")
    assert seen(project).diff == CLEAN
    project.write("check.sh", "exit 2\n")
    patch = project.git("diff", "HEAD").encode()
    assert seen(project).diff == hashlib.sha256(patch).hexdigest()
    project.git("checkout", "-q", "check.sh")
    project.write("new.py", "")
    state = seen(project)
    assert dict(state.facts)["untracked"] == "1"
    assert state.obstacle == "the worktree had uncommitted changes"


@pytest.mark.parametrize(
    ("command", "directory", "cwd"),
    [
        ("make", "", "."),
        ("make", "sub", "sub"),
        ("cd sub && make", "", "sub"),
        ("cd {top}/sub && make", "sub", "sub"),
        ("cd sub && make", "sub/sub", "sub/sub"),
        ("cd sub && make", "sub", ""),
        ("cd nowhere && make", "", ""),
        ("cd .. && make", "", ""),
        ("make", "..", ""),
    ],
)
def test_where_it_ran_is_known_or_unknown(
    project: Sandbox, command: str, directory: str, cwd: str
) -> None:
    """A host may name the directory from before `cd` or the one after: neither is guessed."""
    state = seen(project, command.format(top=project.path), directory=project.path / directory)
    assert state.cwd == cwd


def test_a_command_with_a_secret_is_not_kept(project: Sandbox) -> None:
    """Neither its words nor the rest of the line; it cannot be run again."""
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    state = seen(project, f"deploy --token {token}")
    assert (state.argv, state.lack) == ((), REDACTED)


def test_what_git_does_not_say_in_time_is_unknown(
    project: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent does not wait for a large worktree."""
    monkeypatch.setattr(failure_state, "BUDGET_S", 0.0)
    state = seen(project)
    assert (state.commit, state.diff, dict(state.facts).get("python")) == ("", "", None)


def test_before_the_first_commit_there_is_no_state(sandbox: Sandbox) -> None:
    """Nothing could be run again."""
    state = seen(sandbox)
    assert (state.commit, state.diff) == ("", "")


def test_a_version_is_asked_for_once(project: Sandbox, tmp_path: Path) -> None:
    """As long as the program is the same; programs of a repository are never run."""
    folder = tmp_path / "programs"
    ran = tmp_path / "ran"
    for place in (folder, project.path / "bin"):
        place.mkdir()
        program = place / "python"
        program.write_text(f"#!/bin/sh\necho x >> {ran}\necho Python 3.99.1\n")
        program.chmod(0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    assert {dict(seen(project, env=env).facts)["python"] for _time in range(3)} == {"3.99.1"}
    assert ran.read_text() == "x\n"
    os.utime(folder / "python", ns=(1, 1))
    seen(project, env=env)
    assert ran.read_text() == "x\nx\n"
    env = {"PATH": f"{project.path / 'bin'}:{os.environ['PATH']}"}
    assert "python" not in dict(seen(project, env=env).facts)
    project.write("pyvenv.cfg", "home = /usr/bin\nversion = 3.98.2\n")
    assert dict(seen(project, env=env).facts)["python"] == "3.98.2"
    assert ran.read_text() == "x\nx\n"


def rows(tmp_path: Path, *states: tuple[str, int, str]) -> str:
    """Write the rows of a session: call, moment, state."""
    lines = [
        json.dumps({"call": digest(call.encode()), "moment": moment, "state": state})
        for call, moment, state in states
    ]
    (tmp_path / failure_state.STATES).write_text("\n".join([*lines, "{torn"]) + "\n")
    return str(tmp_path)


def answer(call: str, moment: int, *, is_ok: bool | None = False) -> Message:
    return Message(0, "tool", "text", moment=moment, tool="Bash", call=call, is_ok=is_ok)


def test_a_state_belongs_to_the_nearest_failure_of_its_call(tmp_path: Path) -> None:
    """To one only, and to none that is far away, worked, was another call, or has no time."""
    folder = rows(tmp_path, ("a", 100, "one"), ("a", 110, "two"), ("b", 100, "three"))
    messages = [
        answer("a", 109),
        answer("a", 101),
        answer("a", 102),
        answer("b", 200),
        answer("b", 0),
        answer("b", 100, is_ok=True),
        answer("c", 100),
        Message(0, "user", "a", moment=100),
    ]
    attached = failure_state.attach_states(folder, messages)
    assert [message.state for message in attached] == ["two", "one", "", "", "", "", "", ""]
    assert failure_state.attach_states(str(tmp_path / "nowhere"), messages) is messages


def claude(project: Sandbox, path: str, *calls: tuple[str, bool, str]) -> str:
    """Write a transcript of Claude Code with commands, whether they worked, and what they said."""
    lines: list[dict[str, Any]] = []
    for number, (command, is_ok, text) in enumerate(calls):
        use = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Bash",
            "input": {"command": command},
        }
        result = {
            "type": "tool_result",
            "tool_use_id": f"t{number}",
            "content": text,
            "is_error": not is_ok,
        }
        for role, block in (("assistant", use), ("user", result)):
            lines.append(
                {
                    "type": role,
                    "uuid": f"{role}-{number}",
                    "sessionId": SESSION,
                    "timestamp": AT,
                    "cwd": str(project.path),
                    "message": {"role": role, "content": [block]},
                }
            )
    return str(project.write(path, "".join(json.dumps(line) + "\n" for line in lines)))


CALLS = (
    ("sh check.sh", False, FAILED),
    ("sed -i s/no/a/ check.sh", True, ""),
    ("pip install ports", True, ""),
    ("sh check.sh", True, "ok"),
)


def trace(project: Sandbox, *, with_hook: bool) -> FailureEnvironment:
    """Let a command fail in a session, capture and promote it; return the environment."""
    event = {
        "session_id": SESSION,
        "cwd": str(project.path),
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "tool_input": {"command": "sh check.sh"},
        "error": FAILED,
    }
    if with_hook:
        done = project.run(
            "hook", "claude", "post-tool-use-failure", stdin=json.dumps(event), MEMTOOL_NOW=AT
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    path = claude(project, "../t.jsonl", *CALLS)
    assert project.run("capture", path, "--end").returncode == 0
    rows = project.json("promote", SESSION, "--list")["findings"]
    error = next(row["id"] for row in rows if row["category"] == "error")
    done = project.run("promote", "--finding", error)
    assert done.returncode == 0, done.stderr
    record = next(
        record for record in project.context().tree().records if record.memory.type == "episodic"
    )
    parts = {part.title: part.text for part in split_sections(record.memory.body)}
    assert parts["Environment"].startswith(f"Seen in session {SESSION}")
    return read_environment(parts["Environment"])


def test_a_failure_is_run_again_as_it_was(project: Sandbox) -> None:
    """From the event of the host, over the session and its finding, to the trace and its run."""
    state = trace(project, with_hook=True)
    assert (state.argv, state.cwd, state.exit, state.diff) == (("sh", "check.sh"), ".", 1, CLEAN)
    assert state.commit == project.git("rev-parse", "HEAD").strip()
    assert len(state.failure) == 16
    project.write("check.sh", "exit 0\n")
    project.commit("two")
    context = project.context()
    (record,) = [record for record in context.tree().records if record.memory.type == "episodic"]
    ran = rerun.run_trace(
        context, rerun.plan(context, record.memory, record.path, None, 20), NOTHING
    )
    assert (ran.verdict, ran.environment["argv"]) == ("fixed", "sh check.sh")


def test_what_only_a_transcript_tells_is_not_guessed(project: Sandbox) -> None:
    """Commit, directory and changes are unknown, and nothing is run from them."""
    state = trace(project, with_hook=False)
    assert (state.argv, state.exit, len(state.failure)) == (("sh", "check.sh"), 1, 16)
    assert (state.commit, state.cwd, state.diff) == ("", "", "")
    (record,) = [
        record for record in project.context().tree().records if record.memory.type == "episodic"
    ]
    (memory,) = verify(project.context(), record.id, run=True).memories
    assert memory.run is not None
    assert (memory.run.verdict, memory.run.detail) == (
        "cannot run",
        "the commit at which it failed is unknown",
    )


@pytest.mark.parametrize(
    "change",
    [
        {"is_interrupt": True},
        {"error": ""},
        {"error": 7},
        {"tool_input": {"file_path": "a"}},
        {"tool_input": "sh check.sh"},
        {"session_id": ""},
        {"cwd": "/"},
    ],
)
def test_an_event_that_is_no_failed_command_leaves_nothing(
    project: Sandbox, change: dict[str, object]
) -> None:
    """Whatever a host sends, the hook says nothing and ends with 0."""
    event = {
        "session_id": SESSION,
        "cwd": str(project.path),
        "tool_input": {"command": "sh check.sh"},
        "error": FAILED,
    }
    done = project.run("hook", "claude", "post-tool-use-failure", stdin=json.dumps(event | change))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(project.path.glob(".git/memtool/sessions/*/states.jsonl"))


@pytest.mark.parametrize("env", [{"MEMTOOL_OFF": "1"}, {}])
def test_who_wants_no_capture_has_no_states(project: Sandbox, env: dict[str, str]) -> None:
    """The state of a worktree is a part of the session."""
    if not env:
        project.run("config", "capture.auto", "false")
    event = {
        "session_id": SESSION,
        "cwd": str(project.path),
        "error": FAILED,
        "tool_input": {"command": "sh check.sh"},
    }
    project.run("hook", "claude", "post-tool-use-failure", stdin=json.dumps(event), **env)
    assert not (project.path / ".git/memtool/sessions").exists()


def test_a_session_notes_no_more_than_it_has_room_for(
    project: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that fails for days fills no disk."""
    monkeypatch.setattr(failure_state, "MAX_STATES", 1_000)
    context = project.context()
    began = time.monotonic()
    for _time in range(6):
        failure_state.note(context, "claude", SESSION, "sh check.sh", FAILED, str(project.path))
    (path,) = project.path.glob(".git/memtool/sessions/*/states.jsonl")
    assert 1_000 < path.stat().st_size < 2_000
    assert time.monotonic() - began < 60
