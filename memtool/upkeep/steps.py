"""Steps of maintenance: single changes of memories, their inputs, and their commit message.

An answer that showed what a memory directly replaces counts for that memory. An injection, which
nobody asked for, keeps a memory in use, and confirms none.
"""

from __future__ import annotations

from bisect import bisect_left

from memtool.errors import MemtoolError
from memtool.gate import conflicts
from memtool.memory import document
from memtool.memory.memory import FieldValue, Memory
from memtool.store import ledger
from memtool.store.tree import Record, Tree
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from memtool.store.config import Config
    from memtool.store.ledger import Counted


class Uses(Value):
    """How often memories were shown: totals by id, and single seconds from `since` on.

    `asked` counts by id the answers that were no injections. Without any totals, nobody knows
    whether a memory was looked at.
    """

    totals: Mapping[str, Counted] = {}
    asked: Mapping[str, int] = {}
    seconds: Mapping[str, Sequence[int]] = {}
    since: int | None = None

    @property
    def is_known(self) -> bool:
        """Tell whether anything was counted here."""
        return bool(self.totals)

    def count(self, memory: Memory) -> int:
        """Return how many answers ever showed a memory."""
        return sum(row.count for row in self._rows(memory))

    def count_asked(self, memory: Memory) -> int:
        """Return how many answers ever showed a memory to somebody who asked for it."""
        return sum(self.asked.get(id_, 0) for id_ in (memory.id, *memory.supersedes))

    def last(self, memory: Memory) -> int | None:
        """Return the second of the last answer that showed it, None for none."""
        return max((row.last for row in self._rows(memory)), default=None)

    def count_since(self, memory: Memory, second: int) -> int:
        """Return how many answers showed it from a second on.

        Where the single seconds do not go that far back, all count, if the last one does.
        """
        rows = self._rows(memory)
        if self.since is None or self.since > second:
            return sum(row.count for row in rows if row.last >= second)
        found = (self.seconds.get(row.id, ()) for row in rows)
        return sum(len(some) - bisect_left(some, second) for some in found)

    def _rows(self, memory: Memory) -> list[Counted]:
        ids = (memory.id, *memory.supersedes)
        return [self.totals[id_] for id_ in ids if id_ in self.totals]


def read(directory: str) -> Uses:
    """Return what the ledger in the cache directory has counted.

    Raises:
        MemtoolError: it cannot be read.
    """
    with ledger.reading(directory) as opened:
        totals = {row.id: row for row in opened.most("", -1)}
        asked = opened.asked()
        _answers, since = opened.answers()
        seconds: dict[str, list[int]] = {}
        for id_, second in opened.shown():
            seconds.setdefault(id_, []).append(second)
    return Uses(totals, asked, seconds, since)


KINDS: dict[str, str] = {
    "renew": "renewed",
    "archive": "archived",
    "merge": "merged",
    "deprecate": "deprecated",
    "strengthen": "strengthened",
    "confirm": "confirmed",
    "fade": "faded",
    "digest": "summed up",
}
"""What a step does, in the order in which steps are shown, and the word for it when it is done."""
BY = "memtool maintain"
"""Who did it, where a key says so."""


class UpkeepStep(Value):
    """One change of one file: new values of keys, or a new `memory`. `why` is one clause."""

    do: str
    id: str
    title: str
    path: str
    why: str
    changes: Mapping[str, FieldValue] = {}
    memory: Memory | None = None

    def plain(self) -> dict[str, Any]:
        """Return the shape of `--json`, where a new memory is only a path."""
        shown = {key: getattr(self, key) for key in ("do", "id", "title", "path", "why")}
        return shown | {"changes": self.changes, "is_new": self.memory is not None}


class PlanInputs(Value):
    """What a plan is made of beside the tree. `frozen` are the paths that must stay as they are."""

    now: int
    config: Config
    uses: Uses
    directory: str
    frozen: frozenset[str] = frozenset()

    def living(self, tree: Tree) -> list[Record]:
        """Return the heads in use, by id."""
        return conflicts.living(tree, self.now, self.config.categories)


class Imagined(Tree):
    """A tree as it would be after some steps; what a step changed has no blob yet."""

    def __init__(self, tree: Tree, steps: Iterable[UpkeepStep]) -> None:
        self.snapshot = tree.snapshot
        by_path = {record.path: record for record in tree.records}
        for step in steps:
            if step.memory is not None:
                by_path[step.path] = Record(step.memory, step.path, "")
            else:
                old = by_path[step.path].memory
                by_path[step.path] = Record(old.with_fields(**step.changes), step.path, "")
        self.records = tuple(sorted(by_path.values(), key=lambda one: (one.id, one.path)))
        self.by_id = {}
        for record in self.records:
            self.by_id.setdefault(record.id, record)
        self.problems = tree.problems


def changing(do: str, record: Record, why: str, **changes: FieldValue) -> UpkeepStep:
    """Return the step that gives keys of a memory new values."""
    return UpkeepStep(do, record.id, record.memory.title, record.path, why, changes)


MOST_LINES = 200
"""Steps that a commit message lists one by one."""
MOST_LINE = 300
TRAILER = "Maintain"


class FileEdit(Value):
    """A file as it is to be. `before` is None for a new one."""

    path: str
    before: bytes | None
    after: bytes


def edits(
    steps: Iterable[UpkeepStep], read: Callable[[str], bytes], categories: Collection[str]
) -> list[FileEdit]:
    """Return the files that steps make, by path; `read` gives the bytes of one that is there.

    Raises:
        MemtoolError: a file cannot be read, or would not be a memory any more.
    """
    made: dict[str, UpkeepStep] = {}
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
        found.append(FileEdit(path, before, after))
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


def counted(steps: Iterable[UpkeepStep]) -> str:
    """Return how many steps of each kind there are, such as `3 archived, 1 merged`."""
    kinds = [step.do for step in steps]
    return ", ".join(f"{kinds.count(do):,} {done}" for do, done in KINDS.items() if do in kinds)


def subject(steps: Iterable[UpkeepStep]) -> str:
    """Return the first line of the commit."""
    return f"memory: maintain: {counted(steps)}"


def body(steps: Iterable[UpkeepStep]) -> str:
    """Return a line for each step: what is done, to what, and why."""
    lines = [f"{step.do} {step.id}: {step.why}" for step in steps]
    shown = [
        line if len(line) <= MOST_LINE else f"{line[: MOST_LINE - 1]}…"
        for line in lines[:MOST_LINES]
    ]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown):,} more, which the diff shows")
    return "\n".join(shown) + "\n"
