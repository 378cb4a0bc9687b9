"""Tables whose heading announces secrets: the cells below it are looked at one by one."""

from __future__ import annotations

from memtool.gate import keywords, values
from memtool.gate.pattern import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_RULER = Pattern(r"\n[ \t]{0,3}\|?[ \t]{0,3}:?-{2,}[-:| \t]{0,400}(?=\n)")


def find(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of table cells below a heading that announces secrets."""
    if "|" not in lower or "---" not in lower:
        return
    for match in _RULER.finditer(text):
        top = text.rfind("\n", max(0, match.start() - 2000), match.start()) + 1
        heads = lower[top : match.start()].strip().strip("|").split("|")
        kinds = [_column_kind(head) for head in heads]
        if not any(kinds):
            continue
        at = match.end() + 1
        for _row in range(200):
            stop = text.find("\n", at, at + 4000)
            stop = min(len(text), at + 4000) if stop < 0 else stop
            if "|" not in text[at:stop]:
                break
            yield from _cells(text, at, stop, kinds)
            at = stop + 1


def _column_kind(head: str) -> str:
    head = head.strip(" *`_")
    for kind, pattern in keywords.patterns(head):
        hit = pattern.search(head)
        if hit is None or keywords.is_tail_harmless(head[hit.end() :]):
            continue
        if keywords.announced_from(head, *hit.span()) is not None:
            return kind
    return ""


def _cells(text: str, at: int, stop: int, kinds: list[str]) -> Iterator[tuple[str, int, int]]:
    place = at + (len(text[at:stop]) - len(text[at:stop].lstrip(" \t")))
    place += text[place : place + 1] == "|"
    for kind in kinds:
        close = text.find("|", place, stop)
        close = stop if close < 0 else close
        cell = text[place:close]
        value = cell.strip(" \t`*\"'")
        if kind and value:
            good = values.is_dense(value, 12) or values.is_hex_or_uuid(value)
            if good or (kind == "password" and values.is_typed(value, sure=True)):
                start = place + cell.index(value)
                yield kind, start, start + len(value)
        place = close + 1
