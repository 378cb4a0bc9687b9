"""Foreign trees: what another tool made is recognised, and left alone."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.errors import MemtoolError
from memtool.store import repository


@pytest.mark.parametrize("mark", repository.MARKS, ids=lambda mark: mark[0])
def test_trees_of_other_tools_are_known_by_a_file(sandbox: Sandbox, mark: tuple[str, str]) -> None:
    """Each mark names its tool, and the refusal says so."""
    name, tool = mark
    sandbox.write(f".memory/{name}", "")
    assert repository.owner(str(sandbox.path), ".memory") == tool
    with pytest.raises(MemtoolError, match=rf"^\.memory belongs to {tool}, ") as caught:
        repository.refuse(str(sandbox.path), ".memory")
    assert caught.value.code == "foreign-tree"


@pytest.mark.parametrize(
    "names",
    [
        [], [".gitkeep"], [".gitattributes", "README.md", "_decision.md"],
        ["decision/2026-02/dec-a.md"], ["aliases.toml"], ["config.toml", "MEMORY.md"],
        [".tmp-1-ab-x.md"], [".DS_Store"],
    ],
    ids=lambda names: ",".join(names) or "empty",
)  # fmt: skip
def test_our_trees_are_ours(sandbox: Sandbox, names: list[str]) -> None:
    """An empty directory, our own files, and files that show nothing belong to memtool."""
    for name in names:
        sandbox.write(f".memory/{name}", "")
    assert repository.owner(str(sandbox.path), ".memory") is None
    repository.refuse(str(sandbox.path), ".memory")


def test_unknown_files_belong_to_another_tool(sandbox: Sandbox) -> None:
    """Where nothing is ours, memtool does not move in."""
    sandbox.write(".memory/notes.md", "")
    assert repository.owner(str(sandbox.path), ".memory") == "another tool"


def test_a_directory_that_is_absent_belongs_to_nobody(sandbox: Sandbox) -> None:
    """Neither an absent directory nor a file in its place shows an owner."""
    sandbox.write("file", "")
    assert (
        repository.owner(str(sandbox.path), "absent")
        is repository.owner(str(sandbox.path), "file")
        is None
    )


def test_verbs_do_not_write_into_foreign_trees(sandbox: Sandbox) -> None:
    """`new` refuses, and the directory keeps what it held."""
    sandbox.write(".memory/MEMORY.md", "theirs")
    done = sandbox.run("new", "semantic", "A fact", "--body", "It is so.")
    assert (done.returncode, done.stdout) == (2, "")
    assert "belongs to a MEMORY.md tool" in done.stderr
    assert [path.name for path in (sandbox.path / ".memory").iterdir()] == ["MEMORY.md"]
