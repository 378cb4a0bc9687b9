"""Where a text may hold something: cheap looks that spare the detectors most of a long text.

A trigger is what some detector needs, by its rows or its `NEAR`: a word that announces a secret, a
part of a shape, a long word of letters and digits, a long number, the sign of an address. What no
trigger is near is not searched. A table is searched whole, because its heading may announce its
last row.
"""

from __future__ import annotations

from memtool.pattern import Pattern
from memtool.redaction import assignments, joins, national_ids, personal, shapes
from memtool.redaction.entropy import BEGIN

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
_NAMES = Pattern(
    r"(?:(?:[A-Za-z0-9]{1,5}+(?![A-Za-z0-9])|(?:[A-Z]?[a-z]{2,}+|[A-Z]{2,}+)*+\d*+)"
    r"(?:[/_+=~-]++|$))++$"
)
"""A path or name whose parts are short, or words with a number behind."""
_DIGITS = frozenset("0123456789")
PATTERNS = (
    *(Pattern(row.near) for row in shapes.ROWS if row.near),
    *national_ids.NEAR,
    *personal.NEAR,
    joins.LITERALS,
)
NEEDLES = tuple(
    dict.fromkeys(
        needle for row in shapes.ROWS if not (row.word or row.near) for needle in row.needles
    )
)
"""Texts of which one is in every shape that is no long word."""


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
    parts = (*NEEDLES, *shapes.CALLS, BEGIN)
    spans = [span for part in parts for span in _find_all(text, part)]
    spans += [span for sign in personal.SIGNS for span in _find_all(lower, sign)]
    spans += [(start, end) for _kind, start, end in assignments.find_words(lower)]
    spans += [match.span() for pattern in PATTERNS for match in pattern.finditer(text)]
    spans += [match.span() for match in _LONG.finditer(text) if _may_be_drawn(match[0])]
    if not text.isascii():
        spans += [match.span() for match in joins.INVISIBLE.finditer(text)]
    return sorted(spans)


def _may_be_drawn(word: str) -> bool:
    """Return whether a long word has letters and digits, or letters of both cases in any order."""
    if _DIGITS.isdisjoint(word):
        return len(word) > 20 and _RESTLESS.search(word) is not None
    return word.lower() != word.upper() and _NAMES.match(word) is None


def _find_all(text: str, part: str) -> Iterator[Span]:
    at = text.find(part)
    while at >= 0:
        yield at, at + len(part)
        at = text.find(part, at + len(part))
