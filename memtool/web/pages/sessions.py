"""Pages of what is private here: sessions, one session, findings and the candidates of them."""

from __future__ import annotations

from memtool.commands.promote import promote
from memtool.commands.session import session_list, session_show
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import lifecycle, timestamps
from memtool.redaction.mask import Mask
from memtool.sessions.model import PRESETS, STATUSES
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.commands.promote import FindingRow
    from memtool.store.context import Context
    from memtool.web.page import PageQuery

SHOWN = 50
MESSAGES = 100
"""Messages of a session on its page, the last ones."""


class CandidateRow(Value):
    """A memory that waits for somebody, with the days that are left to confirm it."""

    id: str
    title: str
    confidence: str
    source: str
    written: str
    days_left: int | None


def sessions(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the sessions of this clone, newest first, all or those of a status."""
    status = query.text("status")
    _refuse_unknown("status", status, ("", *STATUSES))
    limit = query.number("limit", SHOWN, 100_000) or SHOWN
    found = session_list(context, limit=limit if not status else 0)
    chosen = [one for one in found.sessions if status in ("", one.status)]
    more = found.total > limit if not status else len(chosen) > limit
    return {
        "title": "Sessions",
        "query": query,
        "status": status,
        "statuses": STATUSES,
        "total": found.total if not status else len(chosen),
        "size": found.size,
        "rows": chosen[:limit],
        "more": limit + SHOWN if more else 0,
        "notes": [*context.notes],
    }


def session(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return one session: its messages, what came before a fork, checkpoints and findings."""
    limit = query.number("limit", MESSAGES, 100_000)
    found = session_show(context, query.text("id"), limit=limit)
    taught = promote(context, found.session.id, list=True, dismissed=True).findings
    return {
        "title": found.session.title or found.session.id,
        "found": found,
        "head": found.session,
        "findings": taught,
        "more": limit + MESSAGES if found.more else 0,
        "notes": list(dict.fromkeys(context.notes)),
    }


def findings(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the findings with their points, those that qualify first, and candidates.

    What was dismissed is a list of its own.
    """
    preset = query.text("preset") or context.settings.text("promote.preset")
    _refuse_unknown("preset", preset, tuple(PRESETS))
    found = promote(
        context,
        query.text("session"),
        list=True,
        dismissed=True,
        preset=preset,  # type: ignore[arg-type]
    ).findings
    rows = sorted(
        (one for one in found if not one.dismissed),
        key=lambda one: (one.promoted, bool(one.why), -one.points, one.id),
    )
    return {
        "title": "Findings",
        "query": query,
        "preset": preset,
        "presets": tuple(PRESETS),
        "least": PRESETS[preset],
        "rows": rows[:SHOWN],
        "hidden": max(0, len(rows) - SHOWN),
        "dismissed": [one for one in found if one.dismissed],
        "is_open": is_open,
        "candidates": candidates(context),
        "notes": list(dict.fromkeys(context.notes)),
    }


def _refuse_unknown(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise MemtoolError(
            f"no {name} is called {value[:40]!r}",
            hint=f"one of {', '.join(filter(None, known))}",
            code="usage",
        )


def is_open(row: FindingRow) -> bool:
    """Tell whether a finding qualifies and is no memory yet."""
    return not (row.promoted or row.why)


def candidates(context: Context) -> list[CandidateRow]:
    """Return the candidates that nobody has confirmed, those with the least time left first."""
    tree, categories = index.open(context), context.settings.categories
    mask = Mask(context.settings)
    found = []
    for one in tree.records:
        memory = one.memory
        if memory.status != "candidate" or not tree.lineage.is_head(one.id):
            continue
        end = lifecycle.expires_at(memory, categories)
        left = None if end is None else (end - context.clock.now) // timestamps.DAY_S
        sources = mask.line(", ".join(memory.items("source")))
        written = memory.text("timestamp")
        found.append(
            CandidateRow(one.id, mask.line(memory.title), memory.confidence, sources, written, left)
        )
    return sorted(found, key=lambda row: (row.days_left is None, row.days_left or 0, row.id))
