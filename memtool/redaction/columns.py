"""Cells with their headings: tables of markdown, and rows apart by commas, semicolons or tabs.

A value in a column says nothing about itself; its heading, some lines above, does.
"""

from __future__ import annotations

from memtool.pattern import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Cell = tuple[str, int, int]
    """Heading in lower case, start and end of what stands in the cell."""

MAX_ROWS = 200
MAX_COLUMNS = 60
DELIMITERS = ("\t", ";", ",")
_RULER = Pattern(r"\n[ \t]{0,3}[|+]?[ \t]{0,3}:?-{2,}[-:|+ \t]{0,400}(?=\n)")
_HEADS = Pattern(r"[ \t]{0,4}[\"']?[^\W\d][\w .#/-]{0,30}[\"']?(?:\([\w ]{1,20}\))?[ \t]{0,4}\r?$")
_WRAP = " \t\r`*\"'"


def find_cells(text: str, lower: str, is_wanted: Callable[[str], bool]) -> Iterator[Cell]:
    """Yield the cells below those headings that are wanted, in order of their tables."""
    if "|" in text and "--" in text:
        for match in _RULER.finditer(text):
            top = text.rfind("\n", max(0, match.start() - 2000), match.start()) + 1
            if "|" not in match[0] and "|" not in text[top : match.start()]:
                continue  # a line below a title, or between documents of YAML
            heads = lower[top : match.start()].strip().strip("|").split("|")
            wanted = [head.strip(" *`_") for head in heads]
            if any(map(is_wanted, wanted)):
                yield from _cells_below(text, match.end() + 1, "|", wanted, is_wanted)
    if any(mark in text for mark in DELIMITERS):
        yield from _find_fields(text, lower, is_wanted)


def _find_fields(text: str, lower: str, is_wanted: Callable[[str], bool]) -> Iterator[Cell]:
    """Yield the wanted fields of rows below a line of headings."""
    at = 0
    while (stop := text.find("\n", at)) >= 0:
        start, at = at, stop + 1
        if not 3 < stop - start < 2000:
            continue
        head = lower[start:stop]
        mark = next((mark for mark in DELIMITERS if mark in head), "")
        count = head.count(mark) if mark else 0
        if not mark or count > MAX_COLUMNS:
            continue
        after = text.find("\n", at)
        if text.count(mark, at, after if after >= 0 else len(text)) < count:
            continue
        heads = head.split(mark)
        if not all(map(_HEADS.match, heads)):
            continue
        wanted = [head.strip(_WRAP) for head in heads]
        if any(map(is_wanted, wanted)):
            yield from _cells_below(text, at, mark, wanted, is_wanted)


def _cells_below(
    text: str, at: int, mark: str, heads: list[str], is_wanted: Callable[[str], bool]
) -> Iterator[Cell]:
    for _row in range(MAX_ROWS):
        stop = text.find("\n", at, at + 4000)
        stop = min(len(text), at + 4000) if stop < 0 else stop
        if text.find(mark, at, stop) < 0 and (mark != "|" or stop == at):
            break
        place = at + len(text[at:stop]) - len(text[at:stop].lstrip(" " if mark != "|" else " \t"))
        place += mark == "|" and text[place : place + 1] == "|"
        for head in heads:
            start = place
            close = _close(text, place, stop, mark)
            value = text[start:close].strip(_WRAP)
            if value and is_wanted(head):
                start += text[start:close].index(value)
                yield head, start, start + len(value)
            place = close + 1
            if close >= stop:
                break
        if stop >= len(text):
            break
        at = stop + 1


def _close(text: str, at: int, stop: int, mark: str) -> int:
    """Return where a cell ends: at its mark, and not inside of its quotes."""
    if mark != "|" and text[at : at + 1] in ('"', "'"):
        quote = text.find(text[at] + mark, at + 1, stop)
        close = quote + 1 if quote >= 0 else stop
    else:
        close = text.find(mark, at, stop)
    return close if 0 <= close < stop else stop
