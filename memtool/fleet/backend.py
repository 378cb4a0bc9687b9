"""The interface of fleet backends: queries, candidates, and the settings that enable them.

A backend finds candidates: the best memories of all its repositories, by BM25 with the statistics
of its own index. Everything that decides the user's results is outside of the backend and the same
for all: `rank` scores the candidates again with memtool's own ranking and the statistics of the
client's memories, and verifies the results; `ask` enforces the time limit. `git_backend` reads
clones on this machine, `opensearch` queries a server.

Candidates are active heads from the trusted tree of their repository, without privacy labels that
the user's settings exclude. Nevertheless every candidate is untrusted.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.index import scoring
from memtool.index.scoring import Document
from memtool.index.text import list_texts
from memtool.memory.schema import is_id
from memtool.store.context import GLOBAL_NOTE_PREFIX
from memtool.store.files import matches_name
from memtool.store.repository import find_user_cache
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Protocol, TypeVar

    from memtool.memory.memory import Memory
    from memtool.store.context import Context

    Item = TypeVar("Item")
    Names = frozenset[str]
else:
    Protocol = object
    Names = frozenset

CANDIDATES = 100
"""Candidates per question; enough to reproduce the order of a local search exactly."""
# The limit for one repository, of `CANDIDATES`: as many as an answer has, and few enough to leave
# most of the 30 that are ranked closely (`scoring.CANDIDATES`) to other repositories.
SHARE_OF_CANDIDATES = 10
MAX_INDEXED = 10_000
"""Memories indexed per repository, the newest first, so that no repository floods the index."""
FLEET = "fleet"
"""The trust level of foreign memories, below `local`; also the name of their tier and folder."""
URL, REPOSITORIES, ALLOW = "fleet.url", "fleet.repositories", "fleet.allow"
TIMEOUT, TEAM = "fleet.timeout_ms", "fleet.team"
URL_VARIABLE = "MEMTOOL_FLEET_URL"


class FleetUnavailable(Exception):
    """The fleet cannot be queried now. The message is one clause, without a full stop."""


class FleetQuery(Value):
    """A query to the fleet, with filters.

    `weights` are the analysed terms of the question without stop words, the most informative first.
    A repository must match one of the globs in `repositories` and one of the user's in `allow`
    (`matches_any` over `org/name`); empty means all. `excluded` is the current repository. `types`
    and `tags` are alternatives; empty means all. `limit` is the maximum of candidates, 1 to 1,000.
    """

    weights: Mapping[str, float]
    repositories: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    limit: int = CANDIDATES
    allow: tuple[str, ...] = ()
    excluded: str = ""

    def admits(self, repository: str, team: str) -> bool:
        """Return whether the query and the user's settings include a repository."""
        return (
            repository.casefold() != self.excluded.casefold()
            and matches_any(repository, self.allow)
            and matches_any(repository, self.repositories)
            and (matches_any(team, self.teams) if team else not self.teams)
        )


class FleetCandidate(Value):
    """A memory of another repository that may match; untrusted.

    `repository` is `org/name`: the last two parts of its remote's path, or without a remote of its
    folder. `commit` is the full id of the trusted commit, `path` the path in it, `data` the bytes
    of the file. `text` is the memory as terms (`scoring.searchable`), always in `analyzer.ENGLISH`.
    The result must be what was ranked, so `rank` verifies `text` against `data`.
    """

    repository: str
    commit: str
    path: str
    data: bytes
    text: bytes
    team: str = ""


class Backend(Protocol):
    """Finds candidates. `note` is for the user, about the last answer; may be empty."""

    note: str

    def find_candidates(self, query: FleetQuery, timeout_s: float) -> list[FleetCandidate]:
        """Return the best candidates by words, best first, at most `query.limit`.

        Should take at most `timeout_s` seconds; the caller stops waiting then. Raises
        FleetUnavailable if there is no answer.
        """


class FleetSettings(Value):
    """The fleet, from the user's own settings and environment; never from a repository's.

    `url` is empty if no server is configured. `timeout_s` is the limit for a whole answer.
    """

    url: str
    repositories: tuple[str, ...]
    allow: tuple[str, ...]
    timeout_s: float

    @property
    def is_set(self) -> bool:
        """Whether any repositories or a server are configured."""
        return bool(self.url or self.repositories)


def read_settings(context: Context) -> FleetSettings:
    """Read the settings of the fleet. Values in a project's file are ignored, with a note."""
    for key in (URL, REPOSITORIES, ALLOW, TIMEOUT):
        context.project.note_unused(key)
    own = context.project.user_settings
    return FleetSettings(
        context.caller.env.get(URL_VARIABLE) or own.text(URL),
        own.texts(REPOSITORIES),
        own.texts(ALLOW),
        own.count(TIMEOUT) / 1000,
    )


def is_set(context: Context) -> bool:
    """Return whether the user has configured a fleet."""
    own = context.project.user_settings
    return bool(context.caller.env.get(URL_VARIABLE) or own.text(URL) or own.texts(REPOSITORIES))


def unset_error(context: Context) -> MemtoolError:
    """Build the refusal of a question to a fleet that is not configured."""
    broken = [note for note in context.notes if note.startswith(GLOBAL_NOTE_PREFIX)]
    reason = broken[0] if broken else "no repositories and no server are set"
    return MemtoolError(
        f"cannot ask other repositories: {reason}",
        hint=f"memtool --global config {REPOSITORIES} '~/src/*'\nmemtool fleet sync",
        code="no-fleet",
    )


def require_settings(context: Context) -> FleetSettings:
    """Read the settings of the fleet. Raises MemtoolError if none is configured."""
    settings = read_settings(context)
    if not settings.is_set:
        raise unset_error(context)
    return settings


def matches_any(name: str, globs: Collection[str]) -> bool:
    """Return whether a name matches one of the globs, ignoring case; True if there are none.

    A star matches any characters, also slashes.
    """
    lower = name.casefold()
    return not globs or any(matches_name(glob.casefold(), lower) for glob in globs)


def compute_share(limit: int, repositories: int) -> int:
    """Return how many of `limit` candidates may come from each repository.

    A tenth of them; more only if there are fewer than ten repositories.
    """
    return max(limit * SHARE_OF_CANDIDATES // CANDIDATES, -(-limit // max(1, repositories)))


def limit_shares(candidates: Iterable[FleetCandidate], limit: int) -> list[FleetCandidate]:
    """Limit each repository to its share of `limit` candidates, keeping the order."""
    all_candidates = list(candidates)
    max_each = compute_share(limit, len({candidate.repository for candidate in all_candidates}))
    return limit_each(all_candidates, max_each, lambda candidate: candidate.repository)[:limit]


def limit_each(
    items: Iterable[Item], max_each: int, repository_of: Callable[[Item], str]
) -> list[Item]:
    """Limit each repository to `max_each` items, keeping the order."""
    counts: dict[str, int] = {}
    chosen = []
    for item in items:
        name = repository_of(item)
        counts[name] = counts.get(name, 0) + 1
        if counts[name] <= max_each:
            chosen.append(item)
    return chosen


class AnyCategory(Names):
    """A set of all valid category names, since each repository defines its own."""

    def __contains__(self, name: object) -> bool:
        """Return whether a name is valid for a category."""
        return isinstance(name, str) and is_id(name)


ANY_CATEGORY = AnyCategory()


def build_document(memory: Memory, path: str = "") -> Document:
    """Build the searchable texts of a memory; `path` is its key."""
    return Document(path, list_texts(Record(memory, path, "")))


def build_terms(memory: Memory) -> bytes:
    """Build the terms of a memory (`FleetCandidate.text`)."""
    return scoring.analyze_document(build_document(memory))[1]


def find_fleet_home(env: Mapping[str, str]) -> str:
    """Return the directory of the fleet's clones and indexes, outside of every repository.

    `fleet` in MEMTOOL_STORAGE if set, otherwise `memtool/fleet` in the user's cache.

    Raises:
        MemtoolError: neither exists.
    """
    storage = env.get("MEMTOOL_STORAGE", "")
    if os.path.isabs(storage):
        return os.path.join(storage, FLEET)
    place = find_user_cache(env)
    if not place:
        raise MemtoolError(
            "cannot store the fleet: HOME is not set",
            hint="set HOME, or XDG_CACHE_HOME=/path/to/a/directory",
            code="no-fleet",
        )
    return os.path.join(place, FLEET)
