"""Snippets: the passage of a body that holds most of what was asked for, on one line."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

from memtool.search import terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    Found = dict[int, dict[str, int]]
    """The wanted terms of each word that holds any, by its place, ascending, with their worth."""

LENGTH = 200
"""Most characters of a snippet, the dots where it is cut included."""
LEAD = 4
"""Words that a snippet shows before the first wanted one."""
_MARKS = frozenset("#*-=>|`_~+:")
_DOTS = "…"


def snippet(body: str, wanted: Collection[str], length: int = LENGTH) -> str:
    """Return the passage with the most wanted terms, the earliest of the best; whole words.

    Telling terms count ten times what stop words do. Without any it is the beginning of the body.
    """
    words = [word for word in body.split() if word[0] not in _MARKS or not _MARKS.issuperset(word)]
    worth = {term: 1 if terms.is_stop(term) else 10 for term in wanted}
    found: Found = {}
    known: dict[str, dict[str, int]] = {}
    for place in sorted(_places(words, {_head(term) for term in wanted})):
        word = words[place]
        held = known.get(word)
        if held is None:
            held = {term: worth[term] for term in terms.terms(word) if term in worth}
            known[word] = held
        if held:
            found[place] = held
    room = length - 2 * len(_DOTS)
    first, last = _shown(_starts(words), found, room)
    passage = " ".join(words[first:last])[:room]
    before = _DOTS if first else ""
    after = _DOTS if last < len(words) else ""
    return f"{before}{passage}{after}"


def _head(term: str) -> str:
    """Return the letters with which a term begins in every word that has it.

    Stemming changes no more than the last letter of what it leaves (`using`, `use`; `cry`, `cri`),
    but for `die`, `lie` and `tie`.
    """
    return term[:1] if len(term) < 3 or (len(term) == 3 and term.endswith("ie")) else term[:-1]


def _places(words: list[str], heads: Collection[str]) -> set[int]:
    """Return the words that are worth to be taken apart: most hold no wanted term.

    In plain text a term begins where a word does, or a part of one: behind a mark, or with a
    capital. So `gi` of `git` stands in `.gitignore`, and not in `logic`.
    """
    text = " ".join(words)
    is_plain = text.isascii()
    found = set()
    if not is_plain:
        found = {place for place, word in enumerate(words) if not word.isascii()}
    lower = text.lower()
    for head in heads:
        place = counted = 0
        at = lower.find(head)
        while at >= 0:
            if not (is_plain and at and text[at - 1].isalnum()) or text[at].isupper():
                place += lower.count(" ", counted, at)
                counted = at
                found.add(place)
            at = lower.find(head, at + 1)
    return found


def _starts(words: list[str]) -> list[int]:
    """Return where each word begins in the joined text, and where one more would."""
    return [0, *accumulate([len(word) + 1 for word in words])]


def _shown(starts: list[int], found: Found, room: int) -> tuple[int, int]:
    """Return the best window, moved so that its first wanted word stands near its beginning."""
    first, last = _best(starts, found, room)
    matched = next((place for place in found if first <= place < last), 0)
    first = max(first, matched - LEAD)
    last = _end(starts, first, room)
    return min(first, bisect_left(starts, starts[last] - room - 1)), last


def _best(starts: list[int], found: Found, room: int) -> tuple[int, int]:
    """Return the earliest window [first, last) within `room` characters that is worth most.

    Each distinct term counts once. As a window moves on, it is worth more only where it comes to
    hold a further wanted word: only such windows are looked at, and the first.
    """
    places = list(found)
    firsts = {min(place, bisect_left(starts, starts[place + 1] - 1 - room)) for place in found}
    best = (0, 0, 0)
    for first in sorted({0, *firsts}):
        last = _end(starts, first, room)
        held: dict[str, int] = {}
        for place in places[bisect_left(places, first) : bisect_left(places, last)]:
            held |= found[place]
        worth = sum(held.values())
        if worth > best[0] or first == 0:
            best = (worth, first, last)
    return best[1], best[2]


def _end(starts: list[int], first: int, room: int) -> int:
    """Return the end of the longest window from a word on; one word is in it, however long."""
    fitting = bisect_right(starts, starts[first] + room + 1) - 1
    return min(max(first + 1, fitting), len(starts) - 1)
