"""`memtool log`: what happened to the memories, told from git's history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memtool.commands.columns import columns
from memtool.errors import MemtoolError
from memtool.memory.changes import Change, Detail, Version, compare, sentence, stem
from memtool.store import snapshot, versions
from memtool.store.provenance import SHORT
from memtool.store.trace import Walk, trace
from memtool.store.tree import Tree
from memtool.store.versions import Stamp, stamps_of
from memtool.value import Value
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.commands.acts import Act
    from memtool.commands.injections import Injection
    from memtool.store.history import Commit, History, Touch  # heavy to import

READ_AT_ONCE = 500
"""Changed files that are read and compared together."""
NOT_COMMITTED = "not committed"


class Event(Value):
    """One change of one memory and the commit that made it; `commit` is empty for none.

    Commit, author and date are empty too where a shallow clone hides them. `reason` is the
    commit's `Reason:` trailer.
    """

    kind: str
    id: str
    title: str
    path: str
    details: dict[str, Detail]
    commit: str
    author: str
    date: str
    subject: str
    reason: str


class Log(Value):
    """Events, newest first. `id` is empty where all memories were asked for.

    `removed` says that the memory is no longer in the tree, `more` that the limit cut something
    off. `injections` or `audit` are there, instead of events, where they were asked for.
    """

    id: str
    removed: bool
    more: bool
    events: tuple[Event, ...]
    injections: tuple[Injection, ...] | None = None
    audit: tuple[Act, ...] | None = None

    def plain(self) -> dict[str, Any]:
        """Return the fields of the JSON: `injections` and `audit` only where asked for."""
        fields = super().plain()
        for name in ("injections", "audit"):
            if fields[name] is None:
                del fields[name]
        return fields


def log(
    ws: Workspace,
    id: str = "",
    *,
    at: str | None = None,
    injected: bool = False,
    audit: bool = False,
    since: str = "",
    kind: tuple[str, ...] = (),
    limit: int = 50,
) -> Log:
    """Show the history of a memory and its lineage, or of all memories, newest first.

    Changes are told in memory terms: added, superseded, confirmed, forgotten, edited and so on.
    With an id, what the memory replaced and what replaced it is followed too, through moved and
    renamed files; a memory that was removed is still found. What is not committed comes first.

    With --injected it shows instead what agents were given in this clone: when, which memory at
    which place of the block, why, and the hash of the prompt. The prompt itself is kept nowhere.

    With --audit it shows what was done in this clone that git alone does not tell: promotions and
    what was not promoted, deletions, redactions, merged duplicates, purges, captures, sessions that
    ended, hooks that failed. The intent is noted before an act, so that one that was cut off shows
    as interrupted. 5,000 events are kept; deletions and redactions for 90 days at least.

    Example:
        memtool log dec-2026-02-22-keep-sessions-in-redis
        memtool log --audit --since 30d --kind purge

    Args:
        id: a memory, by its id or the beginning of it; without one, all of them
        at: a revision to look back from, instead of the worktree
        injected: show what was injected, from the ledger of this clone
        audit: show what was done, from the ledger of this clone
        since: with --audit, only from this moment or age on, such as 30d
        kind: with --audit, only this kind, such as forget or promote; may be repeated
        limit: how many events at most, 0 for all
    """
    if limit < 0:
        raise MemtoolError(f"--limit {limit} is below 0", hint="--limit 0 shows all")
    if (since or kind) and not audit:
        raise MemtoolError("--since and --kind are for --audit", hint="memtool log --audit")
    if injected or audit:
        _refuse_mixed(at, injected=injected, audit=audit)
        if audit:
            from memtool.commands import acts

            told = acts.find(ws, id, limit, since, kind)
            return Log(told.id, False, told.more, (), audit=told.acts)
        return _injected(ws, id, limit)
    from memtool.store.history import History, tip

    tree = ws.catalog(at, exact=True)
    head = tip(ws.repository, at)
    pending = _pending(ws, tree, head) if at is None else ()
    names: frozenset[str] | None = None
    wanted = ""
    with History(ws.repository) as history:
        walk: Iterator[tuple[str, tuple[Touch, ...]]]
        walk = history.walk(head, ws.directory) if head else iter(())
        if id:
            whole = [(commit, _memories(ws, touches)) for commit, touches in walk]
            traced = trace(tree, whole, pending, ws.settings.categories, id)
            wanted, names = traced.id, traced.names
            walk = iter(whole)
        events: list[Event] = []
        for event in _events(ws, tree, history, walk, pending, names, limit):
            events.append(event)
            if limit and len(events) > limit:
                break
        if history.boundary:
            ws.notes.append(
                "this clone is shallow: what is older than its boundary is not known, "
                "git fetch --unshallow brings it"
            )
    titles = {event.id: (event.title, event.path) for event in events if event.title}
    shown = tuple(_titled(event, tree, titles) for event in (events[:limit] if limit else events))
    return Log(wanted, bool(wanted) and traced.is_removed, len(events) > len(shown), shown)


def _refuse_mixed(at: str | None, *, injected: bool, audit: bool) -> None:
    """Raise MemtoolError where more than one thing is asked of the ledger."""
    if injected and audit:
        raise MemtoolError("--injected and --audit are two tables", hint="give one of them")
    if at is not None:
        raise MemtoolError(
            f"--at and --{'audit' if audit else 'injected'} do not go together",
            hint="the ledger knows moments, not revisions: leave --at out",
        )


def _injected(ws: Workspace, id: str, limit: int) -> Log:
    from memtool.commands import injections

    found = injections.find(ws, id, limit)
    return Log(found.id, found.removed, found.more, (), found.injections)


def render(log: Log) -> str:
    """Return one line per event: date, commit, what happened to which memory, and who did it.

    An injection is a line with its moment, the hash of the prompt, tier, score, memory and reason,
    an act one with its moment, kind, outcome, subjects and detail.
    """
    if log.audit is not None:
        from memtool.commands import acts

        return acts.text(log.id, log.audit, more=log.more)
    if log.injections is not None:
        from memtool.commands import injections

        return injections.text(log.id, log.injections, more=log.more)
    rows = [
        (
            event.date[:10],
            event.commit[:SHORT] or (NOT_COMMITTED if event.kind != "unknown" else "shallow"),
            event.kind,
            event.id,
            event.author,
            _details(event),
        )
        for event in log.events
    ]
    text = [f"{log.id} is no longer in the tree"] if log.removed else []
    text.extend(columns(rows))
    if not rows:
        text.append("no memory was ever committed here")
    if log.more:
        text.append(f"more is there: memtool log {log.id or ''} --limit 0".replace("  ", " "))
    return "\n".join(text)


def _details(event: Event) -> str:
    change = Change(event.kind, event.id, event.title, event.path, event.details)
    told = [sentence(change), event.reason if event.details.get("reason") != event.reason else ""]
    said = "; ".join(filter(None, told))
    return f"{event.title} ({said})" if said and event.title else said or event.title


def _titled(event: Event, tree: Tree, titles: Mapping[str, tuple[str, str]]) -> Event:
    """Give an event that came without them the title and path of now, or else of another event."""
    if event.title and event.path:
        return event
    record = tree.by_id.get(event.id)
    title, path = titles.get(event.id, ("", ""))
    if record is not None:
        title, path = record.memory.title, record.path
    return event.replace(title=event.title or title, path=event.path or path)


def _memories(ws: Workspace, touches: tuple[Touch, ...]) -> tuple[Touch, ...]:
    return tuple(
        touch
        for touch in touches
        if snapshot.is_memory_path(touch.path, ws.directory)
        or snapshot.is_memory_path(touch.old_path, ws.directory)
    )


def _pending(ws: Workspace, tree: Tree, head: str) -> tuple[Change, ...]:
    stored = ws.snapshot(head) if head else None
    return compare(*versions.uncommitted(tree, stored, ws.settings.categories))


def _events(
    ws: Workspace,
    tree: Tree,
    history: History,
    walk: Iterator[tuple[str, tuple[Touch, ...]]],
    pending: tuple[Change, ...],
    names: frozenset[str] | None,
    limit: int,
) -> Iterator[Event]:
    """Yield events newest first; `names` limits them to some ids.

    A `limit` of more than 0 says how many are likely to be taken.
    """
    yield from (_event(c, None) for c in pending if names is None or c.id in names)
    held = {(record.path, record.oid): record.memory for record in tree.records}
    first = min(limit + 1, READ_AT_ONCE) if limit else READ_AT_ONCE
    for batch in _batches(ws, walk, names, first):
        read = versions.of_stamps(
            ws.repository,
            [stamp for _commit, touches in batch for stamp in stamps_of(touches)],
            ws.settings.categories,
            held,
        )
        for commit, touches in batch:
            if commit in history.boundary:
                yield from (
                    _event(
                        Change("unknown", stem(t.path), read[t.path, t.oid].title, t.path, {}),
                        None,
                    )
                    for t in touches
                    if t.oid
                )
                continue
            for change in _compared(touches, read):
                if names is None or change.id in names:
                    yield _event(change, history.commit(commit))


def _batches(
    ws: Workspace,
    walk: Iterator[tuple[str, tuple[Touch, ...]]],
    names: frozenset[str] | None,
    most: int,
) -> Iterator[Walk]:
    """Group commits so that their files are read together, some `most` of them at first."""
    batch: Walk = []
    size = 0
    for commit, touches in walk:
        wanted = tuple(
            touch
            for touch in _memories(ws, touches)
            if names is None or stem(touch.path) in names or stem(touch.old_path) in names
        )
        if wanted:
            batch.append((commit, wanted))
            size += len(wanted)
        if size >= most:
            yield batch
            batch, size, most = [], 0, READ_AT_ONCE
    if batch:
        yield batch


def _compared(touches: tuple[Touch, ...], read: Mapping[Stamp, Version]) -> tuple[Change, ...]:
    before = [read[t.old_path, t.old_oid] for t in touches if t.old_oid]
    after = [read[t.path, t.oid] for t in touches if t.oid]
    paired = {t.path: t.old_path for t in touches if t.path != t.old_path}
    return compare(before, after, paired)


def _event(change: Change, commit: Commit | None) -> Event:
    return Event(
        kind=change.kind,
        id=change.id,
        title=change.title,
        path=change.path,
        details=change.details,
        commit=commit.id if commit else "",
        author=commit.author if commit else "",
        date=commit.date if commit else "",
        subject=commit.subject if commit else "",
        reason=commit.trailer("Reason") if commit else "",
    )
