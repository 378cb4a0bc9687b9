"""Progress on a terminal: what a long verb does, on one line of stderr, gone at the end.

A timer writes the line, from the first second on, so the work need not know of it and short work
shows nothing. Nothing is written to a pipe or file. The command line shows the name of every verb;
work that knows more says so by `Progress.begin`. An editor or a question has the terminal for
itself in `paused`.
"""

from __future__ import annotations

import sys

from memtool.store import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, TextIO

EVERY_S = 1.0
WIDTH = 60
"""Characters of the line; it is written over as a whole."""

_shown: list[Progress] = []
"""The one that has the timer, if there is one: a process has one such timer."""


class Progress:
    """A context in which `at` is shown every second; in the main thread only.

    Inside of another one it only says what is done, in the line of that.
    """

    def __init__(self, stream: TextIO | None, at: str = "reading") -> None:
        self._stream = stream
        self._before: Any = None
        self._outer: Progress | None = None
        self._outer_at = ""
        self._seconds = 0
        self.at = at

    def __enter__(self) -> Self:
        if _shown:
            self._outer, self._outer_at = _shown[0], _shown[0].at
            self._outer.at = self.at
        elif self._stream is not None and self._stream.isatty() and self.resume():
            _shown.append(self)
        return self

    def begin(self, at: str) -> None:
        """Say what is done from now on."""
        (self._outer or self).at = at

    def __exit__(self, *_error: object) -> None:
        if self._outer is not None:
            self._outer.at = self._outer_at
        elif self._before is not None:
            _shown.clear()
            self.pause()

    def pause(self) -> None:
        """Stop the timer, and blank the line."""
        process.end_alarm(self._before)
        self._before = None
        if self._seconds:
            self._write(f"{'':<{WIDTH}}\r")

    def resume(self) -> bool:
        """Start the timer; tell whether this is the main thread, where it can be."""
        try:
            self._before = process.set_alarm(self._show, EVERY_S, EVERY_S)
        except ValueError:  # another thread
            return False
        return True

    def _show(self, *_signal: object) -> None:
        self._seconds += 1
        text = f"memtool: {self.at}, {self._seconds} s"
        self._write(f"{text:<{WIDTH}}")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            try:
                self._stream.write(f"\r{text}")
                self._stream.flush()
            except OSError:  # nobody is left to see it
                return


class paused:  # noqa: N801  # a context, named like those of contextlib
    """A context in which nothing is written, for an editor or a question on the terminal."""

    def __enter__(self) -> None:
        for one in _shown:
            one.pause()

    def __exit__(self, *_error: object) -> None:
        for one in _shown:
            one.resume()


def can_ask() -> bool:
    """Tell whether somebody at a terminal can be asked: stdout may be read by a script."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def agrees(text: str) -> bool:
    """Show a text that ends in a question on the terminal, and tell whether the answer is yes.

    What is in it must not act on the terminal: it may quote files of others.
    """
    with paused():
        shown = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
        sys.stderr.write(shown)
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")
