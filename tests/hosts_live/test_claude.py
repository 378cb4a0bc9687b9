"""A real Claude Code, headless, against a made-up model: what reaches the model is what counts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Sandbox
from hosts_live.model_server import Call, ModelServer

pytestmark = pytest.mark.live

PACKAGE = "@anthropic-ai/claude-code"
CLIENTS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memtool-live-clients"
CLIENT_S = 120
CAPTURE_S = 20
QUESTION = "where do we keep the sessions of a user?"
DECISION = "Sessions of users are kept in Postgres, not in Redis"
WARNING = "Never log card numbers"
CHARGE = "app/billing/charge.py"
OFFLINE = {
    "ANTHROPIC_API_KEY": "made-up",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "IS_SANDBOX": "1",
}


@pytest.fixture(scope="module")
def program() -> str:
    """Return the client, which npm brings into a cache directory once."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("Claude Code comes from npm, which is not here")
    found = CLIENTS / "node_modules" / ".bin" / "claude"
    if not found.exists():
        CLIENTS.mkdir(parents=True, exist_ok=True)
        (CLIENTS / "package.json").write_text("{}")
        call = [npm, "install", "--no-audit", "--no-fund", PACKAGE]
        done = subprocess.run(call, cwd=CLIENTS, check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip("npm could not bring Claude Code")
    return str(found)


@pytest.fixture
def team(tmp_path: Path) -> Sandbox:
    """A repository with a decision and a warning, and an environment that holds nothing else."""
    home, path = tmp_path / "home", tmp_path / "repository"
    home.mkdir()
    path.mkdir()
    programs = {Path(sys.executable).parent, Path(shutil.which("node") or "").parent}
    who = {"NAME": "Ada", "EMAIL": "ada@example.org"}
    env = {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": os.pathsep.join([*map(str, sorted(programs)), "/usr/bin", "/bin"]),
        **{f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()},
        **OFFLINE,
    }
    made = Sandbox(path, env)
    made.git("init", "--quiet", "--initial-branch=main")
    made.write(CHARGE, "def charge():\n    return 1\n")
    made.commit("app: begin")
    decision = ("--body", f"{DECISION}: one store to back up.")
    warning = ("--body", f"{WARNING}; the auditors read the logs.", "--category", "warning")
    for call in (
        ("init", "--commit"),
        ("new", "decision", "Keep sessions in Postgres", *decision, "--commit"),
        ("new", "semantic", WARNING, *warning, "--file", "app/billing/*.py", "--commit"),
        ("install", "claude", "--yes"),
    ):
        done = made.process(*call)
        assert done.returncode == 0, done.stderr
    return made


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def test_a_session_is_given_each_memory_once_and_is_captured(
    program: str, model: ModelServer, team: Sandbox
) -> None:
    charge = team.path / CHARGE
    model.play(
        Call("Read", {"file_path": str(charge)}),
        Call("Edit", {"file_path": str(charge), "old_string": "return 1",
                      "new_string": "return 2"}),
        "The charge is two.",
    )  # fmt: skip
    done = subprocess.run(
        [program, "-p", "--dangerously-skip-permissions", QUESTION],
        cwd=team.path, env=team.env | {"ANTHROPIC_BASE_URL": model.url}, check=False,
        capture_output=True, text=True, timeout=CLIENT_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "The charge is two."
    assert charge.read_text().endswith("return 2\n")
    first, *_others, last = model.turns
    assert first.text.count(DECISION) == 1
    assert last.text.count(DECISION) == 1
    assert last.text.count(f"| {WARNING}") == 1
    assert QUESTION in captured(team)


def captured(team: Sandbox) -> str:
    """Return the list of sessions once there is one: the hook captures in the background."""
    listed = ""
    for _try in range(CAPTURE_S * 10):
        listed = team.process("session", "list").stdout
        if "no sessions" not in listed:
            break
        time.sleep(0.1)
    return listed
