"""Progress on a terminal: the activity of a long verb, on one line of stderr that is erased later.

A timer writes the line, starting after one second, so that short work shows nothing and long work
needs no code for it. Nothing is written to a pipe or file. The command line shows the name of every
verb; `Progress.begin` sets a more specific text. Use `paused` around an editor or a question.
"""

from __future__ import annotations

import sys

from memtool.store import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, TextIO

INTERVAL_S = 1.0
WIDTH_CHARS = 60
"""Characters of the line, which is always overwritten completely."""

_active: list[Progress] = []
"""The Progress that owns the timer, if any: a process has only one such timer."""


class Progress:
    """A context manager that shows an activity every second; only in the main thread.

    Inside of another one it only changes the text of the outer line.
    """

    def __init__(self, stream: TextIO | None, activity: str = "reading") -> None:
        self._stream = stream
        self._previous_handler: Any = None
        self._outer: Progress | None = None
        self._outer_activity = ""
        self._seconds = 0
        self.activity = activity

    def __enter__(self) -> Self:
        if _active:
            self._outer, self._outer_activity = _active[0], _active[0].activity
            self._outer.activity = self.activity
        elif self._stream is not None and self._stream.isatty() and self.resume():
            _active.append(self)
        return self

    def begin(self, activity: str) -> None:
        """Show another activity from now on."""
        (self._outer or self).activity = activity

    def __exit__(self, *_error: object) -> None:
        if self._outer is not None:
            self._outer.activity = self._outer_activity
        elif self._previous_handler is not None:
            _active.clear()
            self.pause()

    def pause(self) -> None:
        """Stop the timer, and erase the line."""
        process.end_alarm(self._previous_handler)
        self._previous_handler = None
        if self._seconds:
            self._write(f"{'':<{WIDTH_CHARS}}\r")

    def resume(self) -> bool:
        """Start the timer; return False if this is not the main thread."""
        try:
            self._previous_handler = process.set_alarm(self._show, INTERVAL_S, INTERVAL_S)
        except ValueError:  # another thread
            return False
        return True

    def _show(self, *_signal: object) -> None:
        self._seconds += 1
        text = f"memtool: {self.activity}, {self._seconds} s"
        self._write(f"{text:<{WIDTH_CHARS}}")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            try:
                self._stream.write(f"\r{text}")
                self._stream.flush()
            except OSError:  # the terminal is gone
                return


class paused:  # noqa: N801  # a context manager, named like those of contextlib
    """A context manager that stops progress, for an editor or a question on the terminal."""

    def __enter__(self) -> None:
        for shown in _active:
            shown.pause()

    def __exit__(self, *_error: object) -> None:
        for shown in _active:
            shown.resume()


def can_prompt() -> bool:
    """Return whether a user at a terminal can answer a question, even if stdout is redirected."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def confirm(text: str) -> bool:
    """Show a question on the terminal, and return whether the answer is yes."""
    with paused():
        # The text may quote untrusted files, whose control characters must not reach the terminal.
        shown = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
        sys.stderr.write(shown)
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")
