"""The duplicates check: does a new memory repeat or contradict an active one?

Only memories that no parent has are refused. Duplicates that a merge combines are warnings, since
each side passed its own gate; so are duplicates that are already in history. `memtool conflicts`
lists their conflicts.
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
    from memtool.gate.near_duplicates import DuplicateIndex
    from memtool.memory.memory import Memory


MAX_JUDGED_SINGLY = 300
"""Above this number of judged memories, all memories of the tree are matched by rare words."""


def check(content: Content) -> Iterator[Problem]:
    """Yield duplicates, and a warning for each new memory that contradicts another."""
    brought = _find_added(content)
    tree_records = [
        Record(file.memory, file.path, file.oid)
        for file in content.files
        if file.memory is not None and (content.is_whole or file.path in brought)
    ]
    records = [
        record
        for record in tree_records
        if _is_reported(content, record.path)
        and (record.path in content.new or _is_in_use(content, record.memory))
    ]
    if not records:
        return
    duplicate_index = _open_duplicate_index(content, tree_records, len(records))
    threshold = content.settings.number(THRESHOLD_KEY)
    categories = content.settings.categories
    among = {record.path for record in tree_records}
    for problem in near_duplicates.find_problems(
        records, duplicate_index, threshold, content.now, categories, among=among
    ):
        yield problem if problem.path in content.new else problem.replace(severity="warning")
    yield from _find_conflicts(
        content, [record for record in records if record.path in brought], duplicate_index
    )


def _is_in_use(content: Content, memory: Memory) -> bool:
    """Return whether a memory is in use; its successor may repeat it."""
    return memory.status not in OUT_OF_USE and not content.supersede_index.is_replaced(memory.id)


def _find_added(content: Content) -> frozenset[str]:
    """Return the paths of memories that are new to at least one parent."""
    if content.kind == "commit":
        return content.new
    return content.new.union(*(step.find_added() for step in content.steps))


def _is_reported(content: Content, path: str) -> bool:
    """Return whether problems of a memory are reported; old memories only get warnings."""
    return content.warned is None or path in content.warned or path in content.new


def _open_duplicate_index(
    content: Content, tree_records: Sequence[Record], judged_count: int
) -> DuplicateIndex:
    """Return the memories to compare with; if many are judged, all that were read."""
    place = (content.repository, content.directory, content.settings)
    if content.duplicate_index is not None:
        return content.duplicate_index
    if content.is_whole and judged_count > MAX_JUDGED_SINGLY:
        return near_duplicates.DuplicateIndex(tree_records)
    if content.kind == "commit":
        return near_duplicates.from_commit(*place, content.head)
    if content.kind == "index":
        return near_duplicates.from_index(*place)
    return near_duplicates.from_worktree(*place)


def _find_conflicts(
    content: Content, added: Sequence[Record], duplicate_index: DuplicateIndex
) -> Iterator[Problem]:
    reported: set[tuple[str, ...]] = set()
    for record, similar_memories in zip(added, duplicate_index.find_similar(added), strict=True):
        memory = record.memory
        for other in (similar.record.memory for similar in similar_memories):
            if _make_pair(memory, other) in reported or not _may_clash(content, memory, other):
                continue
            from memtool.search import contradictions  # most memories have no candidates

            clash = contradictions.find_between(memory, other)
            if clash is not None:
                reported.add(_make_pair(memory, other))
                message = f"it may contradict {other.id}: {clash.reason}"
                hint = f"memtool resolve {record.id} {other.id} --keep newer --reason REASON"
                yield Problem(record.path, 1, "conflict", message, hint, record.id, "warning")


def _may_clash(content: Content, memory: Memory, other: Memory) -> bool:
    """Return whether two memories are active, and neither accepts the conflict."""
    if other.id in memory.items("conflicts_accepted") or memory.id in other.items(
        "conflicts_accepted"
    ):
        return False
    return all(
        is_alive(memory, content.now, content.settings.categories) for memory in (memory, other)
    )


def _make_pair(first: Memory, second: Memory) -> tuple[str, ...]:
    return tuple(sorted((first.id, second.id)))
