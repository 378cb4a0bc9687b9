"""Private pages: sessions, one session, findings and candidates from them."""

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
    """A memory that needs a confirmation, with the days left for it."""

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
    listed = session_list(context, limit=limit if not status else 0)
    chosen = [session for session in listed.sessions if status in ("", session.status)]
    has_more = listed.total > limit if not status else len(chosen) > limit
    return {
        "title": "Sessions",
        "query": query,
        "status": status,
        "statuses": STATUSES,
        "total": listed.total if not status else len(chosen),
        "size": listed.size,
        "rows": chosen[:limit],
        "more": limit + SHOWN if has_more else 0,
        "notes": [*context.notes],
    }


def session(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return one session: its messages, what came before a fork, checkpoints and findings."""
    limit = query.number("limit", MESSAGES, 100_000)
    view = session_show(context, query.text("id"), limit=limit)
    taught = promote(context, view.session.id, list=True, dismissed=True).findings
    return {
        "title": view.session.title or view.session.id,
        "found": view,
        "head": view.session,
        "findings": taught,
        "more": limit + MESSAGES if view.hidden_count else 0,
        "notes": list(dict.fromkeys(context.notes)),
    }


def findings(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the findings with their points, qualified ones first, and candidates.

    Dismissed findings are a list of their own.
    """
    preset = query.text("preset") or context.settings.text("promote.preset")
    _refuse_unknown("preset", preset, tuple(PRESETS))
    findings = promote(
        context,
        query.text("session"),
        list=True,
        dismissed=True,
        preset=preset,  # type: ignore[arg-type]
    ).findings
    rows = sorted(
        (finding for finding in findings if not finding.dismissed),
        key=lambda finding: (finding.promoted, bool(finding.why), -finding.points, finding.id),
    )
    return {
        "title": "Findings",
        "query": query,
        "preset": preset,
        "presets": tuple(PRESETS),
        "least": PRESETS[preset],
        "rows": rows[:SHOWN],
        "hidden": max(0, len(rows) - SHOWN),
        "dismissed": [finding for finding in findings if finding.dismissed],
        "is_open": is_open,
        "candidates": list_candidates(context),
        "notes": list(dict.fromkeys(context.notes)),
    }


def _refuse_unknown(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise MemtoolError(
            f"unknown {name} {value[:40]!r}",
            hint=f"one of {', '.join(filter(None, choices))}",
            code="usage",
        )


def is_open(row: FindingRow) -> bool:
    """Return whether a finding qualifies and was not promoted yet."""
    return not (row.promoted or row.why)


def list_candidates(context: Context) -> list[CandidateRow]:
    """Return the unconfirmed candidates, those with the least time left first."""
    tree, categories = index.open(context), context.settings.categories
    mask = Mask(context.settings)
    candidates = []
    for record in tree.records:
        memory = record.memory
        if memory.status != "candidate" or not tree.lineage.is_head(record.id):
            continue
        end = lifecycle.find_expiry(memory, categories)
        days_left = None if end is None else (end - context.clock.now) // timestamps.DAY_S
        sources = mask.line(", ".join(memory.items("source")))
        written = memory.text("timestamp")
        candidates.append(
            CandidateRow(
                record.id, mask.line(memory.title), memory.confidence, sources, written, days_left
            )
        )
    return sorted(candidates, key=lambda row: (row.days_left is None, row.days_left or 0, row.id))
