"""Tiers that features add to the block of an answer, one row each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.inject.answer import MakeTier
    from memtool.store.context import Context


def added_tiers(context: Context) -> list[MakeTier]:
    """Return the tiers that this user's settings ask for, in the order of the table."""
    return [load() for is_wanted, load in TIERS if is_wanted(context)]


def _fleet() -> MakeTier:
    from memtool.fleet.inject_tier import fleet_tier  # off unless the user's own settings say so

    return fleet_tier


TIERS: tuple[tuple[Callable[[Context], bool], Callable[[], MakeTier]], ...] = (
    (lambda context: context.is_hearing_fleet, _fleet),
)
"""When a tier is wanted, and what loads it."""
