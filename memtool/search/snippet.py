"""Snippets: the passage of a body with the most query terms, on one line."""

from __future__ import annotations

from bisect import bisect_left

from memtool.index import analyzer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    WordMatches = dict[int, dict[str, int]]
    """The wanted terms, with their worth, of each word that has any, by the word's position."""


MAX_CHARACTERS = 200
"""Characters of a snippet, including the dots of a cut."""

LEADING_WORDS = 4
"""Words that a snippet shows before the first wanted one."""

_MARKS = frozenset("#*-=>|`_~+:")

_DOTS = "…"


def extract_snippet(
    body: str,
    wanted: Collection[str],
    length: int = MAX_CHARACTERS,
    language: str = analyzer.ENGLISH,
) -> str:
    """Return the passage with the most wanted terms, the earliest of the best, in whole words.

    Other terms count ten times as much as stop words. Without a match it is the beginning of the
    body.
    """
    text = _join_lines(body)
    worth = {term: 1 if analyzer.is_stop(term) else 10 for term in wanted}
    spans: WordMatches = {}
    for at in sorted(_find_places(text, {_find_head(term) for term in wanted})):
        word = text[at : _find_end(text, at, 0)]
        best_spans = {
            term: worth[term]
            for term in analyzer.terms(word, language, is_indexed=True)
            if term in worth
        }
        if best_spans:
            spans[at] = best_spans
    width = length - 2 * len(_DOTS)
    first, last = _show_window(text, spans, width)
    before = _DOTS if first else ""
    after = _DOTS if last < len(text) else ""
    return f"{before}{text[first:last][:width]}{after}"


def mark_pieces(
    text: str, wanted: Collection[str], language: str = analyzer.ENGLISH
) -> list[tuple[str, bool]]:
    """Split a snippet into pieces, each with whether it is a word with a wanted term.

    Stop words are not marked. Joined, the pieces are the snippet.
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


def _join_lines(body: str) -> str:
    """Return the words of a body without the marks between them; a heading ends in a colon."""
    words_kept: list[str] = []
    for line in body.split("\n"):
        words = [
            word for word in line.split() if word[0] not in _MARKS or not _MARKS.issuperset(word)
        ]
        if words and line.startswith("#") and words[-1][-1].isalnum():
            words[-1] += ":"
        words_kept += words
    return " ".join(words_kept)


def _find_head(term: str) -> str:
    """Return the leading letters that a term has in every word it comes from.

    Stemming changes at most the last letter of the stem (`using`, `use`; `cry`, `cri`), except for
    `die`, `lie` and `tie`.
    """
    return term[:1] if len(term) < 3 or (len(term) == 3 and term.endswith("ie")) else term[:-1]


def _find_places(text: str, heads: Collection[str]) -> set[int]:
    """Return the positions of words that may have a wanted term.

    In plain text a term begins where a word or a part of one does: after a mark, or with a capital.
    So `gi` of `git` is found in `.gitignore`, but not in `logic`.
    """
    places = set()
    lower = text.lower()
    is_plain = text.isascii()
    if not is_plain:
        at = 0
        for word in text.split(" "):
            if not word.isascii() or len(lower) != len(text):
                places.add(at)
            at += len(word) + 1
    for head in heads if len(lower) == len(text) else ():
        at = lower.find(head)
        while at >= 0:
            if not (is_plain and at and text[at - 1].isalnum()) or text[at].isupper():
                places.add(text.rfind(" ", 0, at) + 1)
            at = lower.find(head, at + 1)
    return places


def _show_window(text: str, spans: WordMatches, width: int) -> tuple[int, int]:
    """Return the best window, moved so that its first wanted word is near its beginning."""
    first, last = _find_best_window(text, spans, width)
    lead = next((at for at in spans if first <= at < last), 0)
    for _ in range(LEADING_WORDS):
        lead = text.rfind(" ", 0, max(0, lead - 1)) + 1
    first = max(first, lead)
    last = _find_end(text, first, width)
    return _find_begin(text, first, last, width), last


def _find_best_window(text: str, spans: WordMatches, width: int) -> tuple[int, int]:
    """Return the earliest window [first, last) of up to `width` characters with the highest worth.

    Each distinct term counts once. A moving window gains worth only when it reaches another wanted
    word, so only those windows are examined, and the first.
    """
    places = list(spans)
    firsts = {_find_begin(text, place, _find_end(text, place, 0), width) for place in places}
    best = (0, 0, 0)
    for first in sorted({0, *firsts}):
        last = _find_end(text, first, width)
        counts: dict[str, int] = {}
        for place in places[bisect_left(places, first) : bisect_left(places, last)]:
            counts |= spans[place]
        worth = sum(counts.values())
        if worth > best[0] or first == 0:
            best = (worth, first, last)
    return best[1], best[2]


def _find_end(text: str, first: int, width: int) -> int:
    """Return the end of the longest window from a word on; it has at least one word."""
    if len(text) - first <= width:
        return len(text)
    end = text.rfind(" ", first, first + width + 1)
    if end < 0:
        end = text.find(" ", first)
    return end if end >= 0 else len(text)


def _find_begin(text: str, first: int, last: int, width: int) -> int:
    """Return the earliest word from which a window reaches its end, `first` if there is none."""
    if last <= width:
        return 0
    space = text.find(" ", last - width - 1, first)
    return space + 1 if space >= 0 else first
