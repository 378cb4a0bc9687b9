"""The page of conflicts: what contradicts what, side by side, and how others were settled."""

from __future__ import annotations

from memtool.commands.conflicts import conflicts as conflicts_of
from memtool.commands.log import log
from memtool.index import index
from memtool.memory.memory import split_sections
from memtool.search.conflicts import KINDS
from memtool.value import Value
from memtool.web import compare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.commands.conflicts import ConflictRow, ConflictSide
    from memtool.store.context import Context
    from memtool.store.tree import Tree
    from memtool.web.compare import Span
    from memtool.web.page import PageQuery

SHOWN = 20
"""Conflicts of a page; each is a wide table."""
MAX_SETTLED = 50
MAX_HISTORY = 200
"""Changes among which the acceptance of a conflict is looked for."""
REASON = "rationale"
FACTS = ("source", "author", "written", "committed", "confidence", "trust")


class ComparedSide(Value):
    """One side of a conflict: its facts, and its words with those marked that differ."""

    side: ConflictSide
    value: str
    title: tuple[Span, ...]
    text: tuple[Span, ...]
    facts: tuple[tuple[str, str, bool], ...]
    is_newest: bool


class Settlement(Value):
    """A conflict that was settled: by a memory that replaced all sides, or as one that may stay."""

    how: str
    id: str
    title: str
    ids: tuple[str, ...]
    reason: str
    author: str
    date: str


def conflicts(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the conflicts with their sides compared, or the settled ones with their reasons."""
    at, since, named = query.text("at") or None, query.text("since"), query.many("id")
    limit = query.number("limit", SHOWN) or SHOWN
    values: dict[str, Any] = {
        "query": query,
        "kinds": KINDS,
        "is_history": query.text("accepted") == "1",
        "title": "Conflicts",
    }
    if values["is_history"]:
        tree = index.open(context, at)
        settled = find_settlements(context, tree, at)
        return values | {
            "settled": settled,
            "notes": [*context.notes],
            "title": "Settled conflicts",
        }
    report = conflicts_of(context, *named, at=at, since=since, limit=limit)
    tree = index.open(context, at)
    rows = [(row, _compare_sides(tree, row)) for row in report.conflicts]
    return values | {
        "found": report,
        "rows": rows,
        "more": limit + SHOWN if report.total > len(rows) else 0,
        "notes": [*context.notes],
    }


def _compare_sides(tree: Tree, row: ConflictRow) -> list[ComparedSide]:
    """Return the sides of a conflict; each is compared with the first, and that with the second."""
    texts = [(side.title, tree[side.id].memory.statement) for side in row.sides]
    facts = [_list_facts(side) for side in row.sides]
    newest = max(row.sides, key=lambda side: (side.timestamp, side.id)).id
    sides = []
    for at, side in enumerate(row.sides):
        other = 0 if at else 1
        title = compare.compare_words(texts[other][0], texts[at][0])[1]
        text = compare.compare_words(texts[other][1], texts[at][1])[1]
        shown = tuple(
            (name, value, value != facts[other][number][1])
            for number, (name, value) in enumerate(facts[at])
        )
        value = row.values[at] if row.values else ""
        sides.append(ComparedSide(side, value, title, text, shown, side.id == newest))
    return sides


def _list_facts(side: ConflictSide) -> list[tuple[str, str]]:
    written, committed = (moment[:16].replace("T", " ") for moment in (side.timestamp, side.date))
    values = (
        ", ".join(side.source),
        side.author or "nobody yet",
        written,
        committed or "not committed",
        side.confidence,
        side.trust,
    )
    return list(zip(FACTS, values, strict=True))


def find_settlements(context: Context, tree: Tree, at: str | None) -> list[Settlement]:
    """Return how conflicts were settled, the newest first.

    Where one memory replaced several it says why in its section Rationale; where both hold, the
    commit says it.
    """
    merged = [record for record in tree.records if len(record.memory.replaces) > 1]
    merged.sort(key=lambda record: (-record.memory.timestamp, record.id))
    merged = merged[:MAX_SETTLED]
    origins = context.origins(tree, merged)
    settled = [
        Settlement(
            "replaced",
            record.id,
            record.memory.title,
            record.memory.supersedes,
            _find_rationale(record.memory.body),
            origins[record.path].author,
            record.memory.text("timestamp"),
        )
        for record in merged
    ]
    return sorted(
        [*settled, *_find_accepted(context, tree, at)], key=lambda record: record.date, reverse=True
    )


def _find_rationale(body: str) -> str:
    return next(
        (section.text for section in split_sections(body) if section.title.lower() == REASON), ""
    )


def _find_accepted(context: Context, tree: Tree, at: str | None) -> list[Settlement]:
    """Return the pairs that name each other as accepted, with the reason from the commit."""
    pairs = {
        tuple(sorted((record.id, other)))
        for record in tree.records
        for other in record.memory.items("conflicts_accepted")
        if other in tree
    }
    if not pairs:
        return []
    events = {
        event.id: event
        for event in reversed(log(context, at=at, limit=MAX_HISTORY).events)
        if "conflicts_accepted" in str(event.details.get("keys", ""))
    }
    accepted = []
    for first, second in sorted(pairs)[:MAX_SETTLED]:
        event = events.get(first) or events.get(second)
        accepted.append(
            Settlement(
                "both hold",
                first,
                tree[first].memory.title,
                (first, second),
                (event.reason or event.subject) if event else "",
                event.author if event else "",
                event.date if event else "",
            )
        )
    return accepted
