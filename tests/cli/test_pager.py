"""The pager, at a real terminal: long text goes through it, as git's own does."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import termios

import pytest
from conftest import Sandbox, read_terminal

MARKING = "sed 's/^/PAGED /'"
"""A pager that shows that it ran."""
LINES = 24


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """More memories than a terminal has lines."""
    for number in range(LINES * 2):
        sandbox.memory(f"dec-{number:02}", title=f"Choice number {number}")
    sandbox.commit()
    return sandbox


def at_terminal(sandbox: Sandbox, *args: str, **env: str) -> tuple[str, str, int]:
    """Run memtool with stdout on a terminal of 80 by 24; return its text, stderr and exit code."""
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "memtool", *args],
        cwd=sandbox.path,
        env=sandbox.env | {"TERM": "dumb", "COLUMNS": ""} | env,
        stdout=follower,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(follower)
    text = read_terminal(leader)
    os.close(leader)
    _nothing, errors = process.communicate()
    return text.replace("\r\n", "\n"), errors, process.returncode


def test_a_long_text_goes_through_the_pager(filled: Sandbox) -> None:
    """MEMTOOL_PAGER is a command of the shell, with arguments."""
    text, _errors, code = at_terminal(filled, "list", "--limit", "0", MEMTOOL_PAGER=MARKING)
    assert code == 0
    assert len(text.splitlines()) == LINES * 2
    assert all(line.startswith("PAGED dec-") for line in text.splitlines())


def test_git_names_the_pager_without_a_variable(filled: Sandbox) -> None:
    """core.pager counts, as it does for `git log`."""
    filled.git("config", "core.pager", MARKING)
    assert at_terminal(filled, "list", "--limit", "0")[0].startswith("PAGED ")


@pytest.mark.parametrize(
    ("args", "pager"),
    [
        (("list", "--limit", "5"), MARKING),
        (("list", "--limit", "0", "--no-pager"), MARKING),
        (("--no-pager", "list", "--limit", "0"), MARKING),
        (("list", "--limit", "0", "--json"), MARKING),
        (("export",), MARKING),
        (("list", "--limit", "0"), "cat"),
        (("list", "--limit", "0"), ""),
        (("list", "--limit", "0"), "no-such-pager-anywhere"),
    ],
    ids=str,
)
def test_some_texts_are_never_paged(filled: Sandbox, args: tuple[str, ...], pager: str) -> None:
    """Short ones, those for programs, and all if the user wants none or the pager is missing."""
    text, _errors, code = at_terminal(filled, *args, MEMTOOL_PAGER=pager)
    assert code == 0
    assert "PAGED" not in text
    assert "dec-" in text


def test_a_pipe_is_never_paged(filled: Sandbox) -> None:
    """A script reads the lines as they are."""
    done = filled.process("list", "--limit", "0", MEMTOOL_PAGER=MARKING)
    assert "PAGED" not in done.stdout
    assert len(done.stdout.splitlines()) == LINES * 2


def test_notes_come_after_the_pager_and_the_exit_code_stays(filled: Sandbox) -> None:
    """The exit code of the pager is not that of the verb."""
    filled.memory("dec-broken", title="Broken", supersedes=("dec-nowhere",))
    for number in range(LINES):
        filled.write(f".memory/decision/2026-02/dec-bad-{number}.md", "---\nid: [\n---\n")
    text, _errors, code = at_terminal(filled, "check", MEMTOOL_PAGER=f"{MARKING}; exit 0")
    assert text.startswith("PAGED ")
    assert code == 1


def test_a_pager_that_is_left_early_is_no_error(filled: Sandbox) -> None:
    """`q` in less closes the pipe."""
    text, errors, code = at_terminal(filled, "list", "--limit", "0", MEMTOOL_PAGER="head -1")
    assert (text.count("\n"), code) == (1, 0)
    assert "Traceback" not in errors
