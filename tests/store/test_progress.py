"""Progress: one line on a terminal, from the first second on, and nothing anywhere else."""

from __future__ import annotations

import io
import signal

from conftest import Sandbox

from memtool.store.progress import WIDTH_CHARS, Progress, paused


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_what_is_done_and_then_left_clean() -> None:
    """Each second writes over the line; the end blanks it and gives the signal back."""
    before = signal.getsignal(signal.SIGALRM)
    with Terminal() as stream:
        with Progress(stream) as progress:
            progress.begin("checking: secrets")
            signal.raise_signal(signal.SIGALRM)
            signal.raise_signal(signal.SIGALRM)
        lines = stream.getvalue().split("\r")
    assert [line.rstrip() for line in lines] == [
        "",
        "memtool: checking: secrets, 1 s",
        "memtool: checking: secrets, 2 s",
        "",
        "",
    ]
    assert {len(line) for line in lines[1:4]} == {WIDTH_CHARS}
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_short_work_and_pipes_see_nothing() -> None:
    """No byte is written within the first second, or without a terminal."""
    with Terminal() as stream:
        with Progress(stream):
            pass
        assert stream.getvalue() == ""
    with io.StringIO() as pipe:
        with Progress(pipe):
            assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert pipe.getvalue() == ""
    with Progress(None):
        pass


def test_a_check_shows_its_progress_to_terminals_only(sandbox: Sandbox) -> None:
    """A program that reads stderr sees no progress."""
    sandbox.memory("dec-a")
    assert sandbox.run("check").stderr == ""


def test_work_inside_of_a_verb_uses_the_line_of_the_verb() -> None:
    """There is one timer: the inner one says what is done, and gives the line back."""
    with Terminal() as stream:
        with Progress(stream, "check") as outer:
            with Progress(stream) as inner:
                inner.begin("secrets")
                signal.raise_signal(signal.SIGALRM)
            assert outer.activity == "check"
            signal.raise_signal(signal.SIGALRM)
        lines = [line.rstrip() for line in stream.getvalue().split("\r")]
    assert lines == ["", "memtool: secrets, 1 s", "memtool: check, 2 s", "", ""]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_editor_has_the_terminal_for_itself() -> None:
    """Meanwhile no timer runs, and afterwards it goes on."""
    with Terminal() as stream, Progress(stream, "new"):
        with paused():
            assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert signal.getitimer(signal.ITIMER_REAL) != (0.0, 0.0)
    with paused():
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
