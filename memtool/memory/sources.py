"""Sources: the parts of `commit:SHA`, `file:PATH#L10-L24@SHA`, `memory:ID` and the like."""

from __future__ import annotations

from memtool.value import Value

_HEX = frozenset("0123456789abcdef")


class Source(Value):
    """One source, taken apart. `target` is what stands behind the kind, for files the path alone.

    `lines` are the first and last line of a file, from 1, or None; `commit` is the hexadecimal id
    that a commit or file source names, maybe shortened, empty where it names none.
    """

    kind: str
    target: str
    lines: tuple[int, int] | None = None
    commit: str = ""


def parse(text: str) -> Source:
    """Take a valid source apart. What does not look like lines or a commit belongs to the path."""
    kind, _colon, target = text.partition(":")
    if kind == "commit":
        return Source(kind, target, None, target)
    if kind != "file":
        return Source(kind, target)
    commit = ""
    path, at, behind = target.rpartition("@")
    if at and path and 4 <= len(behind) <= 64 and set(behind) <= _HEX:
        target, commit = path, behind
    path, mark, span = target.rpartition("#")
    lines = _lines(span) if mark and path else None
    return Source(kind, path if lines else target, lines, commit)


def _lines(span: str) -> tuple[int, int] | None:
    first, dash, last = span.partition("-")
    numbers = [_line(first), _line(last) if dash else _line(first)]
    return (numbers[0], numbers[1]) if 0 < numbers[0] <= numbers[1] else None


def _line(text: str) -> int:
    """Return the number of `L12`, 0 for anything else."""
    digits = text[1:]
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 10
    return int(digits) if text[:1] == "L" and is_number else 0
