"""`memtool stats`: sizes, latencies, and which memories are used."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from memtool.commands import _filters
from memtool.commands._layout import Layout
from memtool.commands._render import format_size
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import timestamps, visibility
from memtool.search import picks
from memtool.sessions import retention, store
from memtool.store import ledger, usage_log
from memtool.store.context import Context
from memtool.store.ledger import (
    Act,
    CacheUse,
    Health,
    Latency,
    Ledger,
    LockWaits,
    UsageCount,
    WarningUse,
)
from memtool.store.tree import Tree
from memtool.store.usage_log import INTERRUPTED
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.sessions.traces import FailureTrace

PART_BY_FOLDER: dict[str, str] = {
    "index": "index",
    "sessions": "sessions",
    "spool": "ledger",
    "intents": "ledger",
}
"""The part that a folder of memtool's directory counts for; others count as `OTHER_PART`."""
OTHER_PART = "caches"
WRITING_VERBS = (
    "new",
    "remember",
    "supersede",
    "confirm",
    "pin",
    "unpin",
    "deprecate",
    "archive",
    "tag",
    "forget",
    "restore",
    "undo",
    "purge",
    "resolve",
    "promote",
    "curate",
    "digest",
    "import",
    "migrate",
    "sign",
)
"""The verbs that write memories or their signatures, and may commit them."""


class Size(Value):
    """Files and bytes of one part of memtool's data."""

    part: str
    files: int
    bytes: int


class SessionSizes(Value):
    """The size of private sessions, and their share of the limit sessions.total_mb."""

    sessions: int
    open: int
    damaged: int
    bytes: int
    limit_bytes: int
    share: float


class UseRow(Value):
    """A memory, how many answers showed it, and when last; `title` is "" if unknown."""

    id: str
    title: str
    count: int
    last: str


class MissedSearch(Value):
    """A search without results, how often, and when last.

    `words` is its redacted text if the setting ledger.words is on, else "", and `hash` names it.
    """

    words: str
    hash: str
    count: int
    last: str


class DecisionUse(Value):
    """The decisions in use, and those that no answer has shown: how many, and the newest ids."""

    total: int
    never_shown: int
    ids: tuple[str, ...]


class LastInjection(Value):
    """The newest answer that gave an agent memories: its moment, and their ids in order."""

    moment: str
    ids: tuple[str, ...]


class Stats(Value):
    """Current sizes and counts; usage from the ledger, which goes back to `since`.

    `answers` counts answers that the ledger has in detail. `since` is None if it is empty.
    """

    json_fields = (
        "memories types categories statuses superseded sizes sessions since answers latencies "
        "depths most_accessed most_injected health audit interrupted still_holds cache locks "
        "writes last_injected warnings decisions missed traces"
    )

    memories: int
    types: dict[str, int]
    categories: dict[str, int]
    statuses: dict[str, int]
    superseded: int
    sizes: tuple[Size, ...]
    sessions: SessionSizes
    since: str | None
    answers: int
    latencies: tuple[Latency, ...]
    depths: dict[str, int]
    """Questions answered by each level: digest, memory, session, or none."""
    most_accessed: tuple[UseRow, ...]
    most_injected: tuple[UseRow, ...]
    health: Health
    """Latency of the last prompts and searches."""
    audit: dict[str, int]
    """Acts in the audit, by kind."""
    interrupted: int
    """Acts that did not finish."""
    still_holds: dict[str, int]
    """How often `confirm --still-holds` overruled a drift rule, by rule: gone, lines, name.

    A rule that is wrong more often than right should go."""
    cache: CacheUse
    """How often answers found, updated or built the search index, or met a damaged cache."""
    locks: LockWaits
    """How long answers waited for locks of other processes."""
    writes: Latency | None
    """Latency of verbs that write memories, including their commits."""
    last_injected: LastInjection | None
    warnings: WarningUse
    """Answers about files that an agent edits, and how often it edited after one."""
    decisions: DecisionUse
    missed: tuple[MissedSearch, ...]
    """Searches without results, most frequent first."""
    has_all_rows: bool = False
    """Whether the text has every row."""
    traces: tuple[FailureTrace, ...] | None = None
    """With --traces: failures in captured sessions, and how many runs it took to fix them."""


def stats(
    context: Context,
    *,
    all: bool = False,
    at: str | None = None,
    limit: int = 10,
    traces: bool = False,
) -> Stats:
    """Show sizes, response times, and which memories are used.

    The numbers are those of this clone:
        latency   median and 95th percentile of the last 1,000 calls of each verb
        health    of the last 100 searches: degraded if the 95th percentile is over 300 ms
        accesses  how often search, show and inject showed a memory
        warnings  at edits of files, and how often the session went on to edit
        traces    failed commands of sessions, how many runs a fix took, and how often it came back

    Example:
        memtool stats
        memtool stats --traces

    Args:
        all: show every figure, not only those of one screen
        at: count the memories of a revision instead of the worktree
        limit: the number of memories and traces to list, 0 for all
        traces: also show what failed in sessions
    """
    max_rows = _filters.all_if_zero(limit)
    if at is None and not context.repository.is_bare:
        context.project.refuse_absent()
    directory = context.repository.cache_dir
    usage_log.report_interrupted(context)
    _filters.fold_usage_log(context)
    with ledger.open_ledger(directory) as usage:
        answers, since = usage.answers()
        latencies, depths = tuple(usage.latencies()), usage.depths()
        accessed, injected = usage.most_shown("", max_rows), usage.most_injected(max_rows)
        acts = usage.acts()
        caching, locks = usage.cache_use(), usage.lock_waits()
        writes, last_injected = usage.combined_latency(WRITING_VERBS), _find_last_injection(usage)
        warnings, shown_ids = usage.warning_use(), usage.shown_ids()
        missed = _list_missed(usage, max_rows, has_words=usage_log.has_words(context))
    stored = _measure_stored(directory)  # before an index is built to count the memories
    tree = index.open(context, at, exact=True)
    trees = _open_shown_trees(context, tree)
    return Stats(
        memories=tree.count,
        types=tree.count_by("type"),
        categories=tree.count_by("category"),
        statuses=tree.count_by("status"),
        superseded=len(tree.with_ids(tree.lineage.superseded_by.keys())),
        sizes=(_measure_memories(tree), *stored),
        sessions=_measure_sessions(context),
        since=None if since is None else timestamps.render(since),
        answers=answers,
        latencies=latencies,
        depths=depths,
        most_accessed=tuple(_build_use_row(row, trees) for row in accessed),
        most_injected=tuple(_build_use_row(row, trees) for row in injected),
        health=ledger.compute_health(directory),
        audit=dict(sorted(Counter(act.kind for act in acts).items())),
        interrupted=sum(act.outcome == INTERRUPTED for act in acts),
        still_holds=_count_still_holds(acts),
        cache=caching,
        locks=locks,
        writes=writes,
        last_injected=last_injected,
        warnings=warnings,
        decisions=_measure_decisions(context, tree, shown_ids, max_rows),
        missed=missed,
        has_all_rows=all,
        traces=_read_traces(context, tree)[: max_rows or None] if traces else None,
    )


def render(stats: Stats, layout: Layout) -> str:
    """Return the figures on one screen; with --all every latency, memory and cost."""
    counts_by_name = {
        "types": stats.types,
        "categories": stats.categories if stats.has_all_rows else {},
        "statuses": stats.statuses,
    }
    rows = [
        f"{format_count(stats.memories, 'memory', 'memories')}, {stats.superseded:,} superseded"
    ]
    for name, counts in counts_by_name.items():
        shown = ", ".join(f"{count:,} {label}" for label, count in counts.items())
        rows += layout.wrap(f"{name}: {shown}" * bool(shown))
    rows += [
        *layout.table(
            [
                (size.part, format_size(size.bytes), format_count(size.files, "file"))
                for size in stats.sizes
            ],
            title=2,
        ),
        *_format_sessions(stats.sessions),
    ]
    since = f"{format_count(stats.answers, 'answer')} since {layout.when(stats.since or '')}"
    rows += ["", since if stats.since else "no answer was noted yet"]
    rows += _format_latencies(stats, layout)
    for name, used in (("shown", stats.most_accessed), ("injected", stats.most_injected)):
        rows += _format_use(f"Most often {name}", used, stats, layout)
    rows += _format_missed(stats, layout)
    rows += _format_reach(stats, layout)
    if stats.has_all_rows:
        rows += _format_costs(stats, layout)
    rows += _format_traces(stats.traces)
    return "\n".join(rows if stats.has_all_rows else [*rows, "More: memtool stats --all"])


MAX_ROWS = {"latencies": 3, "memories": 5, "unseen": 3}
"""Rows of the text without --all: the slowest verbs, the memories that were shown most, and the ids
of decisions that were never shown."""


def _format_latencies(stats: Stats, layout: Layout) -> list[str]:
    """Return the slowest verbs, and the health of the search."""
    if not stats.latencies:
        return []
    slowest = sorted(stats.latencies, key=lambda row: -row.p95_ms)
    shown = slowest if stats.has_all_rows else slowest[: MAX_ROWS["latencies"]]
    rows = [
        (row.verb, f"{row.p50_ms:.1f} ms", f"{row.p95_ms:.1f} ms", f"{row.samples:,}")
        for row in shown
    ]
    heading = ("verb", "median", "95th percentile", "answers")
    return [*layout.table([heading, *rows], title=0), _format_health(stats.health)]


def _format_use(
    heading: str, used: Sequence[UseRow], stats: Stats, layout: Layout
) -> Iterator[str]:
    """Yield a heading and the memories that were used most; nothing if none were."""
    shown = used if stats.has_all_rows else used[: MAX_ROWS["memories"]]
    if shown:
        yield f"{heading}:"
        rows = [
            (
                layout.short(row.id),
                row.title,
                format_count(row.count, "time"),
                layout.when(row.last),
            )
            for row in shown
        ]
        yield from layout.table(rows, drop=(3,), indent="  ")


def _format_missed(stats: Stats, layout: Layout) -> Iterator[str]:
    """Yield the searches without a hit that have words; nothing if none has."""
    searches = [search for search in stats.missed if search.words]
    if searches:
        yield "Searches without a hit:"
        shown = searches if stats.has_all_rows else searches[: MAX_ROWS["memories"]]
        rows = [
            (search.words, format_count(search.count, "time"), layout.when(search.last))
            for search in shown
        ]
        yield from layout.table(rows, drop=(2,), indent="  ")


def _format_reach(stats: Stats, layout: Layout) -> Iterator[str]:
    """Yield what warnings led to, and which decisions no answer has shown."""
    warnings = stats.warnings
    if warnings.count:
        shown = format_count(warnings.count, "warning")
        yield f"{shown} at edits; an edit followed {warnings.edited_again:,} of them"
    use = stats.decisions
    if stats.since and use.never_shown:
        max_ids = len(use.ids) if stats.has_all_rows else MAX_ROWS["unseen"]
        ids = ", ".join(map(layout.short, use.ids[:max_ids]))
        count = format_count(use.total, "decision")
        yield from layout.wrap(f"{use.never_shown:,} of {count} never shown, such as {ids}")


def _measure_decisions(
    context: Context, tree: Tree, shown_ids: Collection[str], max_rows: int
) -> DecisionUse:
    """Return how many of the current decisions no answer has shown."""
    replaced = tree.lineage.superseded_by
    current = [
        record.id
        for record in picks.pick(tree, ("type", "decision"))
        if not visibility.find_objection(
            record.memory, replaced.get(record.id, ()), (), context.clock.now, tree.categories
        )
    ]
    unseen = [id_ for id_ in current if id_ not in shown_ids]
    return DecisionUse(len(current), len(unseen), tuple(unseen[:max_rows]))


def _list_missed(usage: Ledger, max_rows: int, *, has_words: bool) -> tuple[MissedSearch, ...]:
    rows = usage.missed_words(max_rows) if has_words else usage.missed_queries(max_rows)
    return tuple(
        MissedSearch(
            row.id if has_words else "",
            "" if has_words else row.id,
            row.count,
            timestamps.render(row.last),
        )
        for row in rows
    )


def _find_last_injection(usage: Ledger) -> LastInjection | None:
    newest = usage.last_injected()
    if not newest:
        return None
    return LastInjection(timestamps.render(newest[0][0]), tuple(id_ for _moment, id_ in newest))


def _format_costs(stats: Stats, layout: Layout) -> Iterator[str]:
    """Yield a line each on writes, the index, locks, levels, the last block and the audit."""
    yield ""
    for line in _list_costs(stats, layout):
        yield from layout.wrap(line)


def _list_costs(stats: Stats, layout: Layout) -> Iterator[str]:
    if stats.writes:
        writes = stats.writes
        yield (
            f"writes: median {writes.p50_ms:.1f} ms, 95th percentile {writes.p95_ms:.1f} ms "
            f"of {writes.samples:,}"
        )
    used = stats.cache
    if used.hit_share is not None:
        yield (
            f"index: current for {used.hit_share:.1%} of {format_count(used.answers, 'answer')}, "
            f"updated for {used.updates:,}, built for {used.rebuilds:,}"
        )
    if used.damaged:
        yield f"damaged caches: {format_count(used.damaged, 'answer')} rebuilt one"
    if stats.locks.waits:
        waits = format_count(stats.locks.waits, "answer")
        yield f"locks: {waits} waited, at most {stats.locks.longest_ms:.0f} ms"
    if stats.depths:
        counts = ", ".join(f"{count:,} {depth}" for depth, count in stats.depths.items())
        yield f"questions answered by level: {counts}"
    if stats.last_injected:
        ids = ", ".join(map(layout.short, stats.last_injected.ids))
        yield f"last injected {stats.last_injected.moment}: {ids}"
    if stats.audit:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in stats.audit.items())
        cut_off = f"; {stats.interrupted:,} interrupted" if stats.interrupted else ""
        yield f"audit: {counts}{cut_off}"
    if stats.still_holds:
        counts = ", ".join(f"{rule} {count:,}" for rule, count in stats.still_holds.items())
        yield f"drift overruled with --still-holds, by rule: {counts}"


def _count_still_holds(acts: Iterable[Act]) -> dict[str, int]:
    rules = (rule for act in acts if act.kind == "still-holds" for rule in act.detail.split())
    return dict(sorted(Counter(rules).items()))


def _read_traces(context: Context, tree: Tree) -> tuple[FailureTrace, ...]:
    from memtool.sessions import traces  # reads all sessions

    return traces.find_traces(context, store.open_sessions(context), tree)


def _format_traces(traces: tuple[FailureTrace, ...] | None) -> list[str]:
    """Return a paragraph for each trace; nothing without --traces."""
    if traces is None:
        return []
    rows = ["", "what failed in sessions" if traces else "nothing failed in a captured session"]
    for trace in traces:
        mended = "never mended"
        if trace.to_green is not None:
            mended = f"{trace.to_green:g} runs until it worked"
        came = f", regressions: {trace.regressions}" if trace.regressions else ""
        rows += [trace.signature, f"  {trace.command}"]
        sessions = format_count(trace.sessions, "session")
        runs = f"{format_count(trace.runs, 'failing run')} in {sessions}"
        rows.append(f"  {runs}, {mended}{came}")
        if trace.with_memory:
            means = [
                "-" if mean is None else f"{mean:g}"
                for mean in (trace.to_green_with_memory, trace.to_green_without)
            ]
            rows.append(
                f"  a memory of it was shown in {trace.with_memory} of {trace.attempts} attempts:"
                f" {means[0]} runs with it, {means[1]} without"
            )
    return rows


def _measure_sessions(context: Context) -> SessionSizes:
    sessions = store.open_sessions(context)
    now = retention.measure(sessions)
    is_open = sum(head.status == "open" for head in sessions.heads()[0])
    damaged = len(retention.find_damages(sessions, limit=0))
    share = round(now.share, 6)
    return SessionSizes(now.sessions, is_open, damaged, now.size, now.limit, share)


def _format_sessions(sizes: SessionSizes) -> list[str]:
    """Return a line on the sessions, if there are any."""
    if not sizes.sessions:
        return []
    states = [f"{sizes.open} open"] * bool(sizes.open)
    states += [f"{sizes.damaged} damaged: memtool doctor"] * bool(sizes.damaged)
    which = f" ({', '.join(states)})" if states else ""
    room = f"{format_size(sizes.bytes)} of {format_size(sizes.limit_bytes)}, {sizes.share:.1%}"
    return ["", f"{format_count(sizes.sessions, 'session')}{which}: {room}"]


def _format_health(health: Health) -> str:
    if health.p95_ms is None:
        return f"search: {health.state}"
    return f"search: {health.state}, p95 of the last {health.samples} is {health.p95_ms:.1f} ms"


def _open_shown_trees(context: Context, tree: Tree) -> list[Tree]:
    """Return the trees whose memories answers show, including the global one, if any."""
    try:
        return (
            [tree] if context.global_context is None else [tree, index.open(context.global_context)]
        )
    except MemtoolError:
        return [tree]


def _build_use_row(row: UsageCount, trees: Iterable[Tree]) -> UseRow:
    record = next((tree[row.id] for tree in trees if row.id in tree), None)
    title = record.memory.title if record else ""
    return UseRow(row.id, title, row.count, timestamps.render(row.last))


def _measure_memories(tree: Tree) -> Size:
    """Return the size of the memory files of a tree."""
    if tree.location.kind != "worktree":
        files = tree.location.list_files().read()
        sizes = [len(data) for _entry, data in files if isinstance(data, bytes)]
        return Size("memories", len(sizes), sum(sizes))
    top = tree.location.repository.top
    sizes = [_read_size(f"{top}/{path}") for path in tree.blobs]
    return Size("memories", len(sizes), sum(sizes))


def _measure_stored(directory: str) -> list[Size]:
    """Return the size of each part of memtool's directory."""
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for folder, _folders, names in os.walk(directory):
        first = os.path.relpath(folder, directory).partition(os.sep)[0]
        for name in names:
            is_ledger = first == "." and name.startswith("ledger.")
            part = "ledger" if is_ledger else PART_BY_FOLDER.get(first, OTHER_PART)
            files[part] += 1
            sizes[part] += _read_size(os.path.join(folder, name))
    return [Size(part, files[part], sizes[part]) for part in sorted(files)]


def _read_size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:  # deleted since it was listed
        return 0
