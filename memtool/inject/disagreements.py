"""Disagreements in a block: a line for each conflict, before the memories that take part in it."""

from __future__ import annotations

from memtool.inject.remarks import MAX_NAMED_IDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memtool.inject.candidates import Eligibility

MAX_LINES = 3
"""Conflicts that a block explains; the heads of the memories name all."""


def list_lines(grounds: Eligibility, ids: Iterable[str]) -> list[str]:
    """Return a sentence for each conflict of some memories: which is newer, and who decides."""
    lines: dict[str, None] = {}
    for id_ in ids:
        for group, verb in _find_groups(grounds, id_):
            newest_first = sorted(
                group, key=lambda side: (-grounds.tree[side].memory.timestamp, side)
            )
            lines[_format_line(grounds, newest_first, verb)] = None
    return list(lines)


def _find_groups(grounds: Eligibility, id_: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the sides of each conflict of a memory, and what they do."""
    standing = grounds.standing
    for heads in standing.forks.get(id_, ()):
        ancestor = grounds.tree.short_ids.shorten(standing.ancestors[heads])
        yield heads, f"supersede {ancestor}"
    sides = grounds.contradicting.get(id_, ())
    if sides:
        yield sides, "contradict each other"


def _format_line(grounds: Eligibility, ids: list[str], verb: str) -> str:
    names = [grounds.tree.short_ids.shorten(id_) for id_ in ids]
    first, second = (grounds.tree[id_].memory.timestamp for id_ in ids[:2])
    if first != second:
        names[0] += " (newer)" if len(ids) == 2 else " (newest)"
    hidden = len(names) - MAX_NAMED_IDS
    last = f"{hidden} more" if hidden > 0 else names.pop()
    both = "both " if len(ids) == 2 and verb.startswith("supersede") else ""
    either = "either" if len(ids) == 2 else "any of them"
    return (
        f"CONFLICT, not settled: {', '.join(names[:MAX_NAMED_IDS])} and {last} {both}{verb}. "
        f"Ask the user which one holds before you rely on {either}."
    )
