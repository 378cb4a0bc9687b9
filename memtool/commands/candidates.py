"""Candidates: how a finding is written as one, or strengthens the memory that says so already."""

from __future__ import annotations

import os

from memtool.authoring import draft as authoring_draft
from memtool.authoring import write
from memtool.commands.judging import Judged
from memtool.errors import MemtoolError
from memtool.memory import lifecycle
from memtool.memory.memory import Memory
from memtool.memory.schema import is_inside
from memtool.sessions import curating, promoting
from memtool.sessions.finding import Finding
from memtool.sessions.store import Sessions
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.value import Value

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


def make(context: Context, sessions: Sessions, judged: Judged, *, dry_run: bool) -> Made | None:
    """Write the memory of one finding, or strengthen the one that says so; None if it is refused.

    One that the gate refuses is told, and keeps no other from being promoted.
    """
    one = judged.finding
    memory = memory_of(context, judged)
    try:
        write.check(context, memory)
        twin = write.twin_of(context, memory, dry_run=dry_run)
        if twin is not None:
            written = write.strengthen(context, twin, commit=False, dry_run=dry_run)
        else:
            draw = _draw(context, memory)
            written = write.write_new(context, memory, draw=draw, dry_run=dry_run)
    except MemtoolError as error:
        if error.code in FATAL:
            raise
        context.notes.append(f"{one.id} is not promoted: {error.message}")
        return None
    if not dry_run:
        promoting.record(sessions, one, written.id, context.now, is_new=twin is None)
    return Made(one.id, written.id, written.path, twin is None)


def alive_heads(context: Context, tree: Tree) -> list[Record]:
    """Return the heads that are alive, deprecated ones too: what a candidate has to go with."""
    return [
        record
        for record in tree.records
        if tree.lineage.is_head(record.id)
        and lifecycle.state(record.memory, context.now, context.settings.categories)
        == lifecycle.ALIVE
    ]


def tell_opposed(context: Context, ids: Collection[str]) -> None:
    """Say which candidates that were just made contradict what stands: both are kept."""
    alive = alive_heads(context, context.tree())
    new = [record for record in alive if record.id in ids]
    others = [record for record in alive if record.id not in ids]
    for action in curating.by_rules(new, others):
        context.notes.append(
            f"{action.id} contradicts {action.to}; memtool curate proposes what to do"
        )


def _draw(context: Context, memory: Memory) -> Callable[[], str]:
    return lambda: authoring_draft.draw_id(context, memory.type, memory.title)


def memory_of(context: Context, judged: Judged) -> Memory:
    """Return the candidate that a finding becomes."""
    draft = promoting.draft(judged.finding, judged.head)
    return authoring_draft.draft(
        context,
        draft.type,
        draft.title,
        # A lone hyphen would be read from stdin.
        body=draft.statement if draft.statement != "-" else "",
        section=draft.sections,
        fields=draft.fields | {"files": _here(context, judged.finding)},
        extra=(),
    )


def _here(context: Context, finding: Finding) -> tuple[str, ...]:
    """Return the files of a finding that are in the worktree: others would only look drifted."""
    top = context.repository.top
    return tuple(
        path
        for path in finding.files
        if is_inside(path) and os.path.lexists(os.path.join(top, path))
    )


def commit(context: Context, made: Sequence[Made]) -> str:
    """Commit what was made, in one commit and alone. Raises MemtoolError where git refuses."""
    ids = sorted({one.id for one in made})
    paths = sorted({one.path for one in made})
    what = ids[0] if len(ids) == 1 else f"{len(ids)} findings of sessions"
    return commit_files(
        context.repository, paths, f"memory: promote {what}", {"Memory-Id": ", ".join(ids)}
    )
