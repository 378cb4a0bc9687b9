"""The embedded backend: the memories of all repositories of a fleet in one index on disk.

    report = sync(context)          # scans all repositories, indexes what changed
    GitBackend(home, now).find_candidates(query, timeout_s)

The index is a database like that of a worktree (see `index.schema`). For each changed repository, a
sync removes the old memories and adds the current ones with consecutive numbers. The ranges of
numbers are written in the same transaction, with the list of repositories and their problems, so
that a query never sees half a sync. All of it may be deleted: the next sync rebuilds it.

Memories are stored with their whole file in place of the body, so that `rank` reads the same bytes
as git has, and nothing is stored twice.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right

from memtool.errors import MemtoolError
from memtool.fleet import repositories
from memtool.fleet.backend import (
    ANY_CATEGORY,
    MAX_INDEXED,
    REPOSITORIES,
    FleetCandidate,
    FleetUnavailable,
    build_document,
    compute_share,
    find_fleet_home,
    matches_any,
    require_settings,
)
from memtool.fleet.repositories import (
    CLONES,
    UNREADABLE_PREFIX,
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
from memtool.memory.visibility import explain_kept_back
from memtool.store import cache, snapshot
from memtool.store.cache import CorruptCacheError
from memtool.store.files import locked, matches_name
from memtool.store.repository import without_location
from memtool.store.state import State, UnavailableError, get_thread_id
from memtool.store.tree import Record
from memtool.value import Value, format_count

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
"""Key of the index; an index of another version of the analyzer is useless."""
STATE_ROW = "fleet"
"""The row of the table `meta` with the state as JSON."""
NOT_ALLOWED = "fleet.allow does not name it"
"""Note on a repository that is not indexed because the user's settings exclude it."""
TRUNCATED_PREFIX = "only the newest"
"""Start of the note on a repository that is only partly indexed."""
MAX_THREADS = 4
"""Repositories scanned in parallel."""
_WAIT_S = 10.0
# Each round searches again, without the excess candidates of repositories above their share.
MAX_ROUNDS = 8


class Part(Value):
    """The range of numbers of a repository's memories, [first, end).

    `key` identifies the state that they were read from.
    """

    name: str
    key: str
    first: int
    end: int


class FleetState(Value):
    """The state after a sync. `synced` is its time in seconds.

    `repositories` are in the user's order, `parts` in the order of their numbers.
    """

    synced: int
    repositories: tuple[FleetRepository, ...]
    parts: tuple[Part, ...]


class SyncReport(Value):
    """The result of a sync; `indexed` counts the repositories that were indexed again."""

    state: FleetState
    indexed: int
    is_dry: bool = False


def read_state(home: str) -> FleetState | None:
    """Read the state after the last sync; None if this version cannot read any."""
    try:
        state = State.open(os.path.join(home, FOLDER), SCHEMA, key=KEY)
        if state is None:
            return None
        with state.read() as rows:
            fleet_state = _parse_state(rows)
        state.close()
    except (CorruptCacheError, UnavailableError):
        return None
    return fleet_state


def _parse_state(rows: Rows) -> FleetState | None:
    row = rows.get("meta", STATE_ROW)
    if row is None:
        return None
    values = json.loads(str(row[1]))
    return FleetState(
        values["synced"],
        tuple(
            FleetRepository(**{**row, "private": tuple(row["private"])})
            for row in values["repositories"]
        ),
        tuple(Part(*part) for part in values["parts"]),
    )


def find_index_files(home: str) -> list[str]:
    """Return the paths of the databases; each sync changes their modification times."""
    folder = os.path.join(home, FOLDER)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in sorted(names) if name.endswith(".db")]


def measure_size(home: str) -> int:
    """Return the size of all clones and the index in bytes."""
    size = 0
    for folder, _folders, names in os.walk(home):
        for name in names:
            try:
                size += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # removed by another sync
                continue
    return size


def sync(
    context: Context, *, is_dry: bool = False, report: Callable[[str], None] = lambda _at: None
) -> SyncReport:
    """Scan all configured repositories, fetch remotes, and index the changes.

    `report` is called with progress messages. With `is_dry`, nothing is fetched or written.

    Raises:
        MemtoolError: no repositories are configured, or the directory cannot be written.
    """
    home = find_fleet_home(context.caller.env)
    fleet = require_settings(context)
    if not fleet.repositories:
        raise MemtoolError(
            f"nothing to sync: {REPOSITORIES} is empty, and a server is configured",
            hint=f"memtool --global config {REPOSITORIES} '~/src/*'",
            code="no-fleet",
        )
    sources = repositories.find_sources(fleet.repositories, context.caller.env.get("HOME", ""))
    if is_dry:
        return _sync_sources(context, home, sources, report, is_dry=True)
    with locked(home, LOCK):
        try:
            return _sync_sources(context, home, sources, report, is_dry=False)
        except CorruptCacheError:  # the state was intact, but the data was not
            cache.drop(os.path.join(home, FOLDER))
            return _sync_sources(context, home, sources, report, is_dry=False)


def _sync_sources(
    context: Context,
    home: str,
    sources: Sequence[FleetSource],
    report: Callable[[str], None],
    *,
    is_dry: bool,
) -> SyncReport:
    from concurrent.futures import ThreadPoolExecutor  # only a sync needs it

    before = read_state(home) or FleetState(0, (), ())
    scanner = RepositoryScanner(home, context.caller.env, before.repositories)
    report(f"looking at {format_count(len(sources), 'repository', 'repositories')}")
    with ThreadPoolExecutor(MAX_THREADS) as threads:
        rows = repositories.without_duplicates(
            threads.map(lambda source: scanner.scan(source, is_fetching=not is_dry), sources)
        )
    reader = RepositoryReader(context, home)
    # A repository that the user excludes must not affect the statistics of the others.
    allow = require_settings(context).allow
    keys = {
        row.name: reader.compute_key(row)
        for row in rows
        if row.tree and matches_any(row.name, allow)
    }
    unchanged = [part for part in before.parts if keys.get(part.name) == part.key]
    missing = sorted(keys.keys() - {part.name for part in unchanged})
    if is_dry:
        state = FleetState(before.synced, tuple(rows), tuple(unchanged))
        return SyncReport(state, len(missing), is_dry=True)
    by_name = {row.name: row for row in rows if row.tree}
    fresh = reader.read_all([by_name[name] for name in missing], report)
    counts = {part.name: part.end - part.first for part in unchanged}
    counts |= {name: len(files) for name, files in fresh.items()}
    before_notes = {row.name: row.note for row in before.repositories if row.tree}

    def update_row(row: FleetRepository) -> FleetRepository:
        if not row.tree:
            return row
        if row.name not in keys:
            return row.replace(key="", count=0, note=NOT_ALLOWED)
        note = before_notes.get(row.name, row.note).removeprefix(NOT_ALLOWED)
        return row.replace(
            key=keys[row.name],
            count=counts.get(row.name, 0),
            note=reader.notes.get(row.name, "") if row.name in missing else note,
            problem=reader.problems.get(row.name) or row.problem,
        )

    state = FleetState(context.clock.now, tuple(map(update_row, rows)), tuple(unchanged))
    report(f"indexing {format_count(sum(map(len, fresh.values())), 'memory', 'memories')}")
    state = _update_index(context, home, state, before.parts, keys, fresh)
    scanner.sweep(source.remote for source in sources if source.remote)
    return SyncReport(state, len(missing))


def _update_index(
    context: Context,
    home: str,
    state: FleetState,
    old: Sequence[Part],
    keys: Mapping[str, str],
    fresh: Mapping[str, Sequence[MemoryFile]],
) -> FleetState:
    """Update the index; return the state with the number ranges of all memories.

    Raises:
        MemtoolError: the index cannot be written.
    """
    removed_parts = [part for part in old if part not in state.parts]
    added = [
        (
            Record(Memory(file.memory.fields, file.data.decode()), path, ""),
            build_document(file.memory, path),
        )
        for name, files in fresh.items()
        for file in files
        for path in (f"{name}/{file.path}",)
    ]
    categories = context.project.user_settings.categories
    parts = list(state.parts)

    def finish(rows: Rows, first: int) -> None:
        nonlocal state
        new_parts = list(parts)
        for name, files in fresh.items():
            new_parts.append(Part(name, keys[name], first, first + len(files)))
            first += len(files)
        state = state.replace(parts=tuple(new_parts))
        rows.put("meta", STATE_ROW, json.dumps(_serialize(state), separators=(",", ":")))

    def fill(rows: Rows) -> None:
        writing.write_all(rows, added, categories, ENGLISH)
        finish(rows, 0)

    def update(rows: Rows) -> None:
        removed = [number for part in removed_parts for number in range(part.first, part.end)]
        numbers = writing.update(rows, removed, added, categories, ENGLISH)
        finish(rows, next(iter(numbers), 0))

    place = os.path.join(home, FOLDER)
    opened = _open_index(place)
    if parts and opened is not None:
        note = opened.write(update, wait_s=_WAIT_S)
    else:
        opened = State.rebuild(place, SCHEMA, fill, key=KEY, instead_of=opened)
        note = opened.note
    opened.close()
    if note:
        raise MemtoolError(
            f"cannot store the fleet: {note}",
            hint="set XDG_CACHE_HOME=/path/to/another/directory",
            code="no-fleet",
        )
    return state


def _serialize(state: FleetState) -> dict[str, Any]:
    return {
        "synced": state.synced,
        "repositories": [row.plain() for row in state.repositories],
        "parts": [[part.name, part.key, part.first, part.end] for part in state.parts],
    }


def _open_index(place: str) -> State | None:
    try:
        return State.open(place, SCHEMA, key=KEY)
    except CorruptCacheError:
        cache.drop(place)
        return None


class RepositoryReader:
    """Reads the memories of repositories.

    `problems` and `notes` are keyed by repository name. A repository with a problem has no
    memories.
    """

    def __init__(self, context: Context, home: str) -> None:
        self._env = context.caller.env
        self._clones = os.path.join(home, CLONES, "")
        self._labels = context.project.user_settings.private_labels
        self._categories: Mapping[str, Category] = context.project.user_settings.categories
        self.problems: dict[str, str] = {}
        self.notes: dict[str, str] = {}

    def compute_key(self, row: FleetRepository) -> str:
        """Compute the key of everything that a repository's documents depend on."""
        rows = [
            f"{category.name} {category.ttl_days} {category.temporal_class}"
            for _name, category in sorted(self._categories.items())
        ]
        return cache.digest(KEY, row.tree, row.directory, *sorted(self._find_labels(row)), *rows)

    def _find_labels(self, row: FleetRepository) -> frozenset[str]:
        return frozenset(self._labels.union(label.lower() for label in row.private))

    def read_all(
        self, rows: Sequence[FleetRepository], report: Callable[[str], None]
    ) -> dict[str, list[MemoryFile]]:
        """Read the memories of repositories, by name, without those that cannot be read."""
        files_by_name = {}
        for number, row in enumerate(rows):
            report(f"reading {row.name}, {number + 1} of {len(rows)}")
            files = self._read_one(row)
            if files is not None:
                files_by_name[row.name] = files
        return files_by_name

    def _read_one(self, row: FleetRepository) -> list[MemoryFile] | None:
        """Read the memories of a repository that are for the fleet; None if git fails."""
        try:
            files, kept_back, unread = read_memory_files(row, self._find_labels(row), self._env)
        except MemtoolError as error:
            self.problems[row.name] = f"{UNREADABLE_PREFIX}{error.as_line}"
            if row.git_dir.startswith(self._clones):  # the next sync fetches it again
                cache.drop(row.git_dir)
            return None
        notes = []
        if kept_back and not files:
            count = format_count(len(kept_back), "memory", "memories")
            notes.append(f"none of {count} counts, the first since {kept_back[0]}")
        if len(files) > MAX_INDEXED:
            notes.append(f"{TRUNCATED_PREFIX} {MAX_INDEXED:,} of {len(files):,} memories count")
            files.sort(key=lambda file: (-file.memory.timestamp, file.path))
            del files[MAX_INDEXED:]
        if unread:
            notes.append(format_count(unread, "file is not a memory", "files are not memories"))
        self.notes[row.name] = "; ".join(notes)
        return files


class MemoryFile(Value):
    """A memory and its file; `path` is relative to its repository."""

    memory: Memory
    path: str
    data: bytes


def read_memory_files(
    row: FleetRepository, labels: Collection[str], env: Mapping[str, str]
) -> tuple[list[MemoryFile], list[str], int]:
    """Read the memories of a repository that are for the fleet.

    Also return the reasons why other memories are withheld, in the order of their paths, and the
    number of unreadable files. `labels` are the privacy labels that withhold a memory, in lower
    case.

    Raises:
        MemtoolError: git cannot read it.
    """
    repository = open_bare(row.git_dir, without_location(env))
    tree_snapshot = snapshot.take_snapshot(repository, row.directory, row.commit)
    reader = document.Reader(ANY_CATEGORY)
    files = []
    unread = len(tree_snapshot.problems)
    for entry, data in tree_snapshot.read():
        assert isinstance(data, bytes)  # only files of a worktree may be unreadable
        try:
            memory = reader.read(data, entry.path)
        except document.Unreadable:
            unread += 1
            continue
        files.append(MemoryFile(memory, entry.path, data))
    lineage = Lineage(file.memory for file in files)
    first_by_id: dict[str, MemoryFile] = {}
    kept_back = []
    for file in files:
        why = explain_kept_back(file.memory, labels, is_head=lineage.is_head(file.memory.id))
        if why:
            kept_back.append(why)
        else:
            first_by_id.setdefault(file.memory.id, file)
    return list(first_by_id.values()), kept_back, unread


class OpenFleet:
    """The open index of a fleet, for any number of queries."""

    def __init__(self, state: State) -> None:
        """Start reading. Raises CorruptCache if the index is damaged."""
        self.index = OpenIndex(state)
        self.reader = self.index.reader
        fleet_state = _parse_state(self.index.rows)
        if fleet_state is None:
            raise CorruptCacheError("the list of repositories is gone")
        self.state = fleet_state
        rows = {row.name: row for row in fleet_state.repositories if row.tree}
        self.parts = [part for part in fleet_state.parts if part.end > part.first]
        self.rows = [rows.get(part.name) for part in self.parts]
        self._firsts = [part.first for part in self.parts]

    def find_row(self, number: int) -> int:
        """Return the index in `rows` of a document's repository."""
        return bisect_right(self._firsts, number) - 1

    def build_filter(
        self, query: FleetQuery, now: int, limited: Mapping[int, frozenset[int] | None]
    ) -> Callable[[int], bool]:
        """Return a predicate for the documents that a query admits.

        `limited` maps a row to the documents that remain admitted, if not all do.
        """
        admitted = [row is not None and query.admits(row.name, row.team) for row in self.rows]
        memories = self.index.memories
        tags = [tag.casefold() for tag in query.tags]

        def is_wanted(item: str) -> bool:
            return any(matches_name(tag, item.casefold()) for tag in tags)

        tagged = memories.find_listing("tags", is_wanted) if tags else None

        def is_allowed(number: int) -> bool:
            place = self.find_row(number)
            if not admitted[place]:
                return False
            allowed_numbers = limited.get(place)
            if allowed_numbers is not None and number not in allowed_numbers:
                return False
            return (
                memories.row(number).is_alive(now)
                and (not query.types or memories.kind(number).type in query.types)
                and (tagged is None or number in tagged)
            )

        return is_allowed


OLD_SYNC_S = 7 * 86_400
"""Age of the last sync from which on it is reported."""


def _summarize(rows: Sequence[FleetRepository], synced: int, now: int) -> str:
    """Summarize how many repositories were searched, and what was missing."""
    count = len(rows)
    if not count:
        return "no repository that is meant has memories: memtool fleet status lists all of them"
    parts = [f"{count:,} other {'repository was' if count == 1 else 'repositories were'} asked"]
    cut = sum(row.note.startswith(TRUNCATED_PREFIX) for row in rows)
    if cut:
        parts.append(f"of {cut:,} only the newest {MAX_INDEXED:,} memories")
    if now - synced > OLD_SYNC_S:
        parts.append(
            f"as they were on {timestamps.format_date(synced)}: memtool fleet sync fetches them"
        )
    return ", ".join(parts)


_open_fleets: dict[str, OpenFleet] = {}
"""Open fleets by home and thread, for further queries of this process."""


class GitBackend:
    """Answers from the index of the last sync; `now` is the current time in seconds."""

    def __init__(self, home: str, now: int) -> None:
        self._home = home
        self._now = now
        self.note = ""

    def find_candidates(self, query: FleetQuery, timeout_s: float) -> list[FleetCandidate]:
        """Return the best candidates, limited to the share of each repository.

        Raises:
            FleetUnavailable: there was no sync yet, or its data is damaged.
        """
        del timeout_s  # it only reads a few local files, and the caller enforces the limit
        try:
            return self._find_candidates(query)
        except CorruptCacheError:
            raise self._drop_damaged() from None

    def _drop_damaged(self) -> FleetUnavailable:
        """Remove a damaged index, as a sync would build on it; return the error to raise."""
        _open_fleets.pop(self._home, None)
        cache.drop(os.path.join(self._home, FOLDER))
        return FleetUnavailable("its index is damaged: memtool fleet sync makes it again")

    def open_fleet(self) -> OpenFleet:
        """Open the index of the last sync. Raises FleetUnavailable or CorruptCache."""
        key = f"{self._home} {get_thread_id()}"  # a connection belongs to one thread
        cached = _open_fleets.get(key)
        if cached is not None and cached.index.is_unchanged():
            return cached
        _open_fleets.clear()
        state = State.open(os.path.join(self._home, FOLDER), SCHEMA, key=KEY)
        if state is None:
            raise FleetUnavailable(
                "nothing of it is here: memtool fleet sync fetches and indexes it"
            )
        fleet = _open_fleets[key] = OpenFleet(state)
        return fleet

    def find_all(self, query: FleetQuery) -> Iterator[FleetCandidate]:
        """Yield all memories that the filters of a query admit, by repository and path.

        Raises:
            FleetUnavailable: there was no sync yet, or its data is damaged.
        """
        try:
            opened = self.open_fleet()
            is_allowed = opened.build_filter(query, self._now, {})
            for part in opened.parts:
                opened.index.memories.load(range(part.first, part.end))
                for number in filter(is_allowed, range(part.first, part.end)):
                    yield self._build_candidate(opened, number)
        except CorruptCacheError:
            raise self._drop_damaged() from None

    def _find_candidates(self, query: FleetQuery) -> list[FleetCandidate]:
        opened = self.open_fleet()
        rows = [row for row in opened.rows if row and query.admits(row.name, row.team)]
        self.note = _summarize(rows, opened.state.synced, self._now)
        if not rows:
            return []
        max_each = compute_share(query.limit, len(rows))
        limited: dict[int, frozenset[int] | None] = {}
        best: list[tuple[int, float]] = []
        for _round in range(MAX_ROUNDS):
            is_allowed = opened.build_filter(query, self._now, limited)
            best = opened.reader.find_best(query.weights, query.limit, is_allowed)
            numbers_by_row: dict[int, list[int]] = {}
            for number, _score in best:
                numbers_by_row.setdefault(opened.find_row(number), []).append(number)
            over = {
                place: numbers
                for place, numbers in numbers_by_row.items()
                if len(numbers) > max_each
            }
            if not over:
                break
            limited.update({place: frozenset(own[:max_each]) for place, own in over.items()})
        return [self._build_candidate(opened, number) for number, _score in best]

    def _build_candidate(self, opened: OpenFleet, number: int) -> FleetCandidate:
        row = opened.rows[opened.find_row(number)]
        assert row is not None
        path = opened.index.memories.path(number).removeprefix(f"{row.name}/")
        data = opened.index.memories.body(number).encode()
        return FleetCandidate(
            row.name, row.commit, path, data, opened.reader.text(number), row.team
        )
