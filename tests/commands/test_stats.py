from __future__ import annotations

import json
import os
from threading import Thread

import pytest
from conftest import PIPED, Sandbox

from memtool.calls.signature import read_interface
from memtool.commands import VERBS, _record
from memtool.commands.inject import inject
from memtool.commands.search import search
from memtool.commands.show import show
from memtool.commands.stats import (
    WRITING_VERBS,
    DecisionUse,
    LastInjection,
    Size,
    render,
    stats,
)
from memtool.errors import MemtoolError
from memtool.index import open_index, stamps
from memtool.store import cache, derived, files, ledger
from memtool.store.context import Context


def shown(workspace: Context, *ids: str) -> None:
    """Show memories as the command line would, notes included."""
    for id_ in ids:
        _record.record_answer(workspace, "show", show(workspace, id_), 2.5)


def test_counts_and_sizes_are_those_of_the_tree(sandbox: Sandbox) -> None:
    """Memories by type, category and status, and the bytes of their files."""
    first = sandbox.memory("dec-a")
    second = sandbox.memory("sem-b", type="semantic", supersedes=("dec-a",))
    report = stats(sandbox.context())
    assert (report.memories, report.superseded) == (2, 1)
    assert report.types == {"decision": 1, "semantic": 1}
    assert report.statuses == {"confirmed": 2}
    size = sum((sandbox.path / path).stat().st_size for path in (first, second))
    assert report.sizes == (Size("memories", 2, size),)
    assert (report.answers, report.since, report.latencies) == (0, None, ())


def test_the_most_used_come_first(sandbox: Sandbox) -> None:
    """Memories by how often they were shown, with their titles; equal ones by id."""
    for id_ in ("dec-a", "dec-b", "dec-c"):
        sandbox.memory(id_)
    workspace = sandbox.context()
    shown(workspace, "dec-b", "dec-c", "dec-b", "dec-a")
    report = stats(workspace)
    assert [(row.id, row.count) for row in report.most_accessed] == [
        ("dec-b", 2),
        ("dec-a", 1),
        ("dec-c", 1),
    ]
    assert report.most_accessed[0].title == "Title of dec-b"
    assert (report.answers, report.since) == (4, "2026-03-01T12:00:00Z")
    (row,) = report.latencies
    assert (row.verb, row.samples, row.p50_ms, row.p95_ms) == ("show", 4, 2.5, 2.5)
    assert [row.id for row in stats(workspace, limit=1).most_accessed] == ["dec-b"]
    assert stats(workspace, limit=0).most_accessed == stats(workspace).most_accessed
    assert report.most_injected == ()


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
    """A person reads counts, sizes, latencies and the most used memories, other costs on demand."""
    sandbox.memory("dec-a")
    workspace = sandbox.context()
    assert "no answer was noted" in render(stats(workspace), PIPED)
    shown(workspace, "dec-a")
    text = render(stats(workspace), sandbox.layout())
    assert text.startswith("1 memory, 0 superseded\ntypes: 1 decision\n")
    assert "1 answer since 2026-03-01\n" in text
    assert "\nshow  2.5 ms  2.5 ms           1\n" in text
    assert "Most often shown:\n  dec-a  Title of dec-a  1 time  2026-03-01\n" in text
    assert text.endswith("\nMore: memtool stats --all")


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
    with pytest.raises(MemtoolError, match="cannot use the usage statistics"):
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


def ask(sandbox: Sandbox) -> None:
    """Search as the command line would, in a process that holds nothing from before."""
    open_index._open_indexes.clear()
    workspace = sandbox.context()
    answer = derived.retry_if_damaged(workspace, lambda: search(workspace, "title"))
    _record.record_answer(workspace, "search", answer, 2.0)


def test_what_became_of_the_index_is_counted(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Built, found as it was, brought up to date; damage is made anew, and seen here alone."""
    monkeypatch.setattr(stamps, "DOUBT_NS", -(10**9))  # young files would be read again
    sandbox.memory("dec-a")
    cache.take_events()
    ask(sandbox)
    ask(sandbox)
    sandbox.memory("dec-b")
    ask(sandbox)
    used = stats(sandbox.context()).cache
    assert (used.answers, used.hits, used.updates, used.rebuilds) == (3, 1, 1, 1)
    assert (used.hit_share, used.damaged) == (0.3333, 0)
    open_index._open_indexes.clear()
    (database,) = (sandbox.path / ".git" / "memtool" / "index").glob("*.db")
    database.write_bytes(b"x" * 9_000)
    ask(sandbox)
    report = stats(sandbox.context(), all=True)
    assert (report.cache.rebuilds, report.cache.damaged) == (2, 1)
    text = render(report, PIPED)
    assert "index: current for 25.0% of 4 answers, updated for 1, built for 2" in text
    assert "damaged caches: 1 answer rebuilt one" in text


def test_who_waits_for_a_lock_is_counted(sandbox: Sandbox) -> None:
    """Only waits for a lock that another process holds are counted, with their time."""
    sandbox.memory("dec-a")
    workspace = sandbox.context()
    directory = workspace.repository.cache_dir
    files.take_waited_s()
    with files.locked(directory, "commit.lock"):
        waiting = Thread(target=_locked, args=(directory,))
        waiting.start()
        waiting.join(0.05)
    waiting.join()
    shown(workspace, "dec-a", "dec-a")
    report = stats(workspace, all=True)
    assert report.locks.waits == 1
    assert report.locks.longest_ms == report.locks.total_ms > 0
    assert "locks: 1 answer waited, " in render(report, PIPED)


def _locked(directory: str) -> None:
    with files.locked(directory, "commit.lock"):
        pass


def test_writes_and_the_last_block_are_shown(sandbox: Sandbox) -> None:
    """Verbs that write are one row of their own; a block counts as soon as an agent got it."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n", status="pinned")
    workspace = sandbox.context()
    assert (stats(workspace).writes, stats(workspace).last_injected) == (None, None)
    for verb, elapsed_ms in (("confirm", 5.0), ("supersede", 9.0), ("status", 1.0)):
        _record.record_answer(workspace, verb, None, elapsed_ms)
    _record.record_answer(
        workspace, "inject", inject(workspace, prompt="where do sessions live?"), 3.0
    )
    shown(workspace, "dec-a")
    report = stats(workspace, all=True)
    assert report.writes is not None
    assert (report.writes.samples, report.writes.p50_ms, report.writes.p95_ms) == (2, 5.0, 9.0)
    assert report.last_injected == LastInjection("2026-03-01T12:00:00Z", ("dec-a",))
    text = render(report, PIPED)
    assert "writes: median 5.0 ms, 95th percentile 9.0 ms of 2" in text
    assert "last injected 2026-03-01T12:00:00Z: dec-a" in text


def test_every_verb_that_commits_memories_is_one_that_writes() -> None:
    """The others that commit write settings."""
    able = {
        face.name
        for face in map(read_interface, VERBS)
        if any(parameter.name == "commit" for parameter in face.parameters)
    }
    assert able - {"init", "config", "alias", "auto"} == {*WRITING_VERBS}


def test_warnings_and_what_followed_are_counted(sandbox: Sandbox) -> None:
    """A warning is followed by an edit of the same session; an empty answer warns of nothing."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n", files=("src/a.py",))
    sandbox.memory("dec-b", "Pages are made on the server.\n")
    sandbox.memory("dec-old", "Pages are made by hand.\n", status="deprecated")
    for path in ("src/a.py", "src/b.py"):
        sandbox.write(path, "x = 1\n")
    sandbox.commit()

    def edit(path: str, session: str) -> None:
        tool = {"tool_name": "Edit", "tool_input": {"file_path": str(sandbox.path / path)}}
        event = {"session_id": session, "cwd": str(sandbox.path), **tool}
        sandbox.run("hook", "claude", "post-tool-use", stdin=json.dumps(event))

    for path, session in (("src/a.py", "one"), ("src/b.py", "one"), ("src/a.py", "two")):
        edit(path, session)
    report = stats(sandbox.context())
    assert (report.warnings.count, report.warnings.edited_again) == (2, 1)
    assert report.decisions == DecisionUse(2, 1, ("dec-b",))
    text = render(report, PIPED)
    assert "2 warnings at edits; an edit followed 1 of them" in text
    assert "1 of 2 decisions never shown, such as dec-b" in text
