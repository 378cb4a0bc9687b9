"""The duplicates check: does a new memory repeat or contradict a living one?

Only memories that the commit before does not have are refused. What a merge joins is a warning,
since each side passed its own gate; so is what history holds twice already. The conflicts of that
are listed by `memtool conflicts`.
"""

from __future__ import annotations

from memtool.gate import near_duplicates
from memtool.gate.near_duplicates import THRESHOLD_KEY
from memtool.memory.schema import Problem
from memtool.memory.visibility import OUT_OF_USE, is_alive
from memtool.store.tree import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.gate.content import Content
    from memtool.gate.near_duplicates import Neighbours
    from memtool.memory.memory import Memory


MOST_ALONE = 300
"""With more memories judged at once, all of the tree are joined by their rare words."""


def check(content: Content) -> Iterator[Problem]:
    """Yield what is said twice, and a warning for each new memory that contradicts another."""
    brought = _brought(content)
    whole = [
        Record(file.memory, file.path, file.oid)
        for file in content.files
        if file.memory is not None and (content.is_whole or file.path in brought)
    ]
    records = [
        record
        for record in whole
        if _is_shown(content, record.path)
        and (record.path in content.new or _is_in_use(content, record.memory))
    ]
    if not records:
        return
    near = _neighbours(content, whole, len(records))
    threshold = content.settings.number(THRESHOLD_KEY)
    categories = content.settings.categories
    among = {record.path for record in whole}
    for problem in near_duplicates.problems(
        records, near, threshold, content.now, categories, among=among
    ):
        yield problem if problem.path in content.new else problem.replace(severity="warning")
    yield from _conflicts(content, [record for record in records if record.path in brought], near)


def _is_in_use(content: Content, memory: Memory) -> bool:
    """Tell whether a memory still speaks: what took its place may say the same."""
    return memory.status not in OUT_OF_USE and not content.kin.is_replaced(memory.id)


def _brought(content: Content) -> frozenset[str]:
    """Return the paths of memories that came with the content: some parent has not their id."""
    if content.kind == "commit":
        return content.new
    return content.new.union(*(step.added() for step in content.steps))


def _is_shown(content: Content, path: str) -> bool:
    """Tell whether problems of a memory are shown: one that is not new has warnings only."""
    return content.warned is None or path in content.warned or path in content.new


def _neighbours(content: Content, whole: Sequence[Record], judged: int) -> Neighbours:
    """Return the memories of the tree; where many are judged, all that were read are compared."""
    place = (content.repository, content.directory, content.settings)
    if content.near is not None:
        return content.near
    if content.is_whole and judged > MOST_ALONE:
        return near_duplicates.Neighbours(whole)
    if content.kind == "commit":
        return near_duplicates.of_commit(*place, content.head)
    if content.kind == "index":
        return near_duplicates.of_index(*place)
    return near_duplicates.of_worktree(*place)


def _conflicts(content: Content, added: Sequence[Record], near: Neighbours) -> Iterator[Problem]:
    reported: set[tuple[str, ...]] = set()
    for record, found in zip(added, near.of(added), strict=True):
        mine = record.memory
        for other in (one.record.memory for one in found):
            if _pair(mine, other) in reported or not _may_clash(content, mine, other):
                continue
            from memtool.search import contradictions  # most memories have no neighbours

            clash = contradictions.between(mine, other)
            if clash is not None:
                reported.add(_pair(mine, other))
                message = f"it may contradict {other.id}: {clash.reason}"
                hint = f"memtool resolve {record.id} {other.id} --keep newer --why REASON"
                yield Problem(record.path, 1, "conflict", message, hint, record.id, "warning")


def _may_clash(content: Content, mine: Memory, other: Memory) -> bool:
    """Tell whether two memories are in use, and neither accepts the other."""
    if other.id in mine.items("conflicts_accepted") or mine.id in other.items("conflicts_accepted"):
        return False
    return all(
        is_alive(memory, content.now, content.settings.categories) for memory in (mine, other)
    )


def _pair(one: Memory, other: Memory) -> tuple[str, ...]:
    return tuple(sorted((one.id, other.id)))
