"""The page of conflicts: what contradicts what, side by side, and how others were settled."""

from __future__ import annotations

from memtool.commands.conflicts import conflicts as conflicts_of
from memtool.commands.log import log
from memtool.index import index
from memtool.memory.memory import sections
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
MOST_SETTLED = 50
MOST_HISTORY = 200
"""Changes among which the acceptance of a conflict is looked for."""
REASON = "rationale"
FACTS = ("source", "author", "written", "committed", "confidence", "trust")


class Compared(Value):
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
        settled = settlements(context, tree, at)
        return values | {
            "settled": settled,
            "notes": [*context.notes],
            "title": "Settled conflicts",
        }
    found = conflicts_of(context, *named, at=at, since=since, limit=limit)
    tree = index.open(context, at)
    rows = [(row, _sides(tree, row)) for row in found.conflicts]
    return values | {
        "found": found,
        "rows": rows,
        "more": limit + SHOWN if found.total > len(rows) else 0,
        "notes": [*context.notes],
    }


def _sides(tree: Tree, row: ConflictRow) -> list[Compared]:
    """Return the sides of a conflict; each is compared with the first, and that with the second."""
    texts = [(one.title, tree[one.id].memory.statement) for one in row.sides]
    facts = [_facts(one) for one in row.sides]
    newest = max(row.sides, key=lambda one: (one.timestamp, one.id)).id
    sides = []
    for at, one in enumerate(row.sides):
        other = 0 if at else 1
        title = compare.words(texts[other][0], texts[at][0])[1]
        text = compare.words(texts[other][1], texts[at][1])[1]
        told = tuple(
            (name, value, value != facts[other][number][1])
            for number, (name, value) in enumerate(facts[at])
        )
        value = row.values[at] if row.values else ""
        sides.append(Compared(one, value, title, text, told, one.id == newest))
    return sides


def _facts(side: ConflictSide) -> list[tuple[str, str]]:
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


def settlements(context: Context, tree: Tree, at: str | None) -> list[Settlement]:
    """Return how conflicts were settled, the newest first.

    Where one memory replaced several it says why in its section Rationale; where both hold, the
    commit says it.
    """
    merged = [one for one in tree.records if len(one.memory.replaces) > 1]
    merged.sort(key=lambda one: (-one.memory.timestamp, one.id))
    merged = merged[:MOST_SETTLED]
    origins = context.origins(tree, merged)
    found = [
        Settlement(
            "replaced",
            one.id,
            one.memory.title,
            one.memory.supersedes,
            _rationale(one.memory.body),
            origins[one.path].author,
            one.memory.text("timestamp"),
        )
        for one in merged
    ]
    return sorted([*found, *_accepted(context, tree, at)], key=lambda one: one.date, reverse=True)


def _rationale(body: str) -> str:
    return next((one.text for one in sections(body) if one.title.lower() == REASON), "")


def _accepted(context: Context, tree: Tree, at: str | None) -> list[Settlement]:
    """Return the pairs of which each names the other as accepted, with the reason of the commit."""
    pairs = {
        tuple(sorted((one.id, other)))
        for one in tree.records
        for other in one.memory.items("conflicts_accepted")
        if other in tree
    }
    if not pairs:
        return []
    events = {
        event.id: event
        for event in reversed(log(context, at=at, limit=MOST_HISTORY).events)
        if "conflicts_accepted" in str(event.details.get("keys", ""))
    }
    found = []
    for first, second in sorted(pairs)[:MOST_SETTLED]:
        event = events.get(first) or events.get(second)
        found.append(
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
    return found
