"""`memtool stats`: sizes, latencies, and which memories are used."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from memtool.commands import _filters
from memtool.commands._render import columns
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import timestamps
from memtool.sessions import retention, store
from memtool.store import ledger, usage_log
from memtool.store.context import Context
from memtool.store.ledger import Act, CacheUse, Counted, Health, Latency, Ledger, LockWaits
from memtool.store.tree import Tree
from memtool.store.usage_log import INTERRUPTED
from memtool.value import Value, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.sessions.traces import FailureTrace

PARTS: dict[str, str] = {
    "index": "index",
    "sessions": "sessions",
    "spool": "ledger",
    "intents": "ledger",
}
"""What a directory below memtool's own in the git directory is counted as."""
OTHER = "caches"
WRITING = (
    "new",
    "remember",
    "supersede",
    "confirm",
    "pin",
    "unpin",
    "deprecate",
    "archive",
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
_UNITS = ("B", "KiB", "MiB", "GiB")
_STEP = 1024


class Size(Value):
    """A part of what memtool keeps: how many files, and how many bytes in them."""

    part: str
    files: int
    bytes: int


class SessionSizes(Value):
    """What the private sessions take of the room that sessions.total_mb gives them."""

    sessions: int
    open: int
    damaged: int
    bytes: int
    limit_bytes: int
    share: float


class Used(Value):
    """A memory, how many answers showed it and the moment of the last; `title` may be unknown."""

    id: str
    title: str
    count: int
    last: str


class LastInjected(Value):
    """The newest answer that gave an agent memories: its moment, and their ids in order."""

    moment: str
    ids: tuple[str, ...]


class Stats(Value):
    """Sizes and counts as they are; the rest as far as the ledger goes back, to `since`.

    `answers` counts those that are kept in detail. `since` is None where nothing was noted yet.
    """

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
    """How many questions each level answered: digest, memory, session, or none."""
    most_accessed: tuple[Used, ...]
    most_injected: tuple[Used, ...]
    health: Health
    """How long the last questions took."""
    audit: dict[str, int]
    """How many acts of each kind the audit holds."""
    interrupted: int
    """Acts that were cut off before they ended."""
    still_holds: dict[str, int]
    """How often `confirm --still-holds` called a rule of drift wrong, by rule: gone, lines, name.

    A rule that is wrong more often than right is none."""
    cache: CacheUse
    """How answers found the search index, and how many came upon a damaged cache."""
    locks: LockWaits
    """How long answers waited while another process held a lock."""
    writes: Latency | None
    """How long the last answers of the verbs took that write memories, commits included."""
    last_injected: LastInjected | None
    traces: tuple[FailureTrace, ...] | None = None
    """With --traces: what failed in the captured sessions, and how long it took to mend it."""


def stats(
    context: Context, *, at: str | None = None, limit: int = 10, traces: bool = False
) -> Stats:
    """Show sizes, latencies, and which memories are used most.

    The health of the search is that of the last 100 prompts and searches: degraded where their 95th
    percentile is over 300 ms, healthy else, and too few answers below 20.

    A question is answered by digests, by memories, by private sessions, or by none of these.

    Latencies are those of the last 1,000 answers of each verb: the median and the 95th percentile,
    from the first line of memtool to the last byte of the answer; the start of Python is not in
    them. Of the last 10,000 answers it is counted how many found the search index as it was, had to
    update or to build it, came upon a damaged cache, or waited for a lock of another process.
    Writes are the verbs that write memories, with their commits. A memory is accessed where search,
    show or inject showed it. The ledger in the git directory is this clone's own; deleting it loses
    nothing but these figures.

    --traces adds what failed in the captured sessions of this clone: for each error signature and
    command the failing runs until it worked, how often it came back after that, and both for
    sessions that were shown an older memory of the signature. What came back most comes first.

    Example:
        memtool stats
        memtool stats --traces

    Args:
        at: count the memories of this revision instead of the worktree
        limit: how many of the most used memories, and traces, are listed, 0 for all
        traces: also show what failed in sessions, and how many runs it took to mend it
    """
    most = _filters.most_of(limit)
    if at is None and not context.repository.is_bare:
        context.project.refuse_absent()
    directory = context.repository.cache_dir
    usage_log.tell_cut_off(context)
    _filters.take_over(context)
    with ledger.reading(directory) as held:
        answers, since = held.answers()
        latencies, depths = tuple(held.latencies()), held.depths()
        accessed, injected = held.most("", most), held.most_injected(most)
        acts = held.acts()
        caching, locks = held.cache_use(), held.lock_waits()
        writes, last_injected = held.taken_together(WRITING), _last_injected(held)
    stored = _stored(directory)  # before an index is built to count the memories
    tree = index.open(context, at, exact=True)
    trees = _shown_here(context, tree)
    return Stats(
        memories=tree.count,
        types=tree.count_by("type"),
        categories=tree.count_by("category"),
        statuses=tree.count_by("status"),
        superseded=len(tree.with_ids(tree.lineage.superseded_by.keys())),
        sizes=(_memories(tree), *stored),
        sessions=_sessions(context),
        since=None if since is None else timestamps.render(since),
        answers=answers,
        latencies=latencies,
        depths=depths,
        most_accessed=tuple(_used(row, trees) for row in accessed),
        most_injected=tuple(_used(row, trees) for row in injected),
        health=ledger.health(directory),
        audit=dict(sorted(Counter(act.kind for act in acts).items())),
        interrupted=sum(act.outcome == INTERRUPTED for act in acts),
        still_holds=_still_holds(acts),
        cache=caching,
        locks=locks,
        writes=writes,
        last_injected=last_injected,
        traces=_traces(context, tree)[: most or None] if traces else None,
    )


def render(stats: Stats) -> str:
    """Return the figures as short tables, those without rows left out."""
    parts = [
        f"{plural(stats.memories, 'memory', 'memories')}, {stats.superseded} superseded",
        *(
            f"{name}: {', '.join(f'{count} {one}' for one, count in counts.items())}"
            for name, counts in (
                ("types", stats.types),
                ("categories", stats.categories),
                ("statuses", stats.statuses),
            )
            if counts
        ),
        "",
        *columns(
            (size.part, _bytes(size.bytes), f"{plural(size.files, 'file')}") for size in stats.sizes
        ),
        *_sessions_text(stats.sessions),
        "",
        f"{plural(stats.answers, 'answer')} since {stats.since}"
        if stats.since
        else "no answer was noted",
    ]
    if stats.latencies:
        rows = [
            (row.verb, f"{row.p50_ms:.1f} ms", f"{row.p95_ms:.1f} ms", f"{row.samples}")
            for row in stats.latencies
        ]
        parts += columns([("verb", "p50", "p95", "answers"), *rows])
        parts.append(_health_text(stats.health))
    parts += _costs_text(stats)
    if stats.depths:
        counts = ", ".join(f"{count} {depth}" for depth, count in stats.depths.items())
        parts.append(f"questions answered by level: {counts}")
    for name, used in (("accessed", stats.most_accessed), ("injected", stats.most_injected)):
        if used:
            parts += ["", f"most {name}"]
            parts += columns((f"{row.count}", row.last[:10], row.id, row.title) for row in used)
    if stats.audit:
        counts = ", ".join(f"{count} {kind}" for kind, count in stats.audit.items())
        cut_off = f"; {stats.interrupted} interrupted" if stats.interrupted else ""
        parts += ["", f"audit: {counts}{cut_off}"]
    if stats.still_holds:
        counts = ", ".join(f"{rule} {count}" for rule, count in stats.still_holds.items())
        parts.append(f"drift, confirmed with --still-holds by rule: {counts}")
    return "\n".join([*parts, *_traces_text(stats.traces)])


def _last_injected(held: Ledger) -> LastInjected | None:
    newest = held.last_injected()
    if not newest:
        return None
    return LastInjected(timestamps.render(newest[0][0]), tuple(id_ for _moment, id_ in newest))


def _costs_text(stats: Stats) -> list[str]:
    """Return a line each on writing, the cache, locks and the last block; of what there was."""
    rows = []
    if stats.writes:
        one = stats.writes
        rows.append(f"writes: p50 {one.p50_ms:.1f} ms, p95 {one.p95_ms:.1f} ms of {one.samples}")
    used = stats.cache
    if used.hit_share is not None:
        rows.append(
            f"index: {used.hit_share:.1%} of {plural(used.answers, 'answer')} found it as it was,"
            f" {used.updates} updated it, {used.rebuilds} built it"
        )
    if used.damaged:
        rows.append(f"damaged caches: {plural(used.damaged, 'answer')} made one anew")
    waited = stats.locks
    if waited.waits:
        rows.append(
            f"locks: {plural(waited.waits, 'answer')} waited, "
            f"{waited.longest_ms:.0f} ms at the longest"
        )
    if stats.last_injected:
        last = stats.last_injected
        rows.append(f"last injected {last.moment}: {', '.join(last.ids)}")
    return rows


def _still_holds(acts: Iterable[Act]) -> dict[str, int]:
    rules = (rule for act in acts if act.kind == "still-holds" for rule in act.detail.split())
    return dict(sorted(Counter(rules).items()))


def _traces(context: Context, tree: Tree) -> tuple[FailureTrace, ...]:
    from memtool.sessions import traces  # reads all sessions

    return traces.traces(context, store.opened(context), tree)


def _traces_text(traces: tuple[FailureTrace, ...] | None) -> list[str]:
    """Return a paragraph for each trace; nothing where nobody asked."""
    if traces is None:
        return []
    rows = ["", "what failed in sessions" if traces else "nothing failed in a captured session"]
    for one in traces:
        mended = "never mended"
        if one.to_green is not None:
            mended = f"{one.to_green:g} runs until it worked"
        came = f", regressions: {one.regressions}" if one.regressions else ""
        rows += [one.signature, f"  {one.command}"]
        runs = f"{plural(one.runs, 'failing run')} in {plural(one.sessions, 'session')}"
        rows.append(f"  {runs}, {mended}{came}")
        if one.with_memory:
            means = [
                "-" if mean is None else f"{mean:g}"
                for mean in (one.to_green_with_memory, one.to_green_without)
            ]
            rows.append(
                f"  a memory of it was shown in {one.with_memory} of {one.attempts} attempts:"
                f" {means[0]} runs with it, {means[1]} without"
            )
    return rows


def _sessions(context: Context) -> SessionSizes:
    sessions = store.opened(context)
    now = retention.stored(sessions)
    is_open = sum(head.status == "open" for head in sessions.heads()[0])
    damaged = len(retention.damages(sessions, most=0))
    share = round(now.share, 6)
    return SessionSizes(now.sessions, is_open, damaged, now.size, now.limit, share)


def _sessions_text(sizes: SessionSizes) -> list[str]:
    """Return a line on the sessions, none where there are none."""
    if not sizes.sessions:
        return []
    states = [f"{sizes.open} open"] * bool(sizes.open)
    states += [f"{sizes.damaged} damaged: memtool doctor"] * bool(sizes.damaged)
    which = f" ({', '.join(states)})" if states else ""
    room = f"{_bytes(sizes.bytes)} of {_bytes(sizes.limit_bytes)}, {sizes.share:.1%}"
    return ["", f"{plural(sizes.sessions, 'session')}{which}: {room}"]


def _health_text(health: Health) -> str:
    if health.p95_ms is None:
        return f"search: {health.state}"
    return f"search: {health.state}, p95 of the last {health.samples} is {health.p95_ms:.1f} ms"


def _shown_here(context: Context, tree: Tree) -> list[Tree]:
    """Return the trees whose memories answers show: also that of the global ones, if any."""
    try:
        return [tree] if context.beside is None else [tree, index.open(context.beside)]
    except MemtoolError:
        return [tree]


def _used(row: Counted, trees: Iterable[Tree]) -> Used:
    record = next((tree[row.id] for tree in trees if row.id in tree), None)
    title = record.memory.title if record else ""
    return Used(row.id, title, row.count, timestamps.render(row.last))


def _memories(tree: Tree) -> Size:
    """Return the size of the memory files, of those of the revision if one was named."""
    if tree.location.kind != "worktree":
        files = tree.location.list_files().read()
        sizes = [len(data) for _entry, data in files if isinstance(data, bytes)]
        return Size("memories", len(sizes), sum(sizes))
    top = tree.location.repository.top
    sizes = [_size(f"{top}/{path}") for path in tree.blobs]
    return Size("memories", len(sizes), sum(sizes))


def _stored(directory: str) -> list[Size]:
    """Return the sizes of what is in memtool's own directory, by part."""
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for folder, _folders, names in os.walk(directory):
        first = os.path.relpath(folder, directory).partition(os.sep)[0]
        for name in names:
            is_ledger = first == "." and name.startswith("ledger.")
            part = "ledger" if is_ledger else PARTS.get(first, OTHER)
            files[part] += 1
            sizes[part] += _size(os.path.join(folder, name))
    return [Size(part, files[part], sizes[part]) for part in sorted(files)]


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:  # gone since it was listed
        return 0


def _bytes(size: float) -> str:
    unit = 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size /= _STEP
        unit += 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
