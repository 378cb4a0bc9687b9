"""Lines are read whole, in linear time, however they arrive."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Thread

import pytest

from memtool.mcp.lines import MAX_LINE_BYTES, TOO_LONG, LineReader, Unreadable

Reader = Callable[..., list[bytes | Unreadable]]


@pytest.fixture
def read_all() -> Reader:
    """Write parts into a pipe, and return the lines that arrive at its other end."""

    def read(*parts: bytes) -> list[bytes | Unreadable]:
        source, target = os.pipe()

        def write() -> None:
            for part in parts:
                view = memoryview(part)
                while view:
                    view = view[os.write(target, view) :]
            os.close(target)

        writer = Thread(target=write)
        writer.start()
        reader = LineReader(source)
        lines = []
        while (line := reader.read(None)) is not None:
            lines.append(line)
        writer.join()
        os.close(source)
        return [line for line in lines if line]

    return read


def test_lines_are_joined_and_split(read_all: Reader):
    """A line may arrive in parts, with others, and without its line feed at the end of input."""
    assert read_all(b"a", b"b\nc\n\nd", b"e\n", b"f") == [b"ab", b"c", b"de", b"f"]


def test_the_limit_is_exact(read_all: Reader):
    """A line of the limit is read, one of a byte more is not, nor is one without end."""
    whole, longer = b"x" * MAX_LINE_BYTES, b"y" * (MAX_LINE_BYTES + 1)
    assert read_all(whole + b"\n" + longer + b"\nz\n") == [whole, TOO_LONG, b"z"]
    assert read_all(b"a\n" + longer * 5) == [b"a", TOO_LONG]


def test_an_unfinished_line_is_waited_for(read_all: Reader):
    """Until the time is over; what arrived is kept for the next call."""
    source, target = os.pipe()
    reader = LineReader(source)
    os.write(target, b"a")
    assert reader.read(0) is None
    os.write(target, b"b\n")
    assert reader.read(0) == b"ab"
    os.close(target)
    os.close(source)
