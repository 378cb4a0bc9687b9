"""`memtool search --deep`: private sessions are asked last, and shown apart."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.memory import memory
from memtool.sessions import evidence

TALK = """User: Remember: we always rotate the staging certificate with certbot in March.
Assistant: Noted, certbot rotates the staging certificate.
User: what is for lunch
"""


@pytest.fixture
def talked(sandbox: Sandbox) -> Sandbox:
    """A memory about one thing, and a session about another."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Keep sessions in Redis")
    sandbox.run("capture", "-", stdin=TALK)
    return sandbox


def test_sessions_are_asked_only_on_demand(talked: Sandbox) -> None:
    """Without --deep nothing of them is shown; with it findings come first, each with a source."""
    assert "certbot" not in talked.run("search", "staging certificate").stdout
    answer = talked.json("search", "staging certificate", "--deep")
    assert answer["depth"] == "session"
    kinds = [passage["kind"] for passage in answer["sessions"]]
    assert (kinds[0], sorted(kinds[1:])) == ("finding", ["assistant", "user"])
    assert all(passage["source"].startswith("session:") for passage in answer["sessions"])
    text = talked.run("search", "staging certificate", "--deep").stdout
    assert text.startswith("From private sessions of this clone, not reviewed:\n")


def test_memories_stand_before_sessions(talked: Sandbox) -> None:
    """Where no session says anything to it, the depth is that of the memories."""
    answer = talked.json("search", "sessions redis", "--deep")
    assert (answer["depth"], answer["sessions"]) == ("memory", [])
    assert [result["id"] for result in answer["results"]] == ["dec-a"]


def test_the_depth_of_digests_is_stated(sandbox: Sandbox) -> None:
    """If only digests match, the depth is that of digests."""
    sandbox.memory("dec-a")
    sandbox.memory(
        "sem-sum",
        "Certificates and more.\n",
        type="semantic",
        derived_from=("dec-a",),
        source=(f"{memory.SOURCE}0",),
    )
    answer = sandbox.json("search", "certificates")
    assert answer["depth"] == "digest"
    assert "sessions" not in answer


def test_a_damaged_session_is_told_and_the_rest_is_heard(talked: Sandbox) -> None:
    """Half of the words suffice; stop words alone ask for nothing."""
    folder = talked.path / ".git/memtool/sessions/broken"
    folder.mkdir()
    (folder / "head.json").write_text("{")
    done = talked.run("search", "certbot nonsense", "--deep")
    assert "passed over" in done.stderr
    assert "certbot" in done.stdout
    assert talked.json("search", "the", "--deep")["sessions"] == []


def test_only_the_newest_sessions_are_looked_through(
    talked: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bounds the user is told what was left out."""
    talked.run("session", "start", MEMTOOL_NOW="2026-04-01T00:00:00Z")
    monkeypatch.setattr(evidence, "MAX_SESSIONS", 1)
    ws = talked.context()
    assert evidence.search(ws, ("certbot",), 5) == ()
    assert ws.notes == ["the 1 newest of 2 sessions were searched"]
