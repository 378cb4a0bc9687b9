"""`memtool log`: the history of memories from git, and two tables from the ledger of this clone.

`--injected` shows what agents were given, `--audit` what was done that git does not record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from memtool.commands import _filters
from memtool.commands._render import columns
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import ids, timestamps
from memtool.memory.changes import Change, Detail, Version, compare, sentence, stem
from memtool.redaction.mask import Mask
from memtool.store import ledger, snapshot, usage_log, versions
from memtool.store.context import Context
from memtool.store.git import Touch
from memtool.store.history import Commit, History, Trace, Walk, tip, trace
from memtool.store.ledger import Act
from memtool.store.provenance import SHORT
from memtool.store.tree import Tree
from memtool.store.versions import Stamp, stamps_of
from memtool.value import Value

READ_AT_ONCE = 500
"""Changed files that are read and compared together."""
NOT_COMMITTED = "not committed"


class LogEntry(Value):
    """One change of one memory and the commit that made it; `commit` is empty for none.

    Commit, author and date are empty too where a shallow clone hides them. `reason` is the
    commit's `Reason:` trailer.
    """

    kind: str
    id: str
    title: str
    path: str
    details: dict[str, Detail]
    commit: str = ""
    author: str = ""
    date: str = ""
    subject: str = ""
    reason: str = ""


class AuditRow(Value):
    """One act: when it began, and its outcome: running, done, refused or interrupted.

    `subjects` are ids of memories, findings and sessions, or paths. `detail` is a reason, the code
    of what refused it, or a count.
    """

    moment: str
    kind: str
    outcome: str
    subjects: tuple[str, ...]
    detail: str


class InjectionRow(Value):
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


class Log(Value):
    """Events, newest first. `id` is empty where all memories were asked for.

    `removed` says that the memory is no longer in the tree, `more` that the limit cut something
    off. `injections` or `audit` are there, instead of events, where they were asked for.
    """

    json_optional = "injections audit"

    id: str
    removed: bool
    more: bool
    events: tuple[LogEntry, ...]
    injections: tuple[InjectionRow, ...] | None = None
    audit: tuple[AuditRow, ...] | None = None


def log(
    context: Context,
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
        id: a memory, by its id or words of it; without one, all of them
        at: a revision to look back from, instead of the worktree
        injected: show what was injected, from the ledger of this clone
        audit: show what was done, from the ledger of this clone
        since: with --audit, only from this moment or age on, such as 30d
        kind: with --audit, only this kind, such as forget or promote; may be repeated
        limit: how many events at most, 0 for all
    """
    if (since or kind) and not audit:
        raise MemtoolError("--since and --kind are for --audit", hint="memtool log --audit")
    if injected and audit:
        raise MemtoolError("--injected and --audit are two tables", hint="give one of them")
    if at is not None and (injected or audit):
        raise MemtoolError(
            f"--at and --{'audit' if audit else 'injected'} do not go together",
            hint="the ledger knows moments, not revisions: leave --at out",
        )
    if audit:
        return _audit(context, id, limit, since, kind)
    return _injections(context, id, limit) if injected else _history(context, id, at, limit)


def logs(
    tree: Tree, events: Sequence[LogEntry], wanted: Iterable[str], limit: int
) -> Iterator[Log]:
    """Yield the log of each of some memories of a tree; `events` are those of all, newest first."""
    by_id: dict[str, list[tuple[int, LogEntry]]] = {}
    for number, event in enumerate(events):
        by_id.setdefault(event.id, []).append((number, event))
    lineage = tree.lineage.as_proposed
    for id_ in wanted:
        todo, names = [id_, *lineage.predecessors(id_), *lineage.successors(id_)], set[str]()
        while todo:  # what was renamed has events under its older names, too
            name = todo.pop()
            if name not in names:
                names.add(name)
                older = (event.details.get("from_id") for _at, event in by_id.get(name, ()))
                todo += [each for each in older if isinstance(each, str)]
        rows = sorted(
            (row for name in names for row in by_id.get(name, ())), key=lambda row: row[0]
        )
        shown = tuple(event for _number, event in rows[:limit])
        yield Log(id_, False, len(rows) > limit, shown)


def render(log: Log) -> str:
    """Return one line per event: date, commit, what happened to which memory, and who did it.

    An injection is a line with its moment, the hash of the prompt, tier, score, memory and reason,
    an act one with its moment, kind, outcome, subjects and detail.
    """
    about = f" {log.id}" if log.id else ""
    first = []
    if log.audit is not None:
        rows = [_audit_cells(row) for row in log.audit]
        nothing = f"the audit holds nothing {f'about {log.id}' if log.id else 'of that'}"
        more = "--limit 0 shows all"
    elif log.injections is not None:
        rows = [_injection_cells(row) for row in log.injections]
        nothing = f"{log.id} was never injected here" if about else "nothing was injected here yet"
        more = f"memtool log{about} --injected --limit 0"
    else:
        first = [f"{log.id} is no longer in the tree"] if log.removed else []
        rows = [_event_cells(event) for event in log.events]
        nothing = "no memory was ever committed here"
        more = f"memtool log{about} --limit 0"
    lines = [*first, *(columns(rows) or [nothing])]
    return "\n".join([*lines, f"more is there: {more}"] if log.more else lines)


def _event_cells(event: LogEntry) -> tuple[str, ...]:
    commit = event.commit[:SHORT] or (NOT_COMMITTED if event.kind != "unknown" else "shallow")
    return (event.date[:10], commit, event.kind, event.id, event.author, _details(event))


def _audit_cells(row: AuditRow) -> tuple[str, ...]:
    return (row.moment, row.kind, row.outcome, " ".join(row.subjects), row.detail)


def _injection_cells(row: InjectionRow) -> tuple[str, ...]:
    score = "" if row.score is None else f"{row.score:.3f}"
    prompt = row.prompt or "no prompt"
    return (row.moment, prompt, row.session, row.tier, score, row.id, row.reason)


def _details(event: LogEntry) -> str:
    change = Change(event.kind, event.id, event.title, event.path, event.details)
    reason = event.reason if event.details.get("reason") != event.reason else ""
    said = "; ".join(filter(None, (sentence(change), reason)))
    return f"{event.title} ({said})" if said and event.title else said or event.title


def _history(context: Context, id: str, at: str | None, limit: int) -> Log:
    """Return the events of git's history, and what is not committed."""
    tree = index.open(context, at, exact=True)
    head = tip(context.repository, at)
    pending = _pending(context, tree, head) if at is None else ()
    names: frozenset[str] | None = None
    wanted = ""
    with History(context.repository) as history:
        walk: Iterator[tuple[str, tuple[Touch, ...]]] = iter(())
        if id:
            traced, whole = _traced(context, tree, history, head, pending, id)
            wanted, names = traced.id, traced.names
            walk = iter(whole)
        elif head:
            walk = history.walk(head, context.directory)
        events: list[LogEntry] = []
        for event in _events(context, tree, history, walk, pending, names, limit):
            events.append(event)
            if limit and len(events) > limit:
                break
        if history.boundary and context.repository.is_partial:
            context.notes.append(
                "this clone is partial: it does not hold what came before, so that is not known; "
                "git fetch --refetch --no-filter brings it"
            )
        elif history.boundary:
            context.notes.append(
                "this clone is shallow: what is older than its boundary is not known, "
                "git fetch --unshallow brings it"
            )
    titles = {event.id: (event.title, event.path) for event in events if event.title}
    mask = Mask(context.settings)
    some = events[:limit] if limit else events
    shown = tuple(_masked(_titled(event, tree, titles), mask) for event in some)
    return Log(wanted, bool(wanted) and traced.is_removed, len(events) > len(shown), shown)


def _masked(event: LogEntry, mask: Mask) -> LogEntry:
    """Return an event in whose words no secret stands: history is not what the index masks."""
    return event.replace(
        title=mask.line(event.title),
        details=mask.details(event.details),
        subject=mask.line(event.subject),
        reason=mask.line(event.reason),
    )


def _titled(event: LogEntry, tree: Tree, titles: Mapping[str, tuple[str, str]]) -> LogEntry:
    """Give an event that came without them the title and path of now, or else of another event."""
    if event.title and event.path:
        return event
    record = tree.get(event.id)
    title, path = titles.get(event.id, ("", ""))
    if record is not None:
        title, path = record.memory.title, record.path
    return event.replace(title=event.title or title, path=event.path or path)


def _traced(
    context: Context,
    tree: Tree,
    history: History,
    head: str,
    pending: tuple[Change, ...],
    id: str,
) -> tuple[Trace, Walk]:
    """Find a memory and all ids of its story, and the commits that changed one of them.

    What a memory is called and replaces now is known; history is asked about renamed and removed
    ones. Where these lead to further ids of the tree, it is walked again.
    """
    known = set(tree.ids)
    names = _lineage(tree, id)
    while True:
        away = known - names

        def is_wanted(path: str, away: set[str] = away) -> bool:
            return stem(path) not in away

        walk = history.walk(head, context.directory, is_wanted) if head else ()
        whole = [(commit, _memories(context, touches)) for commit, touches in walk]
        traced = trace(tree, whole, pending, context.settings.categories, id)
        if traced.names.isdisjoint(away):
            return traced, whole
        names |= traced.names


def _lineage(tree: Tree, id: str) -> set[str]:
    """Return the ids that a memory of a tree replaces or is replaced by, and its own."""
    try:
        name = tree.find(id).id
    except MemtoolError:
        return set()
    lineage = tree.lineage.as_proposed
    return {name, *lineage.successors(name), *lineage.predecessors(name)}


def _memories(context: Context, touches: tuple[Touch, ...]) -> tuple[Touch, ...]:
    return tuple(
        touch
        for touch in touches
        if snapshot.is_memory_path(touch.path, context.directory)
        or snapshot.is_memory_path(touch.old_path, context.directory)
    )


def _pending(context: Context, tree: Tree, head: str) -> tuple[Change, ...]:
    if head and not tree.problems and versions.is_committed(tree, head):
        return ()
    stored = context.snapshot(head) if head else None
    return compare(*versions.uncommitted(tree, stored, context.settings.categories))


def _events(
    context: Context,
    tree: Tree,
    history: History,
    walk: Iterator[tuple[str, tuple[Touch, ...]]],
    pending: tuple[Change, ...],
    names: frozenset[str] | None,
    limit: int,
) -> Iterator[LogEntry]:
    """Yield events newest first; `names` limits them to some ids.

    A `limit` of more than 0 says how many are likely to be taken.
    """
    yield from (_event(c) for c in pending if names is None or c.id in names)
    first = min(limit + 1, READ_AT_ONCE) if limit else READ_AT_ONCE
    for batch in _batches(context, walk, names, first):
        stamps = [stamp for _commit, touches in batch for stamp in stamps_of(touches)]
        records = tree.with_ids({stem(path) for path, _oid in stamps})
        held = {(record.path, record.oid): record.memory for record in records}
        read = versions.of_stamps(context.repository, stamps, context.settings.categories, held)
        for commit, touches in batch:
            if commit in history.boundary:
                for touch in touches:
                    if touch.oid:
                        title = read[touch.path, touch.oid].title
                        yield LogEntry("unknown", stem(touch.path), title, touch.path, {})
                continue
            for change in _compared(touches, read):
                if names is None or change.id in names:
                    yield _event(change, history.commit(commit))


def _batches(
    context: Context,
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
            for touch in _memories(context, touches)
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


def _event(change: Change, commit: Commit | None = None) -> LogEntry:
    entry = LogEntry(change.kind, change.id, change.title, change.path, change.details)
    if commit is None:
        return entry
    return entry.replace(
        commit=commit.id,
        author=commit.author,
        date=commit.date,
        subject=commit.subject,
        reason=commit.trailer("Reason"),
    )


def _audit(context: Context, id: str, limit: int, since: str, kind: tuple[str, ...]) -> Log:
    """Return the acts on one subject, or on all; a limit of 0 means no limit.

    Raises:
        MemtoolError: there is no such kind, or the ledger cannot be read.
    """
    for name in kind:
        if name not in usage_log.KINDS:
            near = ids.nearest(name, list(usage_log.KINDS))
            raise MemtoolError(
                f"the audit has no kind {name!r}",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else f"the kinds are {', '.join(usage_log.KINDS)}",
            )
    begin = context.clock.moment(since) if since else None
    usage_log.tell_cut_off(context)
    _filters.take_over(context, "acts are not shown")
    found = [
        act
        for act in _acts(context)
        if (not kind or act.kind in kind)
        and (begin is None or act.moment >= begin)
        and (not id or any(subject.startswith(id) for subject in act.subjects))
    ]
    shown = found[:limit] if limit else found
    rows = tuple(
        AuditRow(timestamps.render(act.moment), act.kind, act.outcome, act.subjects, act.detail)
        for act in shown
    )
    return Log(id, False, len(found) > len(shown), (), audit=rows)


def _acts(context: Context) -> list[Act]:
    """Return every act, newest first: of the ledger, and what only the plain file still knows."""
    directory = context.repository.cache_dir
    acts: list[Act] = []
    try:
        with ledger.reading(directory) as stored:
            acts += stored.acts()
    except MemtoolError as error:
        context.notes.append(f"the audit is that of {usage_log.LASTING_FILE} alone: {error}")
    known = {act.operation for act in acts}
    acts += [
        Act(one.moment, one.kind, one.phase, one.subjects, one.detail, one.operation)
        for one in usage_log.lasting(directory)
        if one.operation not in known
    ]
    return sorted(acts, key=lambda act: (-act.moment, act.operation))


def _injections(context: Context, id: str, limit: int) -> Log:
    """Return the injections of one memory, or of all; a limit of 0 means no limit.

    Raises:
        MemtoolError: neither the tree nor the ledger knows the id, or several ids begin so.
    """
    _filters.take_over(context, "answers are not shown")
    tree = index.open(context, exact=True)
    most = limit + 1 if limit else 0
    with ledger.reading(context.repository.cache_dir) as stored:
        wanted, found = id, stored.injections(id, most)
        if id and not found:  # perhaps the beginning of an id, perhaps never injected
            wanted = tree.find(id).id
            found = stored.injections(wanted, most)
    shown = found[:limit] if limit else found
    rows = tuple(
        InjectionRow(
            **{name: getattr(one, name) for name in InjectionRow.field_names}
            | {"moment": timestamps.render(one.moment)}
        )
        for one in shown
    )
    is_removed = bool(wanted) and wanted not in tree
    return Log(wanted, is_removed, len(found) > len(shown), (), injections=rows)
