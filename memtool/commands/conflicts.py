"""`memtool conflicts`: what contradicts what, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from memtool.commands import _filters
from memtool.commands._render import columns
from memtool.gate import near_duplicates
from memtool.gate.near_duplicates import THRESHOLD_KEY
from memtool.index import index
from memtool.memory import timestamps
from memtool.memory.trust import Origin
from memtool.search import conflicts as gate
from memtool.search.contradictions import SUSPECTED
from memtool.search.scope import day
from memtool.store.context import Context
from memtool.store.provenance import SHORT
from memtool.store.tree import Record, Tree
from memtool.value import Value

MOST_BESIDE = 3
"""Memories that are shown beside each other; more are below each other, one a line."""


class ConflictSide(Value):
    """One memory of a conflict. `date` is that of its last commit, empty without one."""

    id: str
    title: str
    source: tuple[str, ...]
    author: str
    date: str
    commit: str | None
    confidence: str
    trust: str
    timestamp: str
    path: str


class ConflictRow(Value):
    """A conflict with its sides, in the order of `ids`; `values` is what each gives to one thing.

    `differs` has them in a row, each once: `6379 against 6380`. `certainty` is `certain`, and then
    it is marked wherever the memories are shown, or `suspected`.
    """

    kind: str
    ids: tuple[str, ...]
    reason: str
    accepted: bool
    sides: tuple[ConflictSide, ...]
    values: tuple[str, ...] = ()
    differs: str = ""
    certainty: str = ""


class Conflicts(Value):
    """What contradicts each other: forks first, then oppositions, values and duplicates.

    `since` is the commit that they were compared with, empty for none. `kinds` counts all of them
    by kind, also those beyond the limit, `memories` those that take part, `open` what is not
    accepted.
    """

    json_fields = "conflicts total kinds memories since"
    json_optional = "since"

    conflicts: tuple[ConflictRow, ...]
    since: str = ""
    kinds: Mapping[str, int] = {}
    memories: int = 0
    open: int = 0

    @property
    def total(self) -> int:
        """How many there are, with those beyond the limit."""
        return sum(self.kinds.values())

    @property
    def exit_code(self) -> int:
        """1 where a conflict is open, for hooks and CI."""
        return int(self.open > 0)


def conflicts(
    context: Context,
    *ids: str,
    at: str | None = None,
    since: str = "",
    all: bool = False,
    limit: int = 20,
) -> Conflicts:
    """List the memories that contradict each other, side by side.

    A conflict is a fork (heads that replace the same memory), an opposition (one says use, always,
    enable, add, must or allow, the other the contrary of the same thing), or two values for the
    same key, version, port, path or measure. Only memories in use count, and of their text only
    title and first sentence. All that contradict each other about one thing are one conflict, and
    where they give it values, these are shown first. Where one is open the exit code is 1.

    With --since only those are listed in which a memory takes part that was not there at that
    revision, and new memories that say what another one says: what a merge has brought. A
    post-merge hook runs memtool conflicts --since ORIG_HEAD.

    Example:
        memtool conflicts --since ORIG_HEAD

    Args:
        ids: only the conflicts of these memories, by id or words of it
        at: a revision instead of the worktree
        since: a revision; only what is new since then
        all: also those that were accepted
        limit: most conflicts to show, 0 for all; the summary counts all of them
    """
    base = context.repository.git.rev(since) if since else ""
    if base and not ids and not _names(context, at) - _names(context, base):
        return Conflicts((), base)  # most merges bring no memory, and need not wait
    tree = index.open(context, at, exact=True)
    now, categories = context.clock.now, context.settings.categories
    wanted = {tree.find(id_).id for id_ in ids}
    found: list[gate.Conflict] = []
    new: set[str] | None = None
    if since:
        there = _names(context, base)
        new = {record.id for record in tree.records if f"{record.id}.md" not in there}
    if new is None or new:
        cache_dir = context.repository.cache_dir if context.is_cached else ""
        found = gate.contradictions(tree, now, cache_dir)
    if new:
        judged = [record for record in gate.living(tree, now) if record.id in new]
        near = near_duplicates.Neighbours(())
        if judged:
            place = (context.repository, context.directory, context.settings)
            near = (
                near_duplicates.of_commit(*place, at) if at else near_duplicates.of_worktree(*place)
            )
        threshold = context.settings.number(THRESHOLD_KEY)
        found += near_duplicates.repetitions(tree, judged, near, threshold, now, categories)
    found = [
        conflict
        for conflict in found
        if (all or not conflict.accepted)
        and (not wanted or wanted.intersection(conflict.ids))
        and (new is None or new.intersection(conflict.ids))
    ]
    together = gate.clusters(found)
    shown = together[: _filters.most_of(limit)]
    return Conflicts(
        _with_sides(context, tree, shown),
        base,
        Counter(one.kind for one in together),
        len({id_ for one in together for id_ in one.ids}),
        sum(not one.accepted for one in together),
    )


def _names(context: Context, at: str | None) -> set[str]:
    """Return the names of the files of a tree that may be memories."""
    return {entry.path.rpartition("/")[2] for entry in context.snapshot(at).entries}


def _with_sides(
    context: Context, tree: Tree, found: list[gate.Conflict]
) -> tuple[ConflictRow, ...]:
    records = {id_: tree[id_] for conflict in found for id_ in conflict.ids}
    origins = context.origins(tree, records.values())
    return tuple(
        ConflictRow(
            conflict.kind,
            conflict.ids,
            conflict.reason,
            conflict.accepted,
            tuple(_side(records[id_], origins[records[id_].path]) for id_ in conflict.ids),
            conflict.values,
            conflict.differs,
            conflict.certainty,
        )
        for conflict in found
    )


def _side(record: Record, origin: Origin) -> ConflictSide:
    memory = record.memory
    return ConflictSide(
        id=record.id,
        title=memory.title,
        source=memory.items("source"),
        author=origin.author,
        date=timestamps.render(origin.date) if origin.commit else "",
        commit=origin.commit or None,
        confidence=memory.confidence,
        trust=origin.trust,
        timestamp=memory.text("timestamp"),
        path=record.path,
    )


def render(found: Conflicts) -> str:
    """Return each conflict with its sides next to each other, and how to settle it."""
    if not found.conflicts:
        return f"no new conflict since {found.since[:SHORT]}" if found.since else "no open conflict"
    parts = ["\n".join(_rows(conflict)) for conflict in found.conflicts]
    total = found.total
    if total > 1:
        counts = ", ".join(f"{count} {_plural(kind, count)}" for kind, count in found.kinds.items())
        left = total - len(found.conflicts)
        rest = f"; {left} not shown, --limit 0 shows all" if left else ""
        parts.append(f"{total} conflicts among {found.memories} memories: {counts}{rest}")
    return "\n\n".join(parts)


def _plural(kind: str, count: int) -> str:
    return kind if count == 1 or kind.endswith("s") else f"{kind}s"


def _rows(conflict: ConflictRow) -> list[str]:
    sides = conflict.sides
    state = ", accepted" if conflict.accepted else ""
    state += ", suspected" if conflict.certainty == SUSPECTED else ""
    cells: list[tuple[str, ...]] = [
        ("", *(side.id for side in sides)),
        *([("value", *conflict.values)] if conflict.values else []),
        ("title", *(_clipped(side.title) for side in sides)),
        ("source", *(_clipped(", ".join(side.source)) for side in sides)),
        ("author", *(side.author or "-" for side in sides)),
        ("written", *(day(side.timestamp) for side in sides)),
        (
            "commit",
            *(f"{side.commit[:SHORT]} {side.date[:10]}" if side.commit else "-" for side in sides),
        ),
        ("confidence", *(side.confidence for side in sides)),
        ("trust", *(side.trust for side in sides)),
    ]
    table = columns(cells if len(sides) <= MOST_BESIDE else zip(*cells, strict=True))
    rows = [
        f"{conflict.kind}{state}: {conflict.differs or conflict.reason}",
        *(f"  {row}" for row in table),
    ]
    if not conflict.accepted:
        rows.append(f"  hint: memtool resolve {' '.join(conflict.ids)} --keep newer --why REASON")
    return rows


def _clipped(text: str) -> str:
    return text if len(text) <= 56 else f"{text[:55]}…"
