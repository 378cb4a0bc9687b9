"""The page of health: latencies and answers by day, sizes, and what is used or never used."""

from __future__ import annotations

from memtool.commands.doctor import doctor
from memtool.commands.stats import stats
from memtool.index import index
from memtool.store import ledger, usage_log
from memtool.web.pages.reports import HEIGHT, WIDTH, build_plots, find_never_used, use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.store.context import Context
    from memtool.web.page import PageQuery

USED, NEVER = 15, 30
"""Rows of each table."""


def health(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return latencies by day, sizes, the most used and unused memories; with `doctor=1` its rows.

    The rows take seconds in a large store, so they are only computed on request.
    """
    figures = stats(context, limit=USED)
    directory = context.repository.cache_dir
    with ledger.open_ledger(directory) as usage:
        timed = usage.timings()
    tree = index.open(context, exact=True)
    unused = find_never_used(context, tree)
    return {
        "title": "Health",
        "found": figures,
        "slow_ms": ledger.SLOW_MS,
        "signs": doctor(context).signs if query.text("doctor") == "1" else (),
        "plots": build_plots(timed),
        "use": use(timed),
        "plot_size": (WIDTH, HEIGHT),
        "missed": [(search, _build_title(search.words)) for search in figures.missed],
        "missed_count": sum(search.count for search in figures.missed),
        "has_words": usage_log.has_words(context),
        "never": [(record.id, record.memory.title) for record in unused[:NEVER]],
        "never_count": len(unused),
        "notes": list(dict.fromkeys(context.notes)),
    }


def _build_title(words: str) -> str:
    """Return a title for the memory that a search did not find: its words without filters."""
    return " ".join(word for word in words.split() if ":" not in word).strip('"')
