"""The status page: overall state, open items, latest events."""

from __future__ import annotations

from bisect import bisect_left

from memtool.commands.log import log
from memtool.commands.status import status as status_of
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.inject import session_seen
from memtool.memory import timestamps
from memtool.search.stages import overlay_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.commands.status import Status
    from memtool.store.context import Context
    from memtool.web.page import PageQuery

LAST = 8
"""Changes that are shown."""
WAITING = 5
"""Memories of one thing that waits that are shown."""
MORE = {
    "waiting to be confirmed": "is:candidate",
    "waiting for a person, since their confidence is low": "is:candidate confidence:low",
    "contradicting each other": "is:conflicted",
    "drifted from the code": "is:drifted",
    "due for review": "is:due",
}
"""The search that shows all of what waits, by its name."""
MONTHS = 12
WIDTH, HEIGHT = 480, 80
"""Of the curve of growth, in pixels."""
_YEAR_MONTHS = 12


def status(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return counts, what waits, problems, the last changes and the last injection."""
    at = query.text("at") or None
    status = status_of(context, at=at)
    notes = [*context.notes]
    return build_overview(context, status, at, WAITING) | {
        "more": MORE,
        "findings": session_seen.count_waiting(context.repository.cache_dir),
        "events": log(context, limit=LAST, at=at).events,
        "injected": _last_injected_at(context),
        "notes": notes,
    }


def build_overview(context: Context, status: Status, at: str | None, limit: int) -> dict[str, Any]:
    """Return counts, growth, and open items, at most `limit` memories for each reason."""
    waiting = [
        (name, ids[:limit], len(ids), hint) for name, ids, hint in status.list_waiting() if ids
    ]
    waiting += _list_ahead(status, limit)
    tree = index.open(context, at)
    if status.ahead.added:
        tree = overlay_tree(context, tree, context.clock.now)
    named = tree.with_ids({id_ for _name, ids, _count, _hint in waiting for id_ in ids})
    return {
        "title": "Status",
        "status": status,
        "tone": choose_tone(status),
        "waiting": waiting,
        "titles": {record.id: record.memory.title for record in named},
        "growth": build_growth(context, at),
    }


def _list_ahead(status: Status, limit: int) -> list[tuple[str, tuple[str, ...], int, str]]:
    """Return the changes of the trusted branch that this one does not have, as open items."""
    name, ahead = status.trusted_name, status.ahead
    rows = (
        (f"changed on {name} since this branch began", ahead.changed),
        (f"on {name}, not in this branch yet", ahead.added),
    )
    hint = f"git merge {name}"
    return [(what, ids[:limit], len(ids), hint) for what, ids in rows if ids]


def choose_tone(status: Status) -> tuple[str, str]:
    """Return how the store is, in a word for the style and in a sentence."""
    if status.exit_code:
        return "bad", "Some files are wrong."
    if any(ids for _name, ids, _hint in status.list_waiting()) or status.upkeep or status.curation:
        return "waits", "All files are right; something waits for you."
    return "good", "All is well, nothing waits."


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


def _last_injected_at(context: Context) -> str:
    """Return the moment of the last injection in this clone; empty if unknown."""
    try:
        rows = log(context, injected=True, limit=1).injections or ()
    except MemtoolError:  # the ledger cannot be read; `doctor` says why
        return ""
    return rows[0].moment if rows else ""
