"""Drafts: foreign records as importers read them, before they have an id for good."""

from __future__ import annotations

from memtool.memory.memory import Fields
from memtool.memory.problem import Problem
from memtool.upkeep.originals import Original
from memtool.value import Value

CODES: dict[str, str] = {
    "changed": "the record says something else than the memory that was made of it",
    "not-json": "a line that is no JSON object",
    "not-a-record": "a file that says neither what it decides nor where it stands",
    "unknown-state": "a state that no record is known to have; it becomes a candidate",
    "unused-map": "a --map path that no record has",
    "duplicate-record": "the same record twice; the first one counts",
}
"""Problems that only importing finds, beside those of `memory.problem`."""


class Draft(Value):
    """A foreign record. `key` is its one name at home, `names` what others may call it as well.

    `fields` holds what the record says, and no more; relations hold the names of other records,
    `superseded_by` is turned round later. `lines` are the first and last in its file; `part` says
    which part of the file a record is. An exact draft is a memory already and stays as it is.
    """

    key: str
    id: str
    fields: Fields
    body: str
    original: Original
    lines: tuple[int, int]
    names: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    part: str = ""
    is_exact: bool = False

    def problem(self, code: str, message: str, hint: str = "", severity: str = "error") -> Problem:
        """Return a problem at the place of the record."""
        return Problem(
            self.original.shown, self.lines[0], code, message, hint, self.id, severity=severity
        )
