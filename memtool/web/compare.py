"""Two texts side by side: lines that belong together in one row, and the words that differ in them.

What differs is told by a sign as well as by a style, so that no page depends on colour alone.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from memtool.memory.fields import order
from memtool.memory.memory import as_text
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memtool.memory.memory import FieldValue

SAME, CHANGED, ADDED, REMOVED = "same", "changed", "added", "removed"
SIGNS = {SAME: " ", CHANGED: "~", ADDED: "+", REMOVED: "-"}
MOST_LINES = 2_000
"""Lines of one text that are laid beside those of the other."""
MOST_WORDS = 400
"""Words of one line that are compared one by one."""
_WORD = re.compile(r"\s+|\w+\s*|[^\w\s]\s*")


class Span(Value):
    """A part of a line; `differs` where the other side has it not."""

    text: str
    differs: bool


class ComparedRow(Value):
    """A row of both sides. `kind` is same, changed, added or removed; a side may be empty."""

    kind: str
    left: tuple[Span, ...]
    right: tuple[Span, ...]

    @property
    def sign(self) -> str:
        """The sign that says what the colour says."""
        return SIGNS[self.kind]


class ComparedKey(ComparedRow):
    """A key of both frontmatters as text, with what happened to it."""

    name: str


def keys(old: Mapping[str, FieldValue], new: Mapping[str, FieldValue]) -> list[ComparedKey]:
    """Return every key that one of two frontmatters has, in the order of the field table."""
    found = []
    for name in sorted({*old, *new}, key=order):
        left, right = as_text(old.get(name)), as_text(new.get(name))
        kind = SAME if left == right else ADDED if not left else REMOVED if not right else CHANGED
        found.append(ComparedKey(kind, *words(left, right), name))
    return found


def lines(old: str, new: str) -> list[ComparedRow]:
    """Return the lines of two texts, those that belong together in one row."""
    before, after = old.splitlines()[:MOST_LINES], new.splitlines()[:MOST_LINES]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [
        row
        for tag, *span in matcher.get_opcodes()
        for row in _block(tag, before[span[0] : span[1]], after[span[2] : span[3]])
    ]


def words(old: str, new: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return two lines in parts, with what only one of them has marked as different."""
    if old == new:
        return _whole(old, differs=False), _whole(new, differs=False)
    before, after = _WORD.findall(old), _WORD.findall(new)
    if not (before and after) or max(len(before), len(after)) > MOST_WORDS:
        return _whole(old, differs=True), _whole(new, differs=True)
    left: list[Span] = []
    right: list[Span] = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, first, last, other_first, other_last in matcher.get_opcodes():
        _add(left, before[first:last], differs=tag != "equal")
        _add(right, after[other_first:other_last], differs=tag != "equal")
    return tuple(left), tuple(right)


def _add(spans: list[Span], texts: Sequence[str], *, differs: bool) -> None:
    """Add words to the parts of a line, to the last part where that is of the same kind."""
    text = "".join(texts)
    if spans and spans[-1].differs == differs:
        text = spans.pop().text + text
    if text:
        spans.append(Span(text, differs))


def _block(tag: str, old: Sequence[str], new: Sequence[str]) -> Iterator[ComparedRow]:
    if tag == "equal":
        for line in old:
            yield ComparedRow(SAME, _whole(line, differs=False), _whole(line, differs=False))
        return
    both = min(len(old), len(new))
    for line, other in zip(old, new, strict=False):
        yield ComparedRow(CHANGED, *words(line, other))
    for line in old[both:]:
        yield ComparedRow(REMOVED, _whole(line, differs=True), ())
    for line in new[both:]:
        yield ComparedRow(ADDED, (), _whole(line, differs=True))


def _whole(text: str, *, differs: bool) -> tuple[Span, ...]:
    return (Span(text, differs),) if text else ()
