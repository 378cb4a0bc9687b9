"""Remarks: what a block says about a memory in addition to its text."""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Remarks(Value):
    """What an agent must know about a memory before it relies on it.

    `marks` are lines of their own, `notes` a few words each. `rivals` names the memories that it
    conflicts with, by their short ids. `facts` are further names and values for its head.
    """

    marks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rivals: str = ""
    facts: tuple[tuple[str, str], ...] = ()


NO_REMARKS = Remarks()
CANDIDATE_MARK = "CANDIDATE: not confirmed; verify it before you rely on it"
MAX_NAMED_IDS = 3
"""Ids in one remark; a fork of a hundred must not fill the block."""


def name_ids(ids: Sequence[str]) -> str:
    """Name some ids in a remark; the others are only counted."""
    suffix = f" and {len(ids) - MAX_NAMED_IDS} more" if len(ids) > MAX_NAMED_IDS else ""
    return ", ".join(ids[:MAX_NAMED_IDS]) + suffix
