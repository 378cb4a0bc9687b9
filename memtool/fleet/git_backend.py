"""The embedded backend: the memories of all repositories of a fleet in one index on disk.

    report = sync(context, jobs)          # looks at all repositories, indexes what changed
    GitBackend(home, now).candidates(asked, within)

The index is a database like that of a worktree (see `index.schema`). A sync removes the memories of
each repository that changed, and adds them as they are now: they have numbers one after the other.
Which numbers are whose is written in the same transaction, with the list of repositories and what
was wrong with them, so that a question never sees half a sync. All of it may be deleted: the next
sync makes it again.

The memories are stored with their whole file in place of the body: what `rank` reads is what git
has, and nothing is stored twice.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right

from memtool.errors import MemtoolError
from memtool.fleet import repositories
from memtool.fleet.backend import (
    ANY_CATEGORY,
    MOST_INDEXED,
    REPOSITORIES,
    FleetCandidate,
    FleetUnavailable,
    document_of,
    home_of,
    is_named,
    required,
    share,
)
from memtool.fleet.repositories import (
    CLONES,
    UNREAD,
    FleetRepository,
    FleetSource,
    RepositoryScanner,
    open_bare,
)
from memtool.index import writing
from memtool.index.analyzer import ENGLISH, TOKENIZER
from memtool.index.open_index import OpenIndex
from memtool.index.schema import SCHEMA
from memtool.memory import document, timestamps
from memtool.memory.lineage import Lineage
from memtool.memory.memory import Memory
from memtool.memory.visibility import why_kept_back
from memtool.store import cache, snapshot
from memtool.store.cache import CorruptCache
from memtool.store.files import locked, name_matches
from memtool.store.repository import local_environment
from memtool.store.state import State, Unavailable, thread_number
from memtool.store.tree import Record
from memtool.value import Value, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from memtool.fleet.backend import FleetQuery
    from memtool.memory.fields import Category
    from memtool.store.context import Context
    from memtool.store.state import Rows

FOLDER, LOCK = "index", "lock"
KEY = f"fleet 2 {TOKENIZER}"
"""What is kept is of no use to another version of the analyzer."""
STATE = "fleet"
"""The row of the table `meta` that has the state, as JSON."""
UNHEARD = "fleet.allow does not name it"
"""The note of a repository that is not indexed, since the user does not want to hear it."""
MANY = "only the newest"
"""How the note begins of a repository of which not all is indexed."""
JOBS = 4
"""Repositories that are looked at at once."""
_WAIT_S = 10.0
MOST_ROUNDS = 8
"""So often candidates are looked for again, without repositories that had more than their share."""


class Part(Value):
    """Which memories are a repository's: those numbered from `first` to before `end`.

    `key` says what they were made of.
    """

    name: str
    key: str
    first: int
    end: int


class FleetState(Value):
    """What the last sync left: `synced` is its second, `repositories` are in the user's order.

    `parts` are in the order of their numbers.
    """

    synced: int
    repositories: tuple[FleetRepository, ...]
    parts: tuple[Part, ...]


class SyncReport(Value):
    """What a sync did: repositories that were indexed anew, memories in all, what it wrote."""

    state: FleetState
    indexed: int
    is_dry: bool = False


def state_of(home: str) -> FleetState | None:
    """Return what the last sync left; None where there is nothing that this version can read."""
    try:
        state = State.open(os.path.join(home, FOLDER), SCHEMA, key=KEY)
        if state is None:
            return None
        with state.read() as rows:
            found = _state_in(rows)
        state.close()
    except (CorruptCache, Unavailable):
        return None
    return found


def _state_in(rows: Rows) -> FleetState | None:
    row = rows.one("meta", STATE)
    if row is None:
        return None
    found = json.loads(str(row[1]))
    return FleetState(
        found["synced"],
        tuple(
            FleetRepository(**{**row, "private": tuple(row["private"])})
            for row in found["repositories"]
        ),
        tuple(Part(*part) for part in found["parts"]),
    )


def index_files(home: str) -> list[str]:
    """Return the databases, whose times change with each sync."""
    folder = os.path.join(home, FOLDER)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in sorted(names) if name.endswith(".db")]


def size_of(home: str) -> int:
    """Return the bytes of all clones and of the index."""
    found = 0
    for folder, _folders, names in os.walk(home):
        for name in names:
            try:
                found += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # another sync sweeps
                continue
    return found


def sync(
    context: Context, *, is_dry: bool = False, tell: Callable[[str], None] = lambda _at: None
) -> SyncReport:
    """Look at all repositories of the user's settings, fetch the remotes, index what changed.

    `tell` is called with what is done now. With `is_dry` nothing is fetched and nothing written.

    Raises:
        MemtoolError: no repositories are set, or the place for them cannot be written.
    """
    home = home_of(context.caller.env)
    wanted = required(context)
    if not wanted.repositories:
        raise MemtoolError(
            f"{REPOSITORIES} names nothing to sync: a server is asked",
            hint=f"memtool --global config {REPOSITORIES} '~/src/*' names repositories",
            code="no-fleet",
        )
    found = repositories.sources(wanted.repositories, context.caller.env.get("HOME", ""))
    if is_dry:
        return _synced(context, home, found, tell, is_dry=True)
    with locked(home, LOCK):
        try:
            return _synced(context, home, found, tell, is_dry=False)
        except CorruptCache:  # the list of repositories was whole, and what it speaks of is not
            cache.drop(os.path.join(home, FOLDER))
            return _synced(context, home, found, tell, is_dry=False)


def _synced(
    context: Context,
    home: str,
    found: Sequence[FleetSource],
    tell: Callable[[str], None],
    *,
    is_dry: bool,
) -> SyncReport:
    from concurrent.futures import ThreadPoolExecutor  # a question looks at no repository

    before = state_of(home) or FleetState(0, (), ())
    scanner = RepositoryScanner(home, context.caller.env, before.repositories)
    tell(f"looking at {plural(len(found), 'repository', 'repositories')}")
    with ThreadPoolExecutor(JOBS) as threads:
        rows = repositories.unique(
            threads.map(lambda one: scanner.scan(one, is_fetching=not is_dry), found)
        )
    reader = RepositoryReader(context, home)
    # What the user does not want to hear changes no statistics of what they do.
    allow = required(context).allow
    keys = {row.name: reader.key_of(row) for row in rows if row.tree and is_named(row.name, allow)}
    kept = [part for part in before.parts if keys.get(part.name) == part.key]
    missing = sorted(keys.keys() - {part.name for part in kept})
    if is_dry:
        state = FleetState(before.synced, tuple(rows), tuple(kept))
        return SyncReport(state, len(missing), is_dry=True)
    by_name = {row.name: row for row in rows if row.tree}
    fresh = reader.read([by_name[name] for name in missing], tell)
    counts = {part.name: part.end - part.first for part in kept}
    counts |= {name: len(files) for name, files in fresh.items()}
    before_notes = {row.name: row.note for row in before.repositories if row.tree}

    def settled(row: FleetRepository) -> FleetRepository:
        if not row.tree:
            return row
        if row.name not in keys:
            return row.replace(key="", count=0, note=UNHEARD)
        note = before_notes.get(row.name, row.note).removeprefix(UNHEARD)
        return row.replace(
            key=keys[row.name],
            count=counts.get(row.name, 0),
            note=reader.notes.get(row.name, "") if row.name in missing else note,
            problem=reader.problems.get(row.name) or row.problem,
        )

    state = FleetState(context.clock.now, tuple(map(settled, rows)), tuple(kept))
    tell(f"indexing {plural(sum(map(len, fresh.values())), 'memory', 'memories')}")
    state = _indexed(context, home, state, before.parts, keys, fresh)
    scanner.sweep(one.remote for one in found if one.remote)
    return SyncReport(state, len(missing))


def _indexed(
    context: Context,
    home: str,
    state: FleetState,
    old: Sequence[Part],
    keys: Mapping[str, str],
    fresh: Mapping[str, Sequence[MemoryFile]],
) -> FleetState:
    """Bring the index up to date; return the state with the numbers of all memories.

    Raises:
        MemtoolError: it cannot be written.
    """
    gone = [part for part in old if part not in state.parts]
    added = [
        (
            Record(Memory(one.memory.fields, one.data.decode()), path, ""),
            document_of(one.memory, path),
        )
        for name, files in fresh.items()
        for one in files
        for path in (f"{name}/{one.path}",)
    ]
    categories = context.project.own_settings.categories
    parts = list(state.parts)

    def finish(rows: Rows, first: int) -> None:
        nonlocal state
        now = list(parts)
        for name, files in fresh.items():
            now.append(Part(name, keys[name], first, first + len(files)))
            first += len(files)
        state = state.replace(parts=tuple(now))
        rows.put("meta", STATE, json.dumps(_plain(state), separators=(",", ":")))

    def fill(rows: Rows) -> None:
        writing.fill(rows, added, categories, ENGLISH)
        finish(rows, 0)

    def update(rows: Rows) -> None:
        removed = [number for part in gone for number in range(part.first, part.end)]
        numbers = writing.update(rows, removed, added, categories, ENGLISH)
        finish(rows, next(iter(numbers), 0))

    place = os.path.join(home, FOLDER)
    opened = _opened(place)
    if parts and opened is not None:
        note = opened.write(update, wait_s=_WAIT_S)
    else:
        opened = State.rebuilt(place, SCHEMA, fill, key=KEY, instead_of=opened)
        note = opened.note
    opened.close()
    if note:
        raise MemtoolError(
            f"the fleet cannot be kept: {note}",
            hint="XDG_CACHE_HOME=/path/to/a/directory names another place",
            code="no-fleet",
        )
    return state


def _plain(state: FleetState) -> dict[str, Any]:
    return {
        "synced": state.synced,
        "repositories": [row.plain() for row in state.repositories],
        "parts": [[one.name, one.key, one.first, one.end] for one in state.parts],
    }


def _opened(place: str) -> State | None:
    try:
        return State.open(place, SCHEMA, key=KEY)
    except CorruptCache:
        cache.drop(place)
        return None


class RepositoryReader:
    """Reads the memories of repositories.

    `problems` and `notes` say by name what was wrong with them. A repository with a problem has no
    memories.
    """

    def __init__(self, context: Context, home: str) -> None:
        self._env = context.caller.env
        self._clones = os.path.join(home, CLONES, "")
        self._labels = context.project.own_settings.private_labels
        self._categories: Mapping[str, Category] = context.project.own_settings.categories
        self.problems: dict[str, str] = {}
        self.notes: dict[str, str] = {}

    def key_of(self, row: FleetRepository) -> str:
        """Return what the documents of a repository are made of."""
        rows = [
            f"{one.name} {one.ttl_days} {one.temporal_class}"
            for _name, one in sorted(self._categories.items())
        ]
        return cache.digest(KEY, row.tree, row.directory, *sorted(self._labels_of(row)), *rows)

    def _labels_of(self, row: FleetRepository) -> frozenset[str]:
        return frozenset(self._labels.union(label.lower() for label in row.private))

    def read(
        self, rows: Sequence[FleetRepository], tell: Callable[[str], None]
    ) -> dict[str, list[MemoryFile]]:
        """Return the memories of repositories that can be read, by name."""
        found = {}
        for number, row in enumerate(rows):
            tell(f"reading {row.name}, {number + 1} of {len(rows)}")
            files = self._read(row)
            if files is not None:
                found[row.name] = files
        return found

    def _read(self, row: FleetRepository) -> list[MemoryFile] | None:
        """Return the memories of a repository that are for the fleet; None where git fails."""
        try:
            found, kept_back, unread = memory_files(row, self._labels_of(row), self._env)
        except MemtoolError as error:
            hint = f"; {error.hint}" if error.hint else ""
            self.problems[row.name] = f"{UNREAD}{error}{hint}"
            if row.git_dir.startswith(self._clones):  # the next sync fetches all of it again
                cache.drop(row.git_dir)
            return None
        notes = []
        if kept_back and not found:
            count = plural(len(kept_back), "memory", "memories")
            notes.append(f"none of {count} counts, the first since {kept_back[0]}")
        if len(found) > MOST_INDEXED:
            notes.append(f"{MANY} {MOST_INDEXED:,} of {len(found):,} memories count")
            found.sort(key=lambda one: (-one.memory.timestamp, one.path))
            del found[MOST_INDEXED:]
        if unread:
            notes.append(plural(unread, "file is no memory", "files are none"))
        self.notes[row.name] = "; ".join(notes)
        return found


class MemoryFile(Value):
    """A memory with the file that it was read from; `path` is its path in its repository."""

    memory: Memory
    path: str
    data: bytes


def memory_files(
    row: FleetRepository, labels: Collection[str], env: Mapping[str, str]
) -> tuple[list[MemoryFile], list[str], int]:
    """Return the memories of a repository that are for its fleet, and what is not.

    That is why other memories are not, in the order of their paths, and how many files are none.
    `labels` are those of privacy that keep a memory back, in small letters.

    Raises:
        MemtoolError: git cannot read it.
    """
    repository = open_bare(row.git_dir, local_environment(env))
    taken = snapshot.take(repository, row.directory, row.commit)
    reader = document.Reader(ANY_CATEGORY)
    found = []
    unread = len(taken.problems)
    for entry, data in taken.read():
        assert isinstance(data, bytes)  # only a file of a worktree may be a problem
        try:
            memory = reader.read(data, entry.path)
        except document.Unreadable:
            unread += 1
            continue
        found.append(MemoryFile(memory, entry.path, data))
    lineage = Lineage(one.memory for one in found)
    first: dict[str, MemoryFile] = {}
    kept_back = []
    for one in found:
        why = why_kept_back(one.memory, labels, is_head=lineage.is_head(one.memory.id))
        if why:
            kept_back.append(why)
        else:
            first.setdefault(one.memory.id, one)
    return list(first.values()), kept_back, unread


class OpenedFleet:
    """The index of a fleet, opened, to be asked again and again."""

    def __init__(self, state: State) -> None:
        """Begin to read. Raises CorruptCache where it is damaged."""
        self.index = OpenIndex(state)
        self.reader = self.index.reader
        found = _state_in(self.index.rows)
        if found is None:
            raise CorruptCache("the list of repositories is gone")
        self.state = found
        rows = {row.name: row for row in found.repositories if row.tree}
        self.parts = [part for part in found.parts if part.end > part.first]
        self.rows = [rows.get(part.name) for part in self.parts]
        self._firsts = [part.first for part in self.parts]

    def row(self, number: int) -> int:
        """Return which of `rows` a document belongs to."""
        return bisect_right(self._firsts, number) - 1

    def allowed(
        self, asked: FleetQuery, now: int, left: Mapping[int, frozenset[int] | None]
    ) -> Callable[[int], bool]:
        """Return which documents may answer a question.

        `left` says of a row which of its documents still may, where not all do.
        """
        admitted = [row is not None and asked.admits(row.name, row.team) for row in self.rows]
        memories = self.index.memories
        tags = [tag.casefold() for tag in asked.tags]

        def is_wanted(item: str) -> bool:
            return any(name_matches(tag, item.casefold()) for tag in tags)

        tagged = memories.listing("tags", is_wanted) if tags else None

        def may(number: int) -> bool:
            place = self.row(number)
            if not admitted[place]:
                return False
            kept = left.get(place)
            if kept is not None and number not in kept:
                return False
            return (
                memories.row(number).is_alive(now)
                and (not asked.types or memories.kind(number).type in asked.types)
                and (tagged is None or number in tagged)
            )

        return may


OLD_S = 7 * 86_400
"""From this age on it is said how old the last sync is."""


def _summary(rows: Sequence[FleetRepository], synced: int, now: int) -> str:
    """Return how many repositories were asked, and what of them was not."""
    count = len(rows)
    if not count:
        return "no repository that is meant has memories: memtool fleet status lists all of them"
    parts = [f"{count:,} other {'repository was' if count == 1 else 'repositories were'} asked"]
    cut = sum(row.note.startswith(MANY) for row in rows)
    if cut:
        parts.append(f"of {cut:,} only the newest {MOST_INDEXED:,} memories")
    if now - synced > OLD_S:
        parts.append(f"as they were on {timestamps.date(synced)}: memtool fleet sync fetches them")
    return ", ".join(parts)


_held: dict[str, OpenedFleet] = {}
"""What is kept open, by home: a process may ask again."""


class GitBackend:
    """Answers from the segments of the last sync, as seen at the second `now`."""

    def __init__(self, home: str, now: int) -> None:
        self._home = home
        self._now = now
        self.note = ""

    def candidates(self, asked: FleetQuery, within: float) -> list[FleetCandidate]:
        """Return the best candidates, of each repository no more than its share.

        Raises:
            FleetUnavailable: nothing was ever synced, or what was is damaged.
        """
        del within  # it reads a few files of this machine; who asks waits no longer than that
        try:
            return self._candidates(asked)
        except CorruptCache:
            raise self._damaged() from None

    def _damaged(self) -> FleetUnavailable:
        """Remove what cannot be read, since a sync builds on what seems whole, and say so."""
        _held.pop(self._home, None)
        cache.drop(os.path.join(self._home, FOLDER))
        return FleetUnavailable("its index is damaged: memtool fleet sync makes it again")

    def opened(self) -> OpenedFleet:
        """Return what the last sync left, opened. Raises FleetUnavailable and CorruptCache."""
        key = f"{self._home} {thread_number()}"  # a connection belongs to one thread
        known = _held.get(key)
        if known is not None and known.index.is_unchanged():
            return known
        _held.clear()
        state = State.open(os.path.join(self._home, FOLDER), SCHEMA, key=KEY)
        if state is None:
            raise FleetUnavailable(
                "nothing of it is here: memtool fleet sync fetches and indexes it"
            )
        found = _held[key] = OpenedFleet(state)
        return found

    def all(self, asked: FleetQuery) -> Iterator[FleetCandidate]:
        """Yield every memory that a query admits, whatever its words, by repository and path.

        Raises:
            FleetUnavailable: nothing was ever synced, or what was is damaged.
        """
        try:
            opened = self.opened()
            may = opened.allowed(asked, self._now, {})
            for part in opened.parts:
                opened.index.memories.load(range(part.first, part.end))
                for number in filter(may, range(part.first, part.end)):
                    yield self._candidate(opened, number)
        except CorruptCache:
            raise self._damaged() from None

    def _candidates(self, asked: FleetQuery) -> list[FleetCandidate]:
        opened = self.opened()
        rows = [row for row in opened.rows if row and asked.admits(row.name, row.team)]
        self.note = _summary(rows, opened.state.synced, self._now)
        if not rows:
            return []
        most = share(asked.most, len(rows))
        left: dict[int, frozenset[int] | None] = {}
        best: list[tuple[int, float]] = []
        for _round in range(MOST_ROUNDS):
            may = opened.allowed(asked, self._now, left)
            best = opened.reader.best(asked.weights, asked.most, may)
            held: dict[int, list[int]] = {}
            for number, _score in best:
                held.setdefault(opened.row(number), []).append(number)
            over = {place: numbers for place, numbers in held.items() if len(numbers) > most}
            if not over:
                break
            left.update({place: frozenset(own[:most]) for place, own in over.items()})
        return [self._candidate(opened, number) for number, _score in best]

    def _candidate(self, opened: OpenedFleet, number: int) -> FleetCandidate:
        row = opened.rows[opened.row(number)]
        assert row is not None
        path = opened.index.memories.path(number).removeprefix(f"{row.name}/")
        data = opened.index.memories.body(number).encode()
        return FleetCandidate(
            row.name, row.commit, path, data, opened.reader.text(number), row.team
        )
