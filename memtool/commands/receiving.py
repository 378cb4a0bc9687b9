"""Receiving: what a verb is given on stdin, whole and of a size that can be kept."""

from __future__ import annotations

import sys

from memtool.errors import MemtoolError


def received(most: int) -> bytes:
    """Return everything that stands on stdin.

    Raises:
        MemtoolError: stdin is closed, or holds more bytes than that.
    """
    if sys.stdin is None:
        raise MemtoolError("there is no stdin to read from", hint="give the text as an argument")
    data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        raise MemtoolError(
            f"what stands on stdin is longer than {most:,} bytes",
            hint="split it, or leave out what is not text",
            code="too-large",
        )
    return data
