"""Removing: how the files of purged memories go, in one commit, and their findings with them."""

from __future__ import annotations

import os

from memtool.commands import sessions as telling
from memtool.commands import writing
from memtool.errors import MemtoolError
from memtool.gate.lineage import PURGING
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.upkeep import purging
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from memtool.store.tree import Record, Tree


def remove(ws: Workspace, going: Mapping[str, Record], head: Tree | None) -> str | None:
    """Remove files, and commit that; where the commit is refused, they are back as they were."""
    top = ws.repository.top
    taken = {one.path: writing.bytes_of(top, one.path) for one in going.values()}
    known = {} if head is None else head.by_id
    paths = [record.path for id_, record in going.items() if id_ in known]
    what = next(iter(going)) if len(going) == 1 else f"{len(going)} forgotten memories"
    try:
        for path, data in taken.items():
            if data is not None:
                os.unlink(os.path.join(top, path))
        if not paths:
            return None
        return commit_files(
            ws.repository,
            paths,
            f"memory: purge {what}",
            purging.trailers(going),
            env={PURGING: " ".join(going)},
        )
    except (MemtoolError, OSError) as error:
        for path, data in taken.items():
            if data is not None and not os.path.lexists(os.path.join(top, path)):
                files.create(top, path, data)
        reason = error.message if isinstance(error, MemtoolError) else os.strerror(error.errno or 0)
        raise MemtoolError(
            f"nothing was removed: {reason.partition('not committed: ')[2] or reason}",
            hint="mend what git says, then run the same command again",
            code="commit-refused",
        ) from None


def findings_of(ws: Workspace, ids: Collection[str]) -> dict[str, list[str]]:
    """Return the findings that memories came from, by the session that is still there."""
    from memtool.sessions import promote

    found: dict[str, list[str]] = {}
    try:
        sessions = telling.opened(ws)
        there = set(sessions.ids())
        for row in promote.promotions(sessions):
            if row.memory in ids and row.session in there:
                found.setdefault(row.session, []).append(row.finding)
    except MemtoolError as error:
        ws.notes.append(f"sessions are passed over: {error.message}")
    return dict(sorted(found.items()))


def withdraw(ws: Workspace, findings: Mapping[str, Sequence[str]]) -> None:
    """Withdraw the findings that purged memories came from; their messages stay where they are."""
    from memtool.sessions import journal
    from memtool.sessions.store import FINDINGS

    sessions = telling.opened(ws)
    for session, names in findings.items():
        try:
            rows = [{"withdrawn": name} for name in names]
            journal.append(sessions.path(session, FINDINGS), rows)
        except MemtoolError as error:
            ws.notes.append(f"the findings of {session} stay: {error.message}")
            continue
        ws.notes.append(f"{session}, private to this clone, still holds the messages behind them")
