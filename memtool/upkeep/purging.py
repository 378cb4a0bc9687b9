"""Purging: which forgotten memories have been away long enough to be removed for good.

Only a deletion that HEAD holds counts, so that everybody could have seen it, and could have brought
the memory back. What is derived of what goes may go with it.
"""

from __future__ import annotations

from memtool.memory import digest, moments
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from memtool.store.tree import Record, Tree

DUE, LATER, HELD = "due", "later", "held"
"""May go now; may go on a later day; may not go for what `reason` says."""


class Parting(Value):
    """A memory that was forgotten. `is_committed` says that HEAD holds its file.

    `deleted` and `due` are seconds. `reason` is that of the deletion, of what is held what holds
    it, and of what goes along the memory that it was derived from.
    """

    record: Record
    state: str
    deleted: int
    due: int
    reason: str
    is_committed: bool


def plan(here: Tree, head: Tree | None, now: int, days: int) -> list[Parting]:
    """Return every memory that was forgotten, the first due first, then by id.

    `here` is the worktree, `head` the tree of HEAD, None before the first commit. A file that is
    gone from the worktree alone was begun to be purged, and counts.
    """
    committed = {} if head is None else head.by_id
    found = {record.id: record for record in committed.values() if _is_deleted(record)}
    found |= {record.id: record for record in here.by_id.values() if _is_deleted(record)}
    partings = [
        _parting(record, here.by_id.get(id_), committed.get(id_), now, days)
        for id_, record in found.items()
    ]
    return sorted(partings, key=lambda one: (one.due, one.record.id))


def _parting(
    record: Record, mine: Record | None, committed: Record | None, now: int, days: int
) -> Parting:
    deleted = moments.parse(record.memory.table("deleted").get("at", "1970-01-01T00:00:00Z"))
    due = deleted + days * moments.DAY_S
    state = DUE if due <= now else LATER
    reason = record.memory.table("deleted").get("reason", "")
    held = held_by(mine, committed)
    if held:
        state, reason = HELD, held
    return Parting(record, state, deleted, due, reason, committed is not None)


def held_by(mine: Record | None, committed: Record | None) -> str:
    """Return why a file may not go: what HEAD has is not what is here; empty where it may."""
    if mine is None or committed is None:
        return ""
    if not _is_deleted(committed) and _is_deleted(mine):
        return "its deletion is not committed yet"
    if (mine.oid, mine.path) != (committed.oid, committed.path):
        return "it has changes that are not committed"
    return ""


def along(tree: Tree, ids: Collection[str]) -> list[tuple[Record, str]]:
    """Return what was derived from these memories only, with the id that it goes along with.

    Also digests that memtool wrote and that another one replaced: they still quote what goes.
    Follows what is derived of that in turn; each memory is looked at until nothing more is found.
    """
    gone = set(ids)
    found: dict[str, tuple[Record, str]] = {}
    is_more = True
    while is_more:
        is_more = False
        for record in tree.by_id.values():
            origins = record.memory.items("derived_from")
            named = [id_ for id_ in origins if id_ in gone and id_ != record.id]
            if record.id in gone or not named:
                continue
            is_old = digest.is_generated(record.memory) and not tree.lineage.is_head(record.id)
            if is_old or gone.issuperset(set(origins) - {record.id}):
                gone.add(record.id)
                found[record.id] = (record, named[0])
                is_more = True
    return [found[id_] for id_ in sorted(found)]


def telling(tree: Tree, ids: Collection[str]) -> list[Record]:
    """Return the digests in use that quote these memories: they are to be written anew."""
    return [
        record
        for record in tree.by_id.values()
        if digest.is_generated(record.memory)
        and tree.lineage.is_head(record.id)
        and record.memory.status not in ("deleted", "archived")
        and not set(ids).isdisjoint(record.memory.items("derived_from"))
    ]


def trailers(ids: Iterable[str]) -> dict[str, str]:
    """Return the trailer of the commit that removes memories: the gate asks for each id in it."""
    return {"Purges": ", ".join(sorted(ids))}


def of_state(partings: Sequence[Parting], state: str) -> list[Parting]:
    """Return those in one state."""
    return [one for one in partings if one.state == state]


def _is_deleted(record: Record) -> bool:
    return record.memory.status == "deleted"
