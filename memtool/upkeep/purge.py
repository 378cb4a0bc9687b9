"""Purges: which deleted memories are removed for good, when, and in which commit.

Only a deletion that is committed counts, so that everybody could see it and bring the memory back.
What was derived only from removed memories may go with them. A commit that is refused leaves every
file as it was: no file goes before the commit is there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memtool.errors import MemtoolError
from memtool.gate.checks.lineage import PURGING
from memtool.memory import memory, timestamps
from memtool.search.levels import digests_in_use
from memtool.sessions import journal, promote
from memtool.sessions import store as session_store
from memtool.store.commits import commit_files, discard
from memtool.store.context import Context
from memtool.store.tree import Record, Tree
from memtool.value import Value

DUE, LATER, HELD = "due", "later", "held"
"""It may be removed now; from a later day on; or not, for the `reason`."""


class Parting(Value):
    """A memory that was forgotten: `due`, `later` or `held`.

    `deleted` and `due` are seconds. `reason` is that of the deletion, or why it may not be removed.
    """

    record: Record
    state: str
    deleted: int
    due: int
    reason: str


def plan(here: Tree, head: Tree | None, now: int, days: int) -> list[Parting]:
    """Return every memory that was forgotten, the first due first, then by id.

    `here` is the worktree, `head` the tree of HEAD, None before the first commit. A file that is
    missing from the worktree alone counts: its purge was interrupted.
    """
    trees = (here,) if head is None else (head, here)
    found = {id_: tree[id_] for tree in trees for id_ in tree.ids if _is_deleted(tree[id_])}
    partings = [
        _parting(record, here.get(id_), None if head is None else head.get(id_), now, days)
        for id_, record in found.items()
    ]
    return sorted(partings, key=lambda one: (one.due, one.record.id))


def _parting(
    record: Record, mine: Record | None, committed: Record | None, now: int, days: int
) -> Parting:
    deleted = timestamps.parse(record.memory.table("deleted").get("at", "1970-01-01T00:00:00Z"))
    due = deleted + days * timestamps.DAY_S
    state = DUE if due <= now else LATER
    reason = record.memory.table("deleted").get("reason", "")
    held = held_by(mine, committed)
    if held:
        state, reason = HELD, held
    return Parting(record, state, deleted, due, reason)


def held_by(mine: Record | None, committed: Record | None) -> str:
    """Return why a file may not be removed: HEAD has another version; empty where it may."""
    if mine is None or committed is None:
        return ""
    if not _is_deleted(committed) and _is_deleted(mine):
        return "its deletion is not committed yet"
    if (mine.oid, mine.path) != (committed.oid, committed.path):
        return "it has changes that are not committed"
    return ""


def along(tree: Tree, ids: Collection[str]) -> list[tuple[Record, str]]:
    """Return what was derived from these memories only, each with the id of one of them.

    What was derived from that in turn is included, and so are digests that another one replaced:
    they still quote what is removed.
    """
    gone = set(ids)
    firsts = [tree[id_] for id_ in tree.ids]
    found: dict[str, tuple[Record, str]] = {}
    is_more = True
    while is_more:
        is_more = False
        for record in firsts:
            origins = record.memory.items("derived_from")
            named = [id_ for id_ in origins if id_ in gone and id_ != record.id]
            if record.id in gone or not named:
                continue
            is_old = memory.is_generated(record.memory) and not tree.lineage.is_head(record.id)
            if is_old or gone.issuperset(set(origins) - {record.id}):
                gone.add(record.id)
                found[record.id] = (record, named[0])
                is_more = True
    return [found[id_] for id_ in sorted(found)]


def mentions(tree: Tree, ids: Collection[str]) -> list[Record]:
    """Return the digests in use that quote these memories, and must be written again."""
    return [
        record
        for record in digests_in_use(tree)
        if not set(ids).isdisjoint(record.memory.items("derived_from"))
    ]


def _is_deleted(record: Record) -> bool:
    return record.memory.status == "deleted"


def remove(context: Context, going: Mapping[str, Record], head: Tree | None) -> str | None:
    """Commit that files are removed, then remove them; a commit that is refused leaves them all.

    Raises:
        MemtoolError: the commit is refused; or a file stays, which the message says.
    """
    repository = context.repository
    paths = [record.path for id_, record in going.items() if head is not None and id_ in head]
    what = next(iter(going)) if len(going) == 1 else f"{len(going)} forgotten memories"
    done = None
    if paths:
        done = commit_files(
            context,
            (),
            f"memory: purge {what}",
            {"Purges": ", ".join(sorted(going))},  # the gate looks for each id in it
            removed=paths,
            env={PURGING: " ".join(going)},
        )
    try:
        discard(repository, sorted({one.path for one in going.values()}.difference(paths)))
    except MemtoolError as error:
        if done:
            error.message = f"commit {done[:10]} is made, but {error.message}"
        raise
    return done


def findings_of(context: Context, ids: Collection[str]) -> dict[str, list[str]]:
    """Return the findings that memories were made from, by session, where that still exists."""
    found: dict[str, list[str]] = {}
    try:
        sessions = session_store.opened(context)
        there = set(sessions.ids())
        for row in promote.promotions(sessions):
            if row.memory in ids and row.session in there:
                found.setdefault(row.session, []).append(row.finding)
    except MemtoolError as error:
        context.notes.append(f"sessions are passed over: {error.message}")
    return dict(sorted(found.items()))


def withdraw(context: Context, findings: Mapping[str, Sequence[str]]) -> None:
    """Withdraw the findings that purged memories were made from; the messages stay."""
    sessions = session_store.opened(context)
    for session, names in findings.items():
        try:
            rows = [{"withdrawn": name} for name in names]
            journal.append(sessions.path(session, session_store.FINDINGS), rows)
        except MemtoolError as error:
            context.notes.append(f"the findings of {session} stay: {error.message}")
            continue
        context.notes.append(
            f"{session}, private to this clone, still holds the messages behind them"
        )
