from __future__ import annotations

import pytest
from conftest import PIPED, Sandbox

from memtool.commands import _record
from memtool.commands._layout import build_layout
from memtool.commands.inject import inject
from memtool.commands.log import log, render
from memtool.errors import MemtoolError
from memtool.store.context import Context


def injected(workspace: Context, prompt: str, session: str = "") -> None:
    """Inject as the command line would, notes included."""
    answer = inject(workspace, prompt=prompt, session=session)
    _record.record_answer(workspace, "inject", answer, 3.0)


@pytest.fixture
def workspace(sandbox: Sandbox) -> Context:
    """Two memories, one of them pinned, and two prompts that were answered."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Sessions in Redis")
    sandbox.memory("dec-pin", "Never log passwords.\n", title="Passwords", status="pinned")
    sandbox.commit()
    workspace = sandbox.context()
    injected(workspace, "do sessions live in redis?", "s1")
    injected(workspace, "something else entirely")
    return workspace


def test_the_log_says_what_was_injected_when_for_what_and_why(workspace: Context) -> None:
    """Newest first: the moment, the hash of the prompt, the tier, the score and its factors."""
    report = log(workspace, injected=True)
    assert report.injections is not None
    assert [
        (injection.id, injection.tier, injection.session) for injection in report.injections
    ] == [
        ("dec-pin", "pinned", ""),
        ("dec-pin", "pinned", "s1"),
        ("dec-a", "retrieval", "s1"),
    ]
    hit = report.injections[2]
    assert hit.moment == "2026-03-01T12:00:00Z"
    assert hit.prompt == _record.hash_prompt("do sessions live in redis?")
    assert hit.score is not None
    assert hit.score > 0
    assert hit.reason.startswith("recency 1.")
    assert report.events == ()


def test_one_memory_is_followed_by_its_id_or_its_beginning(workspace: Context) -> None:
    """`log ID --injected` shows when that one was given."""
    for id_ in ("dec-a", "dec-a.md"[:5]):
        report = log(workspace, id_, injected=True)
        assert [injection.id for injection in report.injections or ()] == ["dec-a"]
        assert (report.id, report.removed, report.has_more) == ("dec-a", False, False)


def test_a_limit_cuts_and_says_so(workspace: Context) -> None:
    """0 means all."""
    report = log(workspace, injected=True, limit=2)
    assert (len(report.injections or ()), report.has_more) == (2, True)
    assert render(report, PIPED).endswith("\nand more (memtool log --injected --limit 0)")
    assert len(log(workspace, injected=True, limit=0).injections or ()) == 3


def test_the_text_has_a_line_per_injection(workspace: Context) -> None:
    """A person sees the same in columns; on a terminal the reason is below its line."""
    rows = render(log(workspace, injected=True), build_layout(workspace)).splitlines()
    assert len(rows) == 3
    assert rows[2].startswith("2026-03-01T12:00:00Z  dec-a    Sessions in Redis  retrieval  1.")
    prompt = _record.hash_prompt("do sessions live in redis?")
    assert rows[2].endswith(f"; session s1; prompt {prompt}")
    rows = render(log(workspace, injected=True), build_layout(workspace, width=80)).splitlines()
    assert max(map(len, rows)) <= 80
    (at,) = (number for number, row in enumerate(rows) if "  dec-a  " in row)
    assert rows[at].startswith("just now  dec-a    Sessions in Redis  retrieval  1.")
    below = " ".join(row.strip() for row in rows[at + 1 :])
    assert below.startswith("recency 1.")
    assert below.endswith(f"; session s1; prompt {prompt}")


def test_a_removed_memory_is_still_told_of(sandbox: Sandbox, workspace: Context) -> None:
    """Injections stay in the log after the file is gone."""
    sandbox.git("rm", "--quiet", ".memory/decision/2026-02/dec-a.md")
    report = log(sandbox.context(), "dec-a", injected=True)
    assert (report.removed, len(report.injections or ())) == (True, 1)


def test_what_was_never_injected_is_an_answer_and_what_never_was_is_not(
    sandbox: Sandbox, workspace: Context
) -> None:
    """A memory without injections gives none; an unknown id is an error with the nearest."""
    sandbox.memory("dec-new")
    report = log(sandbox.context(), "dec-new", injected=True)
    assert report.injections == ()
    layout = sandbox.layout()
    assert render(report, layout) == ""
    assert layout.reports == ["dec-new was never injected here"]
    with pytest.raises(MemtoolError, match='no memory is called "dec-zzz"'):
        log(workspace, "dec-zzz", injected=True)


def test_a_fresh_clone_has_injected_nothing(sandbox: Sandbox) -> None:
    """No ledger is an empty one."""
    sandbox.memory("dec-a")
    layout = sandbox.layout()
    assert render(log(sandbox.context(), injected=True), layout) == ""
    assert layout.reports == ["nothing was injected yet"]


def test_injections_know_no_revision(workspace: Context) -> None:
    """--at would promise what the ledger cannot say."""
    with pytest.raises(MemtoolError, match="exclude each other"):
        log(workspace, injected=True, at="HEAD")


def test_the_json_has_injections_only_where_they_were_asked_for(workspace: Context) -> None:
    """The shape of the log of events stays what it was."""
    assert "injections" not in log(workspace).plain()
    assert len(log(workspace, injected=True).plain()["injections"]) == 3
