"""`memtool log`: the history of memories from git, and two tables from the ledger of this clone.

`--injected` shows what agents were shown, `--audit` acts that git does not record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from memtool.commands import _filters
from memtool.commands._layout import Layout, measure
from memtool.commands._render import format_authors, format_changes, format_commit
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import ids, timestamps
from memtool.memory.changes import Change, Detail, Version, compare, describe_change, id_from_path
from memtool.redaction.mask import Mask
from memtool.store import ledger, snapshot, usage_log, versions
from memtool.store.context import Context
from memtool.store.git import Touch
from memtool.store.history import Commit, History, Trace, Walk, resolve_tip, trace
from memtool.store.ledger import Act
from memtool.store.messages import filter_trailers, find_reason
from memtool.store.tree import Tree
from memtool.store.versions import Stamp, list_stamps
from memtool.value import Value

MAX_FILES_PER_BATCH = 500
NOT_COMMITTED = "not committed"


class LogEntry(Value):
    """One change of one memory and its commit; `commit` is "" if it is not committed.

    Commit, author and date are also "" if a shallow clone lacks them. `reason` is the commit's
    `Reason:` trailer. `pull_request`, such as `#12`, and `co_authors` are set if the commit names
    them.
    """

    json_optional = "pull_request co_authors"

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
    pull_request: str = ""
    co_authors: tuple[str, ...] = ()


class AuditRow(Value):
    """One act: when it began, and its outcome: running, done, refused or interrupted.

    `subjects` are ids of memories, findings and sessions, or paths. `detail` is a reason, the code
    of the error that refused it, or a count.
    """

    moment: str
    kind: str
    outcome: str
    subjects: tuple[str, ...]
    detail: str


class InjectionRow(Value):
    """A memory of a block that an agent got; `prompt` is the hash of the prompt.

    `score` is None if the memory was not found by a search.
    """

    moment: str
    id: str
    tier: str
    score: float | None
    reason: str
    prompt: str
    session: str


class Log(Value):
    """Events, newest first. `id` is empty for the log of all memories.

    `removed` if the memory is no longer in the tree, `has_more` if the limit cut rows off.
    `injections` or `audit` replace the events if they were requested.
    """

    json_names = (("has_more", "more"),)
    json_optional = "injections audit"

    id: str
    removed: bool
    has_more: bool
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
    """Show the history of a memory and those it replaced, or of all, newest first.

    What is shown:
        (nothing)    changes of memories: added, superseded, confirmed, edited and so on
        --injected   what agents were shown in this clone: when, why, and for which prompt (a hash)
        --audit      what was done in this clone: promotions, deletions, redactions, captures, ...

    Example:
        memtool log dec-2g54
        memtool log --audit --since 30d --kind purge

    Args:
        id: a memory, by id or words; without one, all memories
        at: a revision instead of the worktree
        injected: show what agents were shown
        audit: show what was done in this clone
        since: with --audit, only from this date or age on, such as 30d
        kind: with --audit, only this kind, such as forget; may be repeated
        limit: the number of events, 0 for all
    """
    if (since or kind) and not audit:
        raise MemtoolError("--since and --kind are for --audit", hint="memtool log --audit")
    if injected and audit:
        raise MemtoolError(
            "--injected and --audit exclude each other", hint="leave out one of them"
        )
    if at is not None and (injected or audit):
        raise MemtoolError(
            f"--at and --{'audit' if audit else 'injected'} exclude each other",
            hint="leave out --at: the ledger has no revisions",
        )
    if audit:
        return _read_audit(context, id, limit, since, kind)
    return (
        _read_injections(context, id, limit) if injected else _read_history(context, id, at, limit)
    )


def build_logs(
    tree: Tree, events: Sequence[LogEntry], wanted: Iterable[str], limit: int
) -> Iterator[Log]:
    """Yield the log of each wanted memory; `events` are those of the whole tree, newest first."""
    by_id: dict[str, list[tuple[int, LogEntry]]] = {}
    for number, event in enumerate(events):
        by_id.setdefault(event.id, []).append((number, event))
    lineage = tree.lineage.as_proposed
    for id_ in wanted:
        todo, names = (
            [id_, *lineage.find_predecessors(id_), *lineage.find_successors(id_)],
            set[str](),
        )
        while todo:  # older names have events as well
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


def render(log: Log, layout: Layout) -> str:
    """Return a line per commit and its changes below, or a table of injections or acts."""
    about = f" {layout.short(log.id)}" if log.id else ""
    if log.audit is not None:
        rows = [*_format_notes([_format_act(row, layout) for row in log.audit], layout)]
        nothing = f"the audit has nothing about {log.id}" if log.id else "the audit has no such act"
        command = "memtool log --audit --limit 0"
    elif log.injections is not None:
        rows = [*_format_notes([_format_injection(row, layout) for row in log.injections], layout)]
        nothing = (
            f"{about.strip()} was never injected here" if about else "nothing was injected yet"
        )
        command = f"memtool log{about} --injected --limit 0"
    else:
        rows = [f"{log.id} is no longer in the tree"] if log.removed else []
        # Neither uncommitted changes nor those beyond a shallow clone's boundary have a commit.
        for _key, events in groupby(log.events, key=lambda e: (e.commit, e.kind == "unknown")):
            rows += _format_commit(list(events), layout)
        nothing = "no memory was ever committed here"
        command = f"memtool log{about} --limit 0"
    if not rows:
        layout.report(nothing)
    return "\n".join([*rows, layout.hint(f"and more ({command})")] if log.has_more else rows)


def _format_commit(events: Sequence[LogEntry], layout: Layout) -> list[str]:
    """Return a commit, and below it a row for each change of a memory."""
    first = events[0]
    heading = f"{format_commit(first)}  {first.subject}".rstrip()
    if not first.commit:
        heading = "not in this clone" if first.kind == "unknown" else NOT_COMMITTED
    who = ", ".join(filter(None, (format_authors(first), layout.when(first.date))))
    rows = [
        (
            event.kind,
            layout.short(event.id),
            event.title or layout.title(event.id),
            layout.shorten(_format_details(event)),
        )
        for event in events
    ]
    reason = [f"  {first.reason}"] if first.reason else []
    return [
        *layout.title_line(heading, who),
        *reason,
        *format_changes(layout, rows, "  "),
    ]


def _format_notes(notes: Sequence[tuple[tuple[str, ...], str]], layout: Layout) -> Iterator[str]:
    """Yield cells and details of notes of the ledger; details are below if there is no room."""
    if not layout.width:
        yield from layout.table([(*cells, details) for cells, details in notes], title=2)
        return
    lines = layout.table([cells for cells, _details in notes], title=2)
    for line, (_cells, details) in zip(lines, notes, strict=True):
        whole = f"{line}  {details}".rstrip()
        if measure(whole) <= layout.width:
            yield whole
        else:
            yield line
            yield from layout.wrap(details, "    ")


def _format_act(row: AuditRow, layout: Layout) -> tuple[tuple[str, ...], str]:
    subjects = " ".join(map(layout.short, row.subjects))
    details = ": ".join(filter(None, (subjects, layout.shorten(row.detail))))
    return (_format_moment(row.moment, layout), row.kind, row.outcome), details


def _format_injection(row: InjectionRow, layout: Layout) -> tuple[tuple[str, ...], str]:
    moment = _format_moment(row.moment, layout)
    score = "" if row.score is None else f"{row.score:.3f}"
    session = f"session {row.session}" * bool(row.session)
    prompt = f"prompt {row.prompt}" if row.prompt else "no prompt"
    details = "; ".join(filter(None, (layout.shorten(row.reason), session, prompt)))
    return (moment, layout.short(row.id), layout.title(row.id), row.tier, score), details


def _format_moment(moment: str, layout: Layout) -> str:
    """Return the age of a note on a terminal, its second in a pipe."""
    return layout.when(moment) if layout.width else moment


def _format_details(event: LogEntry) -> str:
    """Return what the kind of an event does not say already."""
    if event.kind == "superseded":
        return ""  # by the memory that the same commit added
    details = {name: value for name, value in event.details.items() if name != "supersedes"}
    change = Change(event.kind, event.id, event.title, event.path, details)
    reason = "" if event.details.get("reason") != event.reason else event.reason
    description = describe_change(change)
    return description.removesuffix(reason).removesuffix("; ") if reason else description


def _read_history(context: Context, id: str, at: str | None, limit: int) -> Log:
    """Return the uncommitted changes, then the events of git's history."""
    tree = index.open(context, at, exact=True)
    head = resolve_tip(context.repository, at)
    pending = _find_pending(context, tree, head) if at is None else ()
    names: frozenset[str] | None = None
    wanted = ""
    with History(context.repository) as history:
        walk: Iterator[tuple[str, tuple[Touch, ...]]] = iter(())
        if id:
            traced, commits = _trace_lineage(context, tree, history, head, pending, id)
            wanted, names = traced.id, traced.names
            walk = iter(commits)
        elif head:
            walk = history.walk(head, context.directory)
        events: list[LogEntry] = []
        for event in _read_events(context, tree, history, walk, pending, names, limit):
            events.append(event)
            if limit and len(events) > limit:
                break
        if history.boundary and context.repository.is_partial:
            context.notes.append(
                "this clone is partial, so older changes are unknown: "
                "git fetch --refetch --no-filter"
            )
        elif history.boundary:
            context.notes.append(
                "this clone is shallow, so older changes are unknown: git fetch --unshallow"
            )
    titles = {event.id: (event.title, event.path) for event in events if event.title}
    mask = Mask(context.settings)
    limited = events[:limit] if limit else events
    shown = tuple(_mask_event(_with_title(event, tree, titles), mask, tree) for event in limited)
    return Log(wanted, bool(wanted) and traced.is_removed, len(events) > len(shown), shown)


def _mask_event(event: LogEntry, mask: Mask, tree: Tree) -> LogEntry:
    """Mask secrets in the texts of an event: old versions are not masked by the index."""
    record = tree.get(event.id)
    is_current = record is not None and record.memory.title == event.title  # masked already
    return event.replace(
        title=event.title if is_current else mask.line(event.title),
        details=mask.details(event.details),
        subject=mask.line(event.subject),
        co_authors=tuple(map(mask.line, event.co_authors)),
        reason=mask.line(event.reason),
    )


def _with_title(event: LogEntry, tree: Tree, titles: Mapping[str, tuple[str, str]]) -> LogEntry:
    """Add missing title and path to an event: today's, else those of another event."""
    if event.title and event.path:
        return event
    record = tree.get(event.id)
    title, path = titles.get(event.id, ("", ""))
    if record is not None:
        title, path = record.memory.title, record.path
    return event.replace(title=event.title or title, path=event.path or path)


def _trace_lineage(
    context: Context,
    tree: Tree,
    history: History,
    head: str,
    pending: tuple[Change, ...],
    id: str,
) -> tuple[Trace, Walk]:
    """Find a memory with all ids of its lineage, and the commits that changed any of them.

    The tree has the current lineage; history adds renamed and removed memories. If these lead to
    further ids of the tree, history is walked again.
    """
    all_ids = set(tree.ids)
    names = _find_lineage(tree, id)
    while True:
        excluded = all_ids - names

        def is_wanted(path: str, away: set[str] = excluded) -> bool:
            return id_from_path(path) not in away

        walk = history.walk(head, context.directory, is_wanted) if head else ()
        commits = [(commit, _filter_memories(context, touches)) for commit, touches in walk]
        traced = trace(tree, commits, pending, context.settings.categories, id)
        if traced.names.isdisjoint(excluded):
            return traced, commits
        names |= traced.names


def _find_lineage(tree: Tree, id: str) -> set[str]:
    """Return the ids that a memory replaces or is replaced by, and its own."""
    try:
        name = tree.find(id).id
    except MemtoolError:
        return set()
    lineage = tree.lineage.as_proposed
    return {name, *lineage.find_successors(name), *lineage.find_predecessors(name)}


def _filter_memories(context: Context, touches: tuple[Touch, ...]) -> tuple[Touch, ...]:
    return tuple(
        touch
        for touch in touches
        if snapshot.is_memory_path(touch.path, context.directory)
        or snapshot.is_memory_path(touch.old_path, context.directory)
    )


def _find_pending(context: Context, tree: Tree, head: str) -> tuple[Change, ...]:
    if head and not tree.problems and versions.is_committed(tree, head):
        return ()
    stored = context.snapshot(head) if head else None
    return compare(*versions.find_uncommitted(tree, stored, context.settings.categories))


def _read_events(
    context: Context,
    tree: Tree,
    history: History,
    walk: Iterator[tuple[str, tuple[Touch, ...]]],
    pending: tuple[Change, ...],
    names: frozenset[str] | None,
    limit: int,
) -> Iterator[LogEntry]:
    """Yield events, newest first; `names` limits them to some ids.

    `limit` only sets the size of the first batch, 0 for a full one.
    """
    yield from (_build_entry(c) for c in pending if names is None or c.id in names)
    first = min(limit + 1, MAX_FILES_PER_BATCH) if limit else MAX_FILES_PER_BATCH
    for batch in _split_batches(context, walk, names, first):
        stamps = [stamp for _commit, touches in batch for stamp in list_stamps(touches)]
        records = tree.with_ids({id_from_path(path) for path, _oid in stamps})
        memories_by_blob = {(record.path, record.oid): record.memory for record in records}
        read = versions.read_stamps(
            context.repository, stamps, context.settings.categories, memories_by_blob
        )
        for commit, touches in batch:
            if commit in history.boundary:
                for touch in touches:
                    if touch.oid:
                        title = read[touch.path, touch.oid].title
                        yield LogEntry("unknown", id_from_path(touch.path), title, touch.path, {})
                continue
            for change in _compare_touches(touches, read):
                if names is None or change.id in names:
                    yield _build_entry(change, history.commit(commit))


def _split_batches(
    context: Context,
    walk: Iterator[tuple[str, tuple[Touch, ...]]],
    names: frozenset[str] | None,
    max_touches: int,
) -> Iterator[Walk]:
    """Group commits so that their files are read together; `max_touches` bounds the first batch."""
    batch: Walk = []
    size = 0
    for commit, touches in walk:
        wanted = tuple(
            touch
            for touch in _filter_memories(context, touches)
            if names is None
            or id_from_path(touch.path) in names
            or id_from_path(touch.old_path) in names
        )
        if wanted:
            batch.append((commit, wanted))
            size += len(wanted)
        if size >= max_touches:
            yield batch
            batch, size, max_touches = [], 0, MAX_FILES_PER_BATCH
    if batch:
        yield batch


def _compare_touches(
    touches: tuple[Touch, ...], read: Mapping[Stamp, Version]
) -> tuple[Change, ...]:
    before = [read[t.old_path, t.old_oid] for t in touches if t.old_oid]
    after = [read[t.path, t.oid] for t in touches if t.oid]
    paired = {t.path: t.old_path for t in touches if t.path != t.old_path}
    return compare(before, after, paired)


def _build_entry(change: Change, commit: Commit | None = None) -> LogEntry:
    entry = LogEntry(change.kind, change.id, change.title, change.path, change.details)
    if commit is None:
        return entry
    return entry.replace(
        commit=commit.id,
        author=commit.author,
        date=commit.date,
        subject=commit.subject,
        reason=find_reason(filter_trailers(commit.trailers, [change.id])),
        pull_request=commit.pull_request,
        co_authors=commit.co_authors,
    )


def _read_audit(context: Context, id: str, limit: int, since: str, kind: tuple[str, ...]) -> Log:
    """Return the acts on one subject, or on all; a `limit` of 0 means no limit.

    Raises:
        MemtoolError: the kind is unknown, or the ledger cannot be read.
    """
    for name in kind:
        if name not in usage_log.KINDS:
            suggestions = ids.find_nearest(name, list(usage_log.KINDS))
            raise MemtoolError(
                f"unknown kind {name!r}",
                hint=f"did you mean {' or '.join(suggestions)}?"
                if suggestions
                else f"the kinds are {', '.join(usage_log.KINDS)}",
            )
    begin = context.clock.parse_moment(since) if since else None
    usage_log.report_interrupted(context)
    _filters.fold_usage_log(context, "acts are not shown")
    acts = [
        act
        for act in _read_acts(context)
        if (not kind or act.kind in kind)
        and (begin is None or act.moment >= begin)
        and (not id or any(subject.startswith(id) for subject in act.subjects))
    ]
    shown = acts[:limit] if limit else acts
    rows = tuple(
        AuditRow(timestamps.render(act.moment), act.kind, act.outcome, act.subjects, act.detail)
        for act in shown
    )
    return Log(id, False, len(acts) > len(shown), (), audit=rows)


def _read_acts(context: Context) -> list[Act]:
    """Return every act, newest first: those of the ledger, and older ones of the plain file."""
    directory = context.repository.cache_dir
    acts: list[Act] = []
    try:
        with ledger.open_ledger(directory) as stored:
            acts += stored.acts()
    except MemtoolError as error:
        context.notes.append(f"the audit is only that of {usage_log.LASTING_FILE}: {error}")
    operations = {act.operation for act in acts}
    acts += [
        Act(act.moment, act.kind, act.phase, act.subjects, act.detail, act.operation)
        for act in usage_log.read_lasting_events(directory)
        if act.operation not in operations
    ]
    return sorted(acts, key=lambda act: (-act.moment, act.operation))


def _read_injections(context: Context, id: str, limit: int) -> Log:
    """Return the injections of one memory, or of all; a `limit` of 0 means no limit.

    Raises:
        MemtoolError: the id is unknown to tree and ledger, or the beginning of several ids.
    """
    _filters.fold_usage_log(context, "answers are not shown")
    tree = index.open(context, exact=True)
    max_rows = limit + 1 if limit else 0
    with ledger.open_ledger(context.repository.cache_dir) as stored:
        wanted, injections = id, stored.injections(id, max_rows)
        if id and not injections:  # may be a prefix, or never injected
            wanted = tree.find(id).id
            injections = stored.injections(wanted, max_rows)
    shown = injections[:limit] if limit else injections
    rows = tuple(
        InjectionRow(
            **{name: getattr(injection, name) for name in InjectionRow.field_names}
            | {"moment": timestamps.render(injection.moment)}
        )
        for injection in shown
    )
    is_removed = bool(wanted) and wanted not in tree
    return Log(wanted, is_removed, len(injections) > len(shown), (), injections=rows)
