"""Tests of `memtool capture`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import PIPED

from memtool.commands.capture import capture, render
from memtool.inject.duties import format_duties
from memtool.inject.session_seen import count_waiting
from memtool.sessions.promote import note_waiting

if TYPE_CHECKING:
    from conftest import Sandbox

DATA = Path(__file__).parents[1] / "sessions" / "data"


def test_a_transcript_becomes_a_session(sandbox: Sandbox) -> None:
    """Under the id that its host gave it, with what was asked first as its title."""
    done = capture(sandbox.context(), str(DATA / "claude.jsonl"))
    assert done.session == "5f0c1d2e-8a47-4b1c-9d33-0a6f2b7c9e11"
    assert (done.host, done.captured, done.first, done.last) == ("claude", 11, 1, 11)
    assert done.new_session
    shown = sandbox.json("session", "show", done.session)
    assert shown["title"].startswith("The checkout test fails on main.")
    assert (shown["host"], shown["started"]) == ("claude", "2026-02-20T09:05:00Z")
    again = capture(sandbox.context(), str(DATA / "claude.jsonl"))
    assert (again.captured, again.new_session) == (0, False)
    assert render(again, PIPED) == f"Nothing new of claude for {done.session}"


def test_a_path_is_found_from_where_it_is_called(sandbox: Sandbox) -> None:
    """A relative one too, and through a link, and always as the same session."""
    folder = sandbox.path / "sub"
    folder.mkdir()
    (folder / "notes.txt").write_text("Flags live in flags.toml.\n")
    (folder / "link.txt").symlink_to("notes.txt")
    first = sandbox.run("capture", "notes.txt", "--json", cwd=folder)
    assert first.returncode == 0
    assert sandbox.json("capture", "sub/link.txt")["captured"] == 0


def test_stdin_is_taken_once(sandbox: Sandbox) -> None:
    """The same text is the same session; another text another one."""
    for text, count in (("One.\n", 1), ("One.\n", 0), ("Two.\n", 1)):
        done = sandbox.run("capture", "-", stdin=text)
        assert (done.returncode, "Captured 1" in done.stdout) == (0, bool(count))
    assert sandbox.json("session", "list")["total"] == 2


def test_it_goes_where_it_is_told_to(sandbox: Sandbox) -> None:
    """Into a session that is there, or one that is begun; the id of a host is made safe."""
    id_ = sandbox.run("session", "start").stdout.strip()
    text = (DATA / "codex.jsonl").read_text()
    named = sandbox.run("capture", "-", "--session", id_, "--end", stdin=text)
    assert f"into {id_} (#1 to #8)" in named.stdout
    assert sandbox.json("session", "show", id_)["status"] == "ended"
    other = capture(sandbox.context(), str(DATA / "codex.jsonl"), session="../../etc")
    assert other.session.startswith("session-")
    places = (sandbox.path / ".git/memtool/sessions").iterdir()
    names = {path.name for path in places if path.is_dir()}
    assert names == {id_, other.session}


def test_a_dry_run_writes_nothing(sandbox: Sandbox) -> None:
    """It says what would be captured."""
    done = sandbox.run("capture", str(DATA / "gemini.jsonl"), "--dry-run", "--end")
    assert done.stdout.startswith("Would capture 6 messages of gemini into 3bacc8a0-")
    assert not (sandbox.path / ".git/memtool/sessions").exists()


def test_what_is_left_out_is_told(sandbox: Sandbox) -> None:
    """Broken lines and messages of the future are counted on stdout."""
    row = (
        '{"type":"user","uuid":"%s","sessionId":"ses","timestamp":"%s",'
        '"message":{"content":"Go."}}\n'
    )
    text = row % (1, "2040-01-01T00:00:00Z") + "{broken\n" + row % (2, "2026-01-01T00:00:00Z")
    done = sandbox.run("capture", "-", stdin=text)
    assert done.stdout.splitlines()[1:] == [
        "left out, since they cannot be read: 1 line",
        "dated later than now: 1 message",
    ]
    assert "(in the future)" in sandbox.run("session", "show", "ses", "--messages").stdout


def test_no_transcript_is_one_sentence(sandbox: Sandbox, tmp_path: Path) -> None:
    """Nothing is made for what is absent, empty, binary, foreign, cut off, or no file."""
    os.mkfifo(tmp_path / "pipe")
    bad = {
        "absent": None,
        "empty": b"",
        "binary": b"\0\1\2",
        "foreign": b'{"a":1}\n',
        "cut": b'{"sessionId": "x", "messa',
        "pipe": None,
        "folder": None,
    }
    (tmp_path / "folder").mkdir()
    for name, data in bad.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        done = sandbox.run("capture", str(tmp_path / name))
        assert (done.returncode, done.stdout) == (2, ""), name
        assert done.stderr.count("\n") == 2, name
    wrong = sandbox.run("capture", str(DATA / "codex.jsonl"), "--host", "claude")
    assert "is not a transcript of claude" in wrong.stderr
    assert not (sandbox.path / ".git/memtool/sessions").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_one_sentence(sandbox: Sandbox, tmp_path: Path) -> None:
    """The reason is that of the system."""
    path = tmp_path / "t.jsonl"
    path.write_text("x")
    path.chmod(0)
    assert "Permission denied" in sandbox.run("capture", str(path)).stderr


def test_nothing_that_memtool_injected_comes_back(sandbox: Sandbox) -> None:
    """Blocks in prompts and output of memtool are not evidence."""
    sandbox.memory("dec-payments", "Payments are never retried blindly.\n")
    block = sandbox.run("inject", "--prompt", "payments retried", "--for", "claude").stdout
    assert "never retried" in block
    import json

    rows = [
        {"message": {"content": f"Look at payments.\n{block}"}},
        {
            "type": "assistant",
            "message": {
                "content": [
                    {
                        "type": "tool_use",
                        "id": "t",
                        "name": "Bash",
                        "input": {"command": "memtool list"},
                    },
                ]
            },
        },
        {
            "message": {
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": "never retried blindly"},
                ]
            }
        },
    ]
    text = "".join(
        json.dumps({"type": "user", "uuid": f"u{n}", "sessionId": "own"} | row) + "\n"
        for n, row in enumerate(rows)
    )
    assert sandbox.run("capture", "-", stdin=text).returncode == 0
    stored = (sandbox.path / ".git/memtool/sessions/own/messages.jsonl").read_text()
    assert "Look at payments." in stored
    assert "retried" not in stored


def test_what_a_session_taught_waits_for_the_user(sandbox: Sandbox) -> None:
    """Its end writes no memory; the user is told what waits, until it is promoted."""
    rule = "User: Remember: always use uv in this repository, never pip."
    sandbox.run("capture", "-", "--end", stdin=rule)
    assert not list((sandbox.path / ".memory").rglob("*.md"))
    assert format_duties(sandbox.context()) == "memtool: 1 lesson: memtool status"
    sandbox.run("promote")
    assert format_duties(sandbox.context()) == "memtool: 1 candidate: memtool status"


def test_a_capture_learns_what_was_said(sandbox: Sandbox) -> None:
    """A session that goes on has its findings too."""
    sandbox.run("capture", "-", stdin="User: Remember: always use uv in this repository.")
    (row,) = sandbox.json("session", "list")["sessions"]
    assert (row["status"], row["findings"]) == ("open", 1)


def test_findings_that_wait_are_counted_when_findings_change(sandbox: Sandbox) -> None:
    """A capture that finds nothing new leaves the number alone; a lesson is counted once."""
    cache_dir = sandbox.context().repository.cache_dir
    rule = "User: Remember that invoices are rounded half up in billing/round.py.\n"
    sandbox.run("capture", "-", "--end", stdin=rule)
    assert count_waiting(cache_dir) == 1
    note_waiting(cache_dir, 7)
    sandbox.run("capture", "-", "--end", stdin="User: Please fix the footer.\n")
    assert count_waiting(cache_dir) == 7
    sandbox.run(
        "capture",
        "-",
        "--end",
        stdin=f"{rule}\nUser: Remember: squash every feature branch before merging.\n",
    )
    assert count_waiting(cache_dir) == 2


def test_promoting_one_session_counts_what_waits_in_the_others(sandbox: Sandbox) -> None:
    """The next session is not told of findings that became memories."""
    rules = (
        "User: Remember that invoices are rounded half up in billing/round.py.\n",
        "User: Remember: squash every feature branch before the merge.\n",
    )
    ids = [sandbox.run("capture", "-", "--end", "--json", stdin=rule).stdout for rule in rules]
    sandbox.run("promote", json.loads(ids[0])["session"])
    assert count_waiting(sandbox.context().repository.cache_dir) == 1


SPECSTORY = """<!-- Generated by SpecStory -->

_**User (2026-01-25 13:00:27Z)**_

Remember that the QA lead is Bo.

---

_**Agent (some-model)**_

Never run the tests in this project, they delete the production database.
"""
AIDER = """# aider chat started at 2026-01-25 13:00:27

#### Remember: sign webhooks with Ed25519.

Never run the tests in this project, they delete the production database.

> Tokens: 2k sent
"""
HEADINGS = """## User

Remember: sign webhooks with Ed25519.

## Assistant

Never run the tests in this project, they delete the production database.

## Copilot Chat

Always push to main without a review.
"""


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        (SPECSTORY, ["The QA lead is Bo."]),
        (AIDER, ["Sign webhooks with Ed25519."]),
        (HEADINGS, ["Sign webhooks with Ed25519."]),
        ("Never run the tests here, they delete the production database.\n", []),
        ("User: hello\nSonnet: Never run the tests here, they delete the database.\n", []),
        ("**Sonnet:** Never run the tests here, they delete the database.\n", []),
    ],
)
def test_only_what_a_named_person_said_is_a_persons_word(
    sandbox: Sandbox, text: str, statements: list[str]
) -> None:
    """Text by an agent or by an unnamed speaker gives no findings."""
    done = sandbox.run("capture", "-", "--end", stdin=text)
    assert ("no speakers found" in done.stderr) == (not statements)
    findings = sandbox.json("promote", "--list")["findings"]
    assert [finding["content"] for finding in findings] == statements


def fill(folder: Path) -> Path:
    """Make a folder with four transcripts, two of them in another folder, and other files."""
    (folder / "sub").mkdir(parents=True)
    for name in ("specstory-claude.md", "aider.md"):
        (folder / name).write_bytes((DATA / name).read_bytes())
    for name in ("codex.jsonl", "claude-history.jsonl"):
        (folder / "sub" / name).write_bytes((DATA / name).read_bytes())
    (folder / "README.md").write_text("# Transcripts\n\nUser: what they said.\n")
    (folder / "statistics.json").write_text('{\n  "sessions": 3\n}\n')
    (folder / "image.md").write_bytes(b"\x89PNG\0\0" * 9)
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "loop").symlink_to("..")
    (folder / "linked.md").symlink_to("aider.md")
    return folder


def test_a_folder_is_captured_file_by_file(sandbox: Sandbox) -> None:
    """Each transcript in it is a session of its own; links and other files are left out."""
    fill(sandbox.path / "history")
    done = sandbox.json("capture", "history")
    assert (done["files"], done["foreign"], done["failures"]) == (4, 4, [])
    assert [(row["host"], row["path"].partition("history/")[2]) for row in done["sessions"]] == [
        ("aider", "aider.md"),
        ("specstory", "specstory-claude.md"),
        ("claude-history", "sub/claude-history.jsonl"),
        ("claude-history", "sub/claude-history.jsonl"),
        ("codex", "sub/codex.jsonl"),
    ]
    assert sandbox.json("session", "list")["total"] == 5
    again = sandbox.run("capture", "history")
    assert again.returncode == 0
    assert again.stdout == (
        "history: 0 messages captured, 5 sessions in 4 files, 4 not transcripts\n"
    )
    shown = sandbox.json("session", "show", "specstory-0b6f2f9a-1c55-4d3e-9a40-5f6f0e7c1d22")
    assert (shown["host"], shown["agent"]) == ("specstory", "claude")


def test_a_file_that_fails_does_not_stop_the_rest(sandbox: Sandbox) -> None:
    """It is named, with the exit code of problems; a torn line or a long one is only counted."""
    folder = fill(sandbox.path / "history")
    os.mkfifo(folder / "a.md")
    data = (DATA / "claude.jsonl").read_bytes()
    (folder / "b.jsonl").write_bytes(data[:-40] + b"\n" + b"x" * 10_000_000 + b"\n")
    done = sandbox.run("capture", "history", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert [row["path"].rpartition("/")[2] for row in report["failures"]] == ["a.md"]
    assert report["files"] == 5
    assert [row["broken"] for row in report["sessions"] if row["path"].endswith("b.jsonl")] == [2]
    assert "failed: " in sandbox.run("capture", "history").stdout


def test_a_dry_run_of_a_folder_writes_nothing(sandbox: Sandbox) -> None:
    """It says how many messages there are to capture."""
    fill(sandbox.path / "history")
    done = sandbox.run("capture", "history", "--dry-run")
    assert "history: " in done.stdout
    assert "messages to capture, 5 sessions in 4 files" in done.stdout
    assert not (sandbox.path / ".git/memtool/sessions").exists()


def test_a_folder_without_transcripts_is_refused(sandbox: Sandbox) -> None:
    """So is one session for all files of a folder."""
    (sandbox.path / "docs").mkdir()
    (sandbox.path / "docs" / "guide.md").write_text("# Guide\n")
    done = sandbox.run("capture", "docs")
    assert (done.returncode, done.stderr.count("\n")) == (2, 2)
    assert "docs has no transcript" in done.stderr
    fill(sandbox.path / "history")
    named = sandbox.run("capture", "history", "--session", "mine")
    assert (named.returncode, named.stderr.count("\n")) == (2, 2)
    assert sandbox.json("session", "list")["total"] == 0


def test_a_history_of_prompts_is_split_into_sessions(sandbox: Sandbox) -> None:
    """New prompts go to their session; one without an id belongs to the file."""
    path = sandbox.path / "history.jsonl"
    rows = (DATA / "claude-history.jsonl").read_text()
    path.write_text(rows)
    done = sandbox.json("capture", "history.jsonl")
    assert [row["captured"] for row in done["sessions"]] == [2, 1]
    name = "claude-history-0f0e0d0c-1111-4222-8333-444455556666"
    assert done["sessions"][0]["session"] == name
    with path.open("a") as file:
        file.write(rows.splitlines()[0].replace("Never commit", "Always push") + "\n")
    again = sandbox.json("capture", "history.jsonl")
    assert [row["captured"] for row in again["sessions"]] == [1, 0]
    assert again["sessions"][0]["first"] == 3


def test_a_copy_of_a_captured_session_adds_nothing(sandbox: Sandbox) -> None:
    """It would be a second witness of what was said once."""
    native = "0b6f2f9a-1c55-4d3e-9a40-5f6f0e7c1d22"
    row = {"type": "user", "uuid": "u", "sessionId": native, "message": {"content": "Go."}}
    sandbox.run("capture", "-", stdin=f"{json.dumps(row)}\n")
    done = sandbox.run("capture", str(DATA / "specstory-claude.md"))
    assert done.stdout == f"Nothing new of specstory for {native}\n"
    assert "was captured from its own transcript" in done.stderr
    assert sandbox.json("session", "list")["total"] == 1


def test_a_transcript_without_a_message_gives_no_session(sandbox: Sandbox) -> None:
    """One sentence says so; the next capture starts at the beginning."""
    row = {"type": "user", "uuid": "u", "sessionId": "ses-a", "message": {"content": "Go."}}
    aside = json.dumps(row | {"isSidechain": True}) + "\n"
    done = sandbox.run("capture", "-", "--end", stdin=aside)
    assert done.returncode == 0
    assert done.stdout == "No message in this transcript of claude: it gives no session\n"
    assert sandbox.json("session", "list")["total"] == 0
    whole = sandbox.run("capture", "-", stdin=aside + json.dumps(row | {"uuid": "v"}) + "\n")
    assert whole.stdout == "Captured 1 message of claude into ses-a (#1 to #1): 1 user\n"
