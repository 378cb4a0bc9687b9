"""Lines of the client: read them in linear time, and parse them as JSON-RPC messages."""

from __future__ import annotations

import json
import os
import select

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_LINE_BYTES = 1 << 20
NOT_JSON, INVALID = -32700, -32600
_READ_BYTES = 1 << 16


class Unreadable(Value):
    """A line that is no message: the code and the message of the error that answers it."""

    code: int
    message: str


TOO_LONG = Unreadable(INVALID, f"the line has more than {MAX_LINE_BYTES:,} bytes, the limit")


class LineReader:
    """Reads lines from a file descriptor. A line beyond the limit is dropped as it arrives."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._unread = bytearray()
        self._scanned = 0
        """Bytes at the beginning of `_unread` that have no line feed."""
        self._is_too_long = False
        """Whether the beginning of this line was dropped."""
        self._is_closed = False

    def read(self, timeout_s: float | None) -> bytes | Unreadable | None:
        """Return the next line; None at the end of input, or if none comes in time."""
        while True:
            end = self._unread.find(b"\n", self._scanned)
            if end >= 0:
                line = bytes(self._unread[:end])
                del self._unread[: end + 1]
                is_too_long = self._is_too_long or end > MAX_LINE_BYTES
                self._scanned, self._is_too_long = 0, False
                return TOO_LONG if is_too_long else line
            if len(self._unread) > MAX_LINE_BYTES:
                self._unread.clear()
                self._is_too_long = True
            self._scanned = len(self._unread)
            if self._is_closed or not select.select([self._source], [], [], timeout_s)[0]:
                return None
            data = os.read(self._source, _READ_BYTES)
            self._unread += data or b"\n"  # the last line may have no line feed
            self._is_closed = not data


def parse(line: bytes) -> dict[str, Any] | list[Any] | Unreadable:
    """Parse a line as a message, or a batch of them."""
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except RecursionError:
        return Unreadable(NOT_JSON, "the JSON of the line is nested too deeply")
    except ValueError:
        return Unreadable(NOT_JSON, "the line is not JSON in UTF-8")
    if isinstance(value, dict | list):
        return value
    return Unreadable(INVALID, "a message is a JSON object")


def has_valid_id(message: dict[str, Any]) -> bool:
    """Return whether the id of a request is a text or a whole number, as the protocol says."""
    return type(message.get("id")) in (str, int)
