from __future__ import annotations

import os

import pytest
from conftest import Sandbox

from memtool.commands import _record
from memtool.commands.show import show
from memtool.commands.stats import Size, render, stats
from memtool.errors import MemtoolError
from memtool.store import ledger
from memtool.store.context import Context


def shown(workspace: Context, *ids: str) -> None:
    """Show memories as the command line would, notes included."""
    for id_ in ids:
        _record.note(workspace, "show", show(workspace, id_), 2.5)


def test_counts_and_sizes_are_those_of_the_tree(sandbox: Sandbox) -> None:
    """Memories by type, category and status, and the bytes of their files."""
    first = sandbox.memory("dec-a")
    second = sandbox.memory("sem-b", type="semantic", supersedes=("dec-a",))
    found = stats(sandbox.context())
    assert (found.memories, found.superseded) == (2, 1)
    assert found.types == {"decision": 1, "semantic": 1}
    assert found.statuses == {"confirmed": 2}
    size = sum((sandbox.path / path).stat().st_size for path in (first, second))
    assert found.sizes == (Size("memories", 2, size),)
    assert (found.answers, found.since, found.latencies) == (0, None, ())


def test_the_most_used_come_first(sandbox: Sandbox) -> None:
    """Memories by how often they were shown, with their titles; equal ones by id."""
    for id_ in ("dec-a", "dec-b", "dec-c"):
        sandbox.memory(id_)
    workspace = sandbox.context()
    shown(workspace, "dec-b", "dec-c", "dec-b", "dec-a")
    found = stats(workspace)
    assert [(one.id, one.count) for one in found.most_accessed] == [
        ("dec-b", 2),
        ("dec-a", 1),
        ("dec-c", 1),
    ]
    assert found.most_accessed[0].title == "Title of dec-b"
    assert (found.answers, found.since) == (4, "2026-03-01T12:00:00Z")
    (row,) = found.latencies
    assert (row.verb, row.samples, row.p50_ms, row.p95_ms) == ("show", 4, 2.5, 2.5)
    assert [one.id for one in stats(workspace, limit=1).most_accessed] == ["dec-b"]
    assert stats(workspace, limit=0).most_accessed == stats(workspace).most_accessed
    assert found.most_injected == ()


def test_what_lies_in_the_git_directory_is_told_by_part(sandbox: Sandbox) -> None:
    """Index, ledger and other caches, each with its files and bytes."""
    sandbox.memory("dec-a")
    sandbox.run("search", "title")
    place = sandbox.path / ".git" / "memtool"
    (place / "x").mkdir()
    (place / "x" / "y").write_text("12345")
    sizes = {size.part: size for size in stats(sandbox.context()).sizes}
    assert sizes["index"].bytes > 0
    assert sizes["ledger"].files >= 3
    assert sizes["caches"].bytes >= 5


def test_the_text_names_every_figure(sandbox: Sandbox) -> None:
    """A person reads counts, sizes, latencies and the most used memories."""
    sandbox.memory("dec-a")
    workspace = sandbox.context()
    assert "no answer was noted" in render(stats(workspace))
    shown(workspace, "dec-a")
    text = render(stats(workspace))
    assert text.startswith("1 memories, 0 superseded\ntypes: 1 decision\n")
    assert "1 answers since 2026-03-01T12:00:00Z" in text
    assert "show  2.5 ms  2.5 ms  1" in text
    assert "most accessed\n1  2026-03-01  dec-a  Title of dec-a" in text


def test_a_memory_that_is_gone_keeps_its_count(sandbox: Sandbox) -> None:
    """The ledger may know an id that the tree no longer does."""
    path = sandbox.memory("dec-a")
    workspace = sandbox.context()
    shown(workspace, "dec-a")
    (sandbox.path / path).unlink()
    (row,) = stats(sandbox.context()).most_accessed
    assert (row.id, row.title, row.count) == ("dec-a", "", 1)


def test_a_ledger_that_cannot_be_written_is_told(sandbox: Sandbox) -> None:
    """The figures are those of before, and a note says so; nothing else is lost."""
    sandbox.memory("dec-a")
    workspace = sandbox.context()
    shown(workspace, "dec-a")
    os.makedirs(os.path.join(workspace.repository.cache_dir, ledger.NAME, "x"))
    with pytest.raises(MemtoolError, match="ledger cannot be used"):
        stats(workspace)
    assert "the latest answers are not counted" in workspace.notes[0]


def test_deleting_the_ledger_loses_statistics_only(sandbox: Sandbox) -> None:
    """Without it the counts begin anew; search and show answer as before."""
    sandbox.memory("dec-a")
    workspace = sandbox.context()
    shown(workspace, "dec-a")
    before = sandbox.run("search", "title").stdout
    assert stats(workspace).most_accessed != ()
    for name in os.listdir(workspace.repository.cache_dir):
        if name.startswith("ledger."):
            os.unlink(os.path.join(workspace.repository.cache_dir, name))
    assert sandbox.run("search", "title", MEMTOOL_NO_LEDGER="1").stdout == before
    assert stats(sandbox.context()).most_accessed == ()


def test_a_bare_repository_has_statistics_too(sandbox: Sandbox) -> None:
    """With a revision, counts and sizes are those of its files."""
    path = sandbox.memory("dec-a")
    size = (sandbox.path / path).stat().st_size
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--bare", ".", "../bare.git")
    workspace = Context.at(str(sandbox.path.parent / "bare.git"), sandbox.env)
    assert stats(workspace, at="HEAD").sizes == (Size("memories", 1, size),)
