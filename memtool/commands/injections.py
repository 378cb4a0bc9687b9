"""Injections: what agents were given in this clone, as the ledger tells it, for `memtool log`."""

from __future__ import annotations

from collections.abc import Iterable

from memtool.commands.columns import columns
from memtool.errors import MemtoolError
from memtool.memory import moments
from memtool.store import ledger
from memtool.value import Value
from memtool.workspace import Workspace


class Injection(Value):
    """A memory of a block that an agent got; `prompt` is the hash of what was asked.

    `score` is None for what was not searched.
    """

    moment: str
    id: str
    tier: str
    score: float | None
    reason: str
    prompt: str
    session: str


class Injections(Value):
    """Injections, newest first; `id`, `removed` and `more` as in the log of events."""

    id: str
    removed: bool
    more: bool
    injections: tuple[Injection, ...]


def find(ws: Workspace, id: str, limit: int) -> Injections:
    """Return the injections of one memory, or of all; a limit of 0 means no limit.

    Raises:
        MemtoolError: neither the tree nor the ledger knows the id, or several ids begin so.
    """
    directory = ws.repository.cache_dir
    try:
        ledger.fold(directory)
    except MemtoolError as error:
        ws.notes.append(f"the latest answers are not shown: {error}")
    tree = ws.tree()
    most = limit + 1 if limit else 0
    with ledger.reading(directory) as held:
        wanted, found = id, held.injections(id, most)
        if id and not found:  # perhaps the beginning of an id, perhaps never injected
            wanted = tree.find(id).id
            found = held.injections(wanted, most)
    shown = found[:limit] if limit else found
    return Injections(
        id=wanted,
        removed=bool(wanted) and wanted not in tree.by_id,
        more=len(found) > len(shown),
        injections=tuple(_told(one) for one in shown),
    )


def text(id: str, injections: Iterable[Injection], *, more: bool) -> str:
    """Return a line per injection: moment, prompt, session, tier, score, memory and reason."""
    lines = columns(
        (
            one.moment,
            one.prompt or "no prompt",
            one.session,
            one.tier,
            "" if one.score is None else f"{one.score:.3f}",
            one.id,
            one.reason,
        )
        for one in injections
    )
    if not lines:
        lines = [f"{id} was never injected here" if id else "nothing was injected here yet"]
    if more:
        name = f" {id}" if id else ""
        lines.append(f"more is there: memtool log{name} --injected --limit 0")
    return "\n".join(lines)


def _told(one: ledger.Injection) -> Injection:
    fields = {name: getattr(one, name) for name in Injection.field_names}
    return Injection(**fields | {"moment": moments.render(one.moment)})
