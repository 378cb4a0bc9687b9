"""`memtool conflicts`: what contradicts what, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from memtool.commands import _filters
from memtool.commands._layout import Layout, clip, shorten_commit
from memtool.gate import near_duplicates
from memtool.gate.near_duplicates import THRESHOLD_KEY
from memtool.index import index
from memtool.memory import timestamps
from memtool.memory.trust import Origin
from memtool.search import conflicts as gate
from memtool.search.conflicts import DUPLICATE, FORK
from memtool.search.contradictions import OPPOSITION, SUSPECTED
from memtool.search.scope import format_day
from memtool.store.context import Context
from memtool.store.tree import Record, Tree
from memtool.value import Value, format_count

MAX_COLUMNS = 3
"""Memories that are shown side by side; more are shown one per line."""
MAX_CELL_WIDTH = 56


class ConflictSide(Value):
    """One memory of a conflict. `date` is the date of its last commit, empty without one."""

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
    """A conflict with its sides, in the order of `ids`, and the value that each states.

    `differs` lists the distinct values: `6379 against 6380`. `certainty` is `suspected`, or
    `certain`: then the conflict is marked wherever its memories are shown.
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
    """Conflicts: forks first, then oppositions, values and duplicates.

    `since` is the commit of --since, "" without it. The counts include conflicts beyond the limit:
    `kinds` by kind, `memories` of memories that take part, `open` of those not accepted.
    """

    json_fields = "conflicts total kinds memories since"
    json_optional = "since"

    conflicts: tuple[ConflictRow, ...]
    since: str = ""
    kinds: Mapping[str, int] = {}
    memories: int = 0
    open: int = 0
    is_detailed: bool = False
    """Whether the text compares the sides field by field."""

    @property
    def total(self) -> int:
        """The number of conflicts, including those beyond the limit."""
        return sum(self.kinds.values())

    @property
    def exit_code(self) -> int:
        """1 if a conflict is open, for hooks and CI."""
        return int(self.open > 0)


def conflicts(
    context: Context,
    *ids: str,
    at: str | None = None,
    since: str = "",
    all: bool = False,
    limit: int = 20,
) -> Conflicts:
    """List memories that contradict each other, side by side.

        fork         two memories replace the same one
        opposition   one says to do something, the other not to
        values       they name different values for a key, version, port, path or unit

    Titles and first sentences of active memories are compared. Exit code 1 means that a conflict is
    open. After a merge, memtool conflicts --since ORIG_HEAD lists only what it brought.

    Example:
        memtool conflicts
        memtool conflicts --since ORIG_HEAD

    Args:
        ids: only the conflicts of these memories, by id or words
        at: a revision instead of the worktree
        since: only what is new since this revision
        all: also list accepted conflicts
        limit: the number of conflicts to show, 0 for all
    """
    base = context.repository.git.resolve(since) if since else ""
    if base and not ids and not _list_file_names(context, at) - _list_file_names(context, base):
        return Conflicts((), base)  # fast path: most merges bring no memory
    tree = index.open(context, at, exact=True)
    now, categories = context.clock.now, context.settings.categories
    wanted = {tree.find(id_).id for id_ in ids}
    all_conflicts: list[gate.Conflict] = []
    new: set[str] | None = None
    if since:
        base_names = _list_file_names(context, base)
        new = {record.id for record in tree.records if f"{record.id}.md" not in base_names}
    if new is None or new:
        all_conflicts = gate.find_contradictions(tree, now, context.cache_dir)
    if new:
        new_records = [record for record in gate.find_living(tree, now) if record.id in new]
        similar = near_duplicates.DuplicateIndex(())
        if new_records:
            location = (context.repository, context.directory, context.settings)
            similar = (
                near_duplicates.from_commit(*location, at)
                if at
                else near_duplicates.from_worktree(*location)
            )
        threshold = context.settings.number(THRESHOLD_KEY)
        all_conflicts += near_duplicates.find_repetitions(
            tree, new_records, similar, threshold, now, categories
        )
    all_conflicts = [
        conflict
        for conflict in all_conflicts
        if (all or not conflict.accepted)
        and (not wanted or wanted.intersection(conflict.ids))
        and (new is None or new.intersection(conflict.ids))
    ]
    clusters = gate.find_clusters(all_conflicts)
    shown = clusters[: _filters.all_if_zero(limit)]
    return Conflicts(
        _build_rows(context, tree, shown),
        base,
        Counter(conflict.kind for conflict in clusters),
        len({id_ for conflict in clusters for id_ in conflict.ids}),
        sum(not conflict.accepted for conflict in clusters),
        is_detailed=bool(ids),
    )


def _list_file_names(context: Context, at: str | None) -> set[str]:
    return {entry.path.rpartition("/")[2] for entry in context.snapshot(at).entries}


def _build_rows(
    context: Context, tree: Tree, shown: list[gate.Conflict]
) -> tuple[ConflictRow, ...]:
    records = {id_: tree[id_] for conflict in shown for id_ in conflict.ids}
    origins = context.origins(tree, records.values())
    return tuple(
        ConflictRow(
            conflict.kind,
            conflict.ids,
            conflict.reason,
            conflict.accepted,
            tuple(_build_side(records[id_], origins[records[id_].path]) for id_ in conflict.ids),
            conflict.values,
            conflict.differs,
            conflict.certainty,
        )
        for conflict in shown
    )


def _build_side(record: Record, origin: Origin) -> ConflictSide:
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


def render(report: Conflicts, layout: Layout) -> str:
    """Return each conflict with its sides, the newest first, and the command that settles it."""
    if not report.conflicts:
        since = f"new conflict since {shorten_commit(report.since)}" if report.since else ""
        layout.report(f"no {since or 'open conflict'}")
        return ""
    rows = []
    for number, conflict in enumerate(map(_sort_sides, report.conflicts), 1):
        heading = _describe_conflict(conflict, layout)
        if report.is_detailed and conflict.kind == OPPOSITION:
            heading += f": {conflict.reason}"
        rows += layout.wrap(f"{number}. {heading}")
        rows += (
            _compare_sides(conflict, layout)
            if report.is_detailed
            else layout.table([_format_side(side, layout) for side in conflict.sides], indent="  ")
        )
        if not conflict.accepted:
            ids = " ".join(layout.short(side.id) for side in conflict.sides)
            rows.append(layout.hint(f"  memtool resolve {ids} --keep newer --reason TEXT"))
    hidden = report.total - len(report.conflicts)
    total = format_count(report.total, "conflict")
    ways = ", the newer side first. Or --keep ID, --keep both, --merge TITLE" if report.open else ""
    hidden_note = f" ({hidden:,} not shown; --limit 0 shows all)" if hidden else ""
    return "\n".join([*rows, layout.hint(f"{total}{ways}{hidden_note}")])


def _sort_sides(conflict: ConflictRow) -> ConflictRow:
    """Put the newest side first, and its value too."""
    places = sorted(
        range(len(conflict.sides)),
        key=lambda at: (timestamps.parse(conflict.sides[at].timestamp), conflict.sides[at].id),
        reverse=True,
    )
    values = [conflict.values[at] for at in places] if conflict.values else []
    return conflict.replace(
        sides=tuple(conflict.sides[at] for at in places),
        values=tuple(values),
        differs=" against ".join(dict.fromkeys(values)),
    )


def _describe_conflict(conflict: ConflictRow, layout: Layout) -> str:
    state = ", accepted" if conflict.accepted else ""
    state += ", suspected" if conflict.certainty == SUSPECTED else ""
    ancestor = conflict.reason.rpartition(" ")[2]
    title = layout.title(ancestor)
    words = {
        FORK: f"{'Both' if len(conflict.sides) == 2 else 'All'} supersede {layout.short(ancestor)}"
        + f" ({title})" * bool(title),
        OPPOSITION: "They say the opposite",
        DUPLICATE: "They say the same",
    }
    return (conflict.differs or words.get(conflict.kind, conflict.reason)) + state


def _format_side(side: ConflictSide, layout: Layout) -> tuple[str, ...]:
    return (layout.short(side.id), side.title, side.author, format_day(side.timestamp))


def _compare_sides(conflict: ConflictRow, layout: Layout) -> list[str]:
    """Return a table of the fields of each side, side by side if they are few."""
    sides = conflict.sides
    cells: list[tuple[str, ...]] = [
        ("", *(layout.short(side.id) for side in sides)),
        *([("value", *conflict.values)] if conflict.values else []),
        ("title", *(clip(side.title, MAX_CELL_WIDTH) for side in sides)),
        ("source", *(clip(", ".join(side.source), MAX_CELL_WIDTH) for side in sides)),
        ("author", *(side.author or "-" for side in sides)),
        ("written", *(format_day(side.timestamp) for side in sides)),
        (
            "commit",
            *(
                f"{shorten_commit(side.commit)} {side.date[:10]}" if side.commit else "-"
                for side in sides
            ),
        ),
        ("confidence", *(side.confidence for side in sides)),
        ("trust", *(side.trust for side in sides)),
    ]
    rows = cells if len(sides) <= MAX_COLUMNS else [*zip(*cells, strict=True)]
    return layout.table(rows, indent="  ")
