"""What the pictures of pages share: boxes, signs of states, and text that fits a box.

The server does not have the fonts of a reader, so widths are estimated from a wide common font:
a text may be broken a little early, but does not leave its box.
"""

from __future__ import annotations

import unicodedata

from memtool.calls.output import make_visible
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FONT_PX = 12
LINE_PX = 15
STATES = {
    "active": ("✓", "active"),
    "pinned": ("★", "pinned"),
    "conflicting": ("⚡", "conflicting"),
    "drifted": ("≠", "drifted from the code"),
    "unsettled": ("△", "unsettled"),
    "due": ("↻", "due for review"),
    "candidate": ("?", "not confirmed yet"),
    "deprecated": ("↓", "deprecated"),
    "superseded": ("→", "replaced"),
    "archived": ("▪", "archived"),
    "expired": ("○", "expired"),
    "pending": ("◌", "not valid yet"),
    "deleted": ("✗", "forgotten"),
}
"""The sign and the words of each state of a memory: colour alone is not seen by everybody."""
_NARROW, _LEAN, _WIDE = frozenset("ijl'|!.,:;I"), frozenset('frt()[]-/\\" '), frozenset("mwMW@%")
_NARROW_EM, _LEAN_EM, _PLAIN_EM, _CAPITAL_EM, _WIDE_EM, _FULL_EM = 0.34, 0.42, 0.63, 0.76, 1.0, 1.1
"""Widths of characters by kind; those of DejaVu Sans, the widest of the usual fonts."""


class Box(Value):
    """A rectangle in pixels; `x` and `y` are its upper left corner."""

    x: float
    y: float
    width: float
    height: float


def measure(text: str) -> float:
    """Return the width of a text in pixels, rather too much than too little."""
    return sum(map(_measure_em, text)) * FONT_PX


def _measure_em(char: str) -> float:
    if unicodedata.combining(char):
        return 0
    if char in _NARROW:
        return _NARROW_EM
    if char in _LEAN:
        return _LEAN_EM
    if char in _WIDE:
        return _WIDE_EM
    if unicodedata.east_asian_width(char) in "WF":
        return _FULL_EM
    return _CAPITAL_EM if char.isupper() else _PLAIN_EM


def wrap(text: str, width: float, max_lines: int = 0) -> tuple[str, ...]:
    """Return a text in lines of a width in pixels, at most `max_lines`; 0 is no limit.

    A text that is cut ends with `…`. With a limit it is also cut at a word that is longer than a
    line; without one such a word is broken, as are always those in a script without spaces.
    """
    lines: list[str] = []
    words = make_visible(text).split()
    while words:
        line = words.pop(0)
        while words and measure(f"{line} {words[0]}") <= width:
            line = f"{line} {words.pop(0)}"
        end = _find_end(line, width)
        is_broken = end < len(line)
        if is_broken:
            words.insert(0, line[end:])
        lines.append(line[:end])
        if words and max_lines and (len(lines) == max_lines or (is_broken and not _is_full(line))):
            lines[-1] = _cut(lines[-1], width)
            break
    return tuple(lines)


def _find_end(line: str, width: float) -> int:
    """Return how many characters fit in a width, at least one, with the accents on the last."""
    end, used = 0, 0.0
    for char in line:
        used += _measure_em(char) * FONT_PX
        if end and used > width:
            break
        end += 1
    return end


def _is_full(text: str) -> bool:
    """Return whether a text has wide characters, between which a line may end."""
    return any(unicodedata.east_asian_width(char) in "WF" for char in text)


def _cut(line: str, width: float) -> str:
    """Return a line with `…` at its end, shortened so that both fit."""
    while line and measure(f"{line}…") > width:
        line = line[:-1]
    return f"{line.rstrip()}…"


def squarify(weights: Sequence[float], box: Box) -> list[Box]:
    """Return a box for each weight; together they fill a box, each as near to a square as possible.

    The weights are positive, the largest first. After Bruls, Huizing and van Wijk, "Squarified
    treemaps" (2000): a row of boxes along the shorter side grows as long as they get squarer.
    """
    boxes: list[Box] = []
    x, y, width, height = box.x, box.y, max(box.width, 1), max(box.height, 1)
    scale = width * height / (sum(weights) or 1)  # pixels of area for each unit of weight
    start = 0
    while start < len(weights):
        is_wide = width >= height
        side = height if is_wide else width
        end, row, worst = start, 0.0, float("inf")
        while end < len(weights):
            grown = row + weights[end]
            square = (side / grown) ** 2 / scale
            ratio = max(weights[start] * square, 1 / (weights[end] * square))
            if ratio > worst:
                break
            row, worst, end = grown, ratio, end + 1
        depth, along = row * scale / side, 0.0
        for weight in weights[start:end]:
            length = weight * side / row
            boxes.append(
                Box(x, y + along, depth, length) if is_wide else Box(x + along, y, length, depth)
            )
            along += length
        if is_wide:
            x, width = x + depth, max(width - depth, 1e-6)
        else:
            y, height = y + depth, max(height - depth, 1e-6)
        start = end
    return boxes
