from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.confirm import confirm
from memtool.memory import lifecycle


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("candidate", "confirmed"),
        ("confirmed", "confirmed"),
        ("pinned", "pinned"),
        ("deprecated", "confirmed"),
        ("archived", "confirmed"),
    ],
)
def test_a_confirmed_memory_lives(sandbox: Sandbox, before: str, after: str):
    """Whoever vouches for a memory brings it back to life; a pinned one stays pinned."""
    sandbox.memory("dec-a", status=before)
    confirm(sandbox.context(), "dec-a")
    assert sandbox.context().tree().by_id["dec-a"].memory.status == after


def test_moment_person_and_commit_of_the_look_are_recorded(sandbox: Sandbox):
    """Drift is measured from the commit at which somebody looked."""
    sandbox.memory("dec-a")
    head = sandbox.commit()
    confirm(sandbox.context(), "dec-a")
    assert sandbox.context().tree().by_id["dec-a"].memory.table("checked") == {
        "at": "2026-03-01T12:00:00Z",
        "by": "Ada",
        "commit": head,
    }


def test_before_the_first_commit_there_is_none_to_record(sandbox: Sandbox):
    """A new repository has no commit to name."""
    sandbox.memory("dec-a")
    confirm(sandbox.context(), "dec-a")
    assert "commit" not in sandbox.context().tree().by_id["dec-a"].memory.table("checked")


def test_the_time_to_live_counts_from_the_confirmation(sandbox: Sandbox):
    """What had expired is alive again."""
    sandbox.memory("dec-a")
    ws = sandbox.context(MEMTOOL_NOW="2027-01-01T00:00:00Z")
    assert lifecycle.state(ws.tree().by_id["dec-a"].memory, ws.now) == lifecycle.EXPIRED
    confirm(ws, "dec-a")
    assert lifecycle.state(ws.tree().by_id["dec-a"].memory, ws.now) == lifecycle.ALIVE
