"""The claims check: does a new memory repeat what a living one says, or say the contrary?

Only memories that the commit before does not have are refused. What a merge joins is told as a
warning, since each side had its own gate; so is what history holds twice already, and its
conflicts are told by `memtool conflicts`.
"""

from __future__ import annotations

from memtool.gate import duplicates, places
from memtool.gate.duplicates import THRESHOLD_KEY
from memtool.gate.opposition import opposed
from memtool.memory import lifecycle
from memtool.memory.problem import Problem
from memtool.store.tree import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.gate.content import Content, Step
    from memtool.gate.neighbours import Neighbours


def check(content: Content) -> Iterator[Problem]:
    """Yield what is said twice, and a warning for each new memory that contradicts another."""
    brought = _brought(content)
    records = [
        Record(file.memory, file.path, file.oid)
        for file in content.files
        if file.memory is not None and (content.is_whole or file.path in brought)
    ]
    if not records:
        return
    near = _neighbours(content, records)
    threshold = content.settings.number(THRESHOLD_KEY)
    categories = content.settings.categories
    for problem in duplicates.problems(records, near, threshold, content.now, categories):
        yield problem if content.is_new(problem.path) else problem.replace(severity="warning")
    yield from _conflicts(content, [record for record in records if record.path in brought], near)


def _brought(content: Content) -> frozenset[str]:
    """Return the paths of memories that came with the content: some parent has not their id."""
    new = frozenset(file.path for file in content.files if content.is_new(file.path))
    if content.added is not None:
        return new
    return new.union(*map(_lacking, content.steps))


def _lacking(step: Step) -> set[str]:
    """Return the paths of memories that the parent of a step has not."""
    before = {version.id for version in step.before}
    return {version.path for version in step.after if version.id not in before}


def _neighbours(content: Content, records: Sequence[Record]) -> Neighbours:
    place = (content.repository, content.directory, content.settings.categories)
    if content.kind == "commit":
        return places.of_commit(*place, content.head)
    if content.kind == "index":
        return places.of_index(*place, known=records)
    return places.of_worktree(*place)


def _conflicts(content: Content, added: Sequence[Record], near: Neighbours) -> Iterator[Problem]:
    now, categories = content.now, content.settings.categories
    told: set[tuple[str, ...]] = set()
    for record, found in zip(added, near.of(added), strict=True):
        mine = record.memory
        for one in found:
            other = one.record.memory
            pair = tuple(sorted((mine.id, other.id)))
            is_alive = all(
                lifecycle.state(memory, now, categories) == lifecycle.ALIVE
                for memory in (mine, other)
            )
            is_accepted = other.id in mine.items("conflicts_accepted") or mine.id in other.items(
                "conflicts_accepted"
            )
            kind, reason = opposed(mine, other)
            if not kind or is_accepted or not is_alive or pair in told:
                continue
            told.add(pair)
            yield Problem(
                record.path,
                1,
                "conflict",
                f"it contradicts {other.id}: {reason}",
                f"memtool resolve {mine.id} {other.id} --keep newer --why REASON",
                id=mine.id,
                severity="warning",
            )
