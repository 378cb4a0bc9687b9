"""Private pages: sessions, one session, findings and candidates from them."""

from __future__ import annotations

from memtool.commands.promote import SIGNAL_WORDS, FindingRow, promote
from memtool.commands.session import session_list, session_show
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import lifecycle, timestamps
from memtool.redaction.mask import Mask
from memtool.sessions.model import PRESETS, STATUSES
from memtool.value import Value
from memtool.web.actions import MemoryState, list_actions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

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


class Lesson(Value):
    """A statement, with the findings of all sessions and commits that made it, the best first."""

    rows: tuple[FindingRow, ...]

    @property
    def first(self) -> FindingRow:
        """The finding to promote; the one that was promoted, if one was."""
        return self.rows[0]

    @property
    def text(self) -> str:
        """What it says; a commit's statement begins with its title."""
        row = self.first
        is_titled = row.title and not row.content.startswith(row.title)
        return f"{row.title}: {row.content}" if row.commit and is_titled else row.content

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all its findings."""
        return tuple(row.id for row in self.rows)

    @property
    def is_open(self) -> bool:
        """Whether it has the evidence that it needs, and was not promoted yet."""
        return not (self.first.promoted or self.first.why)


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
        "lessons": group_lessons(taught),
        "signal_words": SIGNAL_WORDS,
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
    lessons = group_lessons([finding for finding in findings if not finding.dismissed])
    return {
        "title": "Lessons",
        "query": query,
        "preset": preset,
        "presets": tuple(PRESETS),
        "signal_words": SIGNAL_WORDS,
        "lessons": lessons[:SHOWN],
        "hidden": max(0, len(lessons) - SHOWN),
        "dismissed": group_lessons([finding for finding in findings if finding.dismissed]),
        "candidates": list_candidates(context),
        "candidate_actions": list_actions(MemoryState("candidate", True), ("confirm", "forget")),
        "notes": list(dict.fromkeys(context.notes)),
    }


def group_lessons(rows: Sequence[FindingRow]) -> list[Lesson]:
    """Return what was said, each statement once, those that can be promoted first."""
    groups: dict[str, list[FindingRow]] = {}
    for row in rows:
        groups.setdefault(" ".join(row.content.split()), []).append(row)
    lessons = [
        Lesson(tuple(sorted(group, key=lambda row: (not row.promoted, -row.points, row.id))))
        for group in groups.values()
    ]
    return sorted(
        lessons,
        key=lambda lesson: (
            lesson.first.promoted,
            bool(lesson.first.why),
            -lesson.first.points,
            lesson.first.id,
        ),
    )


def _refuse_unknown(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise MemtoolError(
            f"unknown {name} {value[:40]!r}",
            hint=f"one of {', '.join(filter(None, choices))}",
            code="usage",
        )


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
