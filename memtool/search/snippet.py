"""Snippets: the passage of a body that holds most of what was asked for, on one line."""

from __future__ import annotations

from memtool.search import terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

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
    words = [word for word in body.split() if not _MARKS.issuperset(word)]
    heads = tuple({_head(term) for term in wanted})
    worth = {term: 1 if terms.is_stop(term) else 10 for term in wanted}
    found = [
        [(term, worth[term]) for term in terms.terms(word) if term in wanted]
        if _may_hold(word, heads)
        else []
        for word in words
    ]
    room = length - 2 * len(_DOTS)
    first, last = _shown(words, found, room)
    passage = " ".join(words[first:last])[:room]
    before = _DOTS if first else ""
    after = _DOTS if last < len(words) else ""
    return f"{before}{passage}{after}"


def _head(term: str) -> str:
    """Return the letters with which a term begins in every word that has it.

    Stemming changes no more than the last letter of what it leaves (`using`, `use`; `cry`, `cri`),
    but for `die`, `lie` and `tie`.
    """
    return term[:1] if len(term) < 4 else term[: min(3, len(term) - 1)]


def _may_hold(word: str, heads: tuple[str, ...]) -> bool:
    """Tell whether it is worth to take a word apart: most words of a text hold no wanted term."""
    low = word.lower()
    return not word.isascii() or any(head in low for head in heads)


def _shown(words: list[str], found: list[list[tuple[str, int]]], room: int) -> tuple[int, int]:
    """Return the best window, moved so that its first wanted word stands near its beginning."""
    first, last = _best(words, found, room)
    matched = next((place for place in range(first, last) if found[place]), 0)
    first = last = max(first, matched - LEAD)
    used = -1
    while last < len(words) and (last == first or used + 1 + len(words[last]) <= room):
        used += 1 + len(words[last])
        last += 1
    while first > 0 and used + 1 + len(words[first - 1]) <= room:
        first -= 1
        used += 1 + len(words[first])
    return first, last


def _best(words: list[str], found: list[list[tuple[str, int]]], room: int) -> tuple[int, int]:
    """Return the earliest window [first, last) within `room` characters that is worth most.

    Each distinct term counts once.
    """
    best = (0, 0, 0)
    last = used = worth = 0
    held: dict[str, int] = {}
    for first in range(len(words)):
        while last < len(words) and (last <= first or used + 1 + len(words[last]) <= room):
            used += len(words[last]) + (last > first)
            for term, value in found[last]:
                held[term] = held.get(term, 0) + 1
                worth += value if held[term] == 1 else 0
            last += 1
        if worth > best[0] or first == 0:
            best = (worth, first, last)
        used -= len(words[first]) + (last > first + 1)
        for term, value in found[first]:
            held[term] -= 1
            worth -= value if held[term] == 0 else 0
    return best[1], best[2]
