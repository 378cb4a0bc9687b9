"""Tests of the store of sessions: adding, limits, parts, ids, races, kills and redaction."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.redaction.find import Allowlist
from memtool.sessions import journal, model, store
from memtool.sessions.model import Message, Session
from memtool.sessions.store import CHECKPOINTS, SessionExistsError, Sessions

KEY = "AKIA" + "Q3EGRZXT5MPLHV2B"
TEXTS = st.text(max_size=20)
MESSAGES = st.builds(
    Message,
    number=st.integers(1, 1 << 40),
    role=st.sampled_from(model.ROLES),
    text=TEXTS,
    moment=st.integers(0, 1 << 33),
    agent=TEXTS,
    tool=TEXTS,
    call=TEXTS,
    is_ok=st.none() | st.booleans(),
    files=st.lists(TEXTS, max_size=3).map(tuple),
    origin=TEXTS,
)


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    """A store with one open session."""
    store = Sessions(str(tmp_path / "memtool" / "sessions"))
    store.create(Session("one", 5, agent="claude"))
    return store


def make_message(text: str, **fields: object) -> Message:
    return Message(0, "user", text, **fields)


def texts(sessions: Sessions, id: str = "one") -> list[str]:
    return [message.text for message in sessions.messages(id)[0]]


@given(MESSAGES)
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    """Nothing of it is lost in its row, which begins with its number."""
    row = model.as_row(message)
    assert next(iter(row)) == "number"
    assert model.read_message(row) == message


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"number": 1, "role": "user"},
        {"number": "1", "role": "user", "text": ""},
        {"number": 1, "role": "boss", "text": ""},
        {"number": True, "role": "user", "text": ""},
        {"number": 1, "role": "user", "text": "", "files": "a"},
        {"number": 1, "role": "user", "text": "", "files": [1]},
        {"number": 1, "role": "user", "text": "", "is_ok": "yes"},
        {"number": 1, "role": [], "text": ""},
    ],
)
def test_a_row_of_another_kind_is_no_message(row: dict[str, object]) -> None:
    """Rows that no version of memtool wrote are skipped."""
    assert model.read_message(row) is None


def test_messages_get_the_next_numbers(sessions: Sessions) -> None:
    """They are kept in order, with what was said about them; the speaker is that of the session."""
    store.add(sessions, "one", [make_message("a"), make_message("b")], 7)
    added = store.add(sessions, "one", [Message(0, "tool", "", tool="Bash", is_ok=False)], 8)
    assert [message.number for message in added.messages] == [3]
    messages, torn = sessions.messages("one")
    assert [(message.number, message.agent, message.is_ok) for message in messages] == [
        (1, "", None),
        (2, "", None),
        (3, "claude", False),
    ]
    assert (torn, sessions.read_last("one")) == (0, messages[-1])


def test_no_secret_reaches_the_disk(sessions: Sessions, tmp_path: Path) -> None:
    """Not in the text, not in a call, a path, a name, a note or what a message came from."""
    store.add(
        sessions,
        "one",
        [
            Message(
                0,
                "tool",
                f"key {KEY}",
                call=f"aws --key {KEY}",
                files=(f"x/{KEY}",),
                tool=KEY,
                agent=KEY,
                origin=KEY,
            ),
        ],
        1,
    )
    store.add_checkpoint(sessions, "one", f"note {KEY}", 1)
    data = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY.encode() not in data
    (message,) = sessions.messages("one")[0]
    assert message.text == "key [REDACTED:aws-access-key]"
    assert message.call == "aws --key [REDACTED:aws-access-key]"


def test_every_tenth_message_makes_a_checkpoint(sessions: Sessions) -> None:
    """It records the work since the previous one, however messages came in."""
    store.add(sessions, "one", [make_message(f"m{n}", files=(f"f{n}",)) for n in range(8)], 1)
    store.add(sessions, "one", [Message(0, "tool", "no", is_ok=False), make_message("go on")], 2)
    store.add(sessions, "one", [make_message(f"n{n}") for n in range(21)], 3)
    rows, _torn = journal.read(sessions.path("one", CHECKPOINTS))
    assert [(row["message"], row["moment"]) for row in rows] == [(10, 2), (20, 3), (30, 3)]
    assert rows[0]["asked"] == "go on"
    assert rows[0]["failures"] == 1
    assert rows[0]["files"] == [f"f{n}" for n in range(8)]
    assert "files" not in rows[1]


def test_a_checkpoint_by_hand_has_a_note(sessions: Sessions) -> None:
    """It follows the last message, even if there is none yet."""
    assert store.add_checkpoint(sessions, "one", "begun", 1).message == 0
    store.add(sessions, "one", [make_message("a")], 1)
    made = store.add_checkpoint(sessions, "one", "half way", 2)
    assert (made.message, made.note, made.prompt) == (1, "half way", "a")


def test_a_torn_line_is_told_to_who_adds_next(sessions: Sessions) -> None:
    """Nothing before it is lost, and the number of the lost line is given again."""
    store.add(sessions, "one", [make_message("a"), make_message("b")], 1)
    with open(sessions.path("one", "messages.jsonl"), "ab") as file:
        file.write(b'{"number":3,"role":"user","te')
    assert sessions.messages("one")[1] == 1
    added = store.add(sessions, "one", [make_message("c")], 1)
    assert "half written" in added.notes[0]
    assert [message.number for message in sessions.messages("one")[0]] == [1, 2, 3]
    assert sessions.messages("one")[1] == 0


def test_a_line_of_another_hand_does_not_stop_the_count(sessions: Sessions) -> None:
    """Numbers go on from the greatest that can be read."""
    store.add(sessions, "one", [make_message("a"), make_message("b")], 1)
    with open(sessions.path("one", "messages.jsonl"), "ab") as file:
        file.write(b"what is this\n")
    assert store.add(sessions, "one", [make_message("c")], 1).messages[0].number == 3
    assert sessions.messages("one")[1] == 1


SMALL = 40_000


def fill(sessions: Sessions, count: int) -> list[str]:
    """Add messages that compress badly until they are refused; return what was said."""
    chance = random.Random(3)
    notes: list[str] = []
    for number in range(count):
        words = " ".join(f"w{chance.randrange(10**4)}" for _word in range(60))
        notes += store.add(sessions, "one", [make_message(f"{number} {words}")], 1).notes
    return notes


def test_near_its_limit_a_session_says_so(sessions: Sessions) -> None:
    """From nine tenths on each answer has a note, and everything is still stored."""
    small = sessions.replace(most_bytes=SMALL)
    store.add(small, "one", [make_message("x" * (SMALL * 8 // 10))], 1)
    (note,) = store.add(small, "one", [make_message("y" * (SMALL // 10))], 1).notes
    assert "nearly full" in note
    assert [len(text) for text in texts(small)] == [SMALL * 8 // 10, SMALL // 10]


def test_a_full_session_refuses_with_what_to_do(sessions: Sessions) -> None:
    """At its limit nothing more goes in, nothing is lost, and the hint names the ways on."""
    small = sessions.replace(most_bytes=SMALL)
    with pytest.raises(MemtoolError, match="is full") as caught:
        fill(small, 2_000)
    assert "session end one" in caught.value.hint
    assert "session fork one" in caught.value.hint
    messages, torn = small.messages("one")
    assert [message.number for message in messages] == list(range(1, len(messages) + 1))
    assert torn == 0
    assert (
        store.add(sessions, "one", [make_message("more")], 1).messages[0].number
        == len(messages) + 1
    )


def packed(sessions: Sessions, last: int) -> Path:
    """Move the journal into a part with these numbers, as earlier versions did; return it."""
    path = Path(sessions.path("one", "messages.jsonl"))
    part = path.with_name(f"messages-{1:07}-{last:07}.jsonl.gz")
    part.write_bytes(gzip.compress(path.read_bytes()))
    path.write_bytes(b"")
    return part


def test_what_earlier_versions_compressed_is_read(sessions: Sessions) -> None:
    """Its messages come first, numbers go on after them, and what is there twice counts once."""
    store.add(sessions, "one", [make_message("a"), make_message("b")], 1)
    journal_path = Path(sessions.path("one", "messages.jsonl"))
    data = journal_path.read_bytes()
    packed(sessions, 2)
    assert sessions.read_last("one") == sessions.messages("one")[0][-1]
    journal_path.write_bytes(data)  # whoever compressed it was killed before it was emptied
    assert texts(sessions) == ["a", "b"]
    journal_path.write_bytes(b"")
    assert store.add(sessions, "one", [make_message("c")], 1).messages[0].number == 3
    assert texts(sessions) == ["a", "b", "c"]


def test_a_damaged_part_gives_what_it_still_holds(sessions: Sessions) -> None:
    """Its first messages are read, overwritten ones are torn or gone, nothing fails."""
    chance = random.Random(5)
    many = [
        make_message(" ".join(str(chance.random()) for _n in range(30))) for _message in range(200)
    ]
    store.add(sessions, "one", many, 1)
    part = packed(sessions, 200)
    with part.open("r+b") as file:
        file.seek(part.stat().st_size // 2)
        file.write(b"\0" * 3_000)
    messages, _torn = sessions.messages("one")
    assert 0 < len(messages) < 200
    assert messages[0].text == many[0].text
    assert store.add(sessions, "one", [make_message("c")], 1).messages[0].number == 201


BAD_IDS = ["", "..", "../x", "a/b", "/etc", "a\0b", ".git", "-x", "a b", "é" * 5, "x" * 200, "ab"]


@pytest.mark.parametrize("id_", BAD_IDS)
def test_no_id_leaves_the_directory(sessions: Sessions, id_: str) -> None:
    """An id that could be a path elsewhere is refused."""
    assert not model.is_id(id_)
    for act in (sessions.folder, sessions.find, sessions.head, sessions.messages):
        with pytest.raises(MemtoolError) as caught:
            act(id_)
        assert caught.value.code == "no-session"


@pytest.mark.parametrize("host_id", [*BAD_IDS, "5f0c1d2e-8a47", "ses_4d58FFe"])
def test_the_id_of_a_host_becomes_a_safe_name(host_id: str) -> None:
    """A safe id stays as it is, any other one is hashed, always to the same name."""
    name = model.name_host_session("codex", host_id)
    assert model.is_id(name)
    assert name == model.name_host_session("codex", host_id)
    assert (name == host_id) == model.is_id(host_id)


def test_a_link_in_the_place_of_a_session_is_refused(sessions: Sessions, tmp_path: Path) -> None:
    """Nothing is read or written at its target."""
    outside = tmp_path / "outside"
    outside.mkdir()
    os.symlink(outside, os.path.join(sessions.directory, "linked"))
    for act in (
        lambda: sessions.messages("linked"),
        lambda: store.add(sessions, "linked", [make_message("x")], 1),
        lambda: sessions.create(Session("linked", 1)),
    ):
        with pytest.raises(MemtoolError, match="is not a directory"):
            act()
    assert list(outside.iterdir()) == []


def test_a_session_is_found_by_the_beginning_of_its_id(sessions: Sessions) -> None:
    """One that begins so is meant, several are named."""
    sessions.create(Session("ses-a1", 1))
    sessions.create(Session("ses-a2", 1))
    assert sessions.find("one") == "one"
    assert sessions.find("ses-a1") == "ses-a1"
    with pytest.raises(MemtoolError, match="2 sessions begin"):
        sessions.find("ses")
    with pytest.raises(SessionExistsError):
        sessions.create(Session("ses-a1", 1))


def test_a_killed_start_leaves_an_id_that_can_be_used(sessions: Sessions) -> None:
    """A directory without a head is not a session, and becomes one when begun again."""
    os.mkdir(os.path.join(sessions.directory, "half"))
    assert sessions.ids() == ["one"]
    sessions.create(Session("half", 1))
    assert sessions.ids() == ["half", "one"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"id": "one"}',
        '{"id": 1, "started": 1}',
        '{"id": "one", "started": 1, "status": "odd"}',
    ],
)
def test_a_damaged_head_is_told(sessions: Sessions, text: str) -> None:
    """Its own session says so, the others are listed."""
    sessions.create(Session("two", 1))
    with open(sessions.path("one", "head.json"), "w", encoding="utf-8") as file:
        file.write(text)
    if text == '{"id": "one"}':
        assert sessions.head("one").started == 0
        return
    with pytest.raises(MemtoolError, match="damaged"):
        sessions.head("one")
    heads, wrong = sessions.heads()
    assert [head.id for head in heads] == ["two"]
    assert len(wrong) == 1


FORK = multiprocessing.get_context("fork")


def add_many(sessions: Sessions, name: str, count: int, write_fd: int) -> None:
    for number in range(count):
        added = store.add(
            sessions, "one", [make_message(f"{name} {number} " + "x" * (number % 99))], 1
        )
        os.write(write_fd, f"{added.messages[0].number} {name} {number}\n".encode())


def promised(read: int) -> dict[int, str]:
    with os.fdopen(read, encoding="utf-8") as pipe:
        rows = [line.split() for line in pipe.read().split("\n")[:-1]]
    return {int(row[0]): f"{row[1]} {row[2]}" for row in rows}


def read_all(sessions: Sessions) -> dict[int, str]:
    messages, torn = sessions.messages("one")
    assert torn == 0
    return {message.number: " ".join(message.text.split()[:2]) for message in messages}


@pytest.mark.slow
def test_many_processes_share_a_session(sessions: Sessions) -> None:
    """Each message is there once, under the number that its writer was told."""
    read, write_fd = os.pipe()
    workers = [
        FORK.Process(target=add_many, args=(sessions, f"w{number}", 25, write_fd))
        for number in range(16)
    ]
    for worker in workers:
        worker.start()
    os.close(write_fd)
    wanted = promised(read)
    for worker in workers:
        worker.join()
    assert read_all(sessions) == wanted
    assert sorted(wanted) == list(range(1, 16 * 25 + 1))


@pytest.mark.slow
def test_killed_writers_lose_nothing_that_was_promised(sessions: Sessions) -> None:
    """After every kill what was acknowledged is there, and the next writer goes on."""
    chance = random.Random(1)
    wanted: dict[int, str] = {}
    for number in range(12):
        read, write_fd = os.pipe()
        worker = FORK.Process(target=add_many, args=(sessions, f"k{number}", 10**6, write_fd))
        worker.start()
        os.close(write_fd)
        time.sleep(chance.uniform(0.01, 0.05))
        os.kill(worker.pid or 0, signal.SIGKILL)
        worker.join()
        wanted |= promised(read)
    stored = read_all(sessions)
    assert wanted.items() <= stored.items()
    assert sorted(stored) == list(range(1, len(stored) + 1))


PARTS = st.sampled_from(
    (
        "plain words",
        KEY,
        "\0",
        "\n",
        "password = hunter2-secret-9",
        "ada@kestrel-labs.io",
        "é\u2028",
        "",
    )
)


@given(st.sets(st.lists(PARTS, max_size=4).map(" ".join), max_size=6))
def test_texts_are_cleaned_each_for_itself(texts: set[str]) -> None:
    """Looking at all of them at once finds what looking at each one finds, and keeps the rest."""
    together = store.clean_texts(texts)
    assert set(together) == texts
    for text, clean in together.items():
        assert store.clean_texts({text}) == {text: clean}
        assert KEY not in clean
        assert clean.count("plain words") == text.count("plain words")


@pytest.mark.slow
def test_no_finding_goes_missing_between_two_looks() -> None:
    """However much there is, every text is looked through."""
    filler = "word " * 60_000
    texts = {f"{number} {filler} {KEY}" for number in range(8)}
    assert not any(KEY in clean for clean in store.clean_texts(texts).values())


def test_texts_that_look_like_the_end_of_one_are_cleaned_as_well() -> None:
    """Neither what separates texts nor the halves of a key mix one text with the next."""
    begin, end = (f"-----{edge} RSA PRIVATE KEY-----" for edge in ("BEGIN", "END"))
    texts = {f"{begin}\nMIIEpAIBAAKCAQEA7bq9Xz3\n", f"a\n\0\nb {KEY}", f"tail\n{end}", "z"}
    together = store.clean_texts(texts)
    assert together == {text: store.clean_texts({text})[text] for text in texts}
    assert together[f"a\n\0\nb {KEY}"] == "a\n\0\nb [REDACTED:aws-access-key]"


def test_what_the_settings_allow_stays() -> None:
    """An address that is allowed in memories is allowed in sessions."""
    message = Message(0, "user", "Ask ada@kestrel-labs.io or bob@kestrel-labs.io.")
    (cleaned,) = store.clean_messages(
        [message], Allowlist(emails=frozenset({"ada@kestrel-labs.io"}))
    )
    assert cleaned.text == "Ask ada@kestrel-labs.io or [REDACTED:email]."


def test_a_clean_message_is_the_same_one() -> None:
    """Nothing is copied that need not be, and nothing but texts is looked at."""
    message = Message(3, "tool", "ok", moment=5, tool="Bash", call="ls", is_ok=True, files=("a",))
    assert store.clean_messages([message]) == [message]
    assert store.clean_messages([message])[0] is message
    assert store.clean_messages([]) == []


def test_of_a_long_text_both_ends_are_kept() -> None:
    """It says how much is left out; a short one stays whole."""
    (cleaned,) = store.clean_messages([Message(0, "tool", "a" * 50 + "b" * 50)], max_chars=30)
    assert cleaned.text == f"{'a' * 10}\n[… 70 characters left out …]\n{'b' * 20}"
    (cleaned,) = store.clean_messages([Message(0, "tool", "a" * 30)], max_chars=30)
    assert cleaned.text == "a" * 30
