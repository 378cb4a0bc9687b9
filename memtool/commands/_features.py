"""Optional features: what each adds to a search, a block, the pages and other verbs; a row each.

Nothing else names a feature outside of its own verbs and pages, so that it goes with its row.
"""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from memtool.inject.answer import MakeTier
    from memtool.search.sources import Asked, SearchRequest, Source
    from memtool.store.context import Context

INJECT_FLEET = "inject.fleet"
"""The setting by which a user wants in a block what other repositories say."""


class Feature(Value):
    """A row of the table; nothing of a feature is loaded before one of these is called.

    `source` is what it adds to a search. `is_set` tells whether the user has set it up. `tiers` are
    those that it adds to a block, if the user's settings ask for them. `state_files` change with
    what it knows. `follow_end` does what is to be done when memories no longer hold, as the
    function of this name here. `offers` are commands for whoever has begun to use memtool.
    `search_box` is what a box of the search page says that asks its source, too; `link` is the
    address and title of its page about a memory of some type, None where it has nothing to say.
    """

    name: str
    source: Callable[[], Source] | None = None
    is_set: Callable[[Context], bool] = lambda _context: True
    tiers: Callable[[Context], list[MakeTier]] = lambda _context: []
    state_files: Callable[[Context], list[str]] = lambda _context: []
    follow_end: Callable[..., None] | None = None
    offers: Callable[[Context], Iterable[str]] = lambda _context: ()
    search_box: str = ""
    link: Callable[[str], tuple[str, str] | None] = lambda _type: None


def added_sources() -> list[Source]:
    """Return the sources that features add to a search, in the order of their answers."""
    return [feature.source() for feature in FEATURES if feature.source is not None]


def added_tiers(context: Context) -> list[MakeTier]:
    """Return the tiers that features add to a block."""
    return [tier for feature in FEATURES for tier in feature.tiers(context)]


def is_set(context: Context, name: str) -> bool:
    """Tell whether there is a feature of this name, and the user has set it up."""
    return any(feature.is_set(context) for feature in FEATURES if feature.name == name)


def state_files(context: Context) -> list[str]:
    """Return the files that change with what features know."""
    return [path for feature in FEATURES for path in feature.state_files(context)]


def follow_end(context: Context, ids: Collection[str], *, commit: bool, dry_run: bool) -> None:
    """Do what features have to do when memories no longer hold."""
    for feature in FEATURES:
        if feature.follow_end is not None:
            feature.follow_end(context, ids, commit=commit, dry_run=dry_run)


def offers(context: Context) -> list[str]:
    """Return commands that features offer to whoever has begun to use memtool."""
    return [command for feature in FEATURES for command in feature.offers(context)]


def search_boxes(context: Context) -> dict[str, str]:
    """Return what boxes of the search page say, by the option of `search` that each gives."""
    return {one.name: one.search_box for one in FEATURES if one.search_box and one.is_set(context)}


def links(context: Context, type_: str) -> list[tuple[str, str]]:
    """Return addresses, which an id ends, and titles of what features show of a memory."""
    found = [(one, one.link(type_)) for one in FEATURES]
    return [link for one, link in found if link is not None and one.is_set(context)]


def _renew_digests(context: Context, gone: Collection[str], *, commit: bool, dry_run: bool) -> None:
    from memtool.upkeep import digest  # most memories replace none

    digest.renew(context, gone, commit=commit, dry_run=dry_run)


def _host_offers(context: Context) -> Iterable[str]:
    from memtool.hosts import offers

    return offers.offers(context)


def _is_fleet_set(context: Context) -> bool:
    from memtool.fleet import backend

    return backend.is_set(context)


def _fleet_tiers(context: Context) -> list[MakeTier]:
    context.project.note_unused(INJECT_FLEET)
    if not context.project.own_settings.setting(INJECT_FLEET):
        return []
    from memtool.fleet.inject_tier import fleet_tier

    return [fleet_tier]


def _fleet_files(context: Context) -> list[str]:
    from memtool.fleet.backend import home_of, settings_of
    from memtool.fleet.git_backend import index_files

    fleet = settings_of(context)
    if not fleet.is_set or fleet.url:  # what a server has is looked at again each minute
        return []
    return index_files(home_of(context.caller.env))


def _fleet_link(type_: str) -> tuple[str, str] | None:
    from memtool.search import contradictions  # a search needs none of it

    return ("/fleet?id=", "In other repositories") if type_ in contradictions.TYPES else None


def _sessions() -> Source:
    from memtool.search.sources import Source  # a block is made without

    return Source("sessions", _is_asking_sessions, _read_by_sessions)


def _read_by_sessions(request: SearchRequest) -> Asked:
    from memtool.sessions import search_source

    return search_source.read(request)


def _is_asking_sessions(request: SearchRequest) -> bool:
    """Tell whether a search asks them in any case, or may where no memory answers."""
    has_consent = request.is_plain and request.context.project.own_settings.setting(
        "search.sessions"
    )
    return "deep" in request.options or bool(has_consent)


def _fleet() -> Source:
    from memtool.search.sources import Source

    return Source("fleet", lambda request: "fleet" in request.options, _read_by_fleet)


def _read_by_fleet(request: SearchRequest) -> Asked:
    from memtool.fleet import search_source

    return search_source.read(request)


FEATURES: tuple[Feature, ...] = (
    Feature("upkeep", follow_end=_renew_digests),
    Feature("hosts", offers=_host_offers),
    Feature("sessions", _sessions),
    Feature(
        "fleet",
        _fleet,
        _is_fleet_set,
        _fleet_tiers,
        _fleet_files,
        search_box="Other repositories, too",
        link=_fleet_link,
    ),
)
