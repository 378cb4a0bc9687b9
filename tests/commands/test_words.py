"""The texts of verbs for one item, and for none."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.value import format_count


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 memories"), (1, "1 memory"), (2_000, "2,000 memories")]
)
def test_a_number_agrees_with_its_noun(count: int, text: str):
    """One is singular; thousands are parted."""
    assert format_count(count, "memory", "memories") == text


def test_one_memory_is_no_memories(sandbox: Sandbox):
    """Reports of a store of one memory count it as one."""
    sandbox.memory("dec-one", "It is so.\n", source=("file:one.py",))
    sandbox.write("one.py", "It is so.\n")
    sandbox.commit()
    for verb in ("status", "verify", "stats", "doctor"):
        done = sandbox.run(verb)
        assert "1 memories" not in done.stdout + done.stderr
    assert sandbox.run("drift").stdout.splitlines() == [
        "1 memory names code: none has changed",
        "1 of them names only the file that it comes from.",
    ]


def test_a_list_without_hits_says_so(sandbox: Sandbox):
    """A sentence on the error stream, and no failure."""
    sandbox.memory("dec-one")
    sandbox.commit()
    done = sandbox.run("list", "type:episodic")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == 'memtool: no memory matches "type:episodic"\n'
