"""The search page: results, their factors, and what each gate held back."""

from __future__ import annotations

from collections import Counter

from memtool.commands import _features
from memtool.commands.search import search as searched
from memtool.errors import MemtoolError
from memtool.index import analyzer
from memtool.index.keys import LANGUAGE_KEY
from memtool.memory.fields import STATUSES, TYPES
from memtool.search import snippet
from memtool.search.saved import read_saved_queries
from memtool.search.sources import ALL_OTHERS
from memtool.web.page import MAX_ROWS
from memtool.web.refusals import word_refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.search.saved import SavedQuery
    from memtool.store.context import Context
    from memtool.web.page import PageQuery

FACETS = ("type", "category", "status", "trust", "confidence")
LINKED = ("type", "category", "status", "confidence")
"""Facets that narrow a search down; trust is asked with `is:`."""
NARROWING = ("type", "category", "status", "tag", "since", "at")
"""Fields of the form beside its words."""
MORE = "--limit"
"""Stands in the note that there is more, to which a link of the page leads."""
SHOWN = 10
IN_FORM = ("bad-query", "bad-time")
"""Refusals of what was typed into the form, which the page shows with it."""


def search(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the answer to a question with its facets; without a question, the form alone."""
    words, explain = query.text("q"), query.text("explain") == "1"
    boxes = _features.list_search_boxes(context)
    query_text = " ".join(filter(None, [words, *_build_filters(query)]))
    values: dict[str, Any] = {
        "title": f"Search: {words}" if words else "Search",
        "query": query,
        "words": words,
        "asked": query_text,
        "types": TYPES,
        "statuses": STATUSES,
        "linked": LINKED,
        "categories": sorted(context.settings.categories),
        "explain": explain,
        "is_narrow": any(query.text(name) for name in (*NARROWING, *boxes)),
        "boxes": boxes,
        "found": None,
        "error": None,
        "refused": None,
        "facets": {},
        "notes": [],
        "more": 0,
        "saved": (),
    }
    if not query_text:
        return values | {"saved": _read_saved(context), "notes": [*context.notes]}
    limit, offset = query.number("limit", SHOWN), query.number("offset", 0, 100_000)
    try:
        result = searched(
            context,
            query_text,
            limit=limit or MAX_ROWS,
            offset=offset,
            explain=explain,
            at=query.text("at") or None,
            as_of=query.text("as_of") or None,
            **{name: True for name in boxes if query.text(name) == "1"},  # type: ignore[arg-type]
        )
    except MemtoolError as error:
        if error.code not in IN_FORM:
            raise
        return values | {"error": error, "refused": word_refusal(error, error.hint)}
    language = context.settings.text(LANGUAGE_KEY)
    # A filter occurs in no text.
    plain_words = " ".join(word for word in words.split() if ":" not in word)
    wanted = set(analyzer.terms(plain_words, language))
    foreign = sum(bool(hit.repository) for hit in result.results)
    shown = offset + len(result.results) - foreign
    shown_others = foreign + (offset if result.is_elsewhere else 0)
    return values | {
        "found": result,
        "marked": lambda text: snippet.mark_pieces(text, wanted, language),
        "facets": _count_facets(result.results),
        "notes": [] if explain else [note for note in context.notes if MORE not in note],
        "first": offset,
        "more": shown if shown < result.total - result.elsewhere else 0,
        "more_others": shown_others if foreign and shown_others < result.elsewhere else 0,
        "of_others": words if result.is_elsewhere else f"{words} {ALL_OTHERS}",
    }


def _read_saved(context: Context) -> tuple[SavedQuery, ...]:
    """Return the team's saved queries by name; none, with a note, if their file is broken."""
    try:
        return tuple(saved for _name, saved in sorted(read_saved_queries(context).items()))
    except MemtoolError as error:
        context.notes.append(error.message)
        return ()


def _build_filters(query: PageQuery) -> list[str]:
    """Return the filters of the form in query syntax, quoted where needed."""
    return [
        f'{name}:"{value}"' if " " in value else f"{name}:{value}"
        for name in ("type", "category", "status", "tag", "confidence", "since", "until")
        for value in query.many(name)
    ]


def _count_facets(results: tuple[Any, ...]) -> dict[str, list[tuple[str, int]]]:
    """Return the number of results for each value, by facet with several values."""
    counted = {name: Counter(getattr(hit, name) for hit in results) for name in FACETS}
    return {name: counts.most_common() for name, counts in counted.items() if len(counts) > 1}
