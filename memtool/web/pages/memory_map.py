"""The map: all memories in one picture, by folder or by tag, and the same as a list.

A box is as large as its memory is used. An area of up to `MAX_MEMORIES` is drawn with each memory;
of a larger one its parts are drawn, which lead to maps of their own. The picture has two layouts,
for a screen and for a phone, and the style shows one of them.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from memtool.commands import _filters
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import lifecycle
from memtool.memory.drift import BROKEN
from memtool.search import conflicts
from memtool.search.scope import build_scope, restricted_for
from memtool.search.unsettled import Unsettled
from memtool.store.usage_counts import UsageCounts
from memtool.value import Value, format_count
from memtool.web.map_areas import (
    MAX_MEMORIES,
    Area,
    MapMemory,
    build_by_file,
    build_by_tag,
    find_area,
    iterate_areas,
)
from memtool.web.picture import FONT_PX, LINE_PX, STATES, Box, measure, squarify, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from memtool.search.features import Facts
    from memtool.search.retrieve import Scope
    from memtool.store.context import Context
    from memtool.store.tree import Record
    from memtool.web.page import PageQuery

SCREEN, PHONE = Box(0, 0, 720, 620), Box(0, 0, 358, 640)
"""The two layouts: next to the list, and as wide as a phone."""
MAX_BOXES = 250
"""Boxes of a picture of areas: no further area is opened beyond these."""
GAP, PAD, HEADER = 2, 4, 19
"""Pixels around a box, around the text in it, and for the name of an area above its boxes."""
MIN_TEXT, MIN_SIGN = 28, 10
"""Pixels of width from which a box has a text, and pixels from which it has its sign alone."""
MIN_FRAME = 44
"""Width and height in pixels from which an area is drawn with what is in it."""
ATTENTION = ("conflicting", "drifted", "unsettled", "due", "candidate")
"""States that need somebody, the most urgent first."""
SEARCHES = {
    "conflicting": "is:conflicted",
    "drifted": "is:drifted",
    "unsettled": "is:unsettled",
    "due": "is:due",
    "candidate": "is:candidate",
    "superseded": "is:superseded",
    "archived": "is:archived",
    "expired": "is:expired",
}
"""The search for all memories of a state, to which the legend leads."""
BY_FILE, BY_TAG = "file", "tag"
WAYS = {BY_FILE: build_by_file, BY_TAG: build_by_tag}


class Shape(Value):
    """A box of the picture: a memory, an area, or the frame of an area whose boxes follow.

    Its text begins at (`text_x`, `text_y`).
    """

    kind: str
    item: Area | MapMemory
    box: Box
    state: str
    lines: tuple[str, ...]
    text_x: float
    text_y: float


class StateCount(Value):
    """A row of the legend: the memories of a state, and the search for them, empty for none."""

    state: str
    sign: str
    words: str
    count: int
    search: str


def memory_map(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the map of the current memories, or of one area.

    `by` is `file` or `tag`, `in` the path of an area; `past=1` adds memories out of use.
    """
    by, with_past = query.text("by"), query.text("past") == "1"
    if by and by not in WAYS:
        raise MemtoolError(f"there is no map by {by[:40]!r}", hint="the map is by file or by tag")
    memories = collect_memories(context, query.text("at") or None, with_past=with_past)
    by = by or find_best_way(memories)
    trail, is_whole = find_area(WAYS[by](memories), query.text("in"))
    notes = [*context.notes]
    if not is_whole:
        notes.append(f"the map has no part {query.text('in')[:80]!r}; this is what is around it")
    return build_map(trail, by, query) | {"notes": notes}


def find_best_way(memories: Iterable[MapMemory]) -> str:
    """Return how to divide the map first: by file, unless no memory names one."""
    return BY_FILE if any(memory.files for memory in memories) else BY_TAG


def collect_memories(
    context: Context, at: str | None = None, *, with_past: bool = False, is_counted: bool = True
) -> list[MapMemory]:
    """Return the memories that are current, with `with_past` also others that are not forgotten.

    Uses are those of this clone; if not `is_counted`, or at a revision, there are none.
    """
    tree = index.open(context, at)
    scope = restricted_for(context, build_scope(context, tree, context.clock.now))
    facts = scope.facts()
    current = facts.find_current()
    states = _find_states(context, scope, facts, current)
    records = [*current, *(_list_past(facts, current, states) if with_past else ())]
    uses: dict[str, int] = {}
    if is_counted and at is None:
        _filters.fold_usage_log(context)
        counts = UsageCounts(context.repository.cache_dir)
        uses = counts.count_shown(record.id for record in records)
    return [
        MapMemory(
            record.id,
            memory.title,
            states[record.path],
            memory.category,
            memory.items("files"),
            memory.items("tags"),
            uses.get(record.id, 0),
        )
        for record, memory in ((record, record.memory) for record in records)
    ]


def _find_states(
    context: Context, scope: Scope, facts: Facts, records: Sequence[Record]
) -> dict[str, str]:
    """Return the state of current memories by path: the most urgent one if there are several."""
    try:
        levels = scope.drift.find_levels(records) if scope.drift else {}
        unsettled = Unsettled(facts.tree, facts.now, scope.drift).all
    except MemtoolError as error:
        if error.code != "config":
            raise
        levels = {}  # the trusted ref is missing, which the status page says
        unsettled = Unsettled(facts.tree, facts.now).all
    due = {record.path for record in facts.due()}
    clashes = conflicts.find_open_contradictions(facts.tree, facts.now, context.cache_dir)
    open_conflicts = conflicts.list_unsettled(facts.tree, clashes or ())
    ids = {id_ for group in open_conflicts for id_ in group}
    conflicting = {record.path for record in facts.tree.with_ids(ids)}
    states = {}
    for record in records:
        if record.path in conflicting:
            state = "conflicting"
        elif levels.get(record.path) == BROKEN:
            state = "drifted"
        elif record.id in unsettled:
            state = "unsettled"
        elif record.path in due:
            state = "due"
        else:
            state = record.memory.status
        states[record.path] = state if state in STATES else "active"
    return states


def _list_past(facts: Facts, current: Sequence[Record], states: dict[str, str]) -> Iterator[Record]:
    """Yield the memories that are not current, but not forgotten or hidden; add their states."""
    shown = {record.path for record in current} | facts.withheld.keys()
    for record in facts.tree.records:
        state = facts.state(record)
        if record.path not in shown and state != lifecycle.DELETED:
            states[record.path] = state if facts.lineage.is_head(record.id) else "superseded"
            yield record


def find_address(query: PageQuery, by: str, path: str) -> str:
    """Return the address of the map of an area, the root for an empty path."""
    return f"/map?{query.with_(by=by, **{'in': path})}"


def build_map(trail: Sequence[Area], by: str, query: PageQuery) -> dict[str, Any]:
    """Return the values of the page for the last of some areas, each of which is in the one before.

    `query` is what the links of the page keep.
    """
    area = trail[-1]
    is_each = area.count <= MAX_MEMORIES
    opened = _choose_opened(area)
    boxes = (("screen", SCREEN), ("phone", PHONE)) if area.count else ()
    first = trail[1].name if len(trail) > 1 else "/"
    return {
        "title": f"Map: {area.label}" if area.name else "Map",
        "by": by,
        "area": area,
        "trail": trail,
        "tag": first if by == BY_TAG and first[0] != "/" else "",
        "is_each": is_each,
        "pictures": [(name, box, _draw(area, box, opened)) for name, box in boxes],
        "groups": list_groups(area) if is_each else list_parts(area, opened),
        "legend": _list_states(area),
        "state_words": STATES,
        "describe": describe_area,
        "describe_memory": describe_memory,
        "line": LINE_PX,
        "address": lambda path: find_address(query, by, path),
        "turned": lambda way: find_address(query, way, ""),
        "past": query.text("past") == "1",
        "has_uses": area.weight > area.count,
        "present": f"/map?{query.with_(by=by, past='')}",
        "with_past": f"/map?{query.with_(by=by, past='1')}",
        "notes": [],
    }


def describe_area(area: Area) -> str:
    """Return what is in an area: `12 memories, 2 drifted from the code`."""
    parts = [format_count(area.count, "memory", "memories")]
    parts += [
        f"{area.states[state]:,} {STATES[state][1]}" for state in ATTENTION if state in area.states
    ]
    return ", ".join(parts)


def describe_memory(memory: MapMemory) -> str:
    """Return the state and use of a memory: `not confirmed yet, shown 3 times`."""
    words = STATES[memory.state][1]
    return f"{words}, shown {format_count(memory.uses, 'time')}" if memory.uses else words


def list_groups(area: Area) -> list[tuple[str, str, tuple[MapMemory, ...]]]:
    """Return name, path and memories of each area with memories of its own, in order.

    The name of the first area is empty if it has no others.
    """
    groups = [group for inner in area.areas for group in _list_below(inner, "")]
    if area.memories:
        groups.append(("Others" if groups else "", area.path, area.memories))
    return groups


def list_parts(area: Area, opened: frozenset[str]) -> list[tuple[str, str, tuple[Area, ...]]]:
    """Return name, path and closed areas of an area and of each opened one, in order."""
    groups: list[tuple[str, str, tuple[Area, ...]]] = []

    def add(inside: Area, name: str) -> None:
        closed = tuple(inner for inner in inside.areas if inner.path not in opened)
        if closed:
            groups.append((name, inside.path, closed))
        for inner in inside.areas:
            if inner.path in opened:
                add(inner, f"{name} / {inner.label}" if name else inner.label)

    add(area, "")
    return groups


def _list_below(area: Area, above: str) -> Iterator[tuple[str, str, tuple[MapMemory, ...]]]:
    name = f"{above} / {area.label}" if above else area.label
    if area.memories:
        yield name, area.path, area.memories
    for inner in area.areas:
        yield from _list_below(inner, name)


def _list_states(area: Area) -> list[StateCount]:
    return [
        StateCount(state, sign, words, area.states[state], SEARCHES.get(state, ""))
        for state, (sign, words) in STATES.items()
        if state in area.states
    ]


def _choose_opened(area: Area) -> frozenset[str]:
    """Return the paths of the areas that are drawn with what is in them.

    These are all of them if every memory is drawn. Else they are areas that are too large for a
    picture of all their memories, the largest first while there is room.
    """
    if area.count <= MAX_MEMORIES:
        return frozenset(inner.path for inner in iterate_areas(area))
    opened: set[str] = set()
    boxes = len(area.areas)
    waiting = [(-inner.count, inner.path, inner) for inner in area.areas]
    heapify(waiting)
    while waiting:
        _count, path, largest = heappop(waiting)
        if largest.count <= MAX_MEMORIES or boxes + len(largest.areas) > MAX_BOXES:
            break
        opened.add(path)
        boxes += len(largest.areas)
        for inner in largest.areas:
            heappush(waiting, (-inner.count, inner.path, inner))
    return frozenset(opened)


def _draw(area: Area, box: Box, opened: frozenset[str]) -> list[Shape]:
    """Return the boxes of what is in an area, row by row; those in a frame follow it."""
    items: list[Area | MapMemory] = [*area.areas, *area.memories]
    items.sort(key=lambda item: -item.weight)
    placed = zip(items, squarify([item.weight for item in items], box), strict=True)
    shapes: list[Shape] = []
    for item, outer in sorted(placed, key=lambda pair: (round(pair[1].y), pair[1].x)):
        own = _shrink(outer)
        if isinstance(item, MapMemory):
            shapes.append(_draw_tile(item, own, item.state, item.title))
        elif item.path in opened and min(own.width, own.height) >= MIN_FRAME:
            title = wrap(f"{item.label} {item.count:,}", own.width - 2 * PAD, 1)
            shapes.append(Shape("frame", item, own, "", title, own.x + PAD, own.y + HEADER - 5))
            inside = Box(own.x + 1, own.y + HEADER, own.width - 2, own.height - HEADER - 1)
            shapes += _draw(item, inside, opened)
        else:
            state = next(filter(item.states.__contains__, ATTENTION), "active")
            shapes.append(_draw_tile(item, own, state, item.label))
    return shapes


def _shrink(box: Box) -> Box:
    """Return a box without the gap around it, in whole pixels."""
    x, y = round(box.x + GAP / 2), round(box.y + GAP / 2)
    right, bottom = round(box.x + box.width - GAP / 2), round(box.y + box.height - GAP / 2)
    return Box(x, y, max(right - x, 1), max(bottom - y, 1))


def _draw_tile(item: Area | MapMemory, box: Box, state: str, name: str) -> Shape:
    """Return a box with the sign of its state and as much of its name as it has room for."""
    width, rows = box.width - 2 * PAD, int((box.height - PAD) // LINE_PX)
    has_text = rows > 0 and width >= MIN_TEXT
    sign = STATES[state][0]
    if isinstance(item, MapMemory):
        kind, lines = "memory", wrap(f"{sign} {name}", width, rows) if has_text else ()
    else:
        kind, lines = "area", wrap(name, width, rows) if has_text else ()
        if lines and len(lines) < rows:
            lines += wrap(_summarize(item), width, 1)
    if lines and lines != (f"{sign}…",):
        return Shape(kind, item, box, state, lines, box.x + PAD, box.y + LINE_PX)
    has_sign = min(box.width, box.height) >= MIN_SIGN
    text = (sign,) if has_sign else ()
    x, y = box.x + (box.width - measure(sign)) / 2, box.y + box.height / 2 + FONT_PX / 3
    return Shape(kind, item, box, state, text, round(x), round(y))


def _summarize(area: Area) -> str:
    """Return the number of memories, and of those in each state that needs somebody: `12 ≠2`."""
    attention = [
        f"{STATES[state][0]}{area.states[state]}" for state in ATTENTION if state in area.states
    ]
    return " ".join([f"{area.count:,}", *attention])
