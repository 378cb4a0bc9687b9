from __future__ import annotations

from conftest import Sandbox

from memtool.commands.deprecate import deprecate
from memtool.commands.restore import restore


def test_a_deprecated_memory_can_be_restored(sandbox: Sandbox):
    """Deprecation changes the status and nothing else."""
    path = sandbox.memory("dec-a", status="confirmed")
    before = (sandbox.path / path).read_bytes()
    assert deprecate(sandbox.context(), "dec-a").changes == {"status": ("confirmed", "deprecated")}
    restore(sandbox.context(), "dec-a")
    assert (sandbox.path / path).read_bytes() == before
