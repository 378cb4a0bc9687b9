"""The page of the review of a range: which decisions govern what it changes."""

from __future__ import annotations

from memtool.commands._review_premises import MAX_CHANGES, MAX_CONCLUSIONS, MAX_MENTIONS
from memtool.commands.review import STATES
from memtool.commands.review import review as review_of
from memtool.index import index
from memtool.web.pages.ranges import propose_ranges, title_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.store.context import Context
    from memtool.web.page import PageQuery


def review(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return which decisions govern the files of a range, and whether it mentions them.

    Without a range, those that may be meant are proposed.
    """
    range_ = query.text("range")
    report = review_of(context, range_) if range_ else None
    governors = [memory for file in (report.files if report else ()) for memory in file.memories]
    reasons = {memory.reason for memory in governors}
    reason_records = index.open(context).with_ids(reasons) if report else ()
    ranges = propose_ranges(context)
    return {
        "title": title_range("Review", range_, ranges),
        "asked": range_,
        "found": report,
        "first": next((memory.id for memory in governors if memory.state == STATES[0]), ""),
        "ranges": ranges,
        "titles": {record.id: record.memory.title for record in reason_records},
        "notes": [*context.notes],
        "max_changes": MAX_CHANGES,
        "max_conclusions": MAX_CONCLUSIONS,
        "max_mentions": MAX_MENTIONS,
    }
