"""Chores: leftovers, the index, sessions that have ended; none of them twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from upkeep.inputs import DAY_S, SECOND

from memtool.sessions import journal, lifecycle, store
from memtool.sessions.model import Head, Message
from memtool.sessions.store import MESSAGES, Sessions
from memtool.upkeep import cleanup


def age(path: Path, days: float) -> None:
    """Make a file, as old as that."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"12345")
    os.utime(path, (SECOND - days * DAY_S,) * 2)


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    """A store with a session that ended ten days ago, one that ended now, and an open one."""
    kept = Sessions(str(tmp_path / "sessions"))
    for id_ in ("old", "new", "open"):
        kept.create(Head(id_, 5))
        store.add(kept, id_, [Message(0, "user", f"{id_} {n}") for n in range(40)], SECOND)
    lifecycle.end(kept, "old", "done", SECOND - 10 * DAY_S)
    lifecycle.end(kept, "new", "done", SECOND)
    return kept


def test_only_what_nobody_writes_any_more_is_left_over(tmp_path: Path, sessions: Sessions):
    """Temporary files of a day, and what was set aside; never a cache, a session, a new file."""
    for name in (".tmp-1-a", "index/.tmp-2-b", "ledger.db.broken", "twins/.tmp-3"):
        age(tmp_path / name, 2)
    for name in ("index/abc", "ledger.db", "maintained", "sessions/old/.tmp-4"):
        age(tmp_path / name, 400)
    age(tmp_path / "spool" / ".tmp-5", 0.5)
    found = cleanup.left_over(str(tmp_path), SECOND)
    names = [".tmp-1-a", "index/.tmp-2-b", "ledger.db.broken", "twins/.tmp-3"]
    assert [(one.do, one.what, one.bytes) for one in found] == [("remove", n, 5) for n in names]
    cleanup.do(found, str(tmp_path), sessions, SECOND)
    assert cleanup.left_over(str(tmp_path), SECOND) == []
    assert (tmp_path / "index" / "abc").exists()
    cleanup.do(found, str(tmp_path), sessions, SECOND)  # what is gone is gone


def test_the_index_is_made_anew_once_a_month(tmp_path: Path, sessions: Sessions):
    """Where there is one; the note of when keeps it from being done twice."""
    assert cleanup.rebuilding(str(tmp_path), SECOND) == []
    age(tmp_path / "index" / "abc" / "terms", 1)
    found = cleanup.rebuilding(str(tmp_path), SECOND)
    assert [one.do for one in found] == ["rebuild"]
    cleanup.do(found, str(tmp_path), sessions, SECOND)
    cleanup.note_rebuilt(str(tmp_path), SECOND)
    assert not (tmp_path / "index").exists()
    age(tmp_path / "index" / "abc" / "terms", 1)
    assert cleanup.rebuilding(str(tmp_path), SECOND + 27 * DAY_S) == []
    assert cleanup.rebuilding(str(tmp_path), SECOND + 29 * DAY_S) != []
    (tmp_path / cleanup.STAMP).write_text("no moment\n")
    assert cleanup.rebuilding(str(tmp_path), SECOND) != []


def test_sessions_that_have_ended_are_compressed(tmp_path: Path, sessions: Sessions):
    """A week after their end; every message is there as before."""
    before = sessions.messages("old")
    found = cleanup.sessions_due(sessions, SECOND)
    assert [(one.do, one.what) for one in found] == [("compress", "old")]
    cleanup.do(found, str(tmp_path), sessions, SECOND)
    assert sessions.messages("old") == before
    assert os.stat(sessions.path("old", MESSAGES)).st_size == 0
    assert len(journal.parts(sessions.folder("old"))) == 1
    assert cleanup.sessions_due(sessions, SECOND) == []


def test_a_compression_that_was_killed_is_finished(tmp_path: Path, sessions: Sessions):
    """Where the part is there and the journal still full, nothing is doubled."""
    data = Path(sessions.path("old", MESSAGES)).read_bytes()
    before = sessions.messages("old")
    found = cleanup.sessions_due(sessions, SECOND)
    cleanup.do(found, str(tmp_path), sessions, SECOND)
    Path(sessions.path("old", MESSAGES)).write_bytes(data)
    cleanup.do(cleanup.sessions_due(sessions, SECOND), str(tmp_path), sessions, SECOND)
    assert sessions.messages("old") == before
    assert len(journal.parts(sessions.folder("old"))) == 1
    assert cleanup.sessions_due(sessions, SECOND) == []


def test_a_session_that_goes_on_is_left_alone(tmp_path: Path, sessions: Sessions):
    """Who opened it again between plan and deed keeps the journal."""
    found = cleanup.sessions_due(sessions, SECOND)
    store.add(sessions, "old", [Message(0, "user", "more")], SECOND, reopen=True)
    cleanup.do(found, str(tmp_path), sessions, SECOND)
    assert journal.parts(sessions.folder("old")) == []


def test_at_the_limit_the_oldest_lose_their_messages(tmp_path: Path, sessions: Sessions):
    """Heads and findings stay, and what is open loses nothing."""
    tight = sessions.replace(most_total=sum(sessions.size(id_) for id_ in sessions.ids()))
    found = cleanup.sessions_due(tight, SECOND)
    assert [(one.do, one.what) for one in found] == [("prune", "old")]
    cleanup.do(found, str(tmp_path), tight, SECOND)
    assert tight.head("old").status == "pruned"
    assert tight.messages("open")[0]
    assert [one.do for one in cleanup.sessions_due(tight, SECOND)] == []
