"""Pages of history: two texts side by side, changes between two revisions, and the timeline."""

from __future__ import annotations

from itertools import groupby

from memtool.commands.diff import diff as diff_of
from memtool.commands.log import log
from memtool.commands.session import session_list
from memtool.commands.show import show
from memtool.errors import MemtoolError
from memtool.memory.changes import KINDS, Change, sentence
from memtool.value import Value
from memtool.web import compare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from memtool.commands.log import LogEntry
    from memtool.commands.session import SessionRow
    from memtool.commands.show import MemoryView
    from memtool.memory.memory import Memory
    from memtool.store.context import Context
    from memtool.web.page import PageQuery

VERSIONS = 30
"""Changes of one memory that are offered to compare."""
SHOWN = 60
"""Changes on one page of the timeline."""
MOST_EVENTS = 5_000
"""Changes that a filter looks through; what is older needs a revision to look back from."""


class TimelineCommit(Value):
    """The changes of one commit; `commit` is empty for what is not committed."""

    commit: str
    author: str
    minute: str
    subject: str
    events: tuple[tuple[LogEntry, str], ...]


class TimelineDay(Value):
    """A day with its commits and the sessions that began on it."""

    date: str
    commits: tuple[TimelineCommit, ...]
    sessions: tuple[SessionRow, ...]


def memory_diff(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return a memory beside another one of its lineage, any other, or another revision of it.

    `with` names another memory, `old` and `new` revisions. Without any, it is what it replaced or
    was replaced by, else how it was first committed. `versions=1` also lists its revisions.
    """
    id_, old, new = query.text("id"), query.text("old"), query.text("new")
    here = show(context, id_, at=new or None)
    given = query.text("with")
    lineage = [*_ids(here, "supersedes"), *here.superseded_by]
    other = given or ("" if old else next(iter(lineage), ""))
    own: list[LogEntry] = []
    if query.text("versions") == "1" or not (other or old):  # history takes far longer than a text
        events = log(context, here.id, limit=VERSIONS).events
        own = [one for one in events if one.id == here.id and one.commit]
    if other:
        before, after = show(context, other, at=old or None), here
        if not given and before.id in here.superseded_by:
            before, after = here, before
    else:
        old = old or (own[-1].commit if own else "")
        if not old:
            raise MemtoolError(
                f"{here.id} is in no commit, and replaces nothing",
                hint=f"name another memory: /m/{here.id}/diff?with=ID",
                code="no-revision",
            )
        before, after = show(context, here.id, at=old), here
    return side_by_side(before, after) | {
        "id": here.id,
        "old": old,
        "new": new,
        "lineage": list(dict.fromkeys(one for one in lineage if one)),
        "versions": own,
        "notes": list(dict.fromkeys(context.notes)),
    }


def side_by_side(before: MemoryView | Memory, after: MemoryView | Memory) -> dict[str, Any]:
    """Return what the page of two memories shows of one commit, the later one on the right."""
    return {
        "title": f"Compare: {after.title}",
        "id": after.id,
        "before": before,
        "after": after,
        "old": "",
        "new": "",
        "keys": compare.keys(before.fields, after.fields),
        "lines": compare.lines(before.body, after.body),
        "lineage": (),
        "versions": (),
        "notes": (),
    }


def _ids(shown: MemoryView, name: str) -> tuple[str, ...]:
    found = shown.fields.get(name, ())
    return found if isinstance(found, tuple) else ()


def changes(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return what changed between two revisions, in memory terms."""
    asked = query.text("range")
    found = diff_of(context, asked)
    return {
        "title": f"Changes: {asked}" if asked else "Changes that are not committed",
        "asked": asked,
        "found": found,
        "rows": [(one, sentence(one)) for one in found.changes],
        "notes": [*context.notes],
    }


def timeline(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return what happened by day, newest first: commits in memory terms, and sessions beside them.

    Filters are `kind`, `author` and `agent`; `offset` leads to what is older.
    """
    kind, author, agent = query.text("kind"), query.text("author"), query.text("agent")
    if kind and kind not in KINDS:
        raise MemtoolError(
            f"no change is of the kind {kind[:40]!r}", hint=f"one of {', '.join(KINDS)}"
        )
    offset = query.number("offset", 0, MOST_EVENTS)
    is_filtered = bool(kind or author)
    wanted = MOST_EVENTS if is_filtered else offset + SHOWN
    found = log(context, at=query.text("at") or None, limit=wanted)
    events = [
        one
        for one in found.events
        if kind in ("", one.kind) and author.lower() in one.author.lower()
    ]
    shown = events[offset : offset + SHOWN]
    sessions = _sessions(context, agent) if not query.text("at") else []
    more = offset + SHOWN if len(events) > offset + SHOWN or (found.more and not is_filtered) else 0
    return {
        "title": "Timeline",
        "query": query,
        "kinds": KINDS,
        "kind": kind,
        "author": author,
        "agent": agent,
        "authors": sorted({one.author for one in found.events if one.author}),
        "agents": sorted({one.agent for one in sessions if one.agent}),
        "days": days(shown, sessions, is_first=not offset, is_last=not more),
        "offset": offset,
        "size": SHOWN,
        "more": more,
        "notes": [*context.notes],
    }


def _sessions(context: Context, agent: str) -> list[SessionRow]:
    rows = session_list(context, limit=0).sessions
    return [one for one in rows if agent in ("", one.agent)]


def days(
    events: Iterable[LogEntry], sessions: Iterable[SessionRow], *, is_first: bool, is_last: bool
) -> list[TimelineDay]:
    """Return events and sessions by day, newest first; sessions outside of the page are left out.

    `is_first` and `is_last` say that the page is open towards what is newer, or older.
    """
    by_day: dict[str, list[TimelineCommit]] = {}
    for commit, group in groupby(events, key=lambda one: one.commit):
        same = tuple(group)
        first = same[0]
        told = tuple((one, _told(one)) for one in same)
        minute = first.date[11:16]
        made = TimelineCommit(commit, first.author, minute, first.subject, told)
        by_day.setdefault(first.date[:10], []).append(made)
    dates = sorted(date for date in by_day if date)
    begun: dict[str, list[SessionRow]] = {}
    for one in sessions:
        date = one.started[:10]
        after_first = is_first or (bool(dates) and date <= dates[-1])
        if after_first and (is_last or (bool(dates) and date >= dates[0])):
            begun.setdefault(date, []).append(one)
    order = sorted({*by_day, *begun}, key=lambda date: (date == "", date), reverse=True)
    return [
        TimelineDay(date, tuple(by_day.get(date, ())), tuple(begun.get(date, ()))) for date in order
    ]


def _told(one: LogEntry) -> str:
    """Return what happened in words; a reason that is told with them is not told twice."""
    said = sentence(Change(one.kind, one.id, one.title, one.path, one.details))
    reason = one.reason if one.details.get("reason") != one.reason else ""
    return "; ".join(filter(None, (said, reason)))
