"""Optional features: a row for each, with what it adds to searches, blocks, pages and verbs.

Apart from its own verbs and pages, a feature is named only here: delete its row to remove it.
"""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from memtool.authoring.adoption import Change, Offer
    from memtool.inject.answer import MakeTier
    from memtool.search.sources import RoutedSource, SearchRequest, Source
    from memtool.store.context import Context

INJECT_FLEET = "inject.fleet"
"""The user's own setting that adds memories of other repositories to a block."""
REPOSITORIES_KEY = "fleet.repositories"


class Feature(Value):
    """A row of the table. A feature's modules are loaded only when one of these is called.

    - `source`: what it adds to a search
    - `is_set`: whether the user has set it up
    - `tiers`: what it adds to a block, if the user's settings ask for it
    - `state_files`: files that change when the feature's data changes
    - `follow_end`: runs when memories no longer hold; see `follow_end` below
    - `offers`: what `memtool init` can set up
    - `changes`: what has changed since it was set up, for `memtool doctor`
    - `search_box`: label of the checkbox on the search page that also asks its source
    - `link`: address and title of its page for memories of a type, None if it has no such page
    - `due_periods`: periods of a schedule of which its work is due, for `memtool status`
    - `check_setting`: refuses values of a setting that can never work, with key and values
    """

    name: str
    source: Callable[[], Source] | None = None
    is_set: Callable[[Context], bool] = lambda _context: True
    tiers: Callable[[Context], list[MakeTier]] = lambda _context: []
    state_files: Callable[[Context], list[str]] = lambda _context: []
    follow_end: Callable[..., None] | None = None
    offers: Callable[[Context], Iterable[Offer]] = lambda _context: ()
    changes: Callable[[Context], Iterable[Change]] = lambda _context: ()
    search_box: str = ""
    link: Callable[[str], tuple[str, str] | None] = lambda _type: None
    due_periods: Callable[[Context], tuple[str, ...]] = lambda _context: ()
    check_setting: Callable[[str, Sequence[str]], None] = lambda _key, _values: None


def build_sources() -> list[Source]:
    """Return the search sources of all features, in the order of their results."""
    return [feature.source() for feature in FEATURES if feature.source is not None]


def build_tiers(context: Context) -> list[MakeTier]:
    """Return the tiers of all features."""
    return [tier for feature in FEATURES for tier in feature.tiers(context)]


def is_set(context: Context, name: str) -> bool:
    """Return whether a feature of this name exists and the user has set it up."""
    return any(feature.is_set(context) for feature in FEATURES if feature.name == name)


def list_state_files(context: Context) -> list[str]:
    """Return the files that change when a feature's data changes."""
    return [path for feature in FEATURES for path in feature.state_files(context)]


def follow_end(context: Context, ids: Collection[str], *, commit: bool, dry_run: bool) -> None:
    """Let features react to memories that no longer hold."""
    for feature in FEATURES:
        if feature.follow_end is not None:
            feature.follow_end(context, ids, commit=commit, dry_run=dry_run)


def list_offers(context: Context) -> list[Offer]:
    """Return what features can set up for `memtool init`."""
    return [offer for feature in FEATURES for offer in feature.offers(context)]


def list_changes(context: Context) -> list[Change]:
    """Return what has changed since features set it up."""
    return [change for feature in FEATURES for change in feature.changes(context)]


def list_search_boxes(context: Context) -> dict[str, str]:
    """Return the labels of checkboxes on the search page, by the `search` option that each sets."""
    return {
        feature.name: feature.search_box
        for feature in FEATURES
        if feature.search_box and feature.is_set(context)
    }


def find_links(context: Context, type_: str) -> list[tuple[str, str]]:
    """Return address and title of each feature's page on a memory; an id ends the address."""
    candidates = [(feature, feature.link(type_)) for feature in FEATURES]
    return [link for feature, link in candidates if link is not None and feature.is_set(context)]


def list_due_periods(context: Context) -> tuple[str, ...]:
    """Return the periods of which the work of features is due."""
    return tuple(period for feature in FEATURES for period in feature.due_periods(context))


def check_setting(key: str, values: Sequence[str]) -> None:
    """Check the values of a setting that is a list. Raises MemtoolError if one can never work."""
    for feature in FEATURES:
        feature.check_setting(key, values)


def _renew_digests(context: Context, gone: Collection[str], *, commit: bool, dry_run: bool) -> None:
    from memtool.upkeep import digest  # most memories replace nothing

    digest.renew(context, gone, commit=commit, dry_run=dry_run)


def _find_due_periods(context: Context) -> tuple[str, ...]:
    if not context.settings.texts("maintain.schedule"):
        return ()
    from memtool.upkeep.plan import find_due_periods  # rarely needed

    return find_due_periods(context.settings, context.repository.cache_dir, context.clock.now)


def _list_import_offers(context: Context) -> Iterable[Offer]:
    from memtool.importing import offers

    return offers.find_offers(context)


def _list_import_changes(context: Context) -> Iterable[Change]:
    from memtool.importing import offers

    return offers.find_changes(context)


def _list_host_offers(context: Context) -> Iterable[Offer]:
    from memtool.hosts import setup

    return setup.find_offers(context)


def _is_fleet_set(context: Context) -> bool:
    from memtool.fleet import backend

    return backend.is_set(context)


def _build_fleet_tiers(context: Context) -> list[MakeTier]:
    context.project.note_unused(INJECT_FLEET)
    if not context.project.user_settings.setting(INJECT_FLEET):
        return []
    from memtool.fleet.inject_tier import build_fleet_tier

    return [build_fleet_tier]


def _list_fleet_files(context: Context) -> list[str]:
    from memtool.fleet.backend import find_fleet_home, read_settings
    from memtool.fleet.git_backend import find_index_files

    fleet = read_settings(context)
    if not fleet.is_set or fleet.url:  # a server is asked again each minute
        return []
    return find_index_files(find_fleet_home(context.caller.env))


def _find_fleet_link(type_: str) -> tuple[str, str] | None:
    from memtool.search import contradictions  # a search does not need it

    return ("/fleet?id=", "In other repositories") if type_ in contradictions.TYPES else None


def _check_fleet_setting(key: str, values: Sequence[str]) -> None:
    if key != REPOSITORIES_KEY:
        return
    from memtool.fleet import repositories

    repositories.refuse_unreachable(key, values)


def _build_sessions_source() -> Source:
    from memtool.search.sources import Source  # a block does not need it

    return Source("sessions", _asks_sessions, _search_sessions)


def _search_sessions(request: SearchRequest) -> RoutedSource:
    from memtool.sessions import search_source

    return search_source.read(request)


def _asks_sessions(request: SearchRequest) -> bool:
    """Return whether a search asks sessions always, or may if no memory answers."""
    has_consent = request.is_plain and request.context.project.user_settings.setting(
        "search.sessions"
    )
    return "deep" in request.options or bool(has_consent)


def _build_fleet_source() -> Source:
    from memtool.search.sources import Source

    return Source("fleet", lambda request: "fleet" in request.options, _search_fleet)


def _search_fleet(request: SearchRequest) -> RoutedSource:
    from memtool.fleet import search_source

    return search_source.read_request(request)


FEATURES: tuple[Feature, ...] = (
    Feature("upkeep", follow_end=_renew_digests, due_periods=_find_due_periods),
    Feature("importing", offers=_list_import_offers, changes=_list_import_changes),
    Feature("hosts", offers=_list_host_offers),
    Feature("sessions", _build_sessions_source),
    Feature(
        "fleet",
        _build_fleet_source,
        _is_fleet_set,
        _build_fleet_tiers,
        _list_fleet_files,
        search_box="Other repositories, too",
        link=_find_fleet_link,
        check_setting=_check_fleet_setting,
    ),
)
