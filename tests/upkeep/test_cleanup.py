"""Chores: leftovers, the index, sessions that have ended; none of them twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Sandbox
from upkeep.inputs import DAY_S, SECOND

from memtool.sessions import lifecycle, store
from memtool.sessions.model import Message, Session
from memtool.sessions.store import Sessions
from memtool.store.config import DEFAULTS
from memtool.upkeep import cleanup, plan

PRUNE_DAYS = DEFAULTS.count("maintain.prune_days")


def age(path: Path, days: float) -> None:
    """Make a file, as old as that."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"12345")
    os.utime(path, (SECOND - days * DAY_S,) * 2)


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    """A store with a session that ended ten days ago, one that ended now, and an open one."""
    stored = Sessions(str(tmp_path / "sessions"))
    for id_ in ("old", "new", "open"):
        stored.create(Session(id_, 5))
        store.add(stored, id_, [Message(0, "user", f"{id_} {n}") for n in range(40)], SECOND)
    lifecycle.end(stored, "old", "done", SECOND - 10 * DAY_S)
    lifecycle.end(stored, "new", "done", SECOND)
    return stored


def test_only_what_nobody_writes_any_more_is_left_over(tmp_path: Path, sessions: Sessions):
    """Temporary files of a day, and what was set aside; never a cache, a session, a new file."""
    for name in (".tmp-1-a", "index/.tmp-2-b", "ledger.db.broken", "spool/.tmp-3"):
        age(tmp_path / name, 2)
    for name in ("index/abc", "ledger.db", "maintained", "sessions/old/.tmp-4"):
        age(tmp_path / name, 400)
    age(tmp_path / "spool" / ".tmp-5", 0.5)
    chores = cleanup.find_leftovers(str(tmp_path), SECOND)
    names = [".tmp-1-a", "index/.tmp-2-b", "ledger.db.broken", "spool/.tmp-3"]
    assert [(chore.do, chore.what, chore.bytes) for chore in chores] == [
        ("remove", n, 5) for n in names
    ]
    cleanup.do(chores, str(tmp_path), sessions)
    assert cleanup.find_leftovers(str(tmp_path), SECOND) == []
    assert (tmp_path / "index" / "abc").exists()
    cleanup.do(chores, str(tmp_path), sessions)  # what is gone is gone


def test_caches_of_older_versions_go(tmp_path: Path, sessions: Sessions):
    """They are removed a day after the last write."""
    for name in ("citations/table-1", "gate/right-2", "ledger.accesses", "spool/gate"):
        age(tmp_path / name, 2)
    age(tmp_path / "drift" / "new", 0.5)
    for name in ("citations", "gate"):
        os.utime(tmp_path / name, (SECOND - 2 * DAY_S,) * 2)
    os.utime(tmp_path / "drift", (SECOND, SECOND))
    chores = cleanup.find_leftovers(str(tmp_path), SECOND)
    assert [chore.what for chore in chores] == ["citations", "gate", "ledger.accesses"]
    cleanup.do(chores, str(tmp_path), sessions)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"drift", "sessions", "spool"}


def test_what_a_killed_writer_left_in_the_worktree_goes(sandbox: Sandbox, tmp_path: Path):
    """Anywhere, if it is a day old and has a name of ours; ignored files stay."""
    stray = sandbox.path / ".claude/commands/.tmp-12-0123abcd-remember.md"
    for path in (stray, sandbox.path / ".tmp-notes", sandbox.path / "ignored/.tmp-1-0123abcd-a"):
        age(path, 2)
    age(sandbox.path / ".tmp-12-0123abcd-fresh", 0.5)
    sandbox.write(".gitignore", "ignored\n")
    repository = sandbox.context().repository
    chores = cleanup.find_strays(repository, SECOND)
    assert [(chore.do, chore.what) for chore in chores] == [("remove", str(stray))]
    cleanup.do(chores, repository.cache_dir, Sessions(str(tmp_path / "sessions")))
    assert cleanup.find_strays(repository, SECOND) == []
    assert not stray.exists()


def test_the_index_is_made_anew_once_a_month(tmp_path: Path, sessions: Sessions):
    """Where there is one; the note of when keeps it from being done twice."""
    assert cleanup.find_rebuild_due(str(tmp_path), SECOND, cleanup.INDEX_DAYS) == []
    age(tmp_path / "index" / "abc" / "terms", 1)
    chores = cleanup.find_rebuild_due(str(tmp_path), SECOND, cleanup.INDEX_DAYS)
    assert [chore.do for chore in chores] == ["rebuild"]
    cleanup.do(chores, str(tmp_path), sessions)
    cleanup.note_rebuilt(str(tmp_path), SECOND)
    assert not (tmp_path / "index").exists()
    age(tmp_path / "index" / "abc" / "terms", 1)
    assert cleanup.find_rebuild_due(str(tmp_path), SECOND + 27 * DAY_S, cleanup.INDEX_DAYS) == []
    assert cleanup.find_rebuild_due(str(tmp_path), SECOND + 29 * DAY_S, cleanup.INDEX_DAYS) != []
    (tmp_path / cleanup.STAMP).write_text("no moment\n")
    assert cleanup.find_rebuild_due(str(tmp_path), SECOND, cleanup.INDEX_DAYS) != []


def test_at_the_limit_the_oldest_lose_their_messages(tmp_path: Path, sessions: Sessions):
    """Heads and findings stay, and what is open loses nothing."""
    tight = sessions.replace(most_total=sum(sessions.size(id_) for id_ in sessions.ids()))
    chores = cleanup.find_sessions_due(tight, SECOND, PRUNE_DAYS)
    assert [(chore.do, chore.what) for chore in chores] == [("prune", "old")]
    cleanup.do(chores, str(tmp_path), tight)
    assert tight.head("old").status == "pruned"
    assert tight.messages("open")[0]
    assert [chore.do for chore in cleanup.find_sessions_due(tight, SECOND, PRUNE_DAYS)] == []


def test_the_days_until_a_session_is_pruned_are_a_setting(tmp_path: Path, sessions: Sessions):
    """An age prunes what is far below the limit; without one nothing is due."""
    assert cleanup.find_sessions_due(sessions, SECOND, PRUNE_DAYS) == []
    chores = cleanup.find_sessions_due(sessions, SECOND, 9)
    assert [(chore.do, chore.what, chore.why) for chore in chores] == [
        ("prune", "old", "it ended more than 9 days ago"),
    ]
    cleanup.do(chores, str(tmp_path), sessions)
    assert (sessions.head("old").status, sessions.head("new").status) == ("pruned", "ended")
    assert cleanup.find_sessions_due(sessions, SECOND, 9) == []


def test_what_is_due_is_what_was_not_carried_out_for_its_time(tmp_path: Path):
    """A day, a week, four weeks, an hour less for cron; a schedule leaves out the others."""
    here = str(tmp_path)

    def due(days: float, *schedule: str) -> tuple[str, ...]:
        values = {plan.SCHEDULE: schedule} if schedule else {}
        now = SECOND + round(days * DAY_S)
        return plan.find_due_periods(DEFAULTS.replace(values=values), here, now)

    assert due(0) == plan.PERIODS
    cleanup.note_runs(here, plan.PERIODS, SECOND)
    assert due(0.5) == ()
    assert due(0.97) == ("nightly",)
    assert due(7) == ("nightly", "weekly")
    assert due(7, "weekly", "monthly") == ("weekly",)
    assert due(28) == plan.PERIODS
    cleanup.note_runs(here, ["nightly"], SECOND + 28 * DAY_S)
    assert due(28) == ("weekly", "monthly")
    assert due(-3) == plan.PERIODS  # the clock went back
    (tmp_path / cleanup.RUNS).write_bytes(b"\xff nightly\nweekly when?\n")
    assert due(0) == plan.PERIODS
