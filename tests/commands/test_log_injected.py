from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands import _record
from memtool.commands.inject import inject
from memtool.commands.log import log, render
from memtool.errors import MemtoolError
from memtool.store.context import Context


def injected(workspace: Context, prompt: str, session: str = "") -> None:
    """Inject as the command line would, notes included."""
    answer = inject(workspace, prompt=prompt, session=session)
    _record.note(workspace, "inject", answer, 3.0)


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
    found = log(workspace, injected=True)
    assert found.injections is not None
    assert [(one.id, one.tier, one.session) for one in found.injections] == [
        ("dec-pin", "pinned", ""),
        ("dec-pin", "pinned", "s1"),
        ("dec-a", "retrieval", "s1"),
    ]
    hit = found.injections[2]
    assert hit.moment == "2026-03-01T12:00:00Z"
    assert hit.prompt == _record.hashed("do sessions live in redis?")
    assert hit.score is not None
    assert hit.score > 0
    assert hit.reason.startswith("recency 1.")
    assert found.events == ()


def test_one_memory_is_followed_by_its_id_or_its_beginning(workspace: Context) -> None:
    """`log ID --injected` shows when that one was given."""
    for id_ in ("dec-a", "dec-a.md"[:5]):
        found = log(workspace, id_, injected=True)
        assert [one.id for one in found.injections or ()] == ["dec-a"]
        assert (found.id, found.removed, found.more) == ("dec-a", False, False)


def test_a_limit_cuts_and_says_so(workspace: Context) -> None:
    """0 means all."""
    found = log(workspace, injected=True, limit=2)
    assert (len(found.injections or ()), found.more) == (2, True)
    assert render(found).endswith("more is there: memtool log --injected --limit 0")
    assert len(log(workspace, injected=True, limit=0).injections or ()) == 3


def test_the_text_has_a_line_per_injection(workspace: Context) -> None:
    """A person sees the same in columns."""
    rows = render(log(workspace, injected=True)).splitlines()
    assert len(rows) == 3
    assert rows[2].split()[:4] == [
        "2026-03-01T12:00:00Z",
        _record.hashed("do sessions live in redis?"),
        "s1",
        "retrieval",
    ]


def test_a_removed_memory_is_still_told_of(sandbox: Sandbox, workspace: Context) -> None:
    """What an agent was given does not vanish with the file."""
    sandbox.git("rm", "--quiet", ".memory/decision/2026-02/dec-a.md")
    found = log(sandbox.context(), "dec-a", injected=True)
    assert (found.removed, len(found.injections or ())) == (True, 1)


def test_what_was_never_injected_is_an_answer_and_what_never_was_is_not(
    sandbox: Sandbox, workspace: Context
) -> None:
    """A memory without injections gives none; an unknown id is an error with the nearest."""
    sandbox.memory("dec-new")
    found = log(sandbox.context(), "dec-new", injected=True)
    assert found.injections == ()
    assert render(found) == "dec-new was never injected here"
    with pytest.raises(MemtoolError, match="no memory has the id 'dec-zzz'"):
        log(workspace, "dec-zzz", injected=True)


def test_a_fresh_clone_has_injected_nothing(sandbox: Sandbox) -> None:
    """No ledger is an empty one."""
    sandbox.memory("dec-a")
    assert render(log(sandbox.context(), injected=True)) == "nothing was injected here yet"


def test_injections_know_no_revision(workspace: Context) -> None:
    """--at would promise what the ledger cannot say."""
    with pytest.raises(MemtoolError, match="do not go together"):
        log(workspace, injected=True, at="HEAD")


def test_the_json_has_injections_only_where_they_were_asked_for(workspace: Context) -> None:
    """The shape of the log of events stays what it was."""
    assert "injections" not in log(workspace).plain()
    assert len(log(workspace, injected=True).plain()["injections"]) == 3
