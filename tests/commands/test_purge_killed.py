"""A purge that is killed at any point is finished by the next one, and told."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from conftest import Sandbox

KILLED = {
    "before a file goes": "os.unlink",
    "before the commit": "purge.commit_files",
    "before what comes after it": "purge.withdraw",
}


@pytest.mark.parametrize("where", KILLED.values(), ids=KILLED)
def test_the_next_purge_finishes_what_was_cut_off(sandbox: Sandbox, where: str) -> None:
    """Nothing but what was due is gone, whether or not the commit was made."""
    gone = {"at": "2026-01-01T00:00:00Z", "reason": "gone"}
    for id_ in ("dec-a", "dec-b"):
        sandbox.memory(id_, status="deleted", deleted=gone)
    sandbox.memory("dec-here")
    sandbox.memory("sem-sum", type="semantic", derived_from=("dec-a", "dec-b"))
    sandbox.commit()
    code = (
        "import os; from memtool.upkeep import purge; from memtool.cli.main import main;"
        f"{where} = lambda *a, **k: os.kill(os.getpid(), {int(signal.SIGKILL)});"
        "main(['purge', '--apply', '--commit', '--cascade'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=sandbox.path, env=sandbox.env, check=False
    )
    assert done.returncode == -signal.SIGKILL
    again = sandbox.run("purge", "--apply", "--commit", "--cascade")
    assert again.returncode == 0
    assert sandbox.git("status", "--porcelain") == ""
    assert [one["id"] for one in sandbox.json("list", "is:deleted")["memories"]] == []
    assert [one["id"] for one in sandbox.json("list")["memories"]] == ["dec-here"]
    acts = sandbox.json("log", "--audit", "--kind", "purge")["audit"]
    assert "interrupted" in [act["outcome"] for act in acts]
