"""Writing: steps as the bytes of files, and as the message of the commit that makes them."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.upkeep.steps import KINDS
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from memtool.memory.memory import FieldValue
    from memtool.upkeep.steps import Step

MOST_LINES = 200
"""Steps that a commit message tells one by one."""
MOST_LINE = 300
TRAILER = "Maintain"


class Edit(Value):
    """A file as it is to be. `before` is None for a new one."""

    path: str
    before: bytes | None
    after: bytes


def edits(
    steps: Iterable[Step], read: Callable[[str], bytes], categories: Collection[str]
) -> list[Edit]:
    """Return the files that steps make, by path; `read` gives the bytes of one that is there.

    Raises:
        MemtoolError: a file cannot be read, or would not be a memory any more.
    """
    made: dict[str, Step] = {}
    changes: dict[str, dict[str, FieldValue]] = {}
    for step in steps:
        if step.memory is not None:
            made[step.path] = step
        changes.setdefault(step.path, {}).update(step.changes)
    found = []
    for path in sorted(changes):
        new = made[path].memory if path in made else None
        before = None if new is not None else read(path)
        after = document.write(new) if new is not None else before
        assert after is not None
        after = _edited(after, changes[path], path, categories)
        found.append(Edit(path, before, after))
    return found


def _edited(
    data: bytes, changes: dict[str, FieldValue], path: str, categories: Collection[str]
) -> bytes:
    try:
        after = document.edit(data, changes, path) if changes else data
        document.read(after, path, categories)
    except document.Unreadable as error:
        raise MemtoolError(
            f"{path} would be no memory any more: {error.problems[0].message}",
            hint=f"edit {path}, and commit it",
            code="changed",
        ) from None
    return after


def counted(steps: Iterable[Step]) -> str:
    """Return how many steps of each kind there are, such as `3 archived, 1 merged`."""
    kinds = [step.do for step in steps]
    return ", ".join(f"{kinds.count(do):,} {done}" for do, done in KINDS.items() if do in kinds)


def subject(steps: Iterable[Step]) -> str:
    """Return the first line of the commit."""
    return f"memory: maintain: {counted(steps)}"


def body(steps: Iterable[Step]) -> str:
    """Return a line for each step: what is done, to what, and why."""
    lines = [f"{step.do} {step.id}: {step.why}" for step in steps]
    shown = [
        line if len(line) <= MOST_LINE else f"{line[: MOST_LINE - 1]}…"
        for line in lines[:MOST_LINES]
    ]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown):,} more, which the diff shows")
    return "\n".join(shown) + "\n"
