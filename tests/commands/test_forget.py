"""Forgetting: soft, with a reason, and never more than was meant."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.archive import restore
from memtool.commands.forget import forget
from memtool.errors import MemtoolError
from memtool.store import files


def test_what_is_forgotten_keeps_its_file_and_comes_back(sandbox: Sandbox) -> None:
    """The reason, the person and the former status are kept, and restore brings it back."""
    path = sandbox.memory("dec-a", status="pinned")
    sandbox.commit()
    before = (sandbox.path / path).read_bytes()
    forget(sandbox.context(), "dec-a", why="it was a guess")
    memory = sandbox.context().tree().find("dec-a").memory
    assert memory.status == "deleted"
    assert memory.table("deleted")["reason"] == "it was a guess"
    assert sandbox.json("list")["total"] == 0
    restore(sandbox.context(), "dec-a")
    assert (sandbox.path / path).read_bytes() == before


def test_a_reason_is_required(sandbox: Sandbox) -> None:
    """Nothing is forgotten without saying why."""
    sandbox.memory("dec-a")
    with pytest.raises(MemtoolError, match="needs a reason"):
        forget(sandbox.context(), "dec-a")


def test_a_query_forgets_one_memory_and_refuses_to_guess_among_several(sandbox: Sandbox) -> None:
    """One hit is meant; of several, only --all takes them together."""
    sandbox.memory("dec-a", "The printer is blue.\n", tags=("printer",))
    sandbox.memory("dec-b", "The scanner is green.\n", tags=("scanner",))
    sandbox.memory("dec-c", "Another scanner is red.\n", tags=("scanner",))
    ws = sandbox.context()
    assert [one.id for one in forget(ws, "tag:printer", why="gone").forgotten] == ["dec-a"]
    with pytest.raises(MemtoolError, match="2 memories answer") as caught:
        forget(sandbox.context(), "tag:scanner", why="gone")
    assert "--all" in caught.value.hint
    both = forget(sandbox.context(), "tag:scanner", why="gone", all=True)
    assert sorted(one.id for one in both.forgotten) == ["dec-b", "dec-c"]


def test_several_are_forgotten_in_one_commit_or_not_at_all(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the disk refuses the second one, the first is as it was; then one commit has both."""
    for name in ("dec-b", "dec-c"):
        sandbox.memory(name, f"The scanner {name} is green.\n", tags=("scanner",))
    sandbox.commit()
    real = files.replace

    def full(root: str, path: str, data: bytes, *, expected: bytes | None) -> None:
        if "dec-c" in path:
            raise MemtoolError("no space; nothing was changed", code="disk")
        real(root, path, data, expected=expected)

    with monkeypatch.context() as patch:
        patch.setattr(files, "replace", full)
        with pytest.raises(MemtoolError, match=r"^no space; nothing was changed$"):
            forget(sandbox.context(), "tag:scanner", why="gone", all=True, commit=True)
    assert sandbox.git("status", "--porcelain") == ""
    done = forget(sandbox.context(), "tag:scanner", why="gone", all=True, commit=True).forgotten
    head = sandbox.git("rev-parse", "HEAD").strip()
    assert [(one.id, one.commit) for one in done] == [("dec-b", head), ("dec-c", head)]
    assert "Memory-Id: dec-b, dec-c\nReason: gone\n" in sandbox.git("log", "-1", "--format=%B")
    assert sandbox.git("status", "--porcelain") == ""


@pytest.mark.parametrize("wanted", ["", "dec-zzz", "nothing answers this", "tag:none"])
def test_what_names_nothing_is_told(sandbox: Sandbox, wanted: str) -> None:
    """An empty name, an unknown id and a query without a hit change nothing."""
    sandbox.memory("dec-a")
    before = sandbox.git("status", "--porcelain", "-uall")
    with pytest.raises(MemtoolError):
        forget(sandbox.context(), *wanted.split(), why="gone")
    assert sandbox.git("status", "--porcelain", "-uall") == before


def test_forgetting_twice_changes_nothing(sandbox: Sandbox) -> None:
    """The first reason stands."""
    path = sandbox.memory("dec-a")
    forget(sandbox.context(), "dec-a", why="first")
    before = (sandbox.path / path).read_bytes()
    done = forget(sandbox.context(), "dec-a", why="second")
    assert [one.changes for one in done.forgotten] == [{}]
    assert (sandbox.path / path).read_bytes() == before
