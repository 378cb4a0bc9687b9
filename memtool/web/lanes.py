"""The picture of the timeline: a lane for each category, a mark for each change.

Time goes from left to right. Marks of a lane that are close together are one below the other, and
the last of many stands for all that follow it.
"""

from __future__ import annotations

from memtool.memory import timestamps
from memtool.memory.timestamps import DAY_S
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memtool.commands.log import LogEntry
    from memtool.commands.session import SessionRow

SIGNS = {
    "added": "+",
    "superseded": "→",
    "confirmed": "✓",
    "pinned": "★",
    "unpinned": "☆",
    "deprecated": "↓",
    "archived": "▪",
    "forgotten": "✗",
    "restored": "↺",
    "redacted": "█",
    "settled": "◆",
    "faded": "◌",
    "edited": "✎",
    "moved": "⇄",
    "unreadable": "!",
    "mended": "⚒",
    "removed": "∅",
    "unknown": "?",
    "session": "●",
}
"""The sign of each kind of change, and of a session."""
WIDTH, STEP, GAP, AXIS = 968, 26, 6, 24
"""Pixels: the width of the picture, a mark with the space around it, above and below the marks of a
lane, and the height of the dates."""
MAX_ROWS = 3
"""Marks of a lane that are one below the other."""
MAX_TICKS = 8
TICK_DAYS = (1, 2, 7, 14, 28, 91, 182, 364, 728, 1820, 3640)
GONE, SESSIONS = "no longer there", "sessions"
"""The lanes of memories that the tree does not have, and of sessions."""


class Event(Value):
    """What happened: its second, None if it is not committed, and the row that it leads to."""

    lane: str
    kind: str
    second: int | None
    name: str
    target: str


class Mark(Value):
    """A mark, at the pixel of its middle; it stands for `hidden` more, 0 if for itself alone."""

    kind: str
    sign: str
    x: int
    y: int
    name: str
    target: str
    hidden: int = 0


class Lane(Value):
    """A lane, from the pixel `y` on, with its marks in order of time."""

    name: str
    y: int
    height: int
    marks: tuple[Mark, ...]


class LanePicture(Value):
    """The lanes from top to bottom, and the dates below: pairs of a pixel and a day."""

    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[int, str], ...]
    height: int
    width: int = WIDTH

    @property
    def kinds(self) -> list[str]:
        """The kinds of the marks, in the order of their table."""
        kinds = {mark.kind for lane in self.lanes for mark in lane.marks}
        return [kind for kind in SIGNS if kind in kinds]


def name_row(event: LogEntry) -> str:
    """Return the name of the row of a change on its page, which is the same in the next version."""
    return f"e-{event.commit[:10]}-{event.kind}-{event.id}"


def list_events(
    changes: Iterable[LogEntry], sessions: Iterable[SessionRow], categories: Mapping[str, str]
) -> list[Event]:
    """Return changes and sessions as they are drawn; `categories` are those of memories by id."""
    events = [
        Event(
            categories.get(change.id, GONE),
            change.kind,
            timestamps.parse(change.date) if change.date else None,
            f"{change.date[:10] or 'not committed'}: {change.kind}, {change.title or change.id}",
            name_row(change),
        )
        for change in changes
    ]
    return events + [
        Event(
            SESSIONS,
            "session",
            timestamps.parse(session.started),
            f"{session.started[:10]}: session {session.title or session.id}",
            f"s-{session.id}",
        )
        for session in sessions
        if session.started
    ]


def draw_lanes(events: Sequence[Event], order: Sequence[str]) -> LanePicture | None:
    """Return the picture, with the lanes of `order` first; None without two events to compare."""
    seconds = [event.second for event in events if event.second is not None]
    if len(seconds) < 2:
        return None
    first, last = min(seconds), max(seconds)
    scale = (WIDTH - 2 * STEP) / max(last - first, 1)
    by_lane: dict[str, dict[int, list[Event]]] = {}
    for event in sorted(events, key=lambda event: last if event.second is None else event.second):
        second = last if event.second is None else event.second
        column = round((second - first) * scale) // STEP
        by_lane.setdefault(event.lane, {}).setdefault(column, []).append(event)
    names = [*order, *sorted(by_lane.keys() - {*order, GONE, SESSIONS}), GONE, SESSIONS]
    lanes, y = [], 0
    for name in names:
        columns = by_lane.get(name)
        if not columns:
            continue
        rows = min(MAX_ROWS, max(map(len, columns.values())))
        marks = [
            mark for column, group in columns.items() for mark in _draw_column(group, column, y)
        ]
        lanes.append(Lane(name, y, rows * STEP + GAP, tuple(marks)))
        y += rows * STEP + GAP
    return LanePicture(tuple(lanes), _find_ticks(first, last, scale), y + AXIS)


def _draw_column(events: Sequence[Event], column: int, top: int) -> list[Mark]:
    hidden = max(0, len(events) - MAX_ROWS)
    return [
        Mark(
            event.kind,
            SIGNS[event.kind],
            column * STEP + STEP,
            top + row * STEP + (STEP + GAP) // 2,
            event.name,
            event.target,
            hidden if row == MAX_ROWS - 1 else 0,
        )
        for row, event in enumerate(events[:MAX_ROWS])
    ]


def _find_ticks(first: int, last: int, scale: float) -> tuple[tuple[int, str], ...]:
    """Return up to `MAX_TICKS` days at equal distances, with their pixels."""
    days = (last - first) / DAY_S
    step_days = next((step for step in TICK_DAYS if days / step < MAX_TICKS), TICK_DAYS[-1])
    start = first - first % DAY_S
    seconds = range(start, last + 1, step_days * DAY_S)[:MAX_TICKS]
    return tuple(
        (round(max(second - first, 0) * scale) + STEP, timestamps.format_date(second))
        for second in seconds
    )
