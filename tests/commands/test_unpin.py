from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.pin import pin
from memtool.commands.unpin import unpin
from memtool.errors import MemtoolError


def test_unpin_undoes_pin(sandbox: Sandbox):
    """A memory that was pinned and unpinned is confirmed."""
    sandbox.memory("dec-a", status="confirmed")
    pin(sandbox.context(), "dec-a")
    assert unpin(sandbox.context(), "dec-a").changes == {"status": ("pinned", "confirmed")}


@pytest.mark.parametrize("status", ["candidate", "deprecated", "archived"])
def test_what_was_never_pinned_is_not_confirmed_by_the_way(sandbox: Sandbox, status: str):
    """Unpinning does not bring back what was put away, nor vouch for a candidate."""
    sandbox.memory("dec-a", status=status)
    with pytest.raises(MemtoolError) as caught:
        unpin(sandbox.context(), "dec-a")
    assert (caught.value.code, caught.value.message) == (
        "not-pinned", f"dec-a is {status}, not pinned",
    )  # fmt: skip
