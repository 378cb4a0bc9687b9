"""Work in the background: captures that a hook starts, and a search that builds the index."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import Sandbox

from memtool.commands import check
from memtool.sessions import background

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Sandbox


LINE = (
    '{"type":"user","uuid":"u1","sessionId":"s-hook","timestamp":"2026-02-20T09:00:00Z",'
    '"message":{"role":"user","content":"We never retry payments."}}\n'
)


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "t.jsonl"
    path.write_text(LINE)
    return path


def wait_for(is_done: object, most_s: float = 30) -> bool:
    """Wait until a condition holds; the capture is a detached process."""
    assert callable(is_done)
    end = time.monotonic() + most_s
    while time.monotonic() < end:
        if is_done():
            return True
        time.sleep(0.05)
    return False


def test_a_hook_starts_a_capture_and_does_not_wait(sandbox: Sandbox, transcript: Path) -> None:
    """The session is there a moment later, under the name that the host gave it."""
    ws = sandbox.context()
    assert background.capture_hook(ws, "claude", "s-hook", str(transcript), "session-end")

    def is_ended() -> bool:
        listed = sandbox.json("session", "list")["sessions"]
        return [(session["id"], session["status"], session["messages"]) for session in listed] == [
            ("s-hook", "ended", 1)
        ]

    assert wait_for(is_ended)


def test_nothing_is_started_where_it_is_switched_off(sandbox: Sandbox, transcript: Path) -> None:
    """Neither with MEMTOOL_OFF nor with capture.auto = false."""
    off = sandbox.context(MEMTOOL_OFF="1")
    assert not background.capture_hook(off, "claude", "s", str(transcript), "stop")
    sandbox.write(".memory/config.toml", "[capture]\nauto = false\n")
    assert not background.capture_hook(sandbox.context(), "claude", "s", str(transcript), "stop")


@pytest.mark.parametrize("kind", ["absent", "folder", "pipe", "relative", "nul", "empty"])
def test_only_a_file_of_the_user_is_taken(tmp_path: Path, kind: str) -> None:
    """A host may name any path; no process is started for a foreign one."""
    path = tmp_path / "t"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    named = {"relative": "t", "nul": "a\0b", "empty": ""}.get(kind, str(path))
    assert not background.is_own(named)


def test_a_hook_loads_next_to_nothing() -> None:
    """A prompt is not made to wait for what a capture needs."""
    script = (
        "import sys; before = set(sys.modules); import memtool.sessions.background; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [
        "__future__",
        "memtool",
        "memtool.agents",
        "memtool.sessions",
        "memtool.sessions.background",
        "memtool.sessions.consent",
        "memtool.value",
    ]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Record the processes that would be started; this process does the work."""
    calls: list[list[str]] = []

    def start(args: list[str], env: dict[str, str]) -> int:
        assert env["MEMTOOL_NO_LEDGER"] == "1"
        calls.append(args)
        return os.getpid()

    monkeypatch.setattr(background, "start", start)
    return calls


def test_one_at_a_time(tmp_path: Path, started: list[list[str]]) -> None:
    """Sixteen hooks that are late start one search, until that ended or must have."""
    now = time.time()
    assert [background.warm(str(tmp_path), "/top", {}, now) for _ in range(16)] == [True] + [
        False
    ] * 15
    assert started == [["-C", "/top", *background.SEARCH]]
    assert background.warm(str(tmp_path), "/top", {}, now + background.MAX_S + 9)
    (tmp_path / background.INDEXING).write_text("999999999")
    assert background.warm(str(tmp_path), "/top", {}, now)


@pytest.mark.parametrize("text", ["", "x", "9" * 30])
def test_a_broken_note_is_none(tmp_path: Path, started: list[list[str]], text: str) -> None:
    """It is written anew."""
    (tmp_path / background.INDEXING).write_text(text)
    assert background.warm(str(tmp_path), "/top", {}, time.time())
    assert (tmp_path / background.INDEXING).read_text() == str(os.getpid())
    assert len(started) == 1


def test_no_other_file_is_written(tmp_path: Path, started: list[list[str]]) -> None:
    """A link in the place of the note is not followed, and does not stop the search."""
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / background.INDEXING).symlink_to(other)
    assert background.warm(str(tmp_path), "/top", {}, time.time())
    assert (other.read_text(), len(started)) == ("mine", 1)


def test_a_hook_that_was_too_slow_leaves_an_index_behind(sandbox: Sandbox) -> None:
    """Else no prompt in a large fresh clone would ever be answered."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.commit()
    slow = (
        "import memtool.inject.answer as i\ndef build(*_a, **_k):\n    while True: pass\n"
        "i.build_block = build\n"
    )
    sandbox.write("slow/sitecustomize.py", slow)
    done = sandbox.process(
        "hook",
        "claude",
        "user-prompt-submit",
        stdin='{"prompt": "redis"}',
        PYTHONPATH=str(sandbox.path / "slow"),
    )
    assert (done.returncode, done.stdout) == (0, "")
    index = sandbox.path / ".git" / "memtool" / "index"
    for _try in range(300):
        if index.is_dir():
            break
        time.sleep(0.1)
    else:
        pytest.fail("no index was made")


def test_a_commit_hook_that_had_no_index_leaves_one_behind(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a clone without searches, each commit would read every memory again."""
    sandbox.memory("dec-a")
    sandbox.git("add", "--all")
    monkeypatch.setattr(check, "SLOW_S", 0)
    place = sandbox.path / ".git" / "memtool" / "index"
    assert sandbox.run("check", "--staged", GIT_INDEX_FILE=".git/index").returncode == 0
    ends = time.monotonic() + 30
    while not place.exists() and time.monotonic() < ends:
        time.sleep(0.05)
    assert place.exists()


def test_a_commit_hook_leaves_out_what_the_commit_pointed_git_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index of a partial commit is gone when the search begins."""
    environments = []
    monkeypatch.setattr(background, "start", lambda _args, env: environments.append(env) or 0)
    background.warm(str(tmp_path), "/top", {"GIT_INDEX_FILE": "next", "HOME": "/h"}, time.time())
    assert environments == [{"HOME": "/h", "MEMTOOL_NO_LEDGER": "1"}]
