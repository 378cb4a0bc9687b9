"""What pages report: how memories are used, by day and at all, and digests."""

from __future__ import annotations

from collections import Counter

from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import timestamps
from memtool.memory.visibility import OUT_OF_USE
from memtool.search import levels
from memtool.store import ledger
from memtool.store.usage_counts import UsageCounts
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from memtool.store.context import Context
    from memtool.store.tree import Record, Tree
    from memtool.web.page import PageQuery

DAYS = 60
"""Days that a plot of latencies shows."""
WIDTH, HEIGHT = 480, 80
"""Of a plot, in pixels."""
BAR = 0.7
"""Share of its day that a bar is wide."""
PLOTS = 4


class LatencyPlot(Value):
    """The latency of a verb by day: points of the median and of the 95th percentile in pixels.

    `most_ms` is the value of the upper edge, `slo` the height of the limit; None if above the edge.
    """

    verb: str
    p50: tuple[tuple[float, float], ...]
    p95: tuple[tuple[float, float], ...]
    most_ms: float
    slo: float | None
    first: str
    last: str


class UsePlot(Value):
    """Answers by day: left edge, height and width of each bar in pixels.

    `maximum` is the value of the upper edge, `total` the sum.
    """

    bars: tuple[tuple[float, float, float], ...]
    maximum: int
    total: int
    first: str
    last: str


class DigestRow(Value):
    """A digest, its date, its members, and how many of these are no longer current."""

    record: Record
    written: str
    members: tuple[str, ...]
    replaced: int


def use(timed: Sequence[tuple[str, int, float]]) -> UsePlot | None:
    """Return a plot of the answers by day, over the last days of use; None if there are none."""
    if not timed:
        return None
    counts = Counter(moment // timestamps.DAY_S for _verb, moment, _ms in timed)
    last = max(counts)
    first = last - DAYS + 1
    shown = {day: count for day, count in sorted(counts.items()) if day >= first}
    maximum = max(shown.values())
    step = WIDTH / DAYS
    bars = tuple(
        (round((day - first) * step, 1), round(count * HEIGHT / maximum, 1), round(step * BAR, 1))
        for day, count in shown.items()
    )
    dates = (timestamps.format_date(day * timestamps.DAY_S) for day in (first, last))
    return UsePlot(bars, maximum, sum(shown.values()), *dates)


def build_plots(timed: Sequence[tuple[str, int, float]]) -> list[LatencyPlot]:
    """Return a plot for each of the verbs that were asked most, over the last days of use."""
    if not timed:
        return []
    last = max(moment for _verb, moment, _ms in timed) // timestamps.DAY_S
    first = last - DAYS + 1
    by_verb: dict[str, dict[int, list[float]]] = {}
    for verb, moment, elapsed_ms in timed:
        day = moment // timestamps.DAY_S
        if day >= first:
            by_verb.setdefault(verb, {}).setdefault(day, []).append(elapsed_ms)
    order = sorted(by_verb, key=lambda verb: (-sum(map(len, by_verb[verb].values())), verb))
    return [_build_plot(verb, by_verb[verb], first, last) for verb in order[:PLOTS]]


def _build_plot(verb: str, days: dict[int, list[float]], first: int, last: int) -> LatencyPlot:
    rows = [
        (day, *(_compute_percentile(days[day], percent) for percent in (50, 95)))
        for day in sorted(days)
    ]
    most_ms = max(p95 for _day, _p50, p95 in rows) or 1.0

    def points(at: int) -> tuple[tuple[float, float], ...]:
        return tuple(
            (
                round((row[0] - first) * WIDTH / (DAYS - 1), 1),
                round(HEIGHT - row[at] * HEIGHT / most_ms, 1),
            )
            for row in rows
        )

    is_near = most_ms >= ledger.SLOW_MS
    slo = round(HEIGHT - ledger.SLOW_MS * HEIGHT / most_ms, 1) if is_near else None
    dates = (timestamps.format_date(day * timestamps.DAY_S) for day in (first, last))
    return LatencyPlot(verb, points(1), points(2), round(most_ms, 1), slo, *dates)


def _compute_percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile by nearest rank: it is a latency that was."""
    return sorted(values)[-(-len(values) * percent // 100) - 1]


def find_never_used(context: Context, tree: Tree) -> list[Record]:
    """Return the memories in use that no answer has shown in this clone, the oldest first."""
    heads = [
        record
        for record in tree.records
        if tree.lineage.is_head(record.id) and record.memory.status not in OUT_OF_USE
    ]
    counts = UsageCounts(context.repository.cache_dir).count_shown(record.id for record in heads)
    unused = [record for record in heads if not counts.get(record.id)]
    return sorted(unused, key=lambda record: (record.memory.timestamp, record.id))


def digests(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the digests with their members, all or those of a category."""
    category = query.text("category")
    categories = sorted(context.settings.categories)
    if category and category not in categories:
        raise MemtoolError(
            f"unknown category {category[:40]!r}",
            hint=f"the categories are {', '.join(categories)}",
        )
    tree = index.open(context, query.text("at") or None)
    rows = []
    for digest in levels.find_digests_in_use(tree):
        if category in ("", digest.memory.category):
            members = digest.memory.items("derived_from")
            current = [id_ for id_ in members if id_ in tree and tree.lineage.is_head(id_)]
            written = digest.memory.text("timestamp")
            rows.append(DigestRow(digest, written, members, len(members) - len(current)))
    return {
        "title": f"Digests: {category}" if category else "Digests",
        "category": category,
        "categories": categories,
        "rows": rows,
        "notes": [*context.notes],
    }
