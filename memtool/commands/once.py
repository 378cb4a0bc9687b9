"""Once: what a session was shown already is not shown to it again, unless it changed.

A memory changed where its bytes did, or what contradicts it. What was shown as its statement only
may come whole when somebody asks, but not as its statement again. Only what is asked about the
worktree as it stands now counts: who looks back at a revision or a moment wants all of the answer.
"""

from __future__ import annotations

from zlib import crc32

from memtool.inject.tiers import Verdict, verdict
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from memtool.inject.tiers import Candidate, Taken
    from memtool.store.tree import Record
    from memtool.workspace import Workspace

_OID_DIGITS = 16
_BRIEF = "~"
"""Ends the version of what was shown as its statement only."""


class Once(Value):
    """What one session has seen: nothing without a session. `marks` gives a memory's warnings."""

    session: str
    seen: frozenset[tuple[str, str]]
    marks: Callable[[Record], tuple[str, ...]]

    def version(self, record: Record) -> tuple[str, str]:
        """Return the id of a memory with what would have to change for it to be news."""
        marks = self.marks(record)
        contested = f"-{crc32(chr(10).join(marks).encode()):08x}" if marks else ""
        return record.id, record.oid[:_OID_DIGITS] + contested

    def fresh(self, chosen: Iterable[Candidate]) -> tuple[list[Candidate], list[Verdict]]:
        """Return those that the session has not seen, and verdicts about the others."""
        if not self.seen:
            return list(chosen), []
        kept, dropped = [], []
        for candidate in chosen:
            id_, version = self.version(candidate.record)
            is_told = candidate.is_brief and (id_, version + _BRIEF) in self.seen
            if is_told or (id_, version) in self.seen:
                reason = "this session has seen it"
                dropped.append(verdict(candidate, reason, is_taken=False))
            else:
                kept.append(candidate)
        return kept, dropped

    def versions(self, taken: Iterable[Taken]) -> tuple[tuple[str, str], ...]:
        """Return what the session sees now."""
        if not self.session:
            return ()
        return tuple(self._told(one.candidate) for one in taken)

    def _told(self, candidate: Candidate) -> tuple[str, str]:
        id_, version = self.version(candidate.record)
        return id_, version + _BRIEF * candidate.is_brief


def once(
    ws: Workspace,
    session: str,
    marks: Callable[[Record], tuple[str, ...]],
    *,
    is_replay: bool = False,
) -> Once:
    """Return what a session has seen in this clone."""
    if not session or is_replay:
        return Once("", frozenset(), marks)
    from memtool.store import shown

    return Once(session, shown.read(ws.repository.cache_dir, session), marks)


def keep(ws: Workspace, answer: Any) -> None:
    """Note what an answer showed to its session; where that cannot be noted, it may come again."""
    from memtool.store import shown

    try:
        shown.add(ws.repository.cache_dir, answer.session, answer.versions)
    except OSError:
        return
