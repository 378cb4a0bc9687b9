"""Marks: the `[REDACTED:kind]` that a redaction leaves, and telling a redaction from an edit."""

from __future__ import annotations

from itertools import pairwise

from memtool.memory.memory import FieldValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "[REDACTED:"
"""How every mark begins; a kind, maybe a colon and a label, and a closing bracket follow."""
LONGEST = 54
"""Characters of kind and label; what is longer or has other characters is text, not a mark."""
MOST_MARKS = 1_000
"""Of a text that is told from an edit: each old mark is looked for among all new ones."""
_WORD = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-:")


def is_redacted(old: FieldValue | None, new: FieldValue | None) -> bool:
    """Tell whether the value of a key differs only by spans that became marks."""
    if isinstance(old, str) and isinstance(new, str):
        return is_redaction(old, new)
    if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        return is_redacted(tuple(old.values()), tuple(new.values()))
    if not (isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new)):
        return False
    different = [(o, n) for o, n in zip(old, new, strict=True) if o != n]
    return bool(different) and all(is_redaction(o, n) for o, n in different)


def is_redaction(before: str, after: str) -> bool:
    """Tell whether a text differs only by spans that became `[REDACTED:kind]`.

    A new mark stands for one character or more, and never for another mark: so each old mark is
    one of the new text, and what lies between two of them became what lies between those.
    """
    olds, news = list(_split_marks(before)), list(_split_marks(after))
    if not len(olds) < len(news) <= MOST_MARKS:
        return False
    begins = {0}  # the pieces of the new text that may stand where the old one begins
    for (_mark, text), (following, _text) in pairwise(olds):
        begins = {
            end
            for begin in begins
            for end in range(begin + 1, min(len(news), begin + 2 + len(text)))
            if news[end][0] == following and _became(text, news[begin:end])
        }
    return any(_became(olds[-1][1], news[begin:]) for begin in begins)


def _became(text: str, pieces: list[tuple[str, str]]) -> bool:
    """Tell whether a text without marks may have become these pieces, the first without its mark.

    The first place at which a piece fits leaves most to the others.
    """
    (_mark, start), *others = pieces
    if not others:
        return text == start
    if not text.startswith(start):
        return False
    position = len(start)
    for _mark, piece in others[:-1]:
        at = text.find(piece, position + 1)
        if at < 0 or MARK in text[position:at]:
            return False
        position = at + len(piece)
    end = others[-1][1]
    at = len(text) - len(end)
    return at > position and text.endswith(end) and MARK not in text[position:at]


def _split_marks(text: str) -> Iterator[tuple[str, str]]:
    """Yield (mark, text behind it); the first mark is empty."""
    mark, searched = "", 0
    while True:
        begin = text.find(MARK, searched)
        if begin < 0:
            yield mark, text
            return
        end = text.find("]", begin, begin + len(MARK) + LONGEST + 1)
        word = text[begin + len(MARK) : end]
        if end < 0 or not word or not _WORD.issuperset(word):
            searched = begin + 1
            continue
        yield mark, text[:begin]
        mark, text, searched = text[begin : end + 1], text[end + 1 :], 0
