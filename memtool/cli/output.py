"""What reaches the terminal: JSON, and text in which nothing invisible is left to act."""

from __future__ import annotations

import json
import sys
from typing import Any

from memtool.value import plain

# Characters that move the cursor, colour, hide or reorder text are shown as codes. Joiners stay:
# they only shape letters and emoji.
_KEPT = frozenset("\n\t\u200c\u200d\u00a0\u202f\u3000")


def as_json(value: Any) -> str:
    """Return a value as JSON, indented, in ASCII, so that any terminal and program can take it."""
    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


def as_text(text: str) -> str:
    """Return text for a person, ending in a line feed unless it is empty."""
    return visible(text if not text or text.endswith("\n") else text + "\n")


def visible(text: str) -> str:
    r"""Show control and direction characters as `\x1b` or `\u202e` instead of sending them."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in _KEPT else char.encode("unicode_escape").decode()
        for char in text
    )


def write(text: str) -> None:
    """Write to stdout as UTF-8, whatever the locale says."""
    sys.stdout.buffer.write(text.encode(errors="backslashreplace"))
