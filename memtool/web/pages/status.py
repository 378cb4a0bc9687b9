"""The first page: what needs attention, what changed since the reader was here, use and health."""

from __future__ import annotations

from bisect import bisect_left

from memtool.commands.log import log
from memtool.commands.status import status as status_of
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import timestamps
from memtool.search.features import PROPOSES_TO_REPLACE
from memtool.search.stages import overlay_tree
from memtool.store import ledger
from memtool.store.git import GitError
from memtool.value import Value
from memtool.web import visits
from memtool.web.pages.reports import UsePlot, find_never_used, use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from memtool.commands.log import LogEntry
    from memtool.commands.status import Status
    from memtool.store.context import Context
    from memtool.store.ledger import UsageCount
    from memtool.store.tree import Tree
    from memtool.web.page import PageQuery
    from memtool.web.visits import Visit

LAST = 8
"""Changes that the static site shows."""
NEW = 12
"""Changes since the last visit that are shown."""
SEARCHED = 200
"""Changes among which those since the last visit are looked for."""
MAX_COMMITS = 10_000
FIRST_S = 14 * timestamps.DAY_S
"""Seconds back from now that the first visit is told about."""
WAITING = 3
"""Memories of one thing that waits that are shown."""
USED = 5
MONTHS = 12
WIDTH, HEIGHT = 480, 80
"""Of the curve of growth, in pixels."""
_YEAR_MONTHS = 12


class Card(Value):
    """A thing that needs attention: how many memories, the first of them, and where to go.

    A row is the id of a memory and what is to be said about it. `address` leads to all of them,
    with the buttons for what `action` says; empty if no page does. `command` is for a server that
    only reads. `tone` is the urgency: `bad`, `waits`, or empty.
    """

    heading: str
    count: int
    rows: tuple[tuple[str, str], ...] = ()
    address: str = ""
    action: str = ""
    command: str = ""
    tone: str = "waits"
    text: str = ""


class News(Value):
    """Changes of memories in commits that the reader has not been told about, newest first.

    `since` is the day from which on they count, `commit` the last one that was known, empty if it
    is not here. `is_first` says that there was no visit before. `has_more`: they are not all.
    """

    events: tuple[LogEntry, ...]
    since: str
    commit: str
    is_first: bool
    has_more: bool


class Use(Value):
    """How the memories are used in this clone: a plot by day, those used most, and those never.

    `last_given` is the moment when an agent was given any, empty if none was.
    """

    plot: UsePlot | None
    top: tuple[UsageCount, ...]
    never: int
    last_given: str


class Upkeep(Value):
    """When upkeep was last done in this clone, and is due next, by period.

    A moment is empty if it is due now. Without a schedule in the settings nothing is due.
    """

    last: tuple[tuple[str, str], ...]
    due: tuple[tuple[str, str], ...]


def status(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return what needs attention, news, growth, use and health."""
    at = query.text("at") or None
    status = status_of(context, at=at)
    notes = [*context.notes]
    tree = index.open(context, at)
    return build_overview(context, status, at, WAITING) | {
        "news": find_news(context, visits.read(context.repository.cache_dir), at),
        "use": _find_use(context, tree, notes),
        "upkeep": _find_upkeep(context),
        "notes": notes,
    }


def build_overview(context: Context, status: Status, at: str | None, limit: int) -> dict[str, Any]:
    """Return counts, growth, and what needs attention, at most `limit` memories of each kind."""
    cards = [card.replace(rows=card.rows[:limit]) for card in _list_cards(status) if card.count]
    tree = index.open(context, at)
    if status.ahead.added:
        tree = overlay_tree(context, tree, context.clock.now)
    titles = {
        record.id: record.memory.title
        for record in tree.with_ids({id_ for card in cards for id_, _text in card.rows})
    }
    return {
        "title": "Status",
        "status": status,
        "tone": choose_tone(status, cards),
        "cards": cards,
        "titles": titles,
        "problems": [problem for problem in status.problems if problem.code != "fork"],
        "growth": build_growth(context, at),
        "news": None,
        "use": None,
        "upkeep": None,
        "notes": (),
    }


def _list_cards(status: Status) -> Iterator[Card]:
    """Yield what may need attention, the most urgent first; a count of 0 means that it does not."""
    details, name, ahead = status.details, status.trusted_name, status.ahead
    errors = [problem for problem in status.problems if problem.severity == "error"]
    yield Card("Files with errors", len(errors), (), "/#problems", "See what is wrong", "", "bad")
    yield Card(
        "Conflicts to settle",
        len(details.conflicts),
        tuple((newest, f"against {', '.join(older)}") for newest, *older in details.conflicts),
        "/conflicts",
        "Settle them",
        "memtool conflicts",
        "bad",
    )
    yield Card(
        "Drifted from the code",
        len(status.drifted),
        _row_each(status.drifted),
        "/list?q=is:drifted",
        "Confirm or correct them",
        "memtool drift",
        "bad",
    )
    yield Card(
        "Unsettled",
        len(status.unsettled),
        tuple((id_, details.causes.get(id_, "")) for id_ in status.to_settle),
        "/list?q=is:unsettled",
        "See what they rest on",
        "memtool list is:unsettled",
        "bad",
    )
    yield Card(
        "Not committed",
        len(status.uncommitted),
        _row_each(status.uncommitted),
        "/changes",
        "See what changed",
        "git add and git commit",
    )
    yield Card(
        "Candidates to confirm",
        len(status.candidates),
        tuple(
            (id_, "low confidence" if id_ in status.needs_person else "")
            for id_ in sorted(status.candidates, reverse=True)
        ),
        "/list?q=is:candidate",
        "Confirm or forget them",
        "memtool confirm ID",
    )
    yield Card(
        "Expire soon",
        len(status.expiring),
        _row_days(status.expiring, "on", details.expiry),
        "/list?q=is:expiring",
        "Confirm or archive them",
        "memtool confirm ID",
    )
    yield Card(
        "Lessons from sessions",
        status.findings,
        (),
        "/findings",
        "Promote or dismiss them",
        "memtool promote",
        text="What agents learned while they worked, with enough evidence to become memories.",
    )
    yield Card(
        "Due for review",
        len(status.due),
        _row_days(status.due, "since", details.due),
        "/list?q=is:due",
        "Confirm or archive them",
        "memtool confirm ID",
    )
    yield Card(
        "May contradict each other",
        status.suspected or 0,
        (),
        "/conflicts",
        "Compare them",
        "memtool conflicts",
        text="Pairs that speak of the same thing in different numbers or words.",
    )
    yield Card(
        "Would replace another",
        len(status.proposals),
        tuple(_split_proposals(status.proposals)),
        "/list?q=is:candidate",
        "Confirm or archive them",
        "memtool confirm ID",
    )
    range_ = f"/changes?range=HEAD..{name}"
    merge = f"git merge {name}"
    both = ((f"Changed on {name}", ahead.changed), (f"New on {name}", ahead.added))
    for heading, ids in both:
        yield Card(heading, len(ids), _row_each(ids), range_, "See the changes", merge, "")
    yield Card(
        "Planned for candidates",
        status.curation,
        (),
        "/list?q=is:candidate",
        "Decide yourself",
        "memtool curate --waiting",
        "",
        text="Steps that memtool has planned; none is taken before you agree.",
    )


def _row_each(ids: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((id_, "") for id_ in ids)


def _row_days(
    ids: Iterable[str], word: str, days: dict[str, str] | Any
) -> tuple[tuple[str, str], ...]:
    """Return a row for each id with its day, the earliest first."""
    ordered = sorted(ids, key=lambda id_: (days.get(id_, ""), id_))
    return tuple((id_, f"{word} {days[id_]}" if id_ in days else "") for id_ in ordered)


def _split_proposals(proposals: Iterable[str]) -> Iterator[tuple[str, str]]:
    for sentence in proposals:
        new, _middle, old = sentence.partition(PROPOSES_TO_REPLACE)
        yield new, f"for {old}"


def choose_tone(status: Status, cards: list[Card]) -> tuple[str, str]:
    """Return how the store is, in a word for the style and in a sentence."""
    if status.exit_code:
        return "bad", "Some files have errors; the other memories are as always."
    if not cards:
        return "good", "All is well: nothing needs attention."
    count = sum(card.count for card in cards if card.tone)
    if not count:
        return "good", "Nothing here needs attention."
    return "waits", f"{count:,} {'thing needs' if count == 1 else 'things need'} attention."


def find_news(context: Context, visit: Visit, at: str | None = None) -> News:
    """Return what was committed since the visit before, or in the last two weeks."""
    is_first = not visit.since_second
    start = timestamps.render(visit.since_second or context.clock.now - FIRST_S)
    commits = _list_commits(context, visit.since, at or "HEAD")
    if commits is not None and not commits:
        return News((), start, visit.since, is_first, has_more=False)
    events = [event for event in log(context, at=at, limit=SEARCHED).events if event.commit]
    if commits is None:
        new = [event for event in events if event.date >= start]
    else:
        new = [event for event in events if event.commit in commits]
    since = visit.since if commits is not None else ""
    return News(tuple(new[:NEW]), start, since, is_first, len(new) > NEW)


def _list_commits(context: Context, since: str, until: str) -> frozenset[str] | None:
    """Return the commits of memories since one; None if that one is unknown or not here now."""
    if not since:
        return None
    options = f"--max-count={MAX_COMMITS}", "--full-history"
    try:
        text = context.repository.git.line(
            "rev-list", *options, f"{since}..{until}", "--", context.directory
        )
    except GitError:
        return None
    return frozenset(text.split())


def build_growth(context: Context, at: str | None) -> dict[str, Any]:
    """Return how many memories there were at the end of each of the last months, and a curve."""
    moments = sorted(index.open(context, at).moments)
    year, month = (int(part) for part in timestamps.render(context.clock.now)[:7].split("-"))
    counts = []
    for back in range(MONTHS - 1, -1, -1):
        number = year * _YEAR_MONTHS + month - back  # the month after
        end = timestamps.start(f"{number // _YEAR_MONTHS:04}-{number % _YEAR_MONTHS + 1:02}-01")
        name = f"{(number - 1) // _YEAR_MONTHS:04}-{(number - 1) % _YEAR_MONTHS + 1:02}"
        counts.append((name, bisect_left(moments, end)))
    maximum = max(count for _name, count in counts) or 1
    points = [
        (round(at * WIDTH / (MONTHS - 1), 1), round(HEIGHT - count * HEIGHT / maximum, 1))
        for at, (_name, count) in enumerate(counts)
    ]
    return {"counts": counts, "points": points, "width": WIDTH, "height": HEIGHT}


def _find_use(context: Context, tree: Tree, notes: list[str]) -> Use | None:
    """Return how the memories are used; None, with a note, if the ledger cannot be read."""
    try:
        blocks = log(context, injected=True, limit=1).injections or ()  # it reads the latest notes
        with ledger.open_ledger(context.repository.cache_dir) as usage:
            plot, top = use(usage.timings()), usage.most_shown("", USED)
    except MemtoolError as error:
        notes.append(error.message)
        return None
    return Use(
        plot,
        tuple(row for row in top if row.id in tree),
        len(find_never_used(context, tree)),
        blocks[0].moment if blocks else "",
    )


def _find_upkeep(context: Context) -> Upkeep:
    """Return when upkeep was done in this clone, and when it is due."""
    from memtool.commands.maintain import find_upkeep_times  # it loads all kinds of upkeep

    now = context.clock.now
    last, due = find_upkeep_times(context)
    return Upkeep(
        tuple((period, timestamps.render(moment)) for period, moment in sorted(last.items())),
        tuple(
            (period, "" if moment <= now else timestamps.render(moment))
            for period, moment in due.items()
        ),
    )
