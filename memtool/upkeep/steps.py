"""Steps: what upkeep would do to memories, one by one, and the tree as it would be by then."""

from __future__ import annotations

from memtool.gate import conflicts
from memtool.memory.memory import FieldValue, Memory
from memtool.store.tree import Record, Tree
from memtool.upkeep.uses import Uses
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from memtool.store.config import Config

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
"""What a step does, in the order in which steps are told, and the word for it when it is done."""
BY = "memtool maintain"
"""Who did it, where a key says so."""


class Step(Value):
    """One change of one file: new values of keys, or a new `memory`. `why` is one clause."""

    do: str
    id: str
    title: str
    path: str
    why: str
    changes: Mapping[str, FieldValue] = {}
    memory: Memory | None = None

    def plain(self) -> dict[str, Any]:
        """Return the shape of `--json`, where a new memory is told by its path."""
        shown = {key: getattr(self, key) for key in ("do", "id", "title", "path", "why")}
        return shown | {"changes": self.changes, "is_new": self.memory is not None}


class Grounds(Value):
    """What plans rest on, beside the tree. `frozen` are the paths that must stay as they are."""

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

    def __init__(self, tree: Tree, steps: Iterable[Step]) -> None:
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


def changing(do: str, record: Record, why: str, **changes: FieldValue) -> Step:
    """Return the step that gives keys of a memory new values."""
    return Step(do, record.id, record.memory.title, record.path, why, changes)
