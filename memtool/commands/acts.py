"""Acts: what was done in this clone that git alone does not tell, for `memtool log --audit`."""

from __future__ import annotations

from collections.abc import Iterable

from memtool.commands import auditing
from memtool.commands.columns import columns
from memtool.errors import MemtoolError
from memtool.memory import identity, moments
from memtool.store import audit, events, ledger
from memtool.value import Value
from memtool.workspace import Workspace


class Act(Value):
    """One act: when it began, and its outcome: running, done, refused or interrupted.

    `subjects` are ids of memories, findings and sessions, or paths. `detail` is a reason, the code
    of what refused it, or a count.
    """

    moment: str
    kind: str
    outcome: str
    subjects: tuple[str, ...]
    detail: str


class Acts(Value):
    """Acts, newest first; `more` says that the limit cut something off."""

    id: str
    more: bool
    acts: tuple[Act, ...]


def find(ws: Workspace, id: str, limit: int, since: str, kind: tuple[str, ...]) -> Acts:
    """Return the acts on one subject, or on all; a limit of 0 means no limit.

    Raises:
        MemtoolError: there is no such kind, or the ledger cannot be read.
    """
    for name in kind:
        if name not in audit.KINDS:
            near = identity.nearest(name, list(audit.KINDS))
            raise MemtoolError(
                f"the audit has no kind {name!r}",
                hint=f"did you mean {' or '.join(near)}?" if near else
                f"the kinds are {', '.join(audit.KINDS)}",
            )  # fmt: skip
    begin = ws.moment(since) if since else None
    directory = ws.repository.cache_dir
    auditing.tell_cut_off(ws)
    try:
        ledger.fold(directory)
    except MemtoolError as error:
        ws.notes.append(f"the latest acts are not shown: {error}")
    with ledger.reading(directory) as held:
        found = [
            act
            for act in held.acts()
            if (not kind or act.kind in kind)
            and (begin is None or act.moment >= begin)
            and (not id or any(subject.startswith(id) for subject in act.subjects))
        ]
    shown = found[:limit] if limit else found
    return Acts(id, len(found) > len(shown), tuple(map(_told, shown)))


def text(id: str, acts: Iterable[Act], *, more: bool) -> str:
    """Return a line per act: moment, kind, outcome, subjects and detail."""
    lines = columns(
        (act.moment, act.kind, act.outcome, " ".join(act.subjects), act.detail) for act in acts
    )
    if not lines:
        lines = [f"the audit holds nothing about {id}" if id else "the audit holds nothing of that"]
    if more:
        lines.append("more is there: --limit 0 shows all")
    return "\n".join(lines)


def _told(act: events.Act) -> Act:
    return Act(moments.render(act.moment), act.kind, act.outcome, act.subjects, act.detail)
