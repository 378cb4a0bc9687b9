from __future__ import annotations

from conftest import Sandbox

from memtool.commands.archive import archive
from memtool.memory import lifecycle


def test_an_archived_memory_stays_where_it_is_but_is_not_alive(sandbox: Sandbox):
    """Archiving is a status: the file is neither moved nor deleted."""
    path = sandbox.memory("dec-a")
    assert archive(sandbox.context(), "dec-a").path == path
    ws = sandbox.context()
    assert lifecycle.state(ws.tree().by_id["dec-a"].memory, ws.now) == lifecycle.ARCHIVED
