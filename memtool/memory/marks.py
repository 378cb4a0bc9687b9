"""Marks: the `[REDACTED:kind]` that a redaction leaves, and telling a redaction from an edit."""

from __future__ import annotations

from memtool.memory.memory import FieldValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "[REDACTED:"
"""How every mark begins; a kind, maybe a colon and a label, and a closing bracket follow."""
LONGEST = 54
"""Characters of kind and label; what is longer or has other characters is text, not a mark."""
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

    A new mark stands for one character or more, and never for another mark. Where that can be
    read in two ways and only the longer reading fits, the answer is no.
    """
    pieces = list(_split_marks(after))
    if before == after or len(pieces) <= len(list(_split_marks(before))):
        return False
    position = len(pieces[0][1])
    if not before.startswith(pieces[0][1]):
        return False
    for number, (mark, text) in enumerate(pieces[1:], 2):
        if before.startswith(mark + text, position) and number < len(pieces):
            position += len(mark + text)  # it was redacted before
            continue
        if before[position:] == mark + text:
            return True
        start = position
        position = (
            len(before) - len(text) if number == len(pieces) else before.find(text, start + 1)
        )
        if position <= start or not before.startswith(text, position):
            return False
        if MARK in before[start:position]:
            return False
        position += len(text)
    return position == len(before)


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
