"""Two texts side by side: matching lines in one row, with the words that differ.

A sign marks each difference in addition to its style, so that no page depends on colour alone.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from memtool.memory.fields import order
from memtool.memory.memory import to_text
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memtool.memory.memory import FieldValue

SAME, CHANGED, ADDED, REMOVED = "same", "changed", "added", "removed"
SIGNS = {SAME: " ", CHANGED: "~", ADDED: "+", REMOVED: "-"}
MAX_LINES = 2_000
"""Lines of one text that are compared with those of the other."""
MAX_WORDS = 400
"""Words of one line that are compared one by one."""
_WORD = re.compile(r"\s+|\w+\s*|[^\w\s]\s*")


class Span(Value):
    """A part of a line; `differs` if the other side does not have it."""

    text: str
    differs: bool


class ComparedRow(Value):
    """A row of both sides. `kind` is same, changed, added or removed; a side may be empty."""

    kind: str
    old: tuple[Span, ...]
    new: tuple[Span, ...]

    @property
    def sign(self) -> str:
        """A sign with the same meaning as the colour."""
        return SIGNS[self.kind]


class ComparedKey(ComparedRow):
    """A key of both frontmatters as text, with what happened to it."""

    name: str


def compare_keys(old: Mapping[str, FieldValue], new: Mapping[str, FieldValue]) -> list[ComparedKey]:
    """Return every key that one of two frontmatters has, in the order of the field table."""
    names = []
    for name in sorted({*old, *new}, key=order):
        before, right = to_text(old.get(name)), to_text(new.get(name))
        kind = (
            SAME if before == right else ADDED if not before else REMOVED if not right else CHANGED
        )
        names.append(ComparedKey(kind, *compare_words(before, right), name))
    return names


def compare_lines(old: str, new: str) -> list[ComparedRow]:
    """Return the lines of two texts, those that belong together in one row."""
    before, after = old.splitlines()[:MAX_LINES], new.splitlines()[:MAX_LINES]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [
        row
        for tag, *span in matcher.get_opcodes()
        for row in _compare_block(tag, before[span[0] : span[1]], after[span[2] : span[3]])
    ]


def compare_words(old: str, new: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return two lines in parts, with what only one of them has marked as different."""
    if old == new:
        return _span_whole(old, differs=False), _span_whole(new, differs=False)
    before, after = _WORD.findall(old), _WORD.findall(new)
    if not (before and after) or max(len(before), len(after)) > MAX_WORDS:
        return _span_whole(old, differs=True), _span_whole(new, differs=True)
    old_spans: list[Span] = []
    right: list[Span] = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, first, last, other_first, other_last in matcher.get_opcodes():
        _add(old_spans, before[first:last], differs=tag != "equal")
        _add(right, after[other_first:other_last], differs=tag != "equal")
    return tuple(old_spans), tuple(right)


def _add(spans: list[Span], texts: Sequence[str], *, differs: bool) -> None:
    """Add words to the parts of a line, to the last part if it is of the same kind."""
    text = "".join(texts)
    if spans and spans[-1].differs == differs:
        text = spans.pop().text + text
    if text:
        spans.append(Span(text, differs))


def _compare_block(tag: str, old: Sequence[str], new: Sequence[str]) -> Iterator[ComparedRow]:
    if tag == "equal":
        for line in old:
            yield ComparedRow(
                SAME, _span_whole(line, differs=False), _span_whole(line, differs=False)
            )
        return
    both = min(len(old), len(new))
    for line, other in zip(old, new, strict=False):
        yield ComparedRow(CHANGED, *compare_words(line, other))
    for line in old[both:]:
        yield ComparedRow(REMOVED, _span_whole(line, differs=True), ())
    for line in new[both:]:
        yield ComparedRow(ADDED, (), _span_whole(line, differs=True))


def _span_whole(text: str, *, differs: bool) -> tuple[Span, ...]:
    return (Span(text, differs),) if text else ()
