"""What a reader can do with a memory: one table, by the state that the memory is in.

The page of a memory and every list take their buttons from here.
"""

from __future__ import annotations

from memtool.authoring.undo import find_newest_step
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.drift import BROKEN
from memtool.memory.visibility import DEPRECATED, GONE
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memtool.commands.log import LogEntry
    from memtool.commands.show import MemoryView
    from memtool.store.context import Context

    Test = Callable[["MemoryState"], bool]

REQUIRED, OPTIONAL = "required", "optional"
"""Whether an action asks for a reason."""
STEP_WORDS = {
    "accepted": "both hold",
    "superseded": "it was replaced",
    "settled": "it was settled",
    "tagged": "its tags",
}
"""The last change of a memory in words, where its kind is none."""


class MemoryState(Value):
    """What decides which actions a memory allows.

    `is_unsettled`: its code or what it rests on has changed, so a plain `confirm` is refused.
    `last_step` is the change that an undo would take back, in words; empty if there is none.
    """

    status: str
    is_head: bool
    is_unsettled: bool = False
    has_suggested_files: bool = False
    last_step: str = ""

    @property
    def is_in_use(self) -> bool:
        """Whether nothing replaced it, and nobody put it away."""
        return self.is_head and self.status not in (*GONE, DEPRECATED)


class Action(Value):
    """A button. `switches` are the options of the verb that it sets.

    `key` tells it from other actions of the same verb. `reason` is `REQUIRED`, `OPTIONAL` or empty.
    A `path` leads to a form instead, below the page of the memory.
    """

    key: str
    verb: str
    label: str
    is_allowed: Test
    switches: tuple[str, ...] = ()
    reason: str = ""
    path: str = ""


ACTIONS: tuple[Action, ...] = (
    Action(
        "confirm",
        "confirm",
        "Confirm that it holds",
        lambda memory: memory.is_in_use and not memory.is_unsettled,
    ),
    Action(
        "still-holds",
        "confirm",
        "Confirm that it still holds",
        lambda memory: memory.is_in_use and memory.is_unsettled,
        ("still_holds",),
    ),
    Action(
        "accept-files",
        "confirm",
        "Confirm it with these files",
        lambda memory: memory.is_in_use and memory.has_suggested_files,
        ("accept_files",),
    ),
    Action(
        "correct",
        "supersede",
        "Correct it",
        lambda memory: memory.is_head and memory.status not in GONE,
        path="/supersede",
    ),
    Action("pin", "pin", "Pin", lambda memory: memory.is_in_use and memory.status != "pinned"),
    Action("unpin", "unpin", "Unpin", lambda memory: memory.status == "pinned"),
    Action("restore", "restore", "Restore", lambda memory: memory.status in (*GONE, DEPRECATED)),
    Action("undo", "undo", "Undo", lambda memory: bool(memory.last_step), reason=OPTIONAL),
    Action(
        "deprecate",
        "deprecate",
        "Deprecate",
        lambda memory: memory.is_in_use,
        reason=OPTIONAL,
    ),
    Action(
        "archive",
        "archive",
        "Archive",
        lambda memory: memory.status not in GONE,
        reason=OPTIONAL,
    ),
    Action(
        "forget", "forget", "Forget", lambda memory: memory.status != "deleted", reason=REQUIRED
    ),
)
"""Every action, in the order of the buttons."""


class SeveralAction(Value):
    """A button for the selected rows of a list; `fields` are what it asks for, with labels."""

    verb: str
    label: str
    fields: tuple[tuple[str, str], ...] = ()


SEVERAL: tuple[SeveralAction, ...] = (
    SeveralAction("confirm", "Confirm"),
    SeveralAction("archive", "Archive", (("reason", "Reason"),)),
    SeveralAction("tag", "Change tags", (("add", "Add tag"), ("remove", "Remove tag"))),
)
"""What can be done with several memories at once."""


def list_actions(memory: MemoryState, keys: Sequence[str] = ()) -> list[Action]:
    """Return the actions that a memory allows; of those with some keys only, if keys are given."""
    actions = [action for action in ACTIONS if not keys or action.key in keys]
    return [
        action.replace(label=f"Undo: {memory.last_step}") if action.key == "undo" else action
        for action in actions
        if action.is_allowed(memory)
    ]


def find_actions(
    context: Context, shown: MemoryView, events: Sequence[LogEntry] | None
) -> list[Action]:
    """Return the actions for the page of a memory; `events` are those of its history."""
    is_changed = events is None or any(event.kind != "added" for event in events)
    return list_actions(
        MemoryState(
            shown.status,
            not shown.superseded_by,
            bool(shown.causes) or (shown.drift is not None and shown.drift.level == BROKEN),
            bool(shown.suggested_files),
            _find_last_step(context, shown.id) if is_changed else "",
        )
    )


def _find_last_step(context: Context, id_: str) -> str:
    """Return the last change of a memory that can be undone, in words; empty if there is none."""
    tree = index.open(context, exact=True)
    try:
        step = find_newest_step(context, tree, tree.find(id_), commit=True)
    except MemtoolError:
        return ""
    return STEP_WORDS.get(step.kind, step.kind)
