"""The page of the fleet: its repositories, and decisions that they share with this one."""

from __future__ import annotations

from memtool.commands.fleet import fleet_status
from memtool.commands.fleet_similar import fleet_similar
from memtool.errors import MemtoolError
from memtool.web.refusals import word_refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.store.context import Context
    from memtool.web.page import PageQuery

COMPARE_S = 10
"""Seconds that the page compares decisions."""
MAX_GROUPS = 50
"""Groups of decisions that it shows, unless the address says how many."""


def fleet(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the repositories of the fleet, and decisions that they share with this one.

    With `id` only for one memory, with `all=1` for all decisions of all repositories.
    """
    id_, is_all = query.text("id"), query.text("all") == "1"
    limit = query.number("limit", MAX_GROUPS) or MAX_GROUPS
    values: dict[str, Any] = {"title": "Fleet", "query": query, "found": None, "refused": None}
    try:
        values["status"] = fleet_status(context)
    except MemtoolError as error:
        if error.code != "no-fleet":
            raise
        refused = word_refusal(error, error.hint)
        return {**values, "status": None, "refused": refused, "notes": []}
    try:
        values["found"] = fleet_similar(
            context, id_, all=is_all and not id_, limit=limit, seconds=COMPARE_S
        )
    except MemtoolError as error:
        if error.code != "no-fleet":
            raise
        values["refused"] = word_refusal(error, error.hint)
    notes = [] if values["refused"] else [*context.notes]  # they say the same
    return {**values, "notes": notes}
