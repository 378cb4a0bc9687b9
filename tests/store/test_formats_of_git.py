"""The life of a memory in repositories of every format that git makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Sandbox

FORMATS = ("files sha256", "reftable sha1", "reftable sha256")
SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.fixture(params=FORMATS)
def shop(request: pytest.FixtureRequest, tmp_path: Path, environment: dict[str, str]) -> Sandbox:
    """A repository of a format, if git supports it, and `memtool` on the path of its hooks."""
    refs, objects = request.param.split()
    path = tmp_path / "project"
    words = ["git", "init", "-q", "-b", "main", f"--object-format={objects}"]
    if refs != "files":
        words.append(f"--ref-format={refs}")
    made = subprocess.run([*words, path], env=environment, capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"this git makes no repository of {request.param}")
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "memtool").write_text(f'#!/bin/sh\nexec {sys.executable} -m memtool "$@"\n')
    (commands / "memtool").chmod(0o755)
    environment["PATH"] = f"{commands}:{environment['PATH']}"
    return Sandbox(path, environment)


def say(shop: Sandbox, *words: str) -> str:
    """Run a verb that succeeds without a note, and return what it prints."""
    done = shop.run(*words)
    assert (done.returncode, "memtool: " in done.stderr) == (0, False), done
    return done.stdout


def test_a_memory_lives_in_a_repository_of_any_format(shop: Sandbox) -> None:
    """It is written, checked, committed, corrected, found, explained and merged."""
    shop.write("src/pay.py", "PAID = True\n")
    say(shop, "init", "--commit")
    shop.run("install", "git")
    shop.commit("begin")
    written = say(
        shop,
        "new",
        "decision",
        "Queue jobs in Celery",
        "--file",
        "src/**",
        "--commit",
        "--body",
        "Jobs go to Celery.",
        "--section",
        "Rationale=It is here.",
    )
    old = Path(written.strip()).stem
    say(shop, "check")

    leak = say(shop, "new", "semantic", "The job runner", "--body", "It has a token.").strip()
    shop.write(leak, (shop.path / leak).read_text().replace("a token", f"the token {SECRET}"))
    shop.git("add", leak)
    refused = subprocess.run(
        ["git", "commit", "-qm", "leak"],
        cwd=shop.path,
        env=shop.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (refused.returncode, SECRET in refused.stderr) == (1, False)
    shop.git("rm", "-qf", leak)

    newer = say(
        shop,
        "supersede",
        old,
        "Queue jobs in Postgres",
        "--body",
        "Jobs are rows.",
        "--section",
        "Rationale=One service less.",
        "--commit",
    )
    new = Path(newer.strip()).stem
    short = f"dec-{new[-4:]}"
    head = shop.git("rev-parse", "HEAD").strip()
    assert f"[{short}@{head[:7]}]" in say(shop, "search", "where do jobs queue")
    block = say(shop, "inject", "--prompt", "where do jobs queue?", "--files", "src/pay.py")
    assert f"[{short}@{head[:7]}" in block
    assert "Celery" not in block
    assert head[:7] in say(shop, "blame", new)
    assert f"supersedes dec-{old[-4:]}  Queue jobs in Celery" in say(shop, "why", new)

    shop.git("switch", "-qc", "side")
    say(shop, "remember", "Deploys run on Tuesdays only.", "--category", "pattern", "--commit")
    say(shop, "confirm", new, "--commit")
    shop.git("switch", "-q", "main")
    say(shop, "remember", "Invoices are numbered per country.", "--category", "pattern", "--commit")
    say(shop, "pin", new, "--commit")
    shop.git("merge", "-q", "-m", "both", "side")
    assert len(shop.json("list")["memories"]) == 3
    (merged,) = (shop.path / ".memory").rglob(f"{new}.md")
    lines = merged.read_text().splitlines()
    assert {"checked:", "status: pinned"} <= set(lines), lines
    say(shop, "check")
