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

from tests.hosts_live.model_server import Call, ModelServer

pytestmark = pytest.mark.live

PACKAGE = "@anthropic-ai/claude-code"
CLIENTS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memtool-live-clients"
CLIENT_S = 120
CAPTURE_S = 20
QUESTION = "where do we keep the sessions of a user?"
DECISION = "Sessions of users are kept in Postgres, not in Redis"
WARNING = "Never log card numbers"
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


class Team:
    """A repository with a decision and a warning, and a home of its own."""

    def __init__(self, base: Path) -> None:
        self.path = base / "repository"
        home = base / "home"
        home.mkdir(parents=True)
        self.path.mkdir()
        programs = {Path(sys.executable).parent, Path(shutil.which("node") or "").parent}
        who = {"NAME": "Ada", "EMAIL": "ada@example.org"}
        self.env = {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join([*map(str, sorted(programs)), "/usr/bin", "/bin"]),
            **{f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()},
            **OFFLINE,
        }
        self.run("git", "init", "--quiet", "--initial-branch=main")
        self.charge = self.path / "app" / "billing" / "charge.py"
        self.charge.parent.mkdir(parents=True)
        self.charge.write_text("def charge():\n    return 1\n")
        self.run("git", "add", "--all")
        self.run("git", "commit", "--quiet", "--message=app: begin")
        self.run("memtool", "init", "--commit")
        self.run("memtool", "new", "decision", "Keep sessions in Postgres", "--body",
                 f"{DECISION}: one store to back up.", "--commit")  # fmt: skip
        self.run("memtool", "new", "semantic", WARNING, "--category", "warning", "--body",
                 f"{WARNING}; the auditors read the logs.", "--file", "app/billing/*.py",
                 "--commit")  # fmt: skip
        self.run("memtool", "install", "claude", "--yes")

    def run(self, *args: str) -> str:
        call = subprocess.run(
            args, cwd=self.path, env=self.env, check=False, capture_output=True, text=True,
            timeout=CLIENT_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert call.returncode == 0, call.stderr
        return call.stdout


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def test_a_session_is_given_each_memory_once_and_is_captured(
    program: str, model: ModelServer, tmp_path: Path
) -> None:
    team = Team(tmp_path)
    team.env["ANTHROPIC_BASE_URL"] = model.url
    model.play(
        Call("Read", {"file_path": str(team.charge)}),
        Call("Edit", {"file_path": str(team.charge), "old_string": "return 1",
                      "new_string": "return 2"}),
        "The charge is two.",
    )  # fmt: skip
    answer = team.run(program, "-p", "--dangerously-skip-permissions", QUESTION)
    assert answer.strip() == "The charge is two."
    assert team.charge.read_text().endswith("return 2\n")
    first, *_others, last = model.turns
    assert first.text.count(DECISION) == 1
    assert last.text.count(DECISION) == 1
    assert last.text.count(f"| {WARNING}") == 1
    assert QUESTION in captured(team)


def captured(team: Team) -> str:
    """Return the list of sessions once there is one: the hook captures in the background."""
    listed = ""
    for _try in range(CAPTURE_S * 10):
        listed = team.run("memtool", "session", "list")
        if "no sessions" not in listed:
            break
        time.sleep(0.1)
    return listed
