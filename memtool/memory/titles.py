"""Titles: what a statement that has none is called, which is its first sentence."""

from __future__ import annotations

MOST_TITLE = 100
"""Characters of a title that is made of a text."""
_MARKS = ".!?"


def title_of(text: str) -> str:
    """Return the first sentence of a text: one line, without its full stop, cut between words."""
    line = " ".join(text.split())
    ends = (at for at, char in enumerate(line) if char in _MARKS and _is_end(line, at))
    line = line[: next(ends, len(line))]
    line = line.rstrip(".") or line
    if len(line) <= MOST_TITLE:
        return line
    return (line[: MOST_TITLE - 2].rpartition(" ")[0] or line[: MOST_TITLE - 2]) + " …"


def _is_end(line: str, at: int) -> bool:
    """Tell whether a sentence ends at a mark; `e.g. this` goes on."""
    return at > 0 and line[at + 1 : at + 2] == " " and not line[at + 2 : at + 3].islower()
