"""The usage log: no line is lost or believed in half, acts are reported, counts are found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.store import ledger, usage_log
from memtool.store.usage_log import (
    DONE,
    INTENT,
    INTERRUPTED,
    AuditEvent,
    Note,
    RunningAct,
    ShownItem,
)

IDS = st.from_regex(r"[a-z0-9][a-z0-9._-]{2,12}", fullmatch=True)


WORDS = st.from_regex(r"[a-z0-9._-]{1,30}", fullmatch=True)
TEXTS = st.lists(WORDS, max_size=5).map(" ".join)
SCORES = st.none() | st.floats(0, 1000).map(lambda score: float(f"{score:.6g}"))
ITEMS = st.builds(ShownItem, id=WORDS, tier=WORDS | st.just(""), score=SCORES, reason=TEXTS)
NOTES = st.builds(
    Note,
    moment=st.integers(0, 1 << 33),
    verb=WORDS,
    elapsed_ms=st.integers(0, 10**9).map(lambda thousandths: thousandths / 1000),
    prompt=WORDS | st.just(""),
    session=TEXTS,
    items=st.lists(ITEMS, max_size=5).map(tuple),
    depth=WORDS | st.just(""),
    index=st.sampled_from(["", "hit", "read", "built"]),
    is_damaged=st.booleans(),
    waited_ms=st.integers(0, 10**9).map(lambda thousandths: thousandths / 1000),
)
NOTE = Note(
    7, "inject", 1.5, "0123456789abcdef", "s 1", (ShownItem("dec-a", "pinned", None, "why"),)
)


@given(st.lists(NOTES, max_size=4))
def test_a_note_is_read_as_it_was_written(notes: list[Note]) -> None:
    """Nothing of a note is lost or changed on the way through the file."""
    assert list(usage_log.read_notes(b"".join(map(usage_log.format_note, notes)))) == notes


@given(NOTES, NOTES, st.data())
def test_a_torn_line_spoils_no_other(first: Note, second: Note, data: st.DataObject) -> None:
    """Of a line that was cut off anywhere nothing is believed, and the next one is whole."""
    line = usage_log.format_note(first)
    cut = data.draw(st.integers(0, len(line) - 2))
    assert list(usage_log.read_notes(line[:cut])) == []
    assert list(usage_log.read_notes(line[:cut] + usage_log.format_note(second))) == [second]


@given(st.binary(max_size=200))
def test_no_bytes_make_reading_fail(data: bytes) -> None:
    """Foreign bytes in the file are skipped."""
    assert all(isinstance(note, Note) for note in usage_log.read_notes(data))


@pytest.mark.parametrize(
    "line",
    [
        b"x\tshow\t1.0\t\t\t.",
        b"1\tshow\tnan\t\t\t.",
        b"1\tshow\t-1\t\t\t.",
        b"1\tshow\t1\t\t.",
        b"1\tshow\t1\t\t\tdec-a\t.",
        b"1\tshow\t1\t\t\tdec-a t x r\t.",
        b"9" * 40 + b"\tshow\t1\t\t\t.",
    ],
)
def test_a_line_that_no_answer_wrote_is_passed_over(line: bytes) -> None:
    """A number that is none, too few fields, an impossible moment: no note."""
    assert list(usage_log.read_notes(b"\n" + line + b"\n")) == []


def test_what_people_name_cannot_break_the_line(tmp_path: Path) -> None:
    """A session may be named in any way; its tabs and line feeds become spaces."""
    usage_log.append_note(str(tmp_path), NOTE.replace(session="a\tb\nc\0\ud800", items=()))
    (note,) = usage_log.read_notes((tmp_path / "spool" / "notes").read_bytes())
    assert note.session == "a b c\0?"


def test_a_long_answer_is_noted_in_part() -> None:
    """However many memories an answer shows and however long a text is, a line stays small."""
    many = tuple(ShownItem(f"dec-{number}", "", 1.0, "r" * 5_000) for number in range(1_000))
    (note,) = usage_log.read_notes(usage_log.format_note(NOTE.replace(items=many)))
    assert len(note.items) == usage_log.MAX_ITEMS
    assert {len(item.reason) for item in note.items} == {usage_log.MAX_TEXT_CHARS}


def test_notes_are_appended_and_the_size_is_told(tmp_path: Path) -> None:
    """Who appends learns when the file should be taken over."""
    first = usage_log.append_note(str(tmp_path), NOTE)
    assert (
        usage_log.append_note(str(tmp_path), NOTE)
        == 2 * first
        == 2 * len(usage_log.format_note(NOTE))
    )


def test_what_was_set_aside_gets_no_more_notes(tmp_path: Path) -> None:
    """After sealing, the next note opens a new file."""
    usage_log.append_note(str(tmp_path), NOTE)
    usage_log.seal(str(tmp_path))
    size = usage_log.append_note(str(tmp_path), NOTE)
    assert size == len(usage_log.format_note(NOTE))
    (path,) = usage_log.list_sealed(str(tmp_path))
    assert len(list(usage_log.read_notes(Path(path).read_bytes()))) == 1


def test_sealing_nothing_is_nothing(tmp_path: Path) -> None:
    """Without a file of notes there is nothing to set aside."""
    usage_log.seal(str(tmp_path))
    assert usage_log.list_sealed(str(tmp_path)) == []


def test_a_file_is_claimed_by_one_only(tmp_path: Path) -> None:
    """While one process takes a file over, another leaves it alone; when it is gone, too."""
    usage_log.append_note(str(tmp_path), NOTE)
    usage_log.seal(str(tmp_path))
    (path,) = usage_log.list_sealed(str(tmp_path))
    handle = usage_log.claim(path)
    assert handle is not None
    assert usage_log.claim(path) is None
    os.unlink(path)
    os.close(handle)
    assert usage_log.claim(path) is None


def test_nobody_waits_for_a_file_that_is_being_taken_over(tmp_path: Path) -> None:
    """A held lock gives an error after a few tries, and no note; it never blocks an answer."""
    import fcntl

    usage_log.append_note(str(tmp_path), NOTE)
    with (tmp_path / "spool" / "notes").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError):
            usage_log.append_note(str(tmp_path), NOTE)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_a_real_file_is_written(tmp_path: Path, kind: str) -> None:
    """Notes never go through a link, into a pipe without a reader, or over a directory."""
    place = tmp_path / "spool" / "notes"
    place.parent.mkdir()
    target = tmp_path / "target"
    if kind == "link":
        place.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    with pytest.raises(OSError, match=r"\w"):
        usage_log.append_note(str(tmp_path), NOTE)
    assert not target.exists()


NOW = 1_772_366_400
DAY_S = 86_400


def event(number: int = 1, kind: str = "capture", phase: str = DONE, at: int = NOW) -> AuditEvent:
    return AuditEvent(at, f"{number:x}", kind, phase, (f"ses-{number}",))


def read_acts(directory: Path) -> list[ledger.Act]:
    ledger.fold(str(directory))
    with ledger.open_ledger(str(directory)) as usage:
        return usage.acts()


@given(st.text(max_size=300), st.lists(st.text(min_size=1, max_size=20), max_size=5))
def test_any_text_stays_on_its_line(detail: str, subjects: list[str]) -> None:
    """The subject of an act never becomes another event, nor a note."""
    data = usage_log.format_event(AuditEvent(NOW, "ab", "forget", DONE, tuple(subjects), detail))
    assert len(list(usage_log.read_events(data))) == 1
    assert list(usage_log.read_notes(data)) == []


def test_a_torn_event_spoils_no_other() -> None:
    """Half an event is skipped, and the events around it are read."""
    data = (
        usage_log.format_event(event(1))
        + usage_log.format_event(event(2))[:-9]
        + usage_log.format_event(event(3))
    )
    assert [act.operation for act in usage_log.read_events(data)] == ["1", "3"]


def test_an_act_shows_its_intent_until_it_ends(tmp_path: Path) -> None:
    """Running before the outcome, done after it; one row either way."""
    act = RunningAct(str(tmp_path), event(phase=INTENT))
    assert [act.outcome for act in read_acts(tmp_path)] == [ledger.RUNNING]
    act.end(NOW + 5, DONE, ("ses-9",), "3 messages")
    (latest,) = read_acts(tmp_path)
    assert (latest.moment, latest.outcome, latest.subjects, latest.detail) == (
        NOW,
        DONE,
        ("ses-9",),
        "3 messages",
    )
    assert list((tmp_path / usage_log.INTENTS_FOLDER).iterdir()) == []


def test_an_act_that_runs_is_not_taken_for_one_that_was_cut_off(tmp_path: Path) -> None:
    """Its file is locked, so it is not reported."""
    act = RunningAct(str(tmp_path), event(phase=INTENT))
    assert usage_log.take_interrupted(str(tmp_path), NOW) == []
    act.end(NOW, DONE)


def test_a_killed_process_leaves_an_intent_that_is_told_once(tmp_path: Path) -> None:
    """The next run says so, and the ledger holds it as interrupted."""
    code = (
        "import os, sys; from memtool.store.usage_log import AuditEvent, RunningAct;"
        f"RunningAct(sys.argv[1], AuditEvent({NOW}, 'ab', 'purge', 'intent', ('dec-a',)));"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert [act.subjects for act in usage_log.take_interrupted(str(tmp_path), NOW + 60)] == [
        ("dec-a",)
    ]
    assert usage_log.take_interrupted(str(tmp_path), NOW + 60) == []
    assert [(act.kind, act.outcome) for act in read_acts(tmp_path)] == [("purge", INTERRUPTED)]


def test_the_table_is_trimmed_but_for_deletions_of_the_last_ninety_days(tmp_path: Path) -> None:
    """Beyond 5,000 events 4,000 remain, and with them what was deleted lately."""
    late, early = NOW - 89 * DAY_S, NOW - 91 * DAY_S
    first = [event(1, "forget", at=late), event(2, "forget", at=early), event(3, at=late)]
    later = [event(number) for number in range(10, 10 + ledger.MAX_EVENTS)]
    for act in first + later:
        usage_log.append_event(str(tmp_path), act)
    acts = read_acts(tmp_path)
    assert len(acts) == ledger.EVENTS_AFTER_TRIM + 1
    assert [act.subjects for act in acts if act.kind == "forget"] == [("ses-1",)]


def test_the_same_denial_is_kept_once(tmp_path: Path) -> None:
    """Every promotion comes upon it again."""
    for number in (1, 2):
        usage_log.append_event(
            str(tmp_path), event(number, "deny").replace(subjects=("f-1", "dec-a"))
        )
        read_acts(tmp_path)
    assert len(read_acts(tmp_path)) == 1


def test_an_older_ledger_gets_the_table(tmp_path: Path) -> None:
    """Earlier counts stay."""
    import sqlite3

    usage_log.append_note(str(tmp_path), Note(NOW, "search", 1.0))
    ledger.fold(str(tmp_path))
    connection = sqlite3.connect(tmp_path / ledger.NAME)
    connection.execute("DROP TABLE audit")
    connection.close()
    with ledger.open_ledger(str(tmp_path)) as usage:
        assert usage.acts() == []
    usage_log.append_event(str(tmp_path), event())
    assert len(read_acts(tmp_path)) == 1
    with ledger.open_ledger(str(tmp_path)) as usage:
        assert usage.answers()[0] == 1


def test_where_nothing_can_be_written_an_act_goes_on(tmp_path: Path) -> None:
    """A file in place of the directory does no harm."""
    (tmp_path / usage_log.SPOOL_FOLDER).write_text("")
    (tmp_path / usage_log.INTENTS_FOLDER).write_text("")
    RunningAct(str(tmp_path), event(phase=INTENT)).end(NOW, DONE)
    assert usage_log.take_interrupted(str(tmp_path), NOW) == []


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
    assert usage_log.take_interrupted(str(tmp_path), NOW + 60) == []
    assert [act.outcome for act in read_acts(tmp_path)] == [DONE]
