from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.pin import pin
from memtool.errors import MemtoolError


@pytest.mark.parametrize("status", ["candidate", "confirmed", "deprecated", "archived"])
def test_any_living_memory_can_be_pinned(sandbox: Sandbox, status: str):
    """Pinning says more than confirming, and less than nothing is lost."""
    path = sandbox.memory("dec-a", status=status)
    changed = pin(sandbox.context(), "dec-a")
    assert changed.changes == {"status": (status, "pinned")}
    assert "\nstatus: pinned\n" in (sandbox.path / path).read_text()


def test_json_says_what_changed(sandbox: Sandbox):
    """Programs see each key with its old and its new value."""
    sandbox.memory("dec-a")
    answer = sandbox.json("pin", "dec-a")
    assert answer["changes"] == {"status": ["", "pinned"]}
    assert (answer["id"], answer["commit"]) == ("dec-a", None)


def test_a_superseded_memory_is_not_pinned(sandbox: Sandbox):
    """It would never be injected; the hint pins the head."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", supersedes=("dec-a",))
    with pytest.raises(MemtoolError) as caught:
        pin(sandbox.context(), "dec-a")
    assert caught.value.hint == "memtool pin dec-b"
