"""Snippets: the passage of a body that holds most of what was asked for, on one line."""

from __future__ import annotations

from bisect import bisect_left

from memtool.index import analyzer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    Found = dict[int, dict[str, int]]
    """The wanted terms of each word that holds any, by where it begins, with their worth."""


LENGTH = 200
"""Most characters of a snippet, the dots where it is cut included."""

LEAD = 4
"""Words that a snippet shows before the first wanted one."""

_MARKS = frozenset("#*-=>|`_~+:")

_DOTS = "…"


def snippet(
    body: str, wanted: Collection[str], length: int = LENGTH, language: str = analyzer.ENGLISH
) -> str:
    """Return the passage with the most wanted terms, the earliest of the best; whole words.

    Telling terms count ten times what stop words do. Without any it is the beginning of the body.
    """
    text = _on_one_line(body)
    worth = {term: 1 if analyzer.is_stop(term) else 10 for term in wanted}
    found: Found = {}
    for at in sorted(_places(text, {_head(term) for term in wanted})):
        word = text[at : _end(text, at, 0)]
        held = {
            term: worth[term]
            for term in analyzer.terms(word, language, is_indexed=True)
            if term in worth
        }
        if held:
            found[at] = held
    room = length - 2 * len(_DOTS)
    first, last = _shown(text, found, room)
    before = _DOTS if first else ""
    after = _DOTS if last < len(text) else ""
    return f"{before}{text[first:last][:room]}{after}"


def marked(
    text: str, wanted: Collection[str], language: str = analyzer.ENGLISH
) -> list[tuple[str, bool]]:
    """Return a snippet in pieces, each with whether it is a word that holds a wanted term.

    Stop words are not marked. Together the pieces are the snippet.
    """
    telling = {term for term in wanted if not analyzer.is_stop(term)}
    pieces: list[tuple[str, bool]] = []
    for number, word in enumerate(text.split(" ")):
        is_hit = not telling.isdisjoint(analyzer.terms(word, language, is_indexed=True))
        space = " " if number else ""
        if is_hit or (pieces and pieces[-1][1]):
            pieces += [(space, False)] * bool(space) + [(word, is_hit)]
        elif pieces:
            pieces[-1] = (f"{pieces[-1][0]}{space}{word}", False)
        else:
            pieces.append((word, False))
    return pieces


def _on_one_line(body: str) -> str:
    """Return the words of a body without the marks between them; a heading ends in a colon."""
    kept: list[str] = []
    for line in body.split("\n"):
        words = [one for one in line.split() if one[0] not in _MARKS or not _MARKS.issuperset(one)]
        if words and line.startswith("#") and words[-1][-1].isalnum():
            words[-1] += ":"
        kept += words
    return " ".join(kept)


def _head(term: str) -> str:
    """Return the letters with which a term begins in every word that has it.

    Stemming changes no more than the last letter of what it leaves (`using`, `use`; `cry`, `cri`),
    but for `die`, `lie` and `tie`.
    """
    return term[:1] if len(term) < 3 or (len(term) == 3 and term.endswith("ie")) else term[:-1]


def _places(text: str, heads: Collection[str]) -> set[int]:
    """Return where words begin that are worth to be taken apart: most hold no wanted term.

    In plain text a term begins where a word does, or a part of one: behind a mark, or with a
    capital. So `gi` of `git` stands in `.gitignore`, and not in `logic`.
    """
    found = set()
    lower = text.lower()
    is_plain = text.isascii()
    if not is_plain:
        at = 0
        for word in text.split(" "):
            if not word.isascii() or len(lower) != len(text):
                found.add(at)
            at += len(word) + 1
    for head in heads if len(lower) == len(text) else ():
        at = lower.find(head)
        while at >= 0:
            if not (is_plain and at and text[at - 1].isalnum()) or text[at].isupper():
                found.add(text.rfind(" ", 0, at) + 1)
            at = lower.find(head, at + 1)
    return found


def _shown(text: str, found: Found, room: int) -> tuple[int, int]:
    """Return the best window, moved so that its first wanted word stands near its beginning."""
    first, last = _best(text, found, room)
    lead = next((at for at in found if first <= at < last), 0)
    for _ in range(LEAD):
        lead = text.rfind(" ", 0, max(0, lead - 1)) + 1
    first = max(first, lead)
    last = _end(text, first, room)
    return _begin(text, first, last, room), last


def _best(text: str, found: Found, room: int) -> tuple[int, int]:
    """Return the earliest window [first, last) within `room` characters that is worth most.

    Each distinct term counts once. As a window moves on, it is worth more only where it comes to
    hold a further wanted word: only such windows are looked at, and the first.
    """
    places = list(found)
    firsts = {_begin(text, place, _end(text, place, 0), room) for place in places}
    best = (0, 0, 0)
    for first in sorted({0, *firsts}):
        last = _end(text, first, room)
        held: dict[str, int] = {}
        for place in places[bisect_left(places, first) : bisect_left(places, last)]:
            held |= found[place]
        worth = sum(held.values())
        if worth > best[0] or first == 0:
            best = (worth, first, last)
    return best[1], best[2]


def _end(text: str, first: int, room: int) -> int:
    """Return where the longest window from a word on ends; one word is in it, however long."""
    if len(text) - first <= room:
        return len(text)
    end = text.rfind(" ", first, first + room + 1)
    if end < 0:
        end = text.find(" ", first)
    return end if end >= 0 else len(text)


def _begin(text: str, first: int, last: int, room: int) -> int:
    """Return the first word from which a window reaches to its end, `first` where none before."""
    if last <= room:
        return 0
    space = text.find(" ", last - room - 1, first)
    return space + 1 if space >= 0 else first
