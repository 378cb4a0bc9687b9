from __future__ import annotations

import io
import signal

from conftest import Sandbox

from memtool.commands._render import WIDEST, WIDTH, Progress, columns


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
        "", "memtool: checking: secrets, 1 s", "memtool: checking: secrets, 2 s", "", "",
    ]  # fmt: skip
    assert {len(line) for line in lines[1:4]} == {WIDTH}
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_short_work_and_pipes_see_nothing() -> None:
    """No byte is written within the first second, or where no terminal is."""
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
    """What a program reads from stderr holds no progress."""
    sandbox.memory("dec-a")
    assert sandbox.run("check").stderr == ""


def test_rows_are_aligned_without_spaces_at_their_end() -> None:
    """Cells of a column begin at the same place; a column without text takes no room."""
    assert columns([("a", "", "bb", ""), ("aaa", "", "b", "c")]) == ["a    bb", "aaa  b   c"]
    assert columns([]) == []


def test_one_long_cell_pushes_only_its_own_row() -> None:
    """A very long cell does not move the columns of other rows further than the limit."""
    rows = columns([("x" * 200, "end"), ("y", "end")])
    assert rows[1].index("end") == WIDEST + 2
