"""The page for contributors is done step by step in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(python|diff|sh|console)\n(.*?)```", re.DOTALL)
PATH = re.compile(r"`((?:memtool|tests)/[\w/]+\.\w+)`")
COPIED = ("memtool", "templates", "tests", "docs")


def section(title: str) -> str:
    """The text of a section of the page."""
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def edit(path: Path, block: str) -> None:
    """Change the one place of a file that a diff without line numbers shows."""
    lines = block.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{path.name} does not hold once:\n{before}"
    path.write_text(text.replace(before, after), encoding="utf-8")


def run(command: str, copy: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in the copy, with its package and without the settings of a user."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "MEMTOOL_", "PYTEST"))}
    env |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "HOME": str(copy.parent),
        "MEMTOOL_NOW": "2026-03-01T09:00:00Z",
        "MEMTOOL_SEED": "tour",
        "PATH": f"{copy.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        ["sh", "-c", command], cwd=copy, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project without its history and memories."""
    place = tmp_path / "project"
    for name in COPIED:
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    script = tmp_path / "memtool"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m memtool "$@"\n')
    script.chmod(0o755)
    assert run("git init -q && memtool init", place).returncode == 0
    return place


@pytest.mark.slow
@pytest.mark.parametrize("title", ["Add a check", "Add a detector"])
def test_the_page_is_done_block_by_block(copy: Path, title: str) -> None:
    """Who copies what the page shows has a feature that works, with tests that pass."""
    text = section(title)
    blocks = list(BLOCK.finditer(text))
    assert {block[1] for block in blocks} == {"python", "diff", "sh", "console"}
    for block in blocks:
        kind, content = block[1], block[2]
        if kind in ("python", "diff"):
            path = copy / PATH.findall(text, 0, block.start())[-1]
        if kind == "python":
            path.write_text(content, encoding="utf-8")
        elif kind == "diff":
            edit(path, content)
        elif kind == "sh":
            for command in content.splitlines():
                if command.startswith("ruff") and shutil.which("ruff") is None:
                    continue  # the tests alone are installed without it
                done = run(command, copy)
                assert done.returncode == 0, done.stdout + done.stderr
        else:
            command, _, expected = content.removeprefix("$ ").partition("\n")
            done = run(command, copy)
            assert done.stdout + done.stderr == expected
