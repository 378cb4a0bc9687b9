"""Where a text may hold something: cheap looks that spare the detectors most of a long text.

Each trigger is a superset of what some detector needs: a word that announces a secret, a part of a
shape, a long word of letters and digits, a long number, the sign of an address. What no trigger is
near is not searched. A table is searched whole, because its heading may announce its last row.
"""

from __future__ import annotations

from memtool.redaction import assignments, shapes
from memtool.redaction.entropy import BEGIN, Pattern
from memtool.redaction.joins import INVISIBLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Span = tuple[int, int]

MIN_LENGTH = 1_000
"""Characters of a text that is worth the look."""
LINES_AROUND = 4
"""Lines before and behind a trigger that belong to it: a value may be below a blank line."""

_LONG = Pattern(r"[A-Za-z0-9_+/=~-]{14,}")
_RESTLESS = Pattern(r"[a-z][A-Z][a-z]?[A-Z]")
"""What 21 letters that a machine drew have somewhere, and few names of code."""
_DIGITS = frozenset("0123456789")
PATTERNS = (
    Pattern(r"\d(?:[ ()./-]{0,3}\d){5,}|(?<![A-Z])[A-Z]{5}\d{4}[A-Z](?![A-Z])"),
    Pattern(
        r"\s(?i:at|arroba)\s{1,3}(?=\S{1,60}(?:\.[A-Za-z]|\s?[\[({]|\s(?i:dot|punkt|punto)\b))"
    ),
    Pattern(r"[\[({<_-]\s?(?i:at|arroba)(?![a-z0-9])"),
    Pattern(r"(?:-u|--(?:proxy-)?user)[ =]?\S{0,40}:\S|(?:-U|--user=)\s?\S{1,60}%|\s>\S{6}"),
    Pattern(r":(?:\d{2,5}|\*):[^\s:]{1,60}:|\]:\d{2,5}[ \t]|\S[ \t]{1,8}\*[ \t]{1,8}\S{8}"),
    Pattern(r"\b[Pp](?:in|IN)\b|exec(?:\.py)?\s|\s-a\s{0,2}[\"']?[\w.@-]{1,60}:"),
    Pattern(r"[\"'`][ \t]{0,3}(?:\.{1,2}|\+|&|~|<>|\|\|)\s{0,20}[\"'`]"),
)
SIGNS = ("@", "\uff20", "%40", "&#64;", "&#x40;", "&commat;")
"""The sign of an address as people, web pages and machines write it."""
COMMANDS = (
    "sshpass", "redis-cli", "mosquitto", "mongo", "ldap", "docker login", "podman login", "helm",
    "smbclient", "7z", "zip", "openssl", "az login", "oc login", "sqlcmd", "psql", "cqlsh",
    "influx", "ipmitool", "psexec", "rdesktop",
)  # fmt: skip
"""Commands that take a password behind a short option."""
_COMMON = frozenset(
    (":", "-", ".", "|", "{", "$", "*", ">", "/1", "-u", "--user", "--proxy-user", "-U", "--user=",
     "pat", "-us", "]:", " * ", " -p", " -a", " -w", " -P", "machine", "default", "pin", "exec",
     "http ", "https ")
)  # fmt: skip
"""Parts that every text has; a pattern above, or a longer word, stands for each."""
WORDS = tuple(word for word in assignments.ANNOUNCING if word not in _COMMON)
NEEDLES = tuple(
    dict.fromkeys(
        needle
        for _kind, needles, _pattern in shapes.ROWS
        for needle in needles
        if needle not in _COMMON
    )
)


def find_places(text: str, lower: str) -> Iterator[Span]:
    """Yield the places of triggers in order, the first of each line, each with its whole table."""
    done = -1
    for start, end in _find_triggers(text, lower):
        if end <= done:
            continue
        line = text.rfind("\n", 0, start) + 1
        done = text.find("\n", end)
        done = len(text) if done < 0 else done
        if not _is_row(text[line:done]):
            yield start, end
            continue
        top, bottom = text.rfind("\n\n", 0, line), text.find("\n\n", done)
        done = bottom if bottom >= 0 else len(text)
        yield max(top, 0), done


def _is_row(line: str) -> bool:
    """Return whether a line may be a row of a table or of values, whose heading is far above."""
    return "\t" in line or any(line.count(mark) > 1 for mark in "|,;")


def _find_triggers(text: str, lower: str) -> list[Span]:
    """Return the places of all triggers, in order; they may overlap."""
    spans = [span for part in (*NEEDLES, *shapes.CALLS, BEGIN) for span in _find_all(text, part)]
    spans += [span for part in (*WORDS, *COMMANDS, *SIGNS) for span in _find_all(lower, part)]
    spans += [match.span() for pattern in PATTERNS for match in pattern.finditer(text)]
    spans += [match.span() for match in _LONG.finditer(text) if _may_be_drawn(match[0])]
    if not text.isascii():
        spans += [match.span() for match in INVISIBLE.finditer(text)]
    return sorted(spans)


def _may_be_drawn(word: str) -> bool:
    """Return whether a long word has letters and digits, or letters of both cases in any order."""
    if _DIGITS.isdisjoint(word):
        return len(word) > 20 and _RESTLESS.search(word) is not None
    return word.lower() != word.upper()


def _find_all(text: str, part: str) -> Iterator[Span]:
    at = text.find(part)
    while at >= 0:
        yield at, at + len(part)
        at = text.find(part, at + len(part))
