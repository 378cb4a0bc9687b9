"""Warming: what a hook has no time for is finished beside it, by one process at a time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.hosts import log
from memtool.sessions import background


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would be started; the process that does it is this one."""
    found: list[list[str]] = []

    def start(args: list[str], env: dict[str, str]) -> int:
        assert env["MEMTOOL_NO_LEDGER"] == "1"
        found.append(args)
        return os.getpid()

    monkeypatch.setattr(background, "start", start)
    return found


def test_one_at_a_time(tmp_path: Path, started: list[list[str]]) -> None:
    """Sixteen hooks that are late start one search, until that ended or must have."""
    now = time.time()
    assert [log.warm(str(tmp_path), "/top", {}, now) for _ in range(16)] == [True] + [False] * 15
    assert started == [["-C", "/top", *log.SEARCH]]
    assert log.warm(str(tmp_path), "/top", {}, now + background.MOST_S + 9)
    (tmp_path / log.WARM_NAME).write_text("999999999")
    assert log.warm(str(tmp_path), "/top", {}, now)


@pytest.mark.parametrize("text", ["", "x", "9" * 30])
def test_a_broken_note_is_none(tmp_path: Path, started: list[list[str]], text: str) -> None:
    """It is written anew."""
    (tmp_path / log.WARM_NAME).write_text(text)
    assert log.warm(str(tmp_path), "/top", {}, time.time())
    assert (tmp_path / log.WARM_NAME).read_text() == str(os.getpid())
    assert len(started) == 1


def test_no_other_file_is_written(tmp_path: Path, started: list[list[str]]) -> None:
    """A link in the place of the note is not followed, and does not stop the search."""
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / log.WARM_NAME).symlink_to(other)
    assert log.warm(str(tmp_path), "/top", {}, time.time())
    assert (other.read_text(), len(started)) == ("mine", 1)


def test_a_hook_that_was_too_slow_leaves_an_index_behind(sandbox: Sandbox) -> None:
    """Else no prompt in a large fresh clone would ever be answered."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.commit()
    slow = ("import memtool.inject.gather as i\ndef inject(*_a, **_k):\n    while True: pass\n"
            "i.answer = inject\n")  # fmt: skip
    sandbox.write("slow/sitecustomize.py", slow)
    done = sandbox.process("hook", "claude", "user-prompt-submit", stdin='{"prompt": "redis"}',
                       PYTHONPATH=str(sandbox.path / "slow"))  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    index = sandbox.path / ".git" / "memtool" / "index"
    for _try in range(300):
        if index.is_dir():
            break
        time.sleep(0.1)
    else:
        pytest.fail("no index was made")
