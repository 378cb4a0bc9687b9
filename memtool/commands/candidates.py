"""Candidates: how a finding is written as one, or strengthens the memory that says so already."""

from __future__ import annotations

import os

from memtool.commands import drafting, repeating, writing
from memtool.commands.judging import Judged
from memtool.errors import MemtoolError
from memtool.memory import lifecycle
from memtool.memory.memory import Memory
from memtool.memory.schema import is_inside
from memtool.sessions import curate, promote
from memtool.sessions.model import Finding
from memtool.sessions.store import Sessions
from memtool.store.commits import commit_files
from memtool.value import Value
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from memtool.store.tree import Record, Tree

FATAL = ("disk", "bare", "no-memory")
"""Codes of errors that the next finding would meet as well."""


class Made(Value):
    """A memory that a finding became, or that it strengthened because it says so already."""

    finding: str
    id: str
    path: str
    is_new: bool


def make(ws: Workspace, sessions: Sessions, judged: Judged, *, dry_run: bool) -> Made | None:
    """Write the memory of one finding, or strengthen the one that says so; None if it is refused.

    One that the gate refuses is told, and keeps no other from being promoted.
    """
    one = judged.finding
    memory = memory_of(ws, judged)
    try:
        writing.check(ws, memory)
        twin = repeating.twin_of(ws, memory, dry_run=dry_run)
        if twin is not None:
            written = repeating.strengthen(ws, twin, commit=False, dry_run=dry_run)
        else:
            draw = _draw(ws, memory)
            written = writing.write_new(ws, memory, draw=draw, dry_run=dry_run)
    except MemtoolError as error:
        if error.code in FATAL:
            raise
        ws.notes.append(f"{one.id} is not promoted: {error.message}")
        return None
    if not dry_run:
        promote.record(sessions, one, written.id, ws.now, is_new=twin is None)
    return Made(one.id, written.id, written.path, twin is None)


def alive_heads(ws: Workspace, tree: Tree) -> list[Record]:
    """Return the heads that are alive, deprecated ones too: what a candidate has to go with."""
    return [
        record
        for record in tree.records
        if tree.lineage.is_head(record.id)
        and lifecycle.state(record.memory, ws.now, ws.settings.categories) == lifecycle.ALIVE
    ]


def tell_opposed(ws: Workspace, ids: Collection[str]) -> None:
    """Say which candidates that were just made contradict what stands: both are kept."""
    alive = alive_heads(ws, ws.tree())
    new = [record for record in alive if record.id in ids]
    others = [record for record in alive if record.id not in ids]
    for action in curate.by_rules(new, others):
        ws.notes.append(
            f"{action.id} may contradict {action.to}; memtool curate proposes what to do"
        )


def _draw(ws: Workspace, memory: Memory) -> Callable[[], str]:
    return lambda: drafting.draw_id(ws, memory.type, memory.title)


def memory_of(ws: Workspace, judged: Judged) -> Memory:
    """Return the candidate that a finding becomes."""
    one, head = judged.finding, judged.head
    return drafting.draft(
        ws,
        promote.type_of(one),
        one.title,
        # A lone hyphen would be read from stdin.
        body=one.content if one.content != "-" else "",
        section=tuple(promote.sections_of(one, head)),
        fields=promote.fields_of(one, head) | {"files": _here(ws, one)},
        extra=(),
    )


def _here(ws: Workspace, finding: Finding) -> tuple[str, ...]:
    """Return the files of a finding that are in the worktree: others would only look drifted."""
    top = ws.repository.top
    return tuple(
        path
        for path in finding.files
        if is_inside(path) and os.path.lexists(os.path.join(top, path))
    )


def commit(ws: Workspace, made: Sequence[Made]) -> str:
    """Commit what was made, in one commit and alone. Raises MemtoolError where git refuses."""
    ids = sorted({one.id for one in made})
    paths = sorted({one.path for one in made})
    what = ids[0] if len(ids) == 1 else f"{len(ids)} findings of sessions"
    return commit_files(
        ws.repository, paths, f"memory: promote {what}", {"Memory-Id": ", ".join(ids)}
    )
