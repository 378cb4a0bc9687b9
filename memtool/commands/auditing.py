"""Auditing: how a verb tells the ledger what it is about to do, and what came of it.

    with auditing.act(ws, "purge", *ids):
        ...

Whoever begins an act also hears of one that was cut off before.
"""

from __future__ import annotations

from memtool.commands import noting
from memtool.errors import MemtoolError
from memtool.memory import moments
from memtool.store import audit
from memtool.store.audit import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from memtool.workspace import Workspace


class Acting:
    """A block in which something is done. `subjects` and `detail` may be set while it runs."""

    def __init__(self, ws: Workspace, event: Event | None) -> None:
        self._ws = ws
        self._event = event
        self.subjects: tuple[str, ...] = event.subjects if event else ()
        self.detail = event.detail if event else ""

    def __enter__(self) -> Self:
        if self._event is not None:
            directory = self._ws.repository.cache_dir
            tell_cut_off(self._ws)
            self._act = audit.Act(directory, self._event)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._event is None:
            return
        phase = audit.DONE if error is None else audit.INTERRUPTED
        if isinstance(error, MemtoolError):
            phase, self.detail = audit.REFUSED, error.code
        self._act.end(self._ws.now, phase, self.subjects, self.detail)


def act(
    ws: Workspace, kind: str, *subjects: str, detail: str = "", dry_run: bool = False
) -> Acting:
    """Return a block whose begin and end are noted; a dry run leaves nothing behind.

    `kind` is one of `audit.KINDS`; neither subjects nor detail may hold a secret.
    """
    if dry_run or not noting.is_kept(ws):
        return Acting(ws, None)
    name = audit.operation()
    return Acting(ws, Event(ws.now, name, kind, audit.INTENT, subjects, detail))


def tell(ws: Workspace, kind: str, subjects: Iterable[str], detail: str = "") -> None:
    """Note what is done already, or was decided: it has no intent."""
    if noting.is_kept(ws):
        event = Event(ws.now, audit.operation(), kind, audit.DONE, tuple(subjects), detail)
        audit.append(ws.repository.cache_dir, event)


def tell_cut_off(ws: Workspace) -> None:
    """Tell the user of acts that were begun before and never ended."""
    for event in audit.cut_off(ws.repository.cache_dir, ws.now):
        named = ", ".join(event.subjects[:3]) + (", …" if len(event.subjects) > 3 else "")
        ws.notes.append(
            f"{event.kind} of {named or 'nothing named'} was cut off on "
            f"{moments.render(event.moment)}; memtool log --audit shows it"
        )


CHANGES = {"forget": "forget", "restore": "restore", "strengthen": "merge"}
"""Changes of a memory in place that the audit keeps, by the verb that makes them."""


def changing(ws: Workspace, verb: str, id: str, why: str) -> Acting:
    """Return the block in which a memory is changed in place; kept are the verbs of `CHANGES`."""
    return act(ws, CHANGES.get(verb, ""), id, detail=why, dry_run=verb not in CHANGES)
