"""Output: answers on stdout, messages on stderr; control characters are shown, never sent."""

from __future__ import annotations

import os
import sys

from memtool.errors import MemtoolError, reason_of
from memtool.value import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TextIO

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
    if "\r\n" in text:  # a line end like any other
        text = text.replace("\r\n", "\n")
    if text.replace("\n", "").isprintable():  # nearly always: going by character takes long
        return text
    return "".join(
        char if char.isprintable() or char in _KEPT else char.encode("unicode_escape").decode()
        for char in text
    )


STYLES = {
    "error": "1;31",  # bold red
    "note": "33",  # yellow
    "hint": "32",  # green
    "place": "1",  # bold
    "code": "33",
    "title": "1",
    "cited": "36",  # cyan
    "id": "36",
}
"""How each part of an answer looks on a terminal, as numbers of SGR."""

PARTS = (
    r"^(?P<place>[^\s:]+:\d+:) (?P<code>[a-z][a-z-]+)(?= )",
    r"^\d+\. (?P<title>.+)$",
    r"\b(?P<cited>[a-z0-9][a-z0-9._-]{2,119}@(?:[0-9a-f]{10}|local|shallow))\b",
    r"\b(?P<id>(?:dec|sem|epi|sta)-\d{4}-\d\d-\d\d-[a-z0-9-]*[a-z0-9])",
)
"""What is looked for in the text of every verb: problems, titles of results, ids."""


def has_colours(stream: TextIO | None, env: Mapping[str, str]) -> bool:
    """Tell whether a stream is a terminal that shows colours, and its user wants them."""
    if stream is None or env.get("NO_COLOR") or env.get("TERM", "dumb") == "dumb":
        return False
    return stream.isatty()


def painted(text: str, stream: TextIO | None, env: Mapping[str, str]) -> str:
    """Return visible text with colours where the stream shows them, else as it is."""
    if not has_colours(stream, env):
        return text
    import re  # only people at a terminal pay for it

    def paint(found: re.Match[str]) -> str:
        row, at = "", found.start()
        for name, part in found.groupdict().items():
            if part:
                row += f"{text[at : found.start(name)]}\x1b[{STYLES[name]}m{part}\x1b[0m"
                at = found.end(name)
        return row + text[at : found.end()]

    return re.sub("|".join(PARTS), paint, text, flags=re.MULTILINE)


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
            f"the answer cannot be written: {reason_of(error)}", code="disk"
        ) from None
    return True


def tell(text: str, env: Mapping[str, str] | None = None, style: str = "") -> None:
    """Write a line to stderr, where one can be written; its first word may have a style."""
    if style and env is not None and has_colours(sys.stderr, env):
        first, colon, rest = text.partition(":")
        text = f"\x1b[{STYLES[style]}m{first}{colon}\x1b[0m{rest}"
    if sys.stderr is not None:
        try:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
        except OSError:  # nobody is left to read it
            return


LOG_VARIABLE, LOG_JSON = "MEMTOOL_LOG", "json"


def log(component: str, operation: str, began: float, session: str = "", error: str = "") -> None:
    """Write one JSON line about an operation to stderr, where the environment asks for that.

    `began` is of `time.perf_counter`; `error` is a code, never a text that could quote a memory.
    """
    if os.environ.get(LOG_VARIABLE) != LOG_JSON:
        return
    import json
    import time

    from memtool.memory import timestamps

    now = time.time()
    row = {
        "time": timestamps.render(int(now))[:-1] + f".{int(now % 1 * 1000):03}Z",
        "level": "error" if error else "info",
        "component": component,
        "operation": operation,
        "session": session,
        "milliseconds": round((time.perf_counter() - began) * 1000, 1),
        "error": error or None,
    }
    tell(json.dumps(row))
