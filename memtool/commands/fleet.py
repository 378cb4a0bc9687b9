"""Use the memories of other repositories.

Your own settings name them: paths, globs and remotes in fleet.repositories. Copies are kept in your
cache, and may be deleted.

Example:
    memtool --global config fleet.repositories '~/src/*,git@example.org:acme/billing.git'
    memtool fleet sync
    memtool search --fleet how do others retry payments
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memtool.commands._layout import Layout, shorten_commit
from memtool.commands._render import format_size
from memtool.errors import MemtoolError
from memtool.fleet import backend, git_backend, opensearch
from memtool.fleet.opensearch import SHARDS
from memtool.fleet.repositories import without_password
from memtool.memory import timestamps
from memtool.store.context import Context
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.fleet.repositories import FleetRepository

INIT_TIMEOUT_S = 60.0
"""Seconds that a server may take to create an index."""
MAX_SHARDS = 1_024


class FleetRow(Value):
    """A repository of the fleet. `problem` says why it is left out, or out of date.

    `memories` counts its searchable memories, and `note` says which are left out.
    """

    repository: str
    source: str
    team: str
    commit: str | None
    memories: int
    problem: str
    note: str


class FleetStatus(Value):
    """The fleet after the last sync; `synced` is its moment, empty before the first.

    `size` is the bytes of clones and index. `url` is the server that is asked instead, if the user
    has set one.
    """

    synced: str
    memories: int
    size: int
    url: str
    repositories: tuple[FleetRow, ...]


class FleetSync(Value):
    """The fleet after a sync. `indexed` counts the repositories that were indexed again."""

    json_fields = "synced memories size indexed repositories dry_run problems"

    synced: str
    memories: int
    size: int
    indexed: int
    repositories: tuple[FleetRow, ...]
    dry_run: bool

    @property
    def problems(self) -> int:
        """The number of repositories with a problem."""
        return sum(bool(row.problem) for row in self.repositories)

    @property
    def exit_code(self) -> int:
        """1 if a repository has a problem."""
        return int(self.problems > 0)


def fleet_status(context: Context) -> FleetStatus:
    """Show which repositories can be searched, and what is wrong with them.

    Nothing is fetched: it shows the result of the last memtool fleet sync.

    Example:
        memtool fleet status
    """
    settings = backend.read_settings(context)
    if not settings.is_set:
        refusal = backend.unset_error(context)
        context.notes += [refusal.message, f"to set some: {refusal.hint.partition(chr(10))[0]}"]
        return FleetStatus("", 0, 0, "", ())
    home = backend.find_fleet_home(context.caller.env)
    state = git_backend.read_state(home)
    rows = _build_rows(state.repositories) if state else ()
    if state is None and settings.repositories:
        context.notes.append("nothing is fetched yet: memtool fleet sync")
    return FleetStatus(
        timestamps.render(state.synced) if state else "",
        sum(row.memories for row in rows),
        git_backend.measure_size(home),
        without_password(settings.url),
        rows,
    )


def fleet_sync(context: Context, *, dry_run: bool = False) -> FleetSync:
    """Fetch the repositories of the fleet, and index what changed.

    Only memories on the default branch count. Exit code 1 means that a repository could not be
    read; the others are up to date.

    Example:
        memtool fleet sync
        memtool fleet sync --dry-run

    Args:
        dry_run: list new and changed repositories, fetch and write nothing
    """
    import sys

    from memtool.store.progress import Progress

    with Progress(sys.stderr, "fleet sync") as progress:
        done = git_backend.sync(context, is_dry=dry_run, report=_build_reporter(progress.begin))
    rows = _build_rows(done.state.repositories)
    return FleetSync(
        timestamps.render(done.state.synced) if done.state.synced else "",
        sum(row.memories for row in rows),
        git_backend.measure_size(backend.find_fleet_home(context.caller.env)),
        done.indexed,
        rows,
        dry_run,
    )


class FleetInit(Value):
    """An index on a server; `is_new` if this call created it. `roles` are those that it needs."""

    url: str
    index: str
    is_new: bool
    roles: dict[str, Any]
    dry_run: bool


def fleet_init(
    context: Context,
    *,
    for_: str = "",
    shards: int = SHARDS,
    replicas: int = 1,
    dry_run: bool = False,
) -> FleetInit:
    """Create the index of a fleet on an OpenSearch server.

    It prints the roles to create. It needs the credentials of an administrator. An existing index
    is not changed. A publisher can write in the name of any repository of its index; --for gives a
    repository or organisation an index of its own. docs/fleet.md explains the roles.

    Example:
        memtool fleet init --replicas 2 --dry-run
        memtool fleet init --for acme/billing

    Args:
        for_: a repository (ORG/NAME) or organisation that gets its own index
        shards: the number of shards; 2 are enough for a million memories
        replicas: the number of copies of each shard
        dry_run: print the roles, do not contact the server
    """
    for name, count, minimum in (("--shards", shards, 1), ("--replicas", replicas, 0)):
        if not minimum <= count <= MAX_SHARDS:
            raise MemtoolError(
                f"{name} must be between {minimum} and {MAX_SHARDS}, not {count}",
                hint=f"memtool fleet init {name} {max(minimum, 1)}",
            )
    url = backend.read_settings(context).url
    if not url:
        raise MemtoolError(
            "cannot create an index: no server is configured",
            hint=f"{backend.URL_VARIABLE}=https://search.example.org/memories memtool fleet init",
            code="no-fleet",
        )
    server = opensearch.parse_server(url, context.caller.env)
    index = server.find_own_index(for_) if for_ else server.index
    if not index:
        raise MemtoolError(
            f"--for takes ORG or ORG/NAME, not {for_!r}",
            hint="memtool fleet init --for acme/billing",
            code="usage",
        )
    is_new = False
    if not dry_run:
        try:
            is_new = opensearch.prepare(server, shards, replicas, INIT_TIMEOUT_S, for_)
        except backend.FleetUnavailable as error:
            hint = "memtool fleet init"
            if isinstance(error, opensearch.FleetAccessError):
                hint = (
                    "MEMTOOL_FLEET_USER and MEMTOOL_FLEET_PASSWORD must be those of an "
                    "administrator of the index; memtool fleet init --dry-run prints the roles"
                )
            raise MemtoolError(
                f"cannot create the index: {error}", hint=hint, code="fleet"
            ) from None
    return FleetInit(server.name, index, is_new, opensearch.build_roles(server, for_), dry_run)


def _build_reporter(begin: Callable[[str], None]) -> Callable[[str], None]:
    return lambda step: begin(f"fleet sync: {step}")


def render(shown: FleetStatus | FleetSync | FleetInit, layout: Layout) -> str:
    """Return a line per repository and the totals; for a new index its roles."""
    if isinstance(shown, FleetInit):
        import json

        state = "is made" if shown.is_new else "is there already"
        outcome = "would be made where it is missing" if shown.dry_run else state
        return f"{json.dumps(shown.roles, indent=2)}\n{shown.url}: index {shown.index} {outcome}"
    rows = layout.table(
        [
            (
                row.repository or "-",
                f"@{shorten_commit(row.commit)}" if row.commit else "",
                f"{row.memories:,}",
                row.team,
                "; ".join(filter(None, (row.problem, row.note))),
                row.source if row.problem or not row.repository else "",
            )
            # Of a thousand rows, those with a problem are next to the totals.
            for row in sorted(
                shown.repositories, key=lambda row: (row.problem != "", row.note != "")
            )
        ],
        title=4,
    )
    if isinstance(shown, FleetStatus) and not (shown.repositories or shown.url or shown.synced):
        return ""
    count = len(shown.repositories)
    parts = [
        "1 repository" if count == 1 else f"{count:,} repositories",
        "1 memory" if shown.memories == 1 else f"{shown.memories:,} memories",
        format_size(shown.size),
        f"synced {layout.when(shown.synced)}" if shown.synced else "never synced",
    ]
    problem_count = sum(bool(row.problem) for row in shown.repositories)
    if problem_count:
        parts.append("1 problem" if problem_count == 1 else f"{problem_count:,} problems")
    if isinstance(shown, FleetSync):
        parts.append(f"{shown.indexed:,} {'would be ' if shown.dry_run else ''}indexed anew")
    elif shown.url:
        parts.append(f"server {shown.url}")
    return "\n".join([*rows, ", ".join(parts)])


def _build_rows(repositories: Iterable[FleetRepository]) -> tuple[FleetRow, ...]:
    return tuple(
        FleetRow(
            row.name, row.source, row.team, row.commit or None, row.count, row.problem, row.note
        )
        for row in repositories
    )
