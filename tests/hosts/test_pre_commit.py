"""The hook inside the real pre-commit framework, offline: a local repository of hooks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import Sandbox, make_memory

from memtool.memory import document

ROOT = Path(__file__).parents[2]
KEY = "AK" + "IA" + "QWERTYUIOPASDFGH"
PATH = ".memory/decision/2026-02/dec-new.md"


def offered() -> dict[str, dict[str, object]]:
    """Return the hooks that `.pre-commit-hooks.yaml` offers, by id."""
    rows = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    return {row["id"]: row for row in rows}


@pytest.fixture
def framed(sandbox: Sandbox) -> Sandbox:
    """A repository whose framework runs the offered hook, from this environment."""
    row = dict(offered()["memtool-check"])
    row.pop("minimum_pre_commit_version")
    row |= {"language": "system", "entry": f"{sys.executable} -m {row['entry']}"}
    config = {"repos": [{"repo": "local", "hooks": [row]}]}
    sandbox.write(".pre-commit-config.yaml", yaml.safe_dump(config))
    sandbox.memory("dec-old", "It was so before, for reasons of the time.\n")
    sandbox.write("notes.txt", "noted\n")
    sandbox.commit("begin")
    done = pre_commit(sandbox, "install", "-t", "pre-commit", "-t", "pre-merge-commit")
    assert done.returncode == 0, done.stderr
    return sandbox


def pre_commit(sandbox: Sandbox, *words: str) -> subprocess.CompletedProcess[str]:
    return run(sandbox, sys.executable, "-m", "pre_commit", *words)


def run(sandbox: Sandbox, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=sandbox.path, env=sandbox.env, capture_output=True, text=True, check=False
    )


def test_the_offered_hook_always_runs_and_asks_git() -> None:
    """With `files:` it would be skipped by a commit that only deletes."""
    row = offered()["memtool-check"]
    assert (row["always_run"], row["pass_filenames"]) == (True, False)
    assert (row["language"], row["entry"]) == ("python", "memtool check --staged")
    assert "pre-merge-commit" in row["stages"]  # type: ignore[operator]


def test_our_own_configuration_names_hooks_that_are_here() -> None:
    """This repository uses its own gate."""
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = {row["id"]: row["entry"] for row in repo["hooks"]}
    assert repo["repo"] == "local"
    assert hooks["memtool-check"] == "memtool check --staged"
    assert {"ruff-format", "ruff-check", "mypy"} <= set(hooks)


def test_a_secret_is_refused_and_unstaged_work_stays(framed: Sandbox) -> None:
    """The framework sets unstaged changes aside and brings them back."""
    framed.write(PATH, document.write(make_memory("dec-new", f"The key is {KEY}.\n")))
    framed.git("add", PATH)
    framed.write("notes.txt", "not staged\n")
    index = framed.git("ls-files", "--stage")
    done = run(framed, "git", "commit", "-m", "m")
    assert (done.returncode, "secret it holds" in done.stdout + done.stderr) == (1, True)
    assert KEY not in done.stdout + done.stderr
    assert framed.git("ls-files", "--stage") == index
    assert (framed.path / "notes.txt").read_text() == "not staged\n"


def test_a_good_memory_is_committed(framed: Sandbox) -> None:
    """Also where the worktree already holds something worse."""
    data = document.write(make_memory("dec-new", "We keep it in Redis.\n"))
    framed.write(PATH, data)
    framed.git("add", PATH)
    framed.write(PATH, document.write(make_memory("dec-new", f"The key is {KEY}.\n")))
    done = run(framed, "git", "commit", "-m", "m")
    assert done.returncode == 0, done.stdout + done.stderr
    assert framed.git("show", f"HEAD:{PATH}").encode() == data
    assert KEY in (framed.path / PATH).read_text()


def test_a_deletion_alone_is_refused(framed: Sandbox) -> None:
    """The trap of hooks that are given file names."""
    framed.git("rm", "--quiet", ".memory/decision/2026-02/dec-old.md")
    done = run(framed, "git", "commit", "-m", "m")
    assert (done.returncode, "removed" in done.stdout + done.stderr) == (1, True)


def test_run_on_all_files(framed: Sandbox) -> None:
    """With nothing staged there is nothing to refuse; with a secret staged there is."""
    done = pre_commit(framed, "run", "--all-files")
    assert done.returncode == 0, done.stdout + done.stderr
    framed.write(PATH, document.write(make_memory("dec-new", f"The key is {KEY}.\n")))
    framed.git("add", PATH)
    assert pre_commit(framed, "run", "--all-files").returncode == 1
