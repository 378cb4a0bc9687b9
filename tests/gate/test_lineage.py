from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.check import check
from memtool.gate.content import SupersedeIndex
from memtool.index import index
from memtool.memory.lineage import FileRow


def test_a_long_chain_is_walked_without_recursion() -> None:
    """Two thousand memories, each superseding the one before."""
    rows = [
        FileRow(f"d-{n}", (f"d-{n - 1}",) if n else (), (), f"{n}.md", "confirmed")
        for n in range(2000)
    ]
    lineage = SupersedeIndex(rows).build_lineage(["d-1000"])
    assert len(lineage.supersedes) == 2000
    assert lineage.find_heads("d-0") == ("d-1999",)


@pytest.fixture
def begun(sandbox: Sandbox) -> Sandbox:
    for number in range(5):
        sandbox.memory(f"dec-{number}xx", f"All about {number}, and {number * 7} more.\n")
    sandbox.commit()
    return sandbox


def read_problems(sandbox: Sandbox) -> list[tuple[str, str]]:
    return [(p.id, p.code) for p in check(sandbox.context(), staged=True).problems]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_the_lineage_is_that_of_the_staged_tree(begun: Sandbox, is_indexed: bool) -> None:  # noqa: FBT001
    """Commits since the index was built are read from git."""
    if is_indexed:
        assert index.open(begun.context()).index.count
    begun.memory("dec-new", "Queues are drained at night.\n", supersedes=("dec-1xx",))
    begun.git("add", ".")
    assert read_problems(begun) == []
    begun.commit()
    begun.memory("dec-other", "Each table has an owner.\n", supersedes=("dec-1xx",))
    begun.memory("dec-third", "Releases are on Mondays.\n", supersedes=("dec-2xx", "dec-new"))
    begun.git("add", ".")
    assert read_problems(begun) == [("dec-other", "not-a-head"), ("dec-third", "fork")]


def test_two_branches_share_one_index(begun: Sandbox) -> None:
    """Switching between them changes answers, not their truth."""
    begun.git("checkout", "--quiet", "-b", "side")
    begun.memory("dec-side", "Queues are drained at night.\n")
    begun.commit()
    assert index.open(begun.context()).index.count
    begun.memory("dec-new", "Each table has an owner.\n", supersedes=("dec-side",))
    begun.git("add", ".")
    assert read_problems(begun) == []
    begun.git("checkout", "--quiet", "main")
    begun.git("add", ".")
    assert read_problems(begun) == [("dec-new", "dangling")]
