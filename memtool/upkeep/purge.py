"""Purges: which deleted memories are removed for good, when, and in which commit.

Only a committed deletion counts, so that everyone could see it and bring the memory back. Memories
derived only from removed ones may go with them. No file is removed before the commit exists, so a
refused commit leaves every file unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memtool.errors import MemtoolError
from memtool.gate.checks.lineage import PURGES_VARIABLE
from memtool.memory import memory, timestamps
from memtool.search.levels import find_digests_in_use
from memtool.sessions import findings as session_findings
from memtool.sessions import journal, promote
from memtool.sessions import store as session_store
from memtool.store.commits import commit_files, discard
from memtool.store.context import Context
from memtool.store.messages import PURGES
from memtool.store.tree import Record, Tree
from memtool.value import Value

DUE, LATER, HELD = "due", "later", "held"
"""It may be removed now, from a later day on, or not at all, for the `reason`."""


class PurgeCandidate(Value):
    """A forgotten memory and its state: `due`, `later` or `held`.

    `deleted` and `due` are Unix seconds. `reason` is the reason of the deletion, or why it may not
    be removed.
    """

    record: Record
    state: str
    deleted: int
    due: int
    reason: str


def plan(here: Tree, head: Tree | None, now: int, days: int) -> list[PurgeCandidate]:
    """Return all forgotten memories, the first due first, then by id.

    `here` is the worktree, `head` the tree of HEAD, None before the first commit. A file that is
    missing only from the worktree counts: its purge was interrupted.
    """
    trees = (here,) if head is None else (head, here)
    deleted = {id_: tree[id_] for tree in trees for id_ in tree.ids if _is_deleted(tree[id_])}
    candidates = [
        _build_candidate(record, here.get(id_), None if head is None else head.get(id_), now, days)
        for id_, record in deleted.items()
    ]
    return sorted(candidates, key=lambda candidate: (candidate.due, candidate.record.id))


def _build_candidate(
    record: Record, mine: Record | None, committed: Record | None, now: int, days: int
) -> PurgeCandidate:
    deleted = timestamps.parse(record.memory.table("deleted").get("at", "1970-01-01T00:00:00Z"))
    due = deleted + days * timestamps.DAY_S
    state = DUE if due <= now else LATER
    reason = record.memory.table("deleted").get("reason", "")
    holders = find_holder(mine, committed)
    if holders:
        state, reason = HELD, holders
    return PurgeCandidate(record, state, deleted, due, reason)


def find_holder(mine: Record | None, committed: Record | None) -> str:
    """Return why a file may not be removed, empty if it may: HEAD must have the same version."""
    if mine is None or committed is None:
        return ""
    if not _is_deleted(committed) and _is_deleted(mine):
        return "its deletion is not committed yet"
    if (mine.oid, mine.path) != (committed.oid, committed.path):
        return "it has changes that are not committed"
    return ""


def find_derived(tree: Tree, ids: Collection[str]) -> list[tuple[Record, str]]:
    """Return the memories derived only from these, each with the id of one of them.

    This includes memories derived from those in turn, and digests that were replaced: they still
    quote removed memories.
    """
    gone = set(ids)
    firsts = [tree[id_] for id_ in tree.ids]
    records_by_id: dict[str, tuple[Record, str]] = {}
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
                records_by_id[record.id] = (record, named[0])
                is_more = True
    return [records_by_id[id_] for id_ in sorted(records_by_id)]


def find_mentions(tree: Tree, ids: Collection[str]) -> list[Record]:
    """Return the current digests that quote these memories and must be rewritten."""
    return [
        record
        for record in find_digests_in_use(tree)
        if not set(ids).isdisjoint(record.memory.items("derived_from"))
    ]


def _is_deleted(record: Record) -> bool:
    return record.memory.status == "deleted"


def remove(context: Context, going: Mapping[str, Record], head: Tree | None) -> str | None:
    """Commit the removal of files, then remove them; a refused commit leaves them all.

    Raises:
        MemtoolError: the commit is refused, or a file could not be removed; the message says which.
    """
    repository = context.repository
    paths = [record.path for id_, record in going.items() if head is not None and id_ in head]
    what = next(iter(going)) if len(going) == 1 else f"{len(going)} forgotten memories"
    done = None
    if paths:
        done = commit_files(
            context,
            (),
            f"purge {what}",
            {PURGES: ", ".join(sorted(going))},  # the gate looks for each id in this trailer
            removed=paths,
            env={PURGES_VARIABLE: " ".join(going)},
        )
    try:
        discard(repository, sorted({record.path for record in going.values()}.difference(paths)))
    except MemtoolError as error:
        if done:
            error.message = f"commit {done[:10]} is made, but {error.message}"
        raise
    return done


def collect_findings(context: Context, ids: Collection[str]) -> dict[str, list[str]]:
    """Return the findings that memories were made from, by session, if the session still exists."""
    findings: dict[str, list[str]] = {}
    try:
        sessions = session_store.open_sessions(context)
        there = {*sessions.ids(), session_findings.HISTORY}
        for row in promote.read_promotions(sessions):
            if row.memory in ids and row.session in there:
                findings.setdefault(row.session, []).append(row.finding)
    except MemtoolError as error:
        context.notes.append(f"sessions are passed over: {error.message}")
    return dict(sorted(findings.items()))


def withdraw(context: Context, findings: Mapping[str, Sequence[str]]) -> None:
    """Withdraw the findings that purged memories were made from; messages stay."""
    sessions = session_store.open_sessions(context)
    for session, names in findings.items():
        try:
            rows = [{"withdrawn": name} for name in names]
            journal.append(session_findings.find_journal(sessions, session), rows)
        except MemtoolError as error:
            context.notes.append(f"the lessons of {session} stay: {error.message}")
            continue
        if session != session_findings.HISTORY:
            context.notes.append(
                f"{session}, private to this clone, still has the messages that they are from"
            )
