"""Output: answers on stdout, messages on stderr. Control characters are escaped."""

from __future__ import annotations

import os
import sys

from memtool.errors import MemtoolError, find_reason
from memtool.value import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TextIO

# Characters that move the cursor, or colour, hide or reorder text are escaped. Joiners are not:
# they only shape letters and emoji.
_KEPT = frozenset("\n\t\u200c\u200d\u00a0\u202f\u3000")


def to_json(value: Any) -> str:
    """Format a value as indented JSON in ASCII, which any terminal and program can read."""
    import json  # most answers are text

    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


def to_text(text: str) -> str:
    """Return text for a terminal, ending in a line feed unless it is empty."""
    return make_visible(text if not text or text.endswith("\n") else text + "\n")


def make_visible(text: str) -> str:
    r"""Escape control and direction characters, as `\x1b` or `\u202e`."""
    if "\r\n" in text:  # a normal line end
        text = text.replace("\r\n", "\n")
    if text.replace("\n", "").isprintable():  # nearly always true, and the loop is slow
        return text
    return "".join(
        char if char.isprintable() or char in _KEPT else char.encode("unicode_escape").decode()
        for char in text
    )


STYLES = {
    "error": "1;31",  # bold red
    "note": "33",  # yellow
    "hint": "32",  # green
    "report": "32",
    "place": "1",  # bold
    "code": "33",
    "heading": "1",
    "title": "1",
    "cited": "36",  # cyan
    "id": "36",
    "attention": "33",
    "broken": "31",
    "added": "32",
    "age": "2",  # dim
}
"""The style of each part of an answer on a terminal, as SGR codes. None is the only sign."""

PARTS = (
    r"^(?P<place>[^\s:]+:\d+:) (?P<code>(?!(?:a|it|that) )[a-z][a-z-]+)(?= )",
    r"^(?P<heading>[A-Z][^\n]*\([\d,]+[;)][^\n]*:)$",
    r"^(?:\d+\. )?(?P<title>\S[^\n]*?)(?=  +\[?\S+@[0-9a-f]{7}\]?$)",
    # A number alone proves nothing: the text of a memory may be a list. A hit has its citation at
    # the right edge or in a line below, a conflict its sides.
    r"^\d+\. (?P<title_hit>[^\n]+?(?:\n(?!\d+\. )\S[^\n]*){0,2}?)(?=(?: |\n) +\[[^\]\n]+\]$)",
    r"^\d+\. (?P<heading_conflict>[^\n]+?(?:\n(?!\d+\. )\S[^\n]*){0,3}?)(?=\n  [a-z][\w.-]+  \S)",
    r"^ *(?P<attention>! \S+)",
    r"^  (?P<attention_word>not mentioned)",
    r"^ *(?P<broken>BREAKS IT|BROKEN)\b",
    r"^(?P<added>\+)(?=  )",
    r"(?<![\w/.-])(?P<cited>[a-z0-9][a-z0-9._-]{2,119}@(?:[0-9a-f]{7,10}|local|shallow))\b",
    r"(?<![\w/.-])(?P<id>(?:dec|sem|epi|sta)-(?:[a-z0-9]{4}|\d{4}-[a-z0-9-]*[a-z0-9]))(?![\w/.-])",
    r"(?P<age>\d+ (?:minute|hour|day|week|month|year)s? ago|yesterday|just now)$",
)
"""Patterns of the parts to style in the text of every verb."""


DEFAULT_COLUMNS, MIN_COLUMNS = 80, 40
"""Columns if a terminal does not say how many it has, and below which nothing is laid out."""


def has_colours(stream: TextIO | None, env: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal with colours, and the user has not disabled them."""
    if stream is None or env.get("NO_COLOR") or env.get("TERM", "dumb") == "dumb":
        return False
    return stream.isatty()


def paint(text: str, stream: TextIO | None, env: Mapping[str, str]) -> str:
    """Colour escaped text if the stream shows colours; else return it unchanged."""
    if not has_colours(stream, env):
        return text
    import re  # needed on a terminal only

    def paint(match: re.Match[str]) -> str:
        row, at = "", match.start()
        for name, part in match.groupdict().items():
            if part:
                style = STYLES[name.partition("_")[0]]
                row += f"{text[at : match.start(name)]}\x1b[{style}m{part}\x1b[0m"
                at = match.end(name)
        return row + text[at : match.end()]

    return re.sub("|".join(PARTS), paint, text, flags=re.MULTILINE)


def find_width() -> int:
    """Return the columns of the terminal on stdout, 0 if it is not a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return 0
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and 0 < len(columns) < 5:
        return max(int(columns), MIN_COLUMNS)
    try:
        width = os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        return DEFAULT_COLUMNS
    return max(width, MIN_COLUMNS) if width else DEFAULT_COLUMNS


def write(text: str) -> bool:
    """Write to stdout as UTF-8, whatever the locale; return False if no program reads it.

    A closed pipe is not an error.

    Raises:
        MemtoolError: writing fails, for example because the disk is full.
    """
    if sys.stdout is None:  # closed by the caller
        return False
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode(errors="backslashreplace"))
        sys.stdout.buffer.flush()
    except OSError as error:
        # Otherwise Python would try again at exit, and print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return False
        raise MemtoolError(f"cannot write the answer: {find_reason(error)}", code="disk") from None
    return True


def tell(
    text: str, env: Mapping[str, str] | None = None, style: str = "", *, end: str = ":"
) -> None:
    """Write a line to stderr, if possible; the part up to the first `end` may have a style."""
    if style and env is not None and has_colours(sys.stderr, env):
        first, mark, tail = text.partition(end)
        text = f"\x1b[{STYLES[style]}m{first}{mark}\x1b[0m{tail}"
    if sys.stderr is not None:
        try:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
        except OSError:  # stderr is closed
            return


LOG_VARIABLE, LOG_JSON = "MEMTOOL_LOG", "json"


def log(component: str, operation: str, began: float, session: str = "", error: str = "") -> None:
    """Write one JSON line about an operation to stderr, if MEMTOOL_LOG is `json`.

    `began` is a value of `time.perf_counter`; `error` is a code, never a text, which could quote a
    memory.
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
