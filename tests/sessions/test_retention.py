"""Tests of what is stored of sessions: its size, pruning, deletion, damage and repair."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from memtool.errors import MemtoolError
from memtool.sessions import findings, lifecycle, retention, store
from memtool.sessions.model import Message, Session
from memtool.sessions.retention import ASIDE, DOOMED
from memtool.sessions.store import CHECKPOINTS, FINDINGS, HEAD, MESSAGES, Sessions

if TYPE_CHECKING:
    from pathlib import Path

RULE = "Remember: always use uv in this repository."
DAY = 86_400


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    """Two sessions with a message each, the second of another agent."""
    made = Sessions(str(tmp_path / "sessions"))
    for place, (id_, agent) in enumerate((("ses-a", "claude"), ("ses-b", "codex")), start=1):
        made.create(Session(id_, place, host=agent, agent=agent, title=f"the {agent} one"))
        say(made, id_, RULE, moment=place)
        findings.learn(made, id_)
    return made


def say(sessions: Sessions, id: str, *texts: str, moment: int = 1) -> None:
    new = [Message(0, "user", text, moment) for text in texts]
    store.add(sessions, id, [*new, Message(0, "assistant", "Done.", moment)], moment)


def texts(sessions: Sessions, id: str) -> list[str]:
    return [message.text for message in sessions.messages(id)[0]]


def everything(folder: str) -> bytes:
    """All bytes of all files below a directory."""
    contents = b""
    for top, _folders, names in os.walk(folder):
        for name in names:
            with open(os.path.join(top, name), "rb") as file:
                contents += file.read()
    return contents


def test_what_is_stored_is_counted_with_its_share(sessions: Sessions) -> None:
    """Damaged sessions and all files count; a link is not followed."""
    os.unlink(sessions.path("ses-b", HEAD))
    os.symlink("/etc", os.path.join(sessions.directory, "elsewhere"))
    sizes = retention.measure_sizes(sessions)
    assert set(sizes) == {"ses-a", "ses-b", "elsewhere"}
    assert sizes["elsewhere"] == 0
    assert sizes["ses-b"] > 0
    size = sum(sizes.values())
    full = retention.measure(Sessions(sessions.directory, most_total=size))
    assert (full.size, full.share, full.is_nearly_full) == (size, 1, True)
    assert retention.measure(sessions).text() == "3 sessions, 0.0 of 1,000 MB (0.0%)"
    with pytest.raises(MemtoolError, match="the limit is"):
        retention.refuse_full(Sessions(sessions.directory, most_total=size))


def test_old_sessions_are_pruned_whatever_they_take(sessions: Sessions) -> None:
    """Those that ended before a moment lose their messages, and no others."""
    lifecycle.end(sessions, "ses-a", "", 100)
    lifecycle.end(sessions, "ses-b", "", 200)
    assert retention.prune(sessions, before=200, dry_run=True).ids == ("ses-a",)
    assert retention.prune(sessions, before=200).ids == ("ses-a",)
    assert (sessions.head("ses-a").status, sessions.head("ses-b").status) == ("pruned", "ended")
    assert retention.prune(sessions, before=200).ids == ()


def test_one_that_cannot_be_pruned_keeps_no_other(sessions: Sessions) -> None:
    """Its problem is reported, and the others are pruned."""
    for id_ in ("ses-a", "ses-b"):
        lifecycle.end(sessions, id_, "", 100)
    os.unlink(sessions.path("ses-a", MESSAGES))
    os.symlink("/etc/passwd", sessions.path("ses-a", MESSAGES))
    done = retention.prune(Sessions(sessions.directory, most_total=1))
    assert done.ids == ("ses-b",)
    assert done.wrong[0].startswith("ses-a is not pruned: ")


def test_a_deleted_session_leaves_no_word_of_it(sessions: Sessions) -> None:
    """Nor do forks keep the findings that they had from it; theirs stay."""
    head, rows = lifecycle.fork(sessions, "ses-a", Session("ses-fork", 3, agent="claude"))
    sessions.create(head, rows)
    say(sessions, "ses-fork", "Remember: we decided to keep the carts in Postgres.", moment=3)
    findings.learn(sessions, "ses-fork")
    assert len(findings.read_learned(sessions, "ses-fork").findings) == 2
    assert retention.delete(sessions, "ses-a", 9, dry_run=True).forks == ("ses-fork",)
    assert "ses-a" in sessions.ids()
    gone = retention.delete(sessions, "ses-a", 9)
    assert (gone.forks, gone.wrong, gone.freed > 0) == (("ses-fork",), (), True)
    (finding,) = findings.read_learned(sessions, "ses-fork").findings
    assert (finding.session, sessions.ids()) == ("ses-fork", ["ses-b", "ses-fork"])
    retention.delete(sessions, "ses-b", 9)
    assert b"always use uv" not in everything(sessions.directory)
    assert retention.find_deletion(sessions, "ses-a") == 9
    assert retention.find_deletion(sessions, "ses-fork") == 0
    with pytest.raises(MemtoolError, match="no session"):
        retention.delete(sessions, "ses-a", 10)
    with pytest.raises(MemtoolError, match="no session"):
        say(sessions, "ses-a", "still there?")


def test_a_deletion_that_was_cut_off_is_finished_later(sessions: Sessions) -> None:
    """The remains are no longer a session, and the next pruning removes them."""
    doomed = os.path.join(sessions.directory, f"{DOOMED}ses-a")
    os.rename(sessions.folder("ses-a"), doomed)
    assert sessions.ids() == ["ses-b"]
    retention.prune(sessions, dry_run=True)
    assert os.path.exists(doomed)
    retention.prune(sessions)
    assert not os.path.exists(doomed)


def test_a_link_is_never_deleted_through(sessions: Sessions, tmp_path: Path) -> None:
    """Its target stays, whether the link is the session or a file of it."""
    target = tmp_path / "mine"
    target.mkdir()
    (target / "file").write_text("x")
    os.symlink(target, os.path.join(sessions.directory, "linked"))
    with pytest.raises(MemtoolError, match="is not a directory"):
        retention.delete(sessions, "linked", 9)
    os.unlink(sessions.path("ses-a", MESSAGES))
    os.symlink(target / "file", sessions.path("ses-a", MESSAGES))
    retention.delete(sessions, "ses-a", 9)
    assert (target / "file").read_text() == "x"
    assert "ses-a" not in sessions.ids()


def test_a_damaged_head_is_set_aside_and_rebuilt_from_the_log(sessions: Sessions) -> None:
    """Who worked, since when and on what is known; the others are as they were."""
    with open(sessions.path("ses-b", HEAD), "w") as file:
        file.write('{"id": "ses-b", "sta')
    (damage,) = retention.find_damages(sessions)
    assert (damage.id, damage.what, damage.is_lost) == ("ses-b", "its head is damaged", True)
    before = everything(sessions.folder("ses-a"))
    assert retention.repair(sessions, "ses-b", 5 * DAY) == [HEAD]
    head = sessions.head("ses-b")
    assert (head.started, head.host, head.agent, head.title) == (2, "codex", "codex", RULE)
    assert (head.status, head.ended) == ("ended", 2)
    assert head.summary.startswith("asked: Remember")
    with open(sessions.path("ses-b", HEAD + ASIDE)) as file:
        assert file.read() == '{"id": "ses-b", "sta'
    assert texts(sessions, "ses-b") == [RULE, "Done."]
    assert (retention.find_damages(sessions), everything(sessions.folder("ses-a"))) == ([], before)


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (None, "its head is missing"),
        ("", "its head is damaged"),
        ("[]", "its head is damaged"),
        ('{"id": "ses-a"}', "its head is that of ses-a"),
        ("\0" * 40, "its head is damaged"),
    ],
)
def test_every_head_that_cannot_be_used_is_damage(
    sessions: Sessions, head: str | None, what: str
) -> None:
    """Missing, empty, of another kind or of another session; one used today stays open."""
    path = sessions.path("ses-b", HEAD)
    os.unlink(path)
    if head is not None:
        with open(path, "w") as file:
            file.write(head)
    assert [(damage.id, damage.what) for damage in retention.find_damages(sessions, limit=0)] == [
        ("ses-b", what)
    ]
    assert retention.find(sessions, "ses-b") == "ses-b"
    retention.repair(sessions, "ses-b", 60)
    assert (sessions.head("ses-b").id, sessions.head("ses-b").status) == ("ses-b", "open")
    say(sessions, "ses-b", "on with it")
    assert sessions.ids() == ["ses-a", "ses-b"]


def test_a_session_without_messages_is_rebuilt_as_pruned(sessions: Sessions) -> None:
    """The remains record that there were messages, and the parent."""
    head, rows = lifecycle.fork(sessions, "ses-a", Session("ses-fork", 3))
    sessions.create(head, rows)
    os.unlink(sessions.path("ses-fork", HEAD))
    retention.repair(sessions, "ses-fork", 9)
    rebuilt = sessions.head("ses-fork")
    assert (rebuilt.status, rebuilt.parent, rebuilt.parent_messages) == ("pruned", "ses-a", 1)


def test_damaged_lines_are_set_aside_and_the_whole_ones_stay(sessions: Sessions) -> None:
    """In each journal, whoever broke them; numbers stay as they are."""
    for name in (MESSAGES, FINDINGS, CHECKPOINTS):
        with open(os.path.join(sessions.folder("ses-a"), name), "ab") as file:
            file.write(b'\xff\xfe{]\n{"half')
    say(sessions, "ses-b", "unhurt")
    (damage,) = retention.find_damages(sessions)
    assert not damage.is_lost
    for name in (MESSAGES, FINDINGS, CHECKPOINTS):
        assert f"2 lines of {name} are damaged" in damage.what
    assert set(retention.repair(sessions, "ses-a", 9)) == {MESSAGES, FINDINGS, CHECKPOINTS}
    assert retention.find_damages(sessions) == []
    assert (texts(sessions, "ses-a"), sessions.messages("ses-a")[1]) == ([RULE, "Done."], 0)
    with open(sessions.path("ses-a", MESSAGES + ASIDE), "rb") as file:
        assert b"\xff\xfe{]\n" in file.read()
    say(sessions, "ses-a", "more")
    assert sessions.read_last("ses-a").number == 4


def test_what_cannot_be_repaired_stays_as_it_is(sessions: Sessions) -> None:
    """A link in the place of a log is reported, and neither followed nor removed."""
    os.unlink(sessions.path("ses-a", MESSAGES))
    os.symlink("/etc/passwd", sessions.path("ses-a", MESSAGES))
    (damage,) = retention.find_damages(sessions)
    assert (damage.id, damage.is_lost, damage.is_mendable) == ("ses-a", True, False)
    with pytest.raises(MemtoolError):
        retention.repair(sessions, "ses-a", 9)
    assert os.path.islink(sessions.path("ses-a", MESSAGES))


def test_the_newest_logs_are_looked_through_first(sessions: Sessions) -> None:
    """Beyond a limit in bytes only heads are checked, unless there is no limit."""
    for place, id_ in enumerate(("ses-a", "ses-b"), start=1):
        with open(sessions.path(id_, FINDINGS), "ab") as file:
            file.write(b"broken\n")
        os.utime(sessions.folder(id_), (place, place))
    limit_bytes = retention.measure_sizes(sessions)["ses-b"]
    assert [damage.id for damage in retention.find_damages(sessions, limit_bytes)] == ["ses-b"]
    assert [damage.id for damage in retention.find_damages(sessions, None)] == ["ses-a", "ses-b"]


def test_a_damaged_session_is_no_witness_and_keeps_no_other(sessions: Sessions) -> None:
    """The others are listed, and another can be begun."""
    os.unlink(sessions.path("ses-a", FINDINGS))
    os.mkdir(sessions.path("ses-a", FINDINGS))
    heads, wrong = sessions.heads()
    assert ([head.id for head in heads], wrong) == (["ses-a", "ses-b"], [])
    retention.refuse_full(sessions)
    with open(sessions.path("ses-b", HEAD), "w") as file:
        json.dump({"id": 3}, file)
    heads, wrong = sessions.heads()
    assert [head.id for head in heads] == ["ses-a"]
    assert "memtool doctor --fix" in wrong[0]
