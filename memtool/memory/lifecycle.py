"""Lifecycle: is a memory alive at a moment, since when not, and why.

Alive means: not deleted, not archived, inside its validity window, and inside the time to live of
its category. Lineage (superseded or not) is a separate question.
"""

from __future__ import annotations

from memtool.memory import moments
from memtool.memory.categories import DEFAULT_CATEGORIES, Category
from memtool.memory.memory import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ALIVE = "alive"
DELETED = "deleted"
ARCHIVED = "archived"
PENDING = "pending"
EXPIRED = "expired"


def confirmed_at(memory: Memory) -> int:
    """Return the second of the last confirmation, or of the writing where there was none."""
    at = memory.table("checked").get("at")
    return max(memory.timestamp, moments.parse(at)) if at else memory.timestamp


def expires_at(
    memory: Memory, categories: Mapping[str, Category] = DEFAULT_CATEGORIES
) -> int | None:
    """Return the last second of a memory's life, None where it has no end.

    An explicit `valid_through` decides. Otherwise the time to live of the category counts from
    the last confirmation; pinned and eternal memories have none.
    """
    end = memory.text("valid_through")
    if end:
        return moments.end(end)
    if memory.status == "pinned" or memory.text("temporal_class") == "eternal":
        return None
    row = categories.get(memory.category)
    if row is None or row.ttl_days == 0:
        return None
    return confirmed_at(memory) + row.ttl_days * moments.DAY_S


def state(memory: Memory, now: int, categories: Mapping[str, Category] = DEFAULT_CATEGORIES) -> str:
    """Return `alive`, `deleted`, `archived`, `pending` (not yet valid) or `expired` at a moment.

    A memory deleted after the moment was still there; one archived has no date, so it counts.
    """
    if memory.status == "deleted":
        at = memory.table("deleted").get("at")
        if at is None or moments.parse(at) <= now:
            return DELETED
    if memory.status == "archived":
        return ARCHIVED
    begin = memory.text("valid_from")
    if begin and now < moments.start(begin):
        return PENDING
    end = expires_at(memory, categories)
    return EXPIRED if end is not None and now > end else ALIVE
