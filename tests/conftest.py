"""Real repositories for tests: an empty global configuration, a fixed author and fixed dates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memtool.commands import listing
from memtool.memory import document
from memtool.memory.memory import FieldValue, Memory
from memtool.search.expansion import DEFAULTS
from memtool.search.retrieve import Scope
from memtool.store.git import LOCATION_VARIABLES
from memtool.workspace import Workspace

HOST_VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME")
"""Where agent hosts keep the user's own settings, which no test may touch."""
NOW = "2026-03-01T12:00:00Z"
"""What every test takes for now, unless it sets another clock."""


class Sandbox:
    """A git repository in a temporary directory, with commands to fill it and to run memtool."""

    def __init__(self, path: Path, env: dict[str, str]) -> None:
        self.path = path
        self.env = env
        self.tick = 0

    def git(self, *args: str, check: bool = True) -> str:
        """Run git here and return its stdout; every commit is one hour after the one before."""
        self.tick += 1
        date = f"2026-02-{1 + self.tick // 24:02}T{self.tick % 24:02}:00:00Z"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(
            ["git", *args],
            cwd=self.path,
            env=self.env | dates,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"git {args}: {done.stderr}")
        return done.stdout

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file, with its directories."""
        place = self.path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        return place

    def memory(self, id: str, body: str = "It is so.\n", **fields: FieldValue) -> str:
        """Write a valid memory file and return its path; keys are given as fields."""
        memory = make_memory(id, body, **fields)
        path = f".memory/{memory.type}/2026-02/{id}.md"
        self.write(path, document.write(memory))
        return path

    def commit(self, message: str = "change", *paths: str) -> str:
        """Commit everything (or some paths) and return the commit's id."""
        self.git("add", "--all", "--", *(paths or (".",)))
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD").strip()

    def run(
        self, *args: str, stdin: str | bytes = "", cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `memtool` as a process of its own and return what it printed."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [sys.executable, "-m", "memtool", *args],
            cwd=cwd or self.path,
            env=self.env | env,
            input=data,
            capture_output=True,
            check=False,
        )
        return subprocess.CompletedProcess(
            args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def json(self, *args: str, **env: str) -> Any:
        """Run a verb with --json, expect success, and return what it answered."""
        done = self.run(*args, "--json", **env)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    def workspace(self, **env: str) -> Workspace:
        """Open the repository in this process."""
        return Workspace.at(str(self.path), self.env | env)

    def scope(self, **changes: Any) -> Scope:
        """Return what a search of the worktree needs to know, with the usual aliases."""
        ws = self.workspace()
        found = listing.scope(ws, ws.catalog(), ws.now)
        return found.replace(**{"aliases": DEFAULTS, "accesses": None, **changes})


def make_memory(id: str = "dec-a", body: str = "It is so.\n", **fields: FieldValue) -> Memory:
    """Return a valid memory; fields override the defaults."""
    base: dict[str, FieldValue] = {
        "id": id,
        "timestamp": "2026-02-22T19:33:00Z",
        "type": "decision",
        "title": f"Title of {id}",
        "confidence": "medium",
        "source": ("human:Ada",),
    }
    return Memory(fields=base | fields, body=body)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of every process: nobody's settings, one author, one clock."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {k: v for k, v in os.environ.items() if k not in LOCATION_VARIABLES}
    for name in ("PYTHONDONTWRITEBYTECODE", *HOST_VARIABLES):
        kept.pop(name, None)
    return kept | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "MEMTOOL_NOW": NOW,
        "MEMTOOL_SEED": "test",
    }


@pytest.fixture
def sandbox(tmp_path: Path, environment: dict[str, str]) -> Sandbox:
    """A repository on branch main with an empty memory directory and no commit yet."""
    path = tmp_path / "project"
    path.mkdir()
    made = Sandbox(path, environment)
    made.git("init", "--quiet", "--initial-branch=main")
    (path / ".memory").mkdir()
    return made
