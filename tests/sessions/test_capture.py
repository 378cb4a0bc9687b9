"""Tests of intake: only what is new, nothing twice, whatever happens to the transcript."""

from __future__ import annotations

import json
import multiprocessing
from typing import TYPE_CHECKING

import pytest

from memtool.sessions import capture, journal, store
from memtool.sessions.capture import CAPTURES, Capture, Transcript
from memtool.sessions.model import Message, Session
from memtool.sessions.store import Sessions
from memtool.sessions.transcripts import reader

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_772_366_400
KEY = "AKIA" + "Q3EGRZXT5MPLHV2B"


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(str(tmp_path / "sessions"))


def typed(number: int, text: str = "", **fields: object) -> str:
    row = {
        "type": "user",
        "uuid": f"u-{number}",
        "sessionId": "the-session",
        "timestamp": "2026-02-20T09:00:00Z",
        "message": {"role": "user", "content": text or f"message {number}"},
    }
    return json.dumps(row | fields) + "\n"


def begin(id: str, _read: object) -> Session:
    return Session(id, 1)


def take(sessions: Sessions, path: Path, session: str = "", *, dry_run: bool = False) -> Capture:
    with reader.open_transcript(str(path)) as file:
        transcript = Transcript(file, str(path), (), "", session)
        return capture.capture(sessions, transcript, begin, NOW, dry_run=dry_run)


def texts(sessions: Sessions, id: str = "the-session") -> list[str]:
    return [message.text for message in sessions.messages(id)[0]]


def test_only_what_is_new_is_taken(sessions: Sessions, tmp_path: Path) -> None:
    """A second capture takes the lines that were added, a third one nothing."""
    path = tmp_path / "t.jsonl"
    path.write_text(typed(1) + typed(2))
    first = take(sessions, path)
    assert (first.is_new, first.session, len(first.messages)) == (True, "the-session", 2)
    with path.open("a") as file:
        file.write(typed(3))
    second = take(sessions, path)
    assert (second.is_new, [message.number for message in second.messages]) == (False, [3])
    assert take(sessions, path).messages == ()
    assert texts(sessions) == ["message 1", "message 2", "message 3"]


def test_half_a_line_is_taken_when_it_is_whole(sessions: Sessions, tmp_path: Path) -> None:
    """A line that its host is still writing is neither lost nor torn."""
    path = tmp_path / "t.jsonl"
    line = typed(2)
    path.write_text(typed(1) + line[:30])
    assert take(sessions, path).broken == 1
    path.write_text(typed(1) + line)
    assert [message.text for message in take(sessions, path).messages] == ["message 2"]


@pytest.mark.parametrize(
    "then",
    [
        lambda: typed(1) + typed(3),
        lambda: typed(0, "a longer beginning than there was before") + typed(1) + typed(3),
        lambda: typed(3),
        lambda: typed(3) + typed(2) + typed(1),
    ],
)
def test_a_transcript_that_was_rewritten_is_read_anew(
    sessions: Sessions, tmp_path: Path, then: object
) -> None:
    """Captured messages are recognised by their origin, and not captured again."""
    path = tmp_path / "t.jsonl"
    path.write_text(typed(1) + typed(2))
    take(sessions, path)
    assert callable(then)
    path.write_text(then())
    take(sessions, path)
    contents = texts(sessions)
    assert contents[:2] == ["message 1", "message 2"]
    assert sorted(contents) == sorted(set(contents))
    assert "message 3" in contents


def test_a_lost_journal_of_captures_costs_time_only(sessions: Sessions, tmp_path: Path) -> None:
    """So does one that is damaged, or that a killed capture did not get to write."""
    path = tmp_path / "t.jsonl"
    path.write_text(typed(1) + typed(2))
    take(sessions, path)
    place = sessions.path("the-session", CAPTURES)
    for data in (b"", b"\0\xff\n", b'{"path": 3}\n', b'{"path":"' + str(path).encode() + b'"}\n'):
        with open(place, "wb") as file:
            file.write(data)
        assert take(sessions, path).messages == ()
    assert texts(sessions) == ["message 1", "message 2"]


def test_messages_from_elsewhere_do_not_confuse_it(sessions: Sessions, tmp_path: Path) -> None:
    """A session may be captured and added to by hand at the same time."""
    path = tmp_path / "t.jsonl"
    path.write_text(typed(1))
    take(sessions, path)
    store.add(sessions, "the-session", [Message(0, "user", "by hand")], NOW)
    with path.open("a") as file:
        file.write(typed(2))
    take(sessions, path)
    assert texts(sessions) == ["message 1", "by hand", "message 2"]


def test_a_session_that_ended_goes_on(sessions: Sessions, tmp_path: Path) -> None:
    """A host may take up a session again; then it is open again."""
    path = tmp_path / "t.jsonl"
    path.write_text(typed(1))
    take(sessions, path)
    from memtool.sessions import lifecycle

    lifecycle.end(sessions, "the-session", "done", NOW)
    assert take(sessions, path).messages == ()
    assert sessions.head("the-session").status == "ended"
    with path.open("a") as file:
        file.write(typed(2))
    take(sessions, path)
    assert sessions.head("the-session").status == "open"


def test_a_dry_run_writes_nothing(sessions: Sessions, tmp_path: Path) -> None:
    """Neither for a new session nor for one that is there."""
    path = tmp_path / "t.jsonl"
    path.write_text(typed(1))
    done = take(sessions, path, dry_run=True)
    assert (done.session, len(done.messages)) == ("the-session", 1)
    assert sessions.ids() == []
    take(sessions, path)
    with path.open("a") as file:
        file.write(typed(2))
    assert len(take(sessions, path, dry_run=True).messages) == 1
    assert texts(sessions) == ["message 1"]


def test_a_session_may_be_named(sessions: Sessions, tmp_path: Path) -> None:
    """Then the transcript goes there, whatever it says itself."""
    path = tmp_path / "t.jsonl"
    path.write_text(typed(1))
    assert take(sessions, path, "mine").session == "mine"
    assert sessions.ids() == ["mine"]


def test_messages_of_the_future_are_kept_and_counted(sessions: Sessions, tmp_path: Path) -> None:
    """A clock may be wrong; the message still counts."""
    path = tmp_path / "t.jsonl"
    path.write_text(typed(1, timestamp="2031-01-01T00:00:00Z") + typed(2))
    done = take(sessions, path)
    assert (len(done.messages), done.future) == (2, 1)


def test_a_long_answer_is_cut_after_its_secrets_are(sessions: Sessions, tmp_path: Path) -> None:
    """Both ends are kept, and no half of a secret that lay where it was cut."""
    filler = "a line of output\n" * 4_000
    for shift in range(0, 40, 3):
        at = capture.MAX_TEXT_CHARS // 3 - shift
        text = filler[:at].rstrip("\n") + "\n" + KEY + "\n" + filler + "the end"
        path = tmp_path / f"t{shift}.jsonl"
        path.write_text(typed(shift, text))
        take(sessions, path)
    for message in sessions.messages("the-session")[0]:
        assert len(message.text) < capture.MAX_TEXT_CHARS + 100
        assert message.text.endswith("the end")
        assert "characters left out" in message.text
        assert KEY[:12] not in message.text


def test_origins_that_look_like_secrets_stay_apart(sessions: Sessions, tmp_path: Path) -> None:
    """They are not kept as they are, and no two messages become one."""
    path = tmp_path / "t.jsonl"
    path.write_text(typed(1, uuid=KEY) + typed(2, uuid=KEY[:-1] + "C"))
    assert len(take(sessions, path).messages) == 2
    rows, _torn = journal.read(sessions.path("the-session", "messages.jsonl"))
    assert not any(KEY in row["origin"] for row in rows)
    path.write_text(typed(2, uuid=KEY[:-1] + "C") + typed(1, uuid=KEY))
    assert take(sessions, path).messages == ()


def run(sessions: Sessions, path: Path) -> None:
    for _time in range(5):
        take(sessions, path)


@pytest.mark.slow
def test_captures_at_the_same_time_take_everything_once(sessions: Sessions, tmp_path: Path) -> None:
    """Whoever comes first takes it, the others find nothing new."""
    path = tmp_path / "t.jsonl"
    path.write_text("".join(typed(number) for number in range(700)))
    workers = [
        multiprocessing.get_context("fork").Process(target=run, args=(sessions, path))
        for _number in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert texts(sessions) == [f"message {number}" for number in range(700)]


def test_a_copy_of_a_session_goes_on_from_it(sessions: Sessions, tmp_path: Path) -> None:
    """A host that forks copies the lines: they are not said twice, and the lineage is kept."""
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(typed(1) + typed(2) + typed(3))
    second.write_text("".join(typed(n, sessionId="the-copy") for n in (1, 2, 4)))

    def begin_claude(id: str, read: reader.Reading) -> Session:
        return Session(id, 1, host=read.host)

    def take_both(*, dry_run: bool) -> list[Capture]:
        captures = []
        for path in (first, second):
            with reader.open_transcript(str(path)) as file:
                transcript = Transcript(file, str(path), ())
                captures.append(
                    capture.capture(sessions, transcript, begin_claude, NOW, dry_run=dry_run)
                )
        return captures

    take_both(dry_run=False)
    assert texts(sessions, "the-copy") == ["message 4"]
    head = sessions.head("the-copy")
    assert (head.parent, head.parent_messages) == ("the-session", 2)
    assert [len(captured.messages) for captured in take_both(dry_run=True)] == [0, 0]
    assert [len(captured.messages) for captured in take_both(dry_run=False)] == [0, 0]


def test_no_secret_is_kept_with_what_the_next_capture_needs(
    sessions: Sessions, tmp_path: Path
) -> None:
    """Calls without an answer, directories, names of tools and files: all of it is on the disk."""
    path = tmp_path / f"{KEY}.jsonl"
    calls = [
        {"type": "tool_use", "id": f"t-{KEY}", "name": f"m__{KEY}", "input": {"path": f"a/{KEY}"}},
        {"type": "tool_use", "id": "t-2", "name": "Bash", "input": {"command": f"login {KEY}"}},
        {
            "type": "tool_use",
            "id": "t-3",
            "name": "Bash",
            "input": {"command": "x" * (store.MAX_CALL - 10) + f" {KEY}"},
        },
    ]
    row = {"type": "assistant", "message": {"role": "assistant", "content": calls}}
    path.write_text(typed(1, sessionId=KEY, cwd=f"/srv/{KEY}") + typed(2, **row, sessionId=KEY))
    done = take(sessions, path)
    files = list((tmp_path / "sessions").rglob("*"))
    assert len(done.messages) == 4
    assert KEY not in str(files)
    assert not any(KEY[:9].encode() in file.read_bytes() for file in files if file.is_file())
    assert take(sessions, path).messages == ()


def test_an_answer_finds_its_call_that_held_a_secret(sessions: Sessions, tmp_path: Path) -> None:
    """Between two captures the call is kept without it."""
    path = tmp_path / "t.jsonl"
    call = {"type": "tool_use", "id": "t-1", "name": "Bash", "input": {"command": f"login {KEY}"}}
    answer = {"type": "tool_result", "tool_use_id": "t-1", "content": "done"}
    row = {"type": "assistant", "message": {"role": "assistant", "content": [call]}}
    path.write_text(typed(1, **row))
    take(sessions, path)
    with path.open("a") as file:
        file.write(typed(2, message={"role": "user", "content": [answer]}))
    (message,) = take(sessions, path).messages
    assert (message.tool, message.call) == ("Bash", "login [REDACTED:aws-access-key]")


@pytest.mark.slow
def test_a_full_session_takes_what_it_can_and_is_not_read_in_vain(
    sessions: Sessions, tmp_path: Path
) -> None:
    """Dropped messages are counted and reported, and the next capture begins after them."""
    small = sessions.replace(most_bytes=40_000)
    path = tmp_path / "t.jsonl"
    text = " ".join(f"{n:x}" for n in range(9_000, 12_000))
    path.write_text("".join(typed(n, f"{n} {text}") for n in range(1, 1_501)))
    done = take(small, path)
    assert (len(done.messages), done.lost) == (0, 1_500)
    assert "is full" in done.notes[0]
    again = take(small, path)
    assert (again.messages, again.lost) == ((), 0)


def test_a_byte_that_is_no_text_costs_only_itself(sessions: Sessions, tmp_path: Path) -> None:
    """Tools print anything; the line around it is read."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(typed(1, "before ? after").encode().replace(b"?", b"\xff"))
    assert [message.text for message in take(sessions, path).messages] == ["before \ufffd after"]
