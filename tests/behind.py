"""A branch that began before the trusted branch corrected a decision."""

from __future__ import annotations

from collections.abc import Callable

from conftest import Sandbox

OLD_ID, NEW_ID = "dec-old", "dec-new"
OLD = "Hold a seat for 20 minutes while a booking is paid.\n"
NEW = "Hold a seat for 25 minutes while a booking is paid.\n"
ONLY = "on origin/main, not in this branch yet"


def fetch(sandbox: Sandbox, commit: str = "HEAD") -> None:
    """Let the trusted branch be at a commit."""
    sandbox.git("update-ref", "refs/remotes/origin/main", commit)


def on_trusted(sandbox: Sandbox, change: Callable[[Sandbox], object]) -> None:
    """Let the trusted branch get one commit more."""
    sandbox.git("checkout", "--quiet", "--detach", "origin/main")
    change(sandbox)
    fetch(sandbox, sandbox.commit("more"))
    sandbox.git("checkout", "--quiet", "topic")


def fall_behind(sandbox: Sandbox, title: str = "Longer holds", **fields: list[str]) -> None:
    """Correct a decision on the trusted branch, and check out `topic`, which began before."""
    sandbox.memory(OLD_ID, OLD, title="Holds", files=["src/seats.py"])
    sandbox.memory("dec-tea", "Tea is at four.\n", title="Tea")
    sandbox.write("src/seats.py", "HOLD = 20\n")
    sandbox.commit("begin")
    sandbox.git("branch", "topic")
    sandbox.memory(NEW_ID, NEW, title=title, supersedes=[OLD_ID], **fields)
    sandbox.memory("sem-bow", "Seats are numbered from the bow.\n", type="semantic", title="Bow")
    sandbox.commit("correct")
    fetch(sandbox)
    sandbox.git("checkout", "--quiet", "topic")
