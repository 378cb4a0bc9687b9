"""Optional features: what each adds to a block and to the pages; a row each.

Nothing else names a feature outside of its own verbs and pages, so that it goes with its row.
"""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.inject.answer import MakeTier
    from memtool.store.context import Context


class Feature(Value):
    """A row of the table; nothing of a feature is loaded before one of these is called.

    `is_set` tells whether the user has set it up. `tiers` are those that it adds to a block, if the
    user's settings ask for them. `state_files` change with what it knows.
    """

    name: str
    is_set: Callable[[Context], bool]
    tiers: Callable[[Context], list[MakeTier]]
    state_files: Callable[[Context], list[str]]


def added_tiers(context: Context) -> list[MakeTier]:
    """Return the tiers that features add to a block."""
    return [tier for feature in FEATURES for tier in feature.tiers(context)]


def is_set(context: Context, name: str) -> bool:
    """Tell whether there is a feature of this name, and the user has set it up."""
    return any(feature.is_set(context) for feature in FEATURES if feature.name == name)


def state_files(context: Context) -> list[str]:
    """Return the files that change with what features know."""
    return [path for feature in FEATURES for path in feature.state_files(context)]


def _is_fleet_set(context: Context) -> bool:
    from memtool.fleet import backend

    return backend.is_set(context)


def _fleet_tiers(context: Context) -> list[MakeTier]:
    if not context.is_hearing_fleet:
        return []
    from memtool.fleet.inject_tier import fleet_tier

    return [fleet_tier]


def _fleet_files(context: Context) -> list[str]:
    from memtool.fleet.backend import home_of, settings_of
    from memtool.fleet.git_backend import index_files

    fleet = settings_of(context)
    if not fleet.is_set or fleet.url:  # what a server has is looked at again each minute
        return []
    return index_files(home_of(context.env))


FEATURES: tuple[Feature, ...] = (Feature("fleet", _is_fleet_set, _fleet_tiers, _fleet_files),)
