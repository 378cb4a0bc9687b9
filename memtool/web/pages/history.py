"""Pages of history: two texts side by side, changes between two revisions, and the timeline."""

from __future__ import annotations

from itertools import groupby

from memtool.commands.diff import diff as diff_of
from memtool.commands.log import log
from memtool.commands.session import session_list
from memtool.commands.show import show
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.changes import KINDS, Change, describe_change
from memtool.value import Value
from memtool.web import compare
from memtool.web.lanes import SIGNS, draw_lanes, list_events, name_row
from memtool.web.pages.ranges import propose_ranges, title_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from memtool.commands.log import LogEntry
    from memtool.commands.session import SessionRow
    from memtool.commands.show import MemoryView
    from memtool.memory.memory import Memory
    from memtool.store.context import Context
    from memtool.store.tree import Tree
    from memtool.web.page import PageQuery

VERSIONS = 30
"""Changes of one memory that are offered to compare."""
SHOWN = 60
"""Changes on one page of the timeline."""
MAX_EVENTS = 5_000
"""Changes that a filter searches; for older ones a revision has to be given."""


class TimelineCommit(Value):
    """The changes of one commit; `commit` is empty for uncommitted ones."""

    commit: str
    author: str
    minute: str
    subject: str
    events: tuple[tuple[LogEntry, str], ...]
    pull_request: str
    co_authors: tuple[str, ...]


class TimelineDay(Value):
    """A day with its commits and the sessions that began on it."""

    date: str
    commits: tuple[TimelineCommit, ...]
    sessions: tuple[SessionRow, ...]


def memory_diff(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return a memory next to another one of its lineage, any other, or another revision of it.

    `with` names another memory, `old` and `new` revisions. The default is the memory that it
    replaced or that replaced it, else its first commit. `versions=1` also lists its revisions.
    """
    id_, old, new = query.text("id"), query.text("old"), query.text("new")
    here = show(context, id_, at=new or None)
    chosen = query.text("with")
    lineage = [*_find_ids(here, "supersedes"), *here.superseded_by]
    other = chosen or ("" if old else next(iter(lineage), ""))
    own: list[LogEntry] = []
    if query.text("versions") == "1" or not (other or old):  # history takes far longer than a text
        events = log(context, here.id, limit=VERSIONS).events
        own = [event for event in events if event.id == here.id and event.commit]
    if other:
        before, after = show(context, other, at=old or None), here
        if not chosen and before.id in here.superseded_by:
            before, after = here, before
    else:
        old = old or (own[-1].commit if own else "")
        if not old:
            raise MemtoolError(
                f"cannot compare {here.id}: it is not committed, and replaces nothing",
                hint=f"name another memory: /m/{here.id}/diff?with=ID",
                code="no-revision",
            )
        before, after = show(context, here.id, at=old), here
    return compare_memories(before, after) | {
        "id": here.id,
        "old": old,
        "new": new,
        "lineage": list(dict.fromkeys(id_ for id_ in lineage if id_)),
        "versions": own,
        "notes": list(dict.fromkeys(context.notes)),
    }


def compare_memories(before: MemoryView | Memory, after: MemoryView | Memory) -> dict[str, Any]:
    """Return the comparison of two memories, the later one on the right."""
    return {
        "title": f"Compare: {after.title}",
        "id": after.id,
        "before": before,
        "after": after,
        "old": "",
        "new": "",
        "keys": compare.compare_keys(before.fields, after.fields),
        "lines": compare.compare_lines(before.body, after.body),
        "lineage": (),
        "versions": (),
        "notes": (),
    }


def _find_ids(shown: MemoryView, name: str) -> tuple[str, ...]:
    ids = shown.fields.get(name, ())
    return ids if isinstance(ids, tuple) else ()


def changes(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return what changed between two revisions, in memory terms."""
    range_ = query.text("range")
    diff = diff_of(context, range_)
    ranges = propose_ranges(context)
    return {
        "title": title_range("Changes", range_, ranges)
        if range_
        else "Changes that are not committed",
        "asked": range_,
        "found": diff,
        "ranges": ranges,
        "rows": [(change, describe_change(change)) for change in diff.changes],
        "notes": [*context.notes],
    }


def timeline(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the history by day, newest first: changes of memories, and sessions next to them.

    Filters are `kind`, `author` and `agent`; `offset` leads to older ones.
    """
    kind, author, agent = query.text("kind"), query.text("author"), query.text("agent")
    if kind and kind not in KINDS:
        raise MemtoolError(f"unknown kind {kind[:40]!r}", hint=f"the kinds are {', '.join(KINDS)}")
    at = query.text("at") or None
    offset = query.number("offset", 0, MAX_EVENTS)
    is_filtered = bool(kind or author)
    wanted = MAX_EVENTS if is_filtered else offset + SHOWN
    history = log(context, at=at, limit=wanted)
    events = [
        event
        for event in history.events
        if kind in ("", event.kind)
        and any(author.lower() in name.lower() for name in (event.author, *event.co_authors))
    ]
    shown = events[offset : offset + SHOWN]
    sessions = [] if at else _list_sessions(context, agent)
    next_offset = (
        offset + SHOWN
        if len(events) > offset + SHOWN or (history.has_more and not is_filtered)
        else 0
    )
    days = group_by_day(shown, sessions, is_first=not offset, is_last=not next_offset)
    tree = index.open(context, at)
    return draw_timeline(tree, shown, days, [*context.settings.categories]) | {
        "title": "Timeline",
        "query": query,
        "kinds": KINDS,
        "kind": kind,
        "author": author,
        "agent": agent,
        "authors": sorted(
            {name for event in history.events for name in (event.author, *event.co_authors) if name}
        ),
        "agents": sorted({session.agent for session in sessions if session.agent}),
        "offset": offset,
        "size": SHOWN,
        "more": next_offset,
        "notes": [*context.notes],
    }


def draw_timeline(
    tree: Tree, events: Sequence[LogEntry], days: list[TimelineDay], order: Sequence[str]
) -> dict[str, Any]:
    """Return the days of a timeline, and the picture of them with a lane for each category."""
    records = tree.with_ids({event.id for event in events})
    categories = {record.id: record.memory.category for record in records}
    sessions = [session for day in days for session in day.sessions]
    picture = draw_lanes(list_events(events, sessions, categories), order)
    return {"days": days, "picture": picture, "signs": SIGNS, "name_row": name_row}


def _list_sessions(context: Context, agent: str) -> list[SessionRow]:
    rows = session_list(context, limit=0).sessions
    return [session for session in rows if agent in ("", session.agent)]


def group_by_day(
    events: Iterable[LogEntry], sessions: Iterable[SessionRow], *, is_first: bool, is_last: bool
) -> list[TimelineDay]:
    """Return events and sessions by day, newest first; sessions outside of the page are left out.

    `is_first` and `is_last` say that the page is open towards newer or older ones.
    """
    by_day: dict[str, list[TimelineCommit]] = {}
    for commit, group in groupby(events, key=lambda event: event.commit):
        same = tuple(group)
        first = same[0]
        described = tuple((event, _describe(event)) for event in same)
        minute = first.date[11:16]
        made = TimelineCommit(
            commit,
            first.author,
            minute,
            first.subject,
            described,
            first.pull_request,
            first.co_authors,
        )
        by_day.setdefault(first.date[:10], []).append(made)
    dates = sorted(date for date in by_day if date)
    begun: dict[str, list[SessionRow]] = {}
    for session in sessions:
        date = session.started[:10]
        after_first = is_first or (bool(dates) and date <= dates[-1])
        if after_first and (is_last or (bool(dates) and date >= dates[0])):
            begun.setdefault(date, []).append(session)
    order = sorted({*by_day, *begun}, key=lambda date: (date == "", date), reverse=True)
    return [
        TimelineDay(date, tuple(by_day.get(date, ())), tuple(begun.get(date, ()))) for date in order
    ]


def _describe(event: LogEntry) -> str:
    """Return a change in words, without a reason that is shown separately."""
    summary = describe_change(Change(event.kind, event.id, event.title, event.path, event.details))
    reason = event.reason if event.details.get("reason") != event.reason else ""
    return "; ".join(filter(None, (summary, reason)))
