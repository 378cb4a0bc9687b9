"""Tests of `memtool session`."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from conftest import PIPED

from memtool.commands import session, session_data
from memtool.commands.session import render
from memtool.errors import MemtoolError
from memtool.sessions.store import Sessions

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Sandbox

KEY = "AKIA" + "Q3EGRZXT5MPLHV2B"


def start(sandbox: Sandbox, **options: str) -> str:
    return session.session_start(sandbox.context(), **options).id


def place(sandbox: Sandbox) -> Path:
    return sandbox.path / ".git" / "memtool" / "sessions"


def test_a_session_is_begun_and_its_id_is_all_that_is_said(sandbox: Sandbox) -> None:
    """A script takes the id from stdout; the JSON has it as `id`."""
    done = sandbox.run("session", "start", "--agent", "claude", "--title", "Try it")
    id_ = done.stdout.strip()
    assert id_.startswith("ses-2026-03-01-")
    assert len(id_) == len("ses-2026-03-01-k3f9")
    assert sandbox.json("session", "start")["id"] != id_
    shown = sandbox.json("session", "show", id_)
    wanted = {
        "agent": "claude",
        "title": "Try it",
        "branch": "main",
        "status": "open",
        "worktree": str(sandbox.path),
        "started": "2026-03-01T12:00:00Z",
    }
    assert wanted.items() <= shown.items()


def test_messages_are_added_and_shown(sandbox: Sandbox) -> None:
    """Role, tool, call, result and files are kept with the text, redacted."""
    id_ = start(sandbox)
    assert sandbox.run("session", "add", id_, "never", "retry", KEY).stdout == f"{id_}#1\n"
    sandbox.run(
        "session",
        "add",
        id_,
        "--tool",
        "Bash",
        "--call",
        "pytest  -q",
        "--result",
        "failed",
        "--file",
        "a.py",
        "-",
        stdin="E\n\n  KeyError\n",
    )
    sandbox.run("session", "add", id_, "--agent", "codex", "it", "is", "fixed")
    first, second, third = sandbox.json("session", "show", id_)["messages"]
    assert (first["role"], first["text"]) == ("user", "never retry [REDACTED:aws-access-key]")
    assert (second["role"], second["call"], second["is_ok"]) == ("tool", "pytest -q", False)
    assert (second["text"], second["files"]) == ("E\n\n  KeyError", ["a.py"])
    assert (third["role"], third["agent"]) == ("assistant", "codex")
    assert "What was said: " in sandbox.run("session", "show", id_).stdout
    text = sandbox.run("session", "show", id_, "--messages").stdout
    assert "#2 2026-03-01T12:00:00Z tool Bash failed\n  $ pytest -q\n  E\n\n    KeyError" in text


def test_one_message_is_shown_by_its_number(sandbox: Sandbox) -> None:
    """As ID#N, and as a source of a memory names it."""
    id_ = start(sandbox)
    for word in ("one", "two", "three"):
        session.session_add(sandbox.context(), id_, word)
    for name in (f"{id_}#2", f"session:{id_}#2", f"session:{id_[:16]}#2"):
        (message,) = session.session_show(sandbox.context(), name).messages
        assert message.text == "two"
    shown = session.session_show(sandbox.context(), id_, limit=2)
    assert ([message.text for message in shown.messages], shown.hidden_count) == (
        ["two", "three"],
        1,
    )


def test_everything_is_private(sandbox: Sandbox) -> None:
    """Directories are of mode 0700 and files of 0600, and git sees none of them."""
    id_ = start(sandbox)
    for number in range(10):
        session.session_add(sandbox.context(), id_, f"message {number}")
    session.session_end(sandbox.context(), id_)
    paths = [place(sandbox), *place(sandbox).rglob("*")]
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in paths}
    assert modes == {True: 0o700, False: 0o600}
    assert len({path.name for path in paths}) >= 4
    assert sandbox.git("status", "--porcelain", "--ignored") == ""


def test_an_ended_session_takes_nothing_more(sandbox: Sandbox) -> None:
    """Unless it is opened again; a summary is written by rules where none is given."""
    id_ = start(sandbox)
    session.session_add(sandbox.context(), id_, "Please fix the checkout.")
    session.session_add(sandbox.context(), id_, "boom", tool="Bash", call="make", result="failed")
    session.session_add(sandbox.context(), id_, "fine", tool="Bash", call="make", result="ok")
    ended = session.session_end(sandbox.context(), id_)
    assert ended.summary.splitlines() == [
        "asked: Please fix the checkout.",
        "failed: make in message 2: boom; worked in message 3",
    ]
    for act in (session.session_add, session.session_end, session.session_checkpoint):
        with pytest.raises(MemtoolError, match="has ended") as caught:
            act(sandbox.context(), id_, *["x"] * (act is session.session_add))
        assert "fork" in caught.value.hint
    assert session.session_add(sandbox.context(), id_, "x", reopen=True).number == 4
    assert session.session_end(sandbox.context(), id_, summary=f"done, {KEY}").summary == (
        "done, [REDACTED:aws-access-key]"
    )
    assert sandbox.json("session", "list", "--status", "ended")["sessions"][0]["id"] == id_


def test_a_fork_of_an_open_session_has_its_findings_and_shows_its_messages(
    sandbox: Sandbox,
) -> None:
    """It goes on on its own, and says after which message it left; so does a fork of the fork."""
    id_ = start(sandbox)
    session.session_add(sandbox.context(), id_, "Remember: payments are never retried, ever.")
    assert session.session_fork(sandbox.context(), id_, dry_run=True).findings == 1
    assert not (place(sandbox) / id_ / "findings.jsonl").exists()
    made = session.session_fork(sandbox.context(), id_, agent="codex")
    assert (made.parent, made.parent_messages, made.findings) == (id_, 1, 1)
    head = Sessions(str(place(sandbox))).head(made.id)
    assert (head.parent, head.parent_messages, head.agent) == (id_, 1, "codex")
    session.session_add(sandbox.context(), id_, "said after the fork")
    assert session.session_add(sandbox.context(), made.id, "on").number == 1
    last = session.session_fork(sandbox.context(), made.id)
    session.session_add(sandbox.context(), last.id, "and on")
    text = sandbox.run("session", "show", last.id, "--messages").stdout
    assert f"forked from: {made.id} after message 1" in text
    assert [line.split()[0] for line in text.splitlines() if "#1" in line] == [
        f"{id_}#1",
        f"{made.id}#1",
        "#1",
    ]
    assert "said after the fork" not in text
    shown = sandbox.json("session", "show", last.id, "--limit", "2")
    assert ([finding["id"] for finding in shown["before"]], shown["more"]) == ([made.id], 1)
    assert sandbox.json("session", "show", f"{last.id}#1")["before"] == []
    sandbox.run("session", "delete", id_)
    assert [finding["id"] for finding in sandbox.json("session", "show", last.id)["before"]] == [
        made.id
    ]


def test_worktrees_share_the_sessions(sandbox: Sandbox) -> None:
    """Each session notes its worktree, and is listed in all of them."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("worktree", "add", "-q", "-b", "side", "../side")
    side = sandbox.path.parent / "side"
    id_ = sandbox.run("session", "start", cwd=side).stdout.strip()
    shown = sandbox.json("session", "show", id_)
    assert (shown["branch"], shown["worktree"]) == ("side", str(side))
    assert (place(sandbox) / id_).is_dir()


def test_a_dry_run_writes_nothing(sandbox: Sandbox) -> None:
    """Each action says what it would do, and leaves every byte as it is."""
    assert session.session_start(sandbox.context(), dry_run=True).id.startswith("ses-")
    assert not place(sandbox).exists()
    id_ = start(sandbox)
    session.session_add(sandbox.context(), id_, "one")

    def state() -> dict[str, bytes]:
        return {
            str(path): path.read_bytes() for path in place(sandbox).rglob("*.*") if path.is_file()
        }

    before = state()
    added = session.session_add(sandbox.context(), id_, f"x {KEY}", dry_run=True)
    assert render(added, PIPED) == f"would add {id_}#2 user: x [REDACTED:aws-access-key]"
    for act in (session.session_checkpoint, session.session_end, session.session_fork):
        act(sandbox.context(), id_, dry_run=True)
    session_data.session_prune(sandbox.context(), dry_run=True)
    assert state() == before


def test_what_is_too_much_is_pruned_by_hand_only(sandbox: Sandbox) -> None:
    """At the limit none begins; pruning removes the messages of what ended first."""
    sandbox.write(".memory/config.toml", "[sessions]\ntotal_mb = 1\n")
    ids = []
    for number in range(3):
        id_ = start(sandbox)
        noise = os.urandom(300).hex().encode()
        rows = (b'{"number":%d,"role":"user","text":"%s"}\n' % (n, noise) for n in range(1, 620))
        (place(sandbox) / id_ / "messages.jsonl").write_bytes(b"".join(rows))
        ids.append(id_)
        if number < 2:
            env = {"MEMTOOL_NOW": f"2026-03-0{2 - number}"}
            assert sandbox.run("session", "end", id_, **env).returncode == 0
    with pytest.raises(MemtoolError, match="the limit is") as caught:
        start(sandbox)
    assert "session prune" in caught.value.hint
    done = session_data.session_prune(sandbox.context())
    assert done.ids == (ids[1],)
    assert sandbox.json("session", "show", ids[1])["status"] == "pruned"
    assert sandbox.json("session", "show", ids[0])["messages"] != []
    assert start(sandbox)
    with pytest.raises(MemtoolError, match="has ended"):
        session.session_add(sandbox.context(), ids[1], "x", reopen=True)


def test_a_terminal_shows_what_a_message_hides(sandbox: Sandbox) -> None:
    """Escape sequences and direction marks are written out."""
    id_ = start(sandbox)
    session.session_add(sandbox.context(), id_, "red \x1b[31m and \u202e back")
    assert "\\x1b[31m and \\u202e back" in sandbox.run("session", "show", id_, "--messages").stdout


def test_a_torn_line_is_reported(sandbox: Sandbox) -> None:
    """To who adds next on stderr, and to who looks in the session."""
    id_ = start(sandbox)
    session.session_add(sandbox.context(), id_, "one")
    with (place(sandbox) / id_ / "messages.jsonl").open("ab") as file:
        file.write(b'{"number":2,"ro')
    assert sandbox.json("session", "show", id_)["torn"] == 1
    done = sandbox.run("session", "add", id_, "two")
    assert (done.returncode, done.stdout) == (0, f"{id_}#2\n")
    assert "half written was set aside" in done.stderr
    shown = sandbox.json("session", "show", id_)
    assert ([message["text"] for message in shown["messages"]], shown["torn"]) == (
        ["one", "two"],
        1,
    )


BAD = [
    ("add",),
    ("add", "ses-none", "x"),
    ("add", "../../x", "y"),
    ("show", "/etc/passwd"),
    ("show", ""),
    ("end", "ID", "now", "please"),
    ("fork", "ID", "x"),
    ("start", "a title"),
    ("add", "ID"),
    ("add", "ID", "  "),
    ("show", "ID#x"),
    ("show", "ID#7"),
    ("show", "ID#-1"),
    ("list", "ID"),
    ("prune", "ID"),
    ("end", "ID", "--role", "user"),
    ("list", "--reopen"),
    ("start", "--summary", "x"),
    ("add", "ID", "x", "--role", "boss"),
    ("explode", "ID"),
    ("show", "ID", "--limit", "many"),
    ("checkpoint",),
    ("add", "ID", "x", "--result", "maybe"),
]


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_a_wrong_call_is_told_and_changes_nothing(sandbox: Sandbox, words: tuple[str, ...]) -> None:
    """One sentence, a hint, exit 2, and not a byte more on the disk."""
    id_ = start(sandbox)
    before = sorted(place(sandbox).rglob("*"))
    done = sandbox.run("session", *(word.replace("ID", id_) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    message, *hints = done.stderr.splitlines()
    assert message.startswith("memtool: ")
    assert hints
    assert all(hint.startswith("hint: ") for hint in hints)
    assert sorted(place(sandbox).rglob("*")) == before


def test_without_an_action_the_sessions_are_listed(sandbox: Sandbox) -> None:
    """Options of the list may follow the verb; its help lists the actions, each with its own."""
    id_ = start(sandbox)
    assert sandbox.json("session")["sessions"][0]["id"] == id_
    assert sandbox.json("session", "--status", "ended")["sessions"] == []
    page = sandbox.run("session", "--help").stdout
    assert "\n  checkpoint  " in page
    assert sandbox.run("help", "session").stdout == page
    own = sandbox.run("session", "fork", "--help").stdout
    assert "\nusage: memtool session fork ID [options]\n" in own
    assert sandbox.run("help", "session", "fork").stdout == own


def test_a_git_directory_that_cannot_be_written_is_one_sentence(sandbox: Sandbox) -> None:
    """Nothing is half made; a file simulates a read-only medium, since root may write anywhere."""
    (sandbox.path / ".git" / "memtool").write_text("")
    done = sandbox.run("session", "start")
    assert done.returncode == 2
    assert "is in the way" in done.stderr
    assert sandbox.run("session", "list").returncode == 2


@pytest.mark.slow
def test_a_long_session_is_read(sandbox: Sandbox) -> None:
    """Ten thousand messages are counted, summed up and shown in part."""
    id_ = start(sandbox)
    rows = (b'{"number":%d,"role":"user","text":"message %d"}\n' % (n, n) for n in range(1, 10_001))
    (place(sandbox) / id_ / "messages.jsonl").write_bytes(b"".join(rows))
    assert session.session_add(sandbox.context(), id_, "the last").number == 10_001
    assert session.session_end(sandbox.context(), id_).messages == 10_001
    assert session.session_list(sandbox.context()).sessions[0].messages == 10_001
    (shown,) = session.session_show(sandbox.context(), id_, limit=1).messages
    assert shown.text == "the last"


def test_no_secret_is_kept_of_where_a_session_begins(sandbox: Sandbox) -> None:
    """The branch, the host, the agent and the title may name one."""
    sandbox.write("a.txt", "x")
    sandbox.commit()
    sandbox.git("checkout", "-q", "-b", f"try/{KEY}")
    id_ = start(sandbox, host=KEY, agent=KEY, title=KEY)
    sandbox.run("session", "fork", id_, "--host", KEY)
    files = [path for path in (sandbox.path / ".git/memtool").rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert not any(KEY.encode() in path.read_bytes() for path in files)
