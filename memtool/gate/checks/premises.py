"""The check of premises: does a new or changed memory rest on one that is out?

It sees what the supersede rows and the checked files say: replaced, forgotten, deprecated, and past
its time if the file is checked too. `links` reports a memory that is missing, and `review` what a
range takes away from memories that it does not touch.
"""

from __future__ import annotations

from memtool.gate.content import Content, File
from memtool.memory.fields import SETTLED
from memtool.memory.lifecycle import find_expiry
from memtool.memory.premises import (
    ENDED,
    FAULT_BY_STATUS,
    describe_cause,
    find_causes,
    find_premises,
    says_same,
)
from memtool.memory.schema import Problem
from memtool.memory.visibility import GONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memtool.memory.lineage import Lineage
    from memtool.memory.memory import Memory
    from memtool.memory.premises import Cause


def check(content: Content) -> Iterator[Problem]:
    """Yield a warning for each premise that is out, at the line that names it."""
    touched = {version.path for step in content.steps for version in step.after} | content.new
    premises = {
        file.memory.id: own
        for file in content.files
        if file.path in touched
        and file.memory is not None
        and file.memory.status not in GONE
        and (own := find_premises(file.memory))
        and not content.supersede_index.is_replaced(file.memory.id)
    }
    if not premises:
        return
    causes = find_causes(premises, _ContentGround(content, premises))
    for file in content.files:
        if file.memory is not None:
            for cause in causes.get(file.memory.id, {}).values():
                if cause.is_direct:
                    yield _make_problem(file, file.memory.id, cause)


def _make_problem(file: File, id_: str, cause: Cause) -> Problem:
    message = f"it rests on a memory that is out: {describe_cause(cause)}"
    hint = (
        f"if it still holds: memtool confirm {id_} --still-holds\n"
        f"if it has changed: memtool supersede {id_} TITLE"
    )
    at = file.text.find(cause.via)
    line = file.text.count("\n", 0, at) + 1 if at >= 0 else file.find_line("source")
    return Problem(file.path, line, "unsettled", message, hint, id_, "warning")


class _ContentGround:
    """Answers the walk from a content, without opening other memories."""

    def __init__(self, content: Content, premises: Mapping[str, tuple[str, ...]]) -> None:
        self._content = content
        self._memories: dict[str, Memory] = {
            file.memory.id: file.memory for file in content.files if file.memory is not None
        }
        cited = {premise for own in premises.values() for premise in own}
        self.lineage: Lineage = content.supersede_index.build_lineage(cited)

    def find_fault(self, id_: str) -> str:
        """Return why a memory no longer holds, as far as the content tells."""
        memory = self._memories.get(id_)
        if memory is not None and memory.text("valid_through"):
            end = find_expiry(memory, self._content.settings.categories)
            if end is not None and self._content.now > end:
                return ENDED
        rows = self._content.supersede_index.find_rows(id_)
        return next(filter(None, (FAULT_BY_STATUS.get(row.status, "") for row in rows)), "")

    def says_same(self, old: str, new: str) -> bool:
        """Return whether two memories of the content have the same title and body."""
        first, second = self._memories.get(old), self._memories.get(new)
        return first is not None and second is not None and says_same(first, second)

    def list_settled(self, id_: str) -> tuple[str, ...]:
        """Return the causes that a memory accepts."""
        return self._memories[id_].items(SETTLED)
