"""Output: answers on stdout, messages on stderr; control characters are shown, never sent."""

from __future__ import annotations

import os
import sys

from memtool.errors import MemtoolError
from memtool.value import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Characters that move the cursor, colour, hide or reorder text are shown as codes. Joiners stay:
# they only shape letters and emoji.
_KEPT = frozenset("\n\t\u200c\u200d\u00a0\u202f\u3000")


def as_json(value: Any) -> str:
    """Return a value as JSON, indented, in ASCII, so that any terminal and program can take it."""
    import json  # most answers are text

    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


def as_text(text: str) -> str:
    """Return text for a person, ending in a line feed unless it is empty."""
    return visible(text if not text or text.endswith("\n") else text + "\n")


def visible(text: str) -> str:
    r"""Show control and direction characters as `\x1b` or `\u202e` instead of sending them."""
    if text.replace("\n", "").isprintable():  # nearly always: going by character takes long
        return text
    return "".join(
        char if char.isprintable() or char in _KEPT else char.encode("unicode_escape").decode()
        for char in text
    )


def write(text: str) -> bool:
    """Write to stdout as UTF-8, whatever the locale says, and tell whether somebody reads it.

    A reader that left is no error.

    Raises:
        MemtoolError: what stdout is redirected to cannot take it.
    """
    if sys.stdout is None:  # closed by the caller
        return False
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode(errors="backslashreplace"))
        sys.stdout.buffer.flush()
    except OSError as error:
        # Python would try again at exit, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return False
        raise MemtoolError(
            f"the answer cannot be written: {os.strerror(error.errno or 0)}", code="disk"
        ) from None
    return True


def tell(text: str) -> None:
    """Write a line to stderr, where one can be written."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
        except OSError:  # nobody is left to read it
            return
