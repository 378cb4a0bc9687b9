"""The search page: what was found, by which factors, and what a gate held back."""

from __future__ import annotations

from collections import Counter

from memtool.commands import _features
from memtool.commands.search import search as searched
from memtool.errors import MemtoolError
from memtool.index import analyzer
from memtool.index.keys import LANGUAGE_KEY
from memtool.memory.fields import STATUSES, TYPES
from memtool.search import snippet
from memtool.search.saved import saved_queries
from memtool.search.sources import ALL_OTHERS
from memtool.web.page import MOST_ROWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.search.saved import Saved
    from memtool.store.context import Context
    from memtool.web.page import PageQuery

FACETS = ("type", "category", "status", "trust", "confidence")
LINKED = ("type", "category", "status", "confidence")
"""Facets that narrow a search down; trust is asked with `is:`."""
MORE = "--limit"
"""Stands in the note that there is more, to which a link of the page leads."""
SHOWN = 10


def search(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the answer to a question with its facets; without a question, the form alone."""
    words, explain = query.text("q"), query.text("explain") == "1"
    boxes = _features.search_boxes(context)
    asked = " ".join(filter(None, [words, *_filters(query)]))
    values: dict[str, Any] = {
        "title": f"Search: {words}" if words else "Search",
        "query": query,
        "words": words,
        "asked": asked,
        "types": TYPES,
        "statuses": STATUSES,
        "linked": LINKED,
        "categories": sorted(context.settings.categories),
        "explain": explain,
        "boxes": boxes,
        "found": None,
        "facets": {},
        "notes": [],
        "more": 0,
        "saved": (),
    }
    if not asked:
        return values | {"saved": _saved(context), "notes": [*context.notes]}
    limit, offset = query.number("limit", SHOWN), query.number("offset", 0, 100_000)
    found = searched(
        context,
        asked,
        limit=limit or MOST_ROWS,
        offset=offset,
        explain=explain,
        at=query.text("at") or None,
        as_of=query.text("as_of") or None,
        **{name: True for name in boxes if query.text(name) == "1"},  # type: ignore[arg-type]
    )
    language = context.settings.text(LANGUAGE_KEY)
    said = " ".join(word for word in words.split() if ":" not in word)  # filters stand in no text
    wanted = set(analyzer.terms(said, language))
    others = sum(bool(one.repository) for one in found.results)
    shown = offset + len(found.results) - others
    shown_others = others + (offset if found.is_elsewhere else 0)
    return values | {
        "found": found,
        "marked": lambda text: snippet.marked(text, wanted, language),
        "facets": _facets(found.results),
        "notes": [] if explain else [one for one in context.notes if MORE not in one],
        "first": offset,
        "more": shown if shown < found.total - found.others else 0,
        "more_others": shown_others if others and shown_others < found.others else 0,
        "of_others": words if found.is_elsewhere else f"{words} {ALL_OTHERS}",
    }


def _saved(context: Context) -> tuple[Saved, ...]:
    """Return the team's saved queries by name; none, with a note, where their file is broken."""
    try:
        return tuple(one for _name, one in sorted(saved_queries(context).items()))
    except MemtoolError as error:
        context.notes.append(error.message)
        return ()


def _filters(query: PageQuery) -> list[str]:
    """Return the filters of the form as a query has them; a value is quoted where it must be."""
    return [
        f'{name}:"{value}"' if " " in value else f"{name}:{value}"
        for name in ("type", "category", "status", "tag", "confidence", "since", "until")
        for value in query.many(name)
    ]


def _facets(results: tuple[Any, ...]) -> dict[str, list[tuple[str, int]]]:
    """Return how many of what is shown have each value, by facet, where there are several."""
    counted = {name: Counter(getattr(one, name) for one in results) for name in FACETS}
    return {name: counts.most_common() for name, counts in counted.items() if len(counts) > 1}
