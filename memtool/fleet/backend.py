"""The seam of the fleet: what other repositories are asked, what comes back, who may be asked.

A backend finds candidates: the memories, of all repositories that it knows, whose words answer best
by BM25 with the statistics of its own index. Everything that decides what a user sees lies on this
side of the seam and is the same for all backends: `rank` scores the candidates again, by memtool's
own recipe and the statistics of the client's own memories, and checks what is shown; `ask` holds
the clock. `git_backend` reads the clones of one machine, `opensearch` asks a server.

Only heads are candidates, alive, with no label of privacy that the user's settings exclude, read
from the trusted tree of their repository. Whatever comes back is untrusted all the same.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.index import scoring
from memtool.index.scoring import Document
from memtool.index.text import fields
from memtool.memory.schema import is_id
from memtool.store.context import GLOBAL_MEMORIES
from memtool.store.files import name_matches
from memtool.store.repository import user_cache
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
"""Candidates of one question. With so many the order of the local search is reproduced exactly."""
LEAST_SHARE = 10
"""So many of them may come from one repository, however many it offers: as many as an answer has,
and few enough to leave others most of the 30 that are looked at closely (`scoring.CANDIDATES`)."""
MOST_INDEXED = 10_000
"""Memories of one repository that are indexed, the newest: no flood fills the index of all."""
FLEET = "fleet"
"""The word of trust of what comes from another repository, which is below `local`; also the name
of its tier in a block, and of the folder of clones."""
URL, REPOSITORIES, ALLOW = "fleet.url", "fleet.repositories", "fleet.allow"
TIMEOUT, TEAM = "fleet.timeout_ms", "fleet.team"
URL_VARIABLE = "MEMTOOL_FLEET_URL"


class FleetUnavailable(Exception):
    """The fleet cannot be asked now. The message is one clause for people, without a full stop."""


class FleetQuery(Value):
    """A question to the fleet, and which memories count.

    `weights` are the analysed terms of the question without stop words, the most telling first.
    `repositories` are globs over `org/name` (`is_named`), of which one must fit, as of `allow`,
    which is the user's; empty: all. `without` is one that is not asked: the one at hand. `types`
    and `tags` are alternatives; empty: all. `most` is how many candidates come back, 1 to 1,000.
    """

    weights: Mapping[str, float]
    repositories: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    most: int = CANDIDATES
    allow: tuple[str, ...] = ()
    without: str = ""

    def admits(self, repository: str, team: str) -> bool:
        """Tell whether a repository is asked: by its name, its team, and what the user allows."""
        return (
            repository.casefold() != self.without.casefold()
            and is_named(repository, self.allow)
            and is_named(repository, self.repositories)
            and (is_named(team, self.teams) if team else not self.teams)
        )


class FleetCandidate(Value):
    """A memory of another repository that may answer; nobody vouches for it.

    `repository` is `org/name`: the last two parts of its remote's path, or of its folder, where it
    has no remote. `commit` is the full id of the trusted commit that it was read from, `path` its
    path there, `data` the bytes of the file. `text` is the memory as terms
    (`scoring.searchable`), in the language `analyzer.ENGLISH` whatever its repository sets: what is
    shown must be what was ranked, so `rank` compares it with what `data` gives.
    """

    repository: str
    commit: str
    path: str
    data: bytes
    text: bytes
    team: str = ""


class Backend(Protocol):
    """What finds candidates. `note` is what people should hear beside its last answer, if any."""

    note: str

    def candidates(self, asked: FleetQuery, within: float) -> list[FleetCandidate]:
        """Return the best candidates by words, the best first, at most `asked.most`.

        It should take `within` seconds at most; who asks stops waiting then. Raises
        FleetUnavailable where nobody answers.
        """


class FleetSettings(Value):
    """Who is asked, as the user's own settings and environment say; a repository has no say.

    `url` is empty where no server is set, `within` the seconds that an answer may take in all.
    """

    url: str
    repositories: tuple[str, ...]
    allow: tuple[str, ...]
    within: float

    @property
    def is_set(self) -> bool:
        """Whether there is anybody to ask."""
        return bool(self.url or self.repositories)


def settings_of(context: Context) -> FleetSettings:
    """Return who is asked. A value in a project's file counts for nothing, which a note says."""
    for key in (URL, REPOSITORIES, ALLOW, TIMEOUT):
        context.project.note_unused(key)
    own = context.project.own_settings
    return FleetSettings(
        context.caller.env.get(URL_VARIABLE) or own.text(URL),
        own.texts(REPOSITORIES),
        own.texts(ALLOW),
        own.count(TIMEOUT) / 1000,
    )


def is_set(context: Context) -> bool:
    """Tell whether the user has set anybody to ask."""
    own = context.project.own_settings
    return bool(context.caller.env.get(URL_VARIABLE) or own.text(URL) or own.texts(REPOSITORIES))


def required(context: Context) -> FleetSettings:
    """Return who is asked. Raises MemtoolError where nobody is set."""
    found = settings_of(context)
    if not found.is_set:
        broken = [note for note in context.notes if note.startswith(GLOBAL_MEMORIES)]
        reason = broken[0] if broken else "no repositories and no server are set"
        raise MemtoolError(
            f"there is no fleet to ask: {reason}",
            hint=f"memtool --global config {REPOSITORIES} '~/src/*', then memtool fleet sync",
            code="no-fleet",
        )
    return found


def is_named(name: str, globs: Collection[str]) -> bool:
    """Tell whether a name fits one of some globs, whatever its case; all fit where there are none.

    A star stands for any characters: `acme/*` are all repositories of acme.
    """
    lower = name.casefold()
    return not globs or any(name_matches(glob.casefold(), lower) for glob in globs)


def share(most: int, repositories: int) -> int:
    """Return how many of `most` candidates may come from one of so many repositories.

    A tenth of them, or `LEAST_SHARE` of a hundred; more only where there are not ten.
    """
    return max(most * LEAST_SHARE // CANDIDATES, -(-most // max(1, repositories)))


def within_share(candidates: Iterable[FleetCandidate], most: int) -> list[FleetCandidate]:
    """Return candidates in their order, of each repository no more than its share of `most`."""
    kept = list(candidates)
    least = share(most, len({one.repository for one in kept}))
    return few_of_each(kept, least, lambda one: one.repository)[:most]


def few_of_each(items: Iterable[Item], most: int, whose: Callable[[Item], str]) -> list[Item]:
    """Return items in their order, of each repository no more than so many."""
    counts: dict[str, int] = {}
    found = []
    for one in items:
        name = whose(one)
        counts[name] = counts.get(name, 0) + 1
        if counts[name] <= most:
            found.append(one)
    return found


class AnyCategory(Names):
    """The categories of all repositories: any name that one may have, since each has its own."""

    def __contains__(self, name: object) -> bool:
        """Tell whether a category may have that name."""
        return isinstance(name, str) and is_id(name)


ANY_CATEGORY = AnyCategory()


def document_of(memory: Memory, path: str = "") -> Document:
    """Return the texts of a memory in which words are looked for; `path` is its key."""
    return Document(path, fields(Record(memory, path, "")))


def terms_of(memory: Memory) -> bytes:
    """Return a memory as terms, which is what candidates are ranked by (`FleetCandidate.text`)."""
    return scoring.searchable(document_of(memory))[1]


def home_of(env: Mapping[str, str]) -> str:
    """Return where clones and indexes of the fleet are kept, outside of every repository.

    `fleet` of MEMTOOL_STORAGE where that is set, else `memtool/fleet` of the user's cache.

    Raises:
        MemtoolError: there is no such place.
    """
    storage = env.get("MEMTOOL_STORAGE", "")
    if os.path.isabs(storage):
        return os.path.join(storage, FLEET)
    place = user_cache(env)
    if not place:
        raise MemtoolError(
            "there is no place for the fleet, since HOME is not set",
            hint="XDG_CACHE_HOME=/path/to/a/directory names one",
            code="no-fleet",
        )
    return os.path.join(place, FLEET)
