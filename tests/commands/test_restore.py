from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.restore import restore
from memtool.errors import MemtoolError

DELETED = {"at": "2026-02-23T00:00:00Z", "by": "Ada", "reason": "wrong"}


@pytest.mark.parametrize("was", ["confirmed", "pinned", "candidate", "archived"])
def test_a_forgotten_memory_gets_the_status_that_it_had(sandbox: Sandbox, was: str):
    """Forgetting and restoring leaves no trace in the file."""
    path = sandbox.memory("dec-a", status="deleted", deleted=DELETED | {"was": was})
    restore(sandbox.context(), "dec-a")
    text = (sandbox.path / path).read_text()
    assert f"\nstatus: {was}\n" in text
    assert "deleted" not in text


def test_without_a_former_status_it_is_confirmed(sandbox: Sandbox):
    """A deletion that was written by hand can be undone as well."""
    sandbox.memory("dec-a", status="deleted", deleted=DELETED)
    restore(sandbox.context(), "dec-a")
    assert sandbox.context().tree().by_id["dec-a"].memory.status == "confirmed"


def test_a_former_status_that_is_none_is_refused(sandbox: Sandbox):
    """A file that was tampered with is told, and left as it is."""
    path = sandbox.memory("dec-a", status="deleted", deleted=DELETED | {"was": "hero"})
    before = (sandbox.path / path).read_bytes()
    with pytest.raises(MemtoolError, match="'hero' is not one of"):
        restore(sandbox.context(), "dec-a")
    assert (sandbox.path / path).read_bytes() == before


@pytest.mark.parametrize("status", ["archived", "deprecated"])
def test_what_was_put_away_is_confirmed(sandbox: Sandbox, status: str):
    """Restoring undoes archive and deprecate."""
    sandbox.memory("dec-a", status=status)
    assert restore(sandbox.context(), "dec-a").changes == {"status": (status, "confirmed")}


@pytest.mark.parametrize("status", ["candidate", "confirmed", "pinned"])
def test_what_was_never_put_away_is_left_alone(sandbox: Sandbox, status: str):
    """There is nothing to undo."""
    sandbox.memory("dec-a", status=status)
    assert restore(sandbox.context(), "dec-a").changes == {}
