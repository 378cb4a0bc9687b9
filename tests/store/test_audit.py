"""The audit: lines that survive, acts that are told, a table that stays small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memtool.store import ledger, usage_log
from memtool.store.usage_log import DONE, INTENT, INTERRUPTED, AuditEvent, Note, RunningAct

NOW = 1_772_366_400
DAY_S = 86_400


def event(number: int = 1, kind: str = "capture", phase: str = DONE, at: int = NOW) -> AuditEvent:
    return AuditEvent(at, f"{number:x}", kind, phase, (f"ses-{number}",))


def told(directory: Path) -> list[ledger.Act]:
    ledger.fold(str(directory))
    with ledger.reading(str(directory)) as held:
        return held.acts()


@given(st.text(max_size=300), st.lists(st.text(min_size=1, max_size=20), max_size=5))
def test_any_text_stays_on_its_line(detail: str, subjects: list[str]) -> None:
    """What an act is about never becomes another event, and no note."""
    data = usage_log.event_line(AuditEvent(NOW, "ab", "forget", DONE, tuple(subjects), detail))
    assert len(list(usage_log.read_events(data))) == 1
    assert list(usage_log.read_notes(data)) == []


def test_a_torn_line_spoils_no_other() -> None:
    """Half an event is passed over, and what stands around it is read."""
    data = (
        usage_log.event_line(event(1))
        + usage_log.event_line(event(2))[:-9]
        + usage_log.event_line(event(3))
    )
    assert [one.operation for one in usage_log.read_events(data)] == ["1", "3"]


def test_an_act_shows_its_intent_until_it_ends(tmp_path: Path) -> None:
    """Running before the outcome, done after it; one row either way."""
    act = RunningAct(str(tmp_path), event(phase=INTENT))
    assert [one.outcome for one in told(tmp_path)] == [ledger.RUNNING]
    act.end(NOW + 5, DONE, ("ses-9",), "3 messages")
    (one,) = told(tmp_path)
    assert (one.moment, one.outcome, one.subjects, one.detail) == (
        NOW, DONE, ("ses-9",), "3 messages",
    )  # fmt: skip
    assert list((tmp_path / usage_log.INTENTS_FOLDER).iterdir()) == []


def test_an_act_that_runs_is_not_taken_for_one_that_was_cut_off(tmp_path: Path) -> None:
    """Its file is held, so nobody tells it."""
    act = RunningAct(str(tmp_path), event(phase=INTENT))
    assert usage_log.cut_off(str(tmp_path), NOW) == []
    act.end(NOW, DONE)


def test_a_killed_process_leaves_an_intent_that_is_told_once(tmp_path: Path) -> None:
    """The next run says so, and the ledger holds it as interrupted."""
    code = (
        "import os, sys; from memtool.store.usage_log import AuditEvent, RunningAct;"
        f"RunningAct(sys.argv[1], AuditEvent({NOW}, 'ab', 'purge', 'intent', ('dec-a',)));"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert [one.subjects for one in usage_log.cut_off(str(tmp_path), NOW + 60)] == [("dec-a",)]
    assert usage_log.cut_off(str(tmp_path), NOW + 60) == []
    assert [(one.kind, one.outcome) for one in told(tmp_path)] == [("purge", INTERRUPTED)]


def test_the_table_is_trimmed_but_for_deletions_of_the_last_ninety_days(tmp_path: Path) -> None:
    """Beyond 5,000 events 4,000 remain, and with them what was deleted lately."""
    late, early = NOW - 89 * DAY_S, NOW - 91 * DAY_S
    first = [event(1, "forget", at=late), event(2, "forget", at=early), event(3, at=late)]
    rest = [event(number) for number in range(10, 10 + ledger.MOST)]
    for one in first + rest:
        usage_log.append_event(str(tmp_path), one)
    held = told(tmp_path)
    assert len(held) == ledger.LEFT + 1
    assert [one.subjects for one in held if one.kind == "forget"] == [("ses-1",)]


def test_the_same_denial_is_kept_once(tmp_path: Path) -> None:
    """Every promotion comes upon it again."""
    for number in (1, 2):
        usage_log.append_event(
            str(tmp_path), event(number, "deny").replace(subjects=("f-1", "dec-a"))
        )
        told(tmp_path)
    assert len(told(tmp_path)) == 1


def test_an_older_ledger_gets_the_table(tmp_path: Path) -> None:
    """What was counted before stays."""
    import sqlite3

    usage_log.append_note(str(tmp_path), Note(NOW, "search", 1.0))
    ledger.fold(str(tmp_path))
    connection = sqlite3.connect(tmp_path / ledger.NAME)
    connection.execute("DROP TABLE audit")
    connection.close()
    with ledger.reading(str(tmp_path)) as held:
        assert held.acts() == []
    usage_log.append_event(str(tmp_path), event())
    assert len(told(tmp_path)) == 1
    with ledger.reading(str(tmp_path)) as held:
        assert held.answers()[0] == 1


def test_where_nothing_can_be_written_an_act_goes_on(tmp_path: Path) -> None:
    """A file in the place of the directory disturbs nobody."""
    (tmp_path / usage_log.SPOOL_FOLDER).write_text("")
    (tmp_path / usage_log.INTENTS_FOLDER).write_text("")
    RunningAct(str(tmp_path), event(phase=INTENT)).end(NOW, DONE)
    assert usage_log.cut_off(str(tmp_path), NOW) == []


def test_what_had_ended_when_it_was_killed_is_not_told_as_cut_off(tmp_path: Path) -> None:
    """The outcome reaches the ledger, though its process could not tidy up."""
    code = (
        "import os, sys; from memtool.store import usage_log;"
        f"event = usage_log.AuditEvent({NOW}, 'ab', 'purge', 'intent', ('dec-a',));"
        "act = usage_log.RunningAct(sys.argv[1], event);"
        "usage_log.append_event = lambda *_: os.kill(os.getpid(), 9);"
        f"act.end({NOW}, 'done')"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert usage_log.cut_off(str(tmp_path), NOW + 60) == []
    assert [one.outcome for one in told(tmp_path)] == [DONE]
