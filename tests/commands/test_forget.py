"""Forgetting: soft, with a reason, and never more than was meant."""

from __future__ import annotations

from typing import Any

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
    forget(sandbox.context(), "dec-a", reason="it was a guess")
    memory = sandbox.context().tree().find("dec-a").memory
    assert memory.status == "deleted"
    assert memory.table("deleted")["reason"] == "it was a guess"
    assert sandbox.json("list")["total"] == 0
    restore(sandbox.context(), "dec-a")
    assert (sandbox.path / path).read_bytes() == before


def test_a_reason_is_required(sandbox: Sandbox) -> None:
    """Nothing is forgotten without saying why."""
    sandbox.memory("dec-a")
    with pytest.raises(MemtoolError, match="the reason is missing"):
        forget(sandbox.context(), "dec-a")


def test_a_filter_forgets_all_that_it_finds_and_words_never_guess(sandbox: Sandbox) -> None:
    """A query is explicit; words that name more than one memory are refused with their titles."""
    sandbox.memory("dec-b", "The scanner is green.\n", tags=("scanner",))
    sandbox.memory("dec-c", "Another scanner is red.\n", tags=("scanner",))
    with pytest.raises(MemtoolError, match=r"matches 2 (active )?memories:\n  dec-b  Title"):
        forget(sandbox.context(), "dec", reason="gone")
    both = forget(sandbox.context(), "tag:scanner", reason="gone")
    assert [memory.id for memory in both.forgotten] == ["dec-b", "dec-c"]


def test_several_are_forgotten_in_one_commit_or_not_at_all(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the disk refuses the second one, the first is as it was; then one commit has both."""
    for name in ("dec-b", "dec-c"):
        sandbox.memory(name, f"The scanner {name} is green.\n", tags=("scanner",))
    sandbox.commit()
    real = files.replace

    def full(root: str, path: str, data: bytes, **options: Any) -> None:
        if "dec-c" in path:
            raise MemtoolError("no space; nothing was changed", code="disk")
        real(root, path, data, **options)

    with monkeypatch.context() as patch:
        patch.setattr(files, "replace", full)
        with pytest.raises(MemtoolError, match=r"^no space; nothing was changed$"):
            forget(sandbox.context(), "tag:scanner", reason="gone", commit=True)
    assert sandbox.git("status", "--porcelain") == ""
    done = forget(sandbox.context(), "tag:scanner", reason="gone", commit=True).forgotten
    head = sandbox.git("rev-parse", "HEAD").strip()
    assert [(memory.id, memory.commit) for memory in done] == [("dec-b", head), ("dec-c", head)]
    assert "Memory-Id: dec-b, dec-c\nReason: gone\n" in sandbox.git("log", "-1", "--format=%B")
    assert sandbox.git("status", "--porcelain") == ""


@pytest.mark.parametrize("wanted", ["", "dec-zzz", "nothing answers this", "tag:none"])
def test_what_names_nothing_is_told(sandbox: Sandbox, wanted: str) -> None:
    """An empty name, an unknown id and a query without a hit change nothing."""
    sandbox.memory("dec-a")
    before = sandbox.git("status", "--porcelain", "-uall")
    with pytest.raises(MemtoolError):
        forget(sandbox.context(), *wanted.split(), reason="gone")
    assert sandbox.git("status", "--porcelain", "-uall") == before


def test_forgetting_twice_changes_nothing(sandbox: Sandbox) -> None:
    """The first reason is preserved."""
    path = sandbox.memory("dec-a")
    forget(sandbox.context(), "dec-a", reason="first")
    before = (sandbox.path / path).read_bytes()
    done = forget(sandbox.context(), "dec-a", reason="second")
    assert [memory.changes for memory in done.forgotten] == [{}]
    assert (sandbox.path / path).read_bytes() == before


def test_an_old_option_is_told_on_stderr(sandbox: Sandbox):
    """The answer is that of the new one."""
    sandbox.memory("dec-a")
    done = sandbox.run("forget", "dec-a", "--why", "it was a guess", "--dry-run")
    new = sandbox.run("forget", "dec-a", "--reason", "it was a guess", "--dry-run")
    assert done.stderr == f"{new.stderr}memtool: --why is called --reason now\n"
    assert "Would change dec-a  Title of dec-a\n" in new.stderr
    assert done.stdout == new.stdout
