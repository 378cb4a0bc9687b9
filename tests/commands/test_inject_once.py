"""Once per session: what `inject --session` does not say again."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import Sandbox

from memtool.commands.inject import inject
from memtool.inject import session_seen
from memtool.inject.block import PREAMBLE, REMINDER, InjectedBlock

PROMPT = "where do sessions live, in redis?"
ASKED = ("inject", "--prompt", PROMPT, "--session", "s")


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    """A committed store: one pinned memory, one that answers."""
    sandbox.memory("dec-pinned", "Never force-push.\n", status="pinned")
    sandbox.memory("dec-redis", "Sessions live in Redis.\n", title="Sessions in Redis")
    for number in range(8):
        sandbox.memory(f"sem-{number}", f"Note {number} about part {number}.\n", type="semantic")
    sandbox.commit()
    return sandbox


def test_a_session_sees_a_memory_once(project: Sandbox):
    """Other sessions, and calls without one, see it as ever."""
    first = project.run(*ASKED)
    assert "dec-pinned@" in first.stdout
    assert "dec-redis@" in first.stdout
    assert project.run(*ASKED).stdout == ""
    assert project.run(*ASKED[:-1], "other").stdout == first.stdout
    assert project.run(*ASKED[:-2]).stdout == first.stdout


def test_what_a_block_is_stands_in_the_first_of_a_session(project: Sandbox):
    """After that one line remains, until the session loses its context; the frame is small."""
    first = project.run(*ASKED).stdout
    assert PREAMBLE in first
    project.memory("dec-cart", "Carts live in a cookie of the shop.\n", title="Carts in a cookie")
    second = project.run("inject", "--prompt", "carts in a cookie?", "--session", "s").stdout
    assert "[dec-cart] " in second
    assert PREAMBLE not in second
    assert second.splitlines()[1] == REMINDER
    session_seen.forget(str(project.path / ".git" / "memtool"), "s")
    assert PREAMBLE in project.run(*ASKED).stdout


def test_the_reason_is_told(project: Sandbox):
    """Whoever asks why a memory is not there hears it."""
    project.run(*ASKED)
    stderr = project.run(*ASKED, "--explain").stderr
    assert "dec-redis: not taken as retrieval: this session has seen it" in stderr
    assert "dec-pinned: not taken as pinned: this session has seen it" in stderr


def test_looking_back_is_not_seeing(project: Sandbox):
    """A revision or a moment is asked about as if nothing had been shown, and shows nothing new."""
    for how in (("--at", "HEAD"), ("--as-of", "2026-02-28")):
        first = project.run(*ASKED, *how).stdout
        assert "dec-redis@" in first
        assert project.run(*ASKED, *how).stdout == first
    assert "dec-redis@" in project.run(*ASKED).stdout


def test_the_ledger_knows_what_a_session_saw(project: Sandbox):
    """Each memory once, in the session that saw it."""
    for _time in range(3):
        project.run(*ASKED)
    injections = project.json("log", "--injected")["injections"]
    assert [(injection["id"], injection["session"]) for injection in injections] == [
        ("dec-pinned", "s"),
        ("dec-redis", "s"),
    ]


def test_seeing_does_not_depend_on_the_ledger(project: Sandbox):
    """Statistics may be switched off: what is said once is said once."""
    project.run(*ASKED, MEMTOOL_NO_LEDGER="1")
    assert project.run(*ASKED, MEMTOOL_NO_LEDGER="1").stdout == ""


def test_what_did_not_fit_was_not_seen(project: Sandbox):
    """A memory that the budget left out comes when there is room."""
    assert "dec-redis@" not in project.run(*ASKED, "--budget", "125").stdout
    text = project.run(*ASKED).stdout
    assert "dec-redis@" in text
    assert "dec-pinned@" not in text


@pytest.mark.slow
def test_processes_of_one_session_may_run_at_once(project: Sandbox):
    """None fails, and when they are done nothing is left to say."""
    command = [sys.executable, "-m", "memtool", *ASKED]
    started = [
        subprocess.Popen(command, cwd=project.path, env=project.env, stdout=subprocess.DEVNULL)
        for _number in range(8)
    ]
    assert [process.wait() for process in started] == [0] * 8
    assert project.run(*ASKED).stdout == ""


def test_a_call_from_a_program_leaves_no_trace(project: Sandbox):
    """The API prints nothing, so its caller notes what was shown."""
    for _time in range(2):
        block = inject(project.context(), prompt=PROMPT, session="s")
        assert isinstance(block, InjectedBlock)
        assert [id_ for id_, _version in block.versions[1:]] == ["dec-pinned", "dec-redis"]
        assert block.versions[0] == session_seen.notice_line(PREAMBLE)
    assert not session_seen.read(str(project.path / ".git" / "memtool"), "s")
