"""`memtool fleet`: the repositories whose memories are asked beside those of this one.

Whom to ask is in the user's own settings alone: paths, globs and remotes in fleet.repositories.
What is kept of them lies in the user's cache, and may be deleted.

Example:
    memtool --global config fleet.repositories '~/src/*,git@example.org:acme/billing.git'
    memtool fleet sync
    memtool search --fleet how do others retry payments
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memtool.commands._render import columns, size_text
from memtool.errors import MemtoolError
from memtool.fleet import backend, git_backend, opensearch
from memtool.fleet.opensearch import SHARDS
from memtool.fleet.repositories import without_password
from memtool.memory import timestamps
from memtool.store.context import Context
from memtool.store.provenance import SHORT
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.fleet.repositories import FleetRepository

INIT_S = 60.0
"""Seconds that a server may take to make an index."""
MOST_SHARDS = 1_024


class FleetRow(Value):
    """A repository of the fleet. `problem` says why it is not asked, or not as it is now.

    `memories` is how many of it are asked, and `note` which are not.
    """

    repository: str
    source: str
    team: str
    commit: str | None
    memories: int
    problem: str
    note: str


class FleetStatus(Value):
    """The fleet as the last sync left it; `synced` is its moment, empty where there was none.

    `size` is the bytes of clones and index, `url` the server that is asked instead, where the user
    has set one.
    """

    synced: str
    memories: int
    size: int
    url: str
    repositories: tuple[FleetRow, ...]


class FleetSync(Value):
    """The fleet after a sync. `indexed` counts the repositories whose memories are indexed anew."""

    json_fields = "synced memories size indexed repositories dry_run problems"

    synced: str
    memories: int
    size: int
    indexed: int
    repositories: tuple[FleetRow, ...]
    dry_run: bool

    @property
    def problems(self) -> int:
        """How many repositories have one."""
        return sum(bool(row.problem) for row in self.repositories)

    @property
    def exit_code(self) -> int:
        """1 where a repository has a problem."""
        return int(self.problems > 0)


def fleet_status(context: Context) -> FleetStatus:
    """Say which repositories a fleet has, how many memories, how old that is, and what is wrong.

    Nothing is fetched: it is what the last memtool fleet sync has left.

    Example:
        memtool fleet status
    """
    asked = backend.required(context)
    home = backend.home_of(context.caller.env)
    state = git_backend.state_of(home)
    rows = _rows(state.repositories) if state else ()
    if state is None and asked.repositories:
        context.notes.append("nothing of it is here yet: memtool fleet sync fetches and indexes it")
    return FleetStatus(
        timestamps.render(state.synced) if state else "",
        sum(row.memories for row in rows),
        git_backend.size_of(home),
        without_password(asked.url),
        rows,
    )


def fleet_sync(context: Context, *, dry_run: bool = False) -> FleetSync:
    """Bring the fleet up to date: fetch its remotes, and index what changed.

    A repository at a path is read as it is there, from its trusted tree, which is the default
    branch of its remote as last fetched, or its own where it has no remote. A remote is kept as a
    bare clone of one commit. One that cannot be read is listed with its problem, and stops no
    other; then the exit code is 1.

    Example:
        memtool fleet sync

    Args:
        dry_run: fetch nothing and write nothing; say which repositories are new or changed
    """
    import sys

    from memtool.store.progress import Progress

    with Progress(sys.stderr, "fleet sync") as progress:
        done = git_backend.sync(context, is_dry=dry_run, tell=_telling(progress.begin))
    rows = _rows(done.state.repositories)
    return FleetSync(
        timestamps.render(done.state.synced) if done.state.synced else "",
        sum(row.memories for row in rows),
        git_backend.size_of(backend.home_of(context.caller.env)),
        done.indexed,
        rows,
        dry_run,
    )


class FleetInit(Value):
    """An index that is there now. `is_new` says that it was made, `roles` are of its server."""

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
    """Make the index of a fleet on an OpenSearch server, and print the roles that it needs.

    It takes the credentials of an administrator, once for each version of memtool's analyzer: the
    name of the index ends with it, and begins with the last part of the server's address.
    An index that is there stays as it is. docs/fleet.md says how to give the roles, and what they
    cannot do: no role keeps a publisher from writing in the name of another repository of its
    index. With --for a repository or an organisation gets an index of its own, which only the role
    that is printed for it may write; then what others publish in its name is not shown.

    Example:
        memtool fleet init --replicas 2 --dry-run
        memtool fleet init --for acme/billing

    Args:
        for_: the repository, ORG/NAME, or the organisation, ORG, that gets an index of its own
        shards: into how many parts the index is cut; 2 are enough for a million memories
        replicas: how many copies of each part other nodes have
        dry_run: print the roles, and ask no server
    """
    for name, count, least in (("--shards", shards, 1), ("--replicas", replicas, 0)):
        if not least <= count <= MOST_SHARDS:
            raise MemtoolError(
                f"{name} is {count}, and must be between {least} and {MOST_SHARDS}",
                hint=f"memtool fleet init {name} {max(least, 1)}",
                code="bad-limit",
            )
    url = backend.settings_of(context).url
    if not url:
        raise MemtoolError(
            "there is no server to make an index on",
            hint=f"{backend.URL_VARIABLE}=https://search.example.org/memories memtool fleet init",
            code="no-fleet",
        )
    server = opensearch.server_at(url, context.caller.env)
    index = server.own_index(for_) if for_ else server.index
    if not index:
        raise MemtoolError(
            f"--for {for_!r} is no ORG or ORG/NAME that an index can be named by",
            hint="memtool fleet init --for acme/billing",
            code="usage",
        )
    is_new = False
    if not dry_run:
        try:
            is_new = opensearch.prepare(server, shards, replicas, INIT_S, for_)
        except backend.FleetUnavailable as error:
            hint = "memtool fleet init makes what is missing when it is run again"
            if isinstance(error, opensearch.FleetRefused):
                hint = (
                    "MEMTOOL_FLEET_USER and MEMTOOL_FLEET_PASSWORD must be those of an "
                    "administrator of the index; memtool fleet init --dry-run prints the roles"
                )
            raise MemtoolError(f"the index is not made: {error}", hint=hint, code="fleet") from None
    return FleetInit(server.name, index, is_new, opensearch.roles(server, for_), dry_run)


def _telling(begin: Callable[[str], None]) -> Callable[[str], None]:
    return lambda at: begin(f"fleet sync: {at}")


def render(shown: FleetStatus | FleetSync | FleetInit) -> str:
    """Return a line per repository, then one about all of them; of an index its roles."""
    if isinstance(shown, FleetInit):
        import json

        there = "is made" if shown.is_new else "is there already"
        made = "would be made where it is missing" if shown.dry_run else there
        return f"{json.dumps(shown.roles, indent=2)}\n{shown.url}: index {shown.index} {made}"
    rows = columns(
        (
            row.repository or "-",
            f"@{row.commit[:SHORT]}" if row.commit else "",
            f"{row.memories:,}",
            row.team,
            "; ".join(filter(None, (row.problem, row.note))),
            row.source if row.problem or not row.repository else "",
        )
        for row in shown.repositories
    )
    count = len(shown.repositories)
    said = [
        "1 repository" if count == 1 else f"{count:,} repositories",
        "1 memory" if shown.memories == 1 else f"{shown.memories:,} memories",
        size_text(shown.size),
        f"synced {shown.synced}" if shown.synced else "never synced",
    ]
    wrong = sum(bool(row.problem) for row in shown.repositories)
    if wrong:
        said.append("1 problem" if wrong == 1 else f"{wrong:,} problems")
    if isinstance(shown, FleetSync):
        said.append(f"{shown.indexed:,} {'would be ' if shown.dry_run else ''}indexed anew")
    elif shown.url:
        said.append(f"asked is {shown.url}")
    return "\n".join([*rows, ", ".join(said)])


def _rows(found: Iterable[FleetRepository]) -> tuple[FleetRow, ...]:
    return tuple(
        FleetRow(
            row.name, row.source, row.team, row.commit or None, row.count, row.problem, row.note
        )
        for row in found
    )
