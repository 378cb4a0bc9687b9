"""Introductions: the words before a statement that ask to keep it, or say that it matters.

`remember` ignores them when it chooses a category; sessions know by them what a person asks to
keep.
"""

from __future__ import annotations

from functools import cache

from memtool.authoring.phrases import PhraseRow, normalize, read_phrases

_BETWEEN = " \t:,;!-\u2013\u2014\uff1a\uff0c"
"""What stands between an introduction and its statement."""
_THAT = ("that", "dass", "daß", "que", "che", "что", "що")


@cache
def read_introductions() -> tuple[PhraseRow, ...]:
    """Return the rows of the table: `note`, `pin` and `remember` in each language."""
    return read_phrases("authoring/introductions")


def strip_introduction(text: str) -> str:
    """Remove an introduction from the beginning of a sentence, and the `that` after it."""
    plain = normalize(text)
    places = (row.find(plain) for row in read_introductions())
    end = next((place[1] for place in places if place and place[0] <= 1), 0)
    if not end:
        return text
    introduction = plain[:end].strip()
    cut = next(at for at in range(1, len(text) + 1) if normalize(text[:at]).strip() == introduction)
    statement = text[cut:].lstrip(_BETWEEN)
    first, _space, tail = statement.partition(" ")
    return tail.lstrip() if first.lower() in _THAT else statement
