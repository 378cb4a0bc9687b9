"""A team's repository, a client in it, and what the made-up model was sent."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from conftest import Sandbox
from hosts_live.clients import Client
from hosts_live.model_server import ModelServer, Request

QUESTION = "where do we keep the sessions of a user?"
DECISION = "Sessions of users are kept in Postgres, not in Redis"
OTHER_QUESTION = "when do deploys to production run?"
OTHER = "Deploys to production run on Tuesdays"
WARNING = "Never log card numbers"
PINNED = "Never push with force"
GUIDE = "`memtool remember TEXT`"
CHARGE = "app/billing/charge.py"


def make_team(tmp_path: Path) -> Sandbox:
    """Make a repository with memories, and an environment that holds nothing else."""
    home, path = tmp_path / "home", tmp_path / "repository"
    home.mkdir()
    path.mkdir()
    who = {"NAME": "Ada", "EMAIL": "ada@example.org"}
    env = {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": os.pathsep.join(
            [
                str(Path(sys.executable).parent),
                str(Path(shutil.which("node") or "").parent),
                "/usr/bin",
                "/bin",
            ]
        ),
        **{f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()},
        **{k: v for k, v in os.environ.items() if k == "PYTHONPATH"},  # memtool of a worktree
    }
    made = Sandbox(path, env)
    made.git("init", "--quiet", "--initial-branch=main")
    made.write(CHARGE, "def charge():\n    return 1\n")
    made.write("app/other.py", "x = 1\n")
    made.commit("app: begin")
    for call in (
        ("init", "--commit"),
        ("new", "decision", "Keep sessions in Postgres", "--body", f"{DECISION}.", "--commit"),
        ("new", "decision", "Deploy on Tuesdays", "--body", f"{OTHER}.", "--commit"),
        (
            "new",
            "semantic",
            WARNING,
            "--body",
            f"{WARNING}; the auditors read the logs.",
            "--category",
            "warning",
            "--file",
            "app/billing/*.py",
            "--commit",
        ),
        (
            "new",
            "semantic",
            PINNED,
            "--body",
            f"{PINNED} to main.",
            "--id",
            "sem-no-force",
            "--commit",
        ),
        ("pin", "sem-no-force", "--commit"),
    ):
        run(made, *call)
    # What governs files that changed lately is in the primer; here it has to come with the edit.
    for number in range(30):
        made.write("app/other.py", f"x = {number}\n")
        made.commit("app: go on")
    return made


def run(team: Sandbox, *call: str) -> str:
    done = team.process(*call)
    assert done.returncode == 0, done.stderr
    return done.stdout


def planted(bare: Sandbox, client: Client, model: ModelServer, *options: str) -> Sandbox:
    """Install memtool for a client, and let the client ask the made-up model."""
    client.configure(bare, model.url)
    run(bare, "install", client.name, "--yes", *options)
    return bare


def ask(team: Sandbox, client: Client, model: ModelServer, *prompt: str, **env: str) -> Request:
    """Run the client with a prompt; return the last request that it sent."""
    done = client.ask(team, model.url, *prompt, **env)
    assert done.returncode == 0, done.stderr
    return model.turns[-1]


def memory_of(request: Request) -> list[str]:
    """Return the blocks of memtool in a request."""
    blocks: list[str] = []
    for start, end in (
        (r"<memory-context id=", r"</memory-context>"),
        (r"\[memory ", r"\[end of memory [0-9a-f]+\]"),
        (r"## Memory of this repository", r"## End of memory \([0-9a-f]+\)"),
    ):
        blocks += re.findall(rf"{start}.*?{end}", request.text, re.DOTALL)
    return blocks
