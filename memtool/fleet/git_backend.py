"""The embedded backend: the memories of all repositories of a fleet in a few segments on disk.

    report = sync(context, jobs)          # looks at all repositories, indexes what changed
    GitBackend(home, now).candidates(asked, within)

A segment is one of memtool's own (`index.postings`, with `index.stored_fields` beside it) and holds
whole repositories, `MOST_IN_SEGMENT` memories at most, so that a question opens a handful of files
where it would open one segment a repository: opening a segment and finding twenty terms in it costs
a cold process about a millisecond. It never changes. A repository whose memories changed is dead in
the segment that has it, and is indexed again in a new one, together with what lies in segments that
are small or half dead by now; so a repository is written again about as often as the logarithm of
how many there are.

`state.json` says which repositories there are, what was wrong with them, and which rows of which
segment are theirs. It is replaced as a whole, so that a question never sees half a sync. All of it
may be deleted: the next sync makes it again.

The memories are stored with their whole file in place of the body: what `rank` reads is what git
has, and nothing is stored twice.
"""

from __future__ import annotations

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
    Looker,
    open_bare,
)
from memtool.index import index, postings, stored_fields
from memtool.index.analyzer import TOKENIZER
from memtool.index.reader import IndexReader, LeafReader
from memtool.memory import document, timestamps
from memtool.memory.lineage import Lineage
from memtool.memory.memory import Memory
from memtool.memory.visibility import why_kept_back
from memtool.store import cache, snapshot
from memtool.store.cache import AbsentCache, CorruptCache
from memtool.store.files import locked, name_matches
from memtool.store.repository import local_environment
from memtool.store.snapshot import Record
from memtool.value import Value, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from memtool.fleet.backend import FleetQuery
    from memtool.memory.fields import Category
    from memtool.store.context import Context

STATE, LOCK = "state.json", "lock"
KIND = f"fleet 1 {postings.FORMAT} {TOKENIZER}"
"""What is kept is of no use to another version of the analyzer or of the index."""
MOST_IN_SEGMENT = 20_000
"""Memories of one segment: what is built at once must fit into memory."""
USUAL_SIZE = 500
"""Memories that a repository is taken to have before it was read."""
UNHEARD = "fleet.allow does not name it"
"""The note of a repository that is not indexed, since the user does not want to hear it."""
MANY = "only the newest"
"""How the note begins of a repository of which not all is indexed."""
JOBS = 4
"""Repositories that are looked at at once."""
MOST_ROUNDS = 8
"""So often candidates are looked for again, without repositories that had more than their share."""


class Part(Value):
    """Which memories of a segment are a repository's: those numbered from `first` to before `end`.

    `key` says what they were made of; where a repository has another one by now, they are dead.
    """

    name: str
    key: str
    first: int
    end: int


class FleetSegment(Value):
    """A segment by its name, and the repositories in it, in the order of their numbers."""

    name: str
    parts: tuple[Part, ...]

    @property
    def count(self) -> int:
        """How many memories it holds, dead ones included."""
        return self.parts[-1].end if self.parts else 0


class FleetState(Value):
    """What the last sync left: `synced` is its second, `repositories` are in the user's order."""

    synced: int
    repositories: tuple[FleetRepository, ...]
    segments: tuple[FleetSegment, ...]


class SyncReport(Value):
    """What a sync did: repositories that were indexed anew, memories in all, what it wrote."""

    state: FleetState
    indexed: int
    is_dry: bool = False


def state_of(home: str) -> FleetState | None:
    """Return what the last sync left; None where there is nothing that this version can read."""
    try:
        found = cache.read_json(os.path.join(home, STATE), KIND)
        if found is None:
            return None
        rows = tuple(
            FleetRepository(**{**row, "private": tuple(row["private"])})
            for row in found["repositories"]
        )
        segments = tuple(
            FleetSegment(name, tuple(Part(*part) for part in parts))
            for name, parts in found["segments"]
        )
        return FleetState(found["synced"], rows, segments)
    except (KeyError, TypeError, ValueError):
        return None


def size_of(home: str) -> int:
    """Return the bytes of all clones and segments."""
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
    home = home_of(context.env)
    wanted = required(context)
    if not wanted.repositories:
        raise MemtoolError(
            f"{REPOSITORIES} names nothing to sync: a server is asked",
            hint=f"memtool --global config {REPOSITORIES} '~/src/*' names repositories",
            code="no-fleet",
        )
    found = repositories.sources(wanted.repositories, context.env.get("HOME", ""))
    if is_dry:
        return _synced(context, home, found, tell, is_dry=True)
    with locked(home, LOCK):
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

    before = state_of(home)
    looker = Looker(home, context.env, before.repositories if before else ())
    tell(f"looking at {plural(len(found), 'repository', 'repositories')}")
    with ThreadPoolExecutor(JOBS) as threads:
        rows = repositories.unique(
            threads.map(lambda one: looker.look(one, is_fetching=not is_dry), found)
        )
    builder = Builder(context, home)
    before_rows = {row.name: row for row in before.repositories if row.tree} if before else {}
    old = [one for one in before.segments if _is_whole(home, one.name)] if before else []
    # What the user does not want to hear changes no statistics of what they do.
    allow = required(context).allow
    keys = {row.name: builder.key_of(row) for row in rows if row.tree and is_named(row.name, allow)}
    known = {part.name: part for one in old for part in one.parts}
    sizes = {name: part.end - part.first for name, part in known.items()}
    kept, missing = plan(old, keys, sizes)
    changed = [name for name in missing if name not in known or known[name].key != keys[name]]
    if is_dry:
        state = FleetState(before.synced if before else 0, tuple(rows), tuple(kept))
        return SyncReport(state, len(changed), is_dry=True)
    by_name = {row.name: row for row in rows if row.tree}
    made = builder.build([by_name[name] for name in missing], keys, tell)
    segments = (*kept, *made)
    counts = {
        part.name: part.end - part.first
        for one in segments
        for part in one.parts
        if keys.get(part.name) == part.key
    }

    def settled(row: FleetRepository) -> FleetRepository:
        if not row.tree:
            return row
        if row.name not in keys:
            return row.replace(key="", count=0, note=UNHEARD)
        held = before_rows.get(row.name, row).note.removeprefix(UNHEARD)
        return row.replace(
            key=keys[row.name],
            count=counts.get(row.name, 0),
            note=builder.notes.get(row.name, "") if row.name in missing else held,
            problem=builder.problems.get(row.name) or row.problem,
        )

    state = FleetState(context.now, tuple(map(settled, rows)), segments)
    note = cache.keep_json(home, STATE, KIND, _plain(state))
    if note:
        raise _unwritable(note)
    _sweep(home, segments)
    looker.sweep(one.remote for one in found if one.remote)
    return SyncReport(state, len(changed))


def _plain(state: FleetState) -> dict[str, Any]:
    return {
        "synced": state.synced,
        "repositories": [row.plain() for row in state.repositories],
        "segments": [
            [one.name, [[part.name, part.key, part.first, part.end] for part in one.parts]]
            for one in state.segments
        ],
    }


def plan(
    segments: Iterable[FleetSegment], keys: Mapping[str, str], sizes: Mapping[str, int]
) -> tuple[list[FleetSegment], list[str]]:
    """Return the segments that stay, and the repositories that are to be indexed, sorted.

    `keys` says what each repository is made of now, `sizes` how many memories it had. A segment
    stays unless more than half of it is dead, or it is about as small as what is indexed beside it:
    then that is one with it.
    """
    kept = []
    missing = set(keys)
    for one in segments:
        living = [part for part in one.parts if keys.get(part.name) == part.key]
        count = sum(part.end - part.first for part in living)
        if count * 2 > one.count or (living and not one.count):
            kept.append((count, one, {part.name for part in living}))
            missing.difference_update(kept[-1][2])
    size = sum(sizes.get(name, USUAL_SIZE) for name in missing)
    staying = []
    for count, one, names in sorted(kept, key=lambda found: found[0]):
        if missing and count <= 2 * size and count + size <= MOST_IN_SEGMENT:
            missing |= names
            size += count
        else:
            staying.append(one)
    return staying, sorted(missing)


class Builder:
    """Makes segments of repositories; `problems` and `notes` say by name what was wrong with them.

    A repository with a problem is in no segment.
    """

    def __init__(self, context: Context, home: str) -> None:
        self._env = context.env
        self._home = home
        self._clones = os.path.join(home, CLONES, "")
        self._labels = context.own_settings.private_labels
        self._categories: Mapping[str, Category] = context.own_settings.categories
        self.problems: dict[str, str] = {}
        self.notes: dict[str, str] = {}

    def key_of(self, row: FleetRepository) -> str:
        """Return what the documents of a repository are made of."""
        rows = [f"{one.name} {one.ttl_days} {one.temporal_class}"
                for _name, one in sorted(self._categories.items())]  # fmt: skip
        return cache.digest(KIND, row.tree, row.directory, *sorted(self._labels_of(row)), *rows)

    def _labels_of(self, row: FleetRepository) -> frozenset[str]:
        return frozenset(self._labels.union(label.lower() for label in row.private))

    def build(
        self,
        rows: Sequence[FleetRepository],
        keys: Mapping[str, str],
        tell: Callable[[str], None],
    ) -> list[FleetSegment]:
        """Return the segments of repositories, each as full as it may be, and keep them."""
        made = []
        taken: list[tuple[FleetRepository, list[Filed]]] = []
        count = 0
        for number, row in enumerate(rows):
            tell(f"reading {row.name}, {number + 1} of {len(rows)}")
            filed = self._read(row)
            if filed is None:
                continue
            if taken and count + len(filed) > MOST_IN_SEGMENT:
                tell(f"indexing {plural(count, 'memory', 'memories')}")
                made.append(self._made(taken, keys))
                taken, count = [], 0
            taken.append((row, filed))
            count += len(filed)
        if taken:
            tell(f"indexing {plural(count, 'memory', 'memories')}")
            made.append(self._made(taken, keys))
        return made

    def _read(self, row: FleetRepository) -> list[Filed] | None:
        """Return the memories of a repository that are for the fleet; None where git fails."""
        try:
            found, kept_back, unread = filed_in(row, self._labels_of(row), self._env)
        except MemtoolError as error:
            hint = f"; {error.hint}" if error.hint else ""
            self.problems[row.name] = f"{UNREAD}{error}{hint}"
            if row.git_dir.startswith(self._clones):  # the next sync fetches all of it again
                cache.drop(row.git_dir)
            return None
        notes = []
        if kept_back and not found:
            count = "1 memory" if len(kept_back) == 1 else f"{len(kept_back):,} memories"
            notes.append(f"none of {count} counts, the first since {kept_back[0]}")
        if len(found) > MOST_INDEXED:
            notes.append(f"{MANY} {MOST_INDEXED:,} of {len(found):,} memories count")
            found.sort(key=lambda one: (-one.memory.timestamp, one.path))
            del found[MOST_INDEXED:]
        if unread:
            notes.append("1 file is no memory" if unread == 1 else f"{unread:,} files are none")
        self.notes[row.name] = "; ".join(notes)
        return found

    def _made(
        self, taken: Sequence[tuple[FleetRepository, list[Filed]]], keys: Mapping[str, str]
    ) -> FleetSegment:
        from memtool.index import build  # bm25s and numpy

        filed = {f"{row.name}/{one.path}": one for row, found in taken for one in found}
        paths = sorted(filed)
        files = build.build(document_of(filed[path].memory, path) for path in paths)
        files[stored_fields.FILE] = stored_fields.pack(
            (
                Record(Memory(one.memory.fields, one.data.decode()), path, "")
                for path, one in filed.items()
            ),
            self._categories,
        )
        parts = []
        first = 0
        for row, found in sorted(taken, key=lambda one: f"{one[0].name}/"):
            parts.append(Part(row.name, keys[row.name], first, first + len(found)))
            first += len(found)
        name = cache.digest(*(text for part in parts for text in (part.name, part.key)), size=16)
        folder = os.path.join(self._home, postings.FOLDER)
        note = cache.write_folder(
            folder, name, files, 0, lambda _place: _is_whole(self._home, name)
        )
        if note:
            raise _unwritable(note)
        return FleetSegment(name, tuple(parts))


class Filed(Value):
    """A memory with the file that it was read from; `path` is its path in its repository."""

    memory: Memory
    path: str
    data: bytes


def filed_in(
    row: FleetRepository, labels: Collection[str], env: Mapping[str, str]
) -> tuple[list[Filed], list[str], int]:
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
        found.append(Filed(memory, entry.path, data))
    lineage = Lineage(one.memory for one in found)
    first: dict[str, Filed] = {}
    kept_back = []
    for one in found:
        why = why_kept_back(one.memory, labels, is_head=lineage.is_head(one.memory.id))
        if why:
            kept_back.append(why)
        else:
            first.setdefault(one.memory.id, one)
    return list(first.values()), kept_back, unread


def _is_whole(home: str, name: str) -> bool:
    try:
        index.open_base(home, name)
    except CorruptCache:
        return False
    return True


def _sweep(home: str, segments: Iterable[FleetSegment]) -> None:
    """Remove the segments that nothing names; processes that have mapped one keep it."""
    folder = os.path.join(home, postings.FOLDER)
    kept = {one.name for one in segments}
    for name in cache.newest(folder, ""):
        if name not in kept:
            cache.drop(os.path.join(folder, name))


def _unwritable(note: str) -> MemtoolError:
    return MemtoolError(
        f"the fleet cannot be kept: {note}",
        hint="XDG_CACHE_HOME=/path/to/a/directory names another place",
        code="no-fleet",
    )


class OpenedFleet:
    """The segments of a state, opened, to be asked again and again."""

    def __init__(self, home: str, state: FleetState) -> None:
        """Map the segments. Raises CorruptCache where one is gone or damaged."""
        self.state = state
        rows = {row.name: row for row in state.repositories if row.tree}
        living: dict[str, Part] = {}
        leaves = []
        self.rows: list[FleetRepository | None] = []
        self.firsts: list[int] = []
        first = 0
        for one in state.segments:
            base = index.open_base(home, one.name)
            dead: set[int] = set()
            for part in one.parts:
                row = rows.get(part.name)
                is_current = row is not None and row.key == part.key
                is_living = is_current and living.setdefault(part.name, part) is part
                if part.end > part.first:
                    self.rows.append(row if is_living else None)
                    self.firsts.append(first + part.first)
                if not is_living:
                    dead.update(range(part.first, part.end))
            leaves.append(LeafReader(base.index, base.memories, first, frozenset(dead)))
            first += base.index.count
        self.size = first
        self.reader = IndexReader(leaves)

    def row(self, number: int) -> int:
        """Return which of `rows` a document belongs to."""
        return bisect_right(self.firsts, number) - 1

    def allowed(
        self, asked: FleetQuery, now: int, left: Mapping[int, frozenset[int] | None]
    ) -> Callable[[int], bool]:
        """Return which documents may answer a question.

        `left` says of a row which of its documents still may, where not all do.
        """
        admitted = [row is not None and asked.admits(row.name, row.team) for row in self.rows]
        fits = [_fitting(part, asked, now) for part in self.reader.parts]

        def may(number: int) -> bool:
            place = self.row(number)
            if not admitted[place]:
                return False
            kept = left.get(place)
            if kept is not None and number not in kept:
                return False
            part, local = self.reader.part(number)
            return fits[self.reader.parts.index(part)](local)

        return may


def _fitting(part: LeafReader, asked: FleetQuery, now: int) -> Callable[[int], bool]:
    """Return which documents of a segment are alive, and of the types and tags asked for."""
    shelf = part.shelf
    begins, untils, kind_of = shelf.begins, shelf.untils, shelf.kind_of
    kinds = [not asked.types or kind.type in asked.types for kind in shelf.kinds]
    tags = [tag.casefold() for tag in asked.tags]

    def is_wanted(item: bytes) -> bool:
        name = item.decode(errors="replace").casefold()
        return any(name_matches(tag, name) for tag in tags)

    tagged = frozenset(shelf.listing("tags", is_wanted)) if tags else None
    return lambda local: (
        begins[local] <= now <= untils[local]
        and kinds[kind_of[local]]
        and (tagged is None or local in tagged)
    )


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


_held: dict[str, tuple[tuple[int, ...], OpenedFleet]] = {}
"""What is kept open, by home, with the status of the state's file: a process may ask again."""


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
        except AbsentCache:  # as where a sync has swept a segment away
            _held.pop(self._home, None)
        except CorruptCache:
            raise self._damaged() from None
        try:
            return self._candidates(asked)
        except CorruptCache:
            raise self._damaged() from None

    def _damaged(self) -> FleetUnavailable:
        """Remove what cannot be read, since a sync builds on what seems whole, and say so."""
        _held.pop(self._home, None)
        for name in (STATE, postings.FOLDER):
            cache.drop(os.path.join(self._home, name))
        return FleetUnavailable("its index is damaged: memtool fleet sync makes it again")

    def opened(self) -> OpenedFleet:
        """Return what the last sync left, opened. Raises FleetUnavailable and CorruptCache."""
        stamp: tuple[int, ...] = ()
        try:
            status = os.stat(os.path.join(self._home, STATE))
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            pass  # nothing is there to be read either
        known = _held.get(self._home)
        if known is not None and known[0] == stamp and known[1].reader.read <= index.MOST_READ:
            return known[1]
        state = state_of(self._home)
        if state is None:
            raise FleetUnavailable(
                "nothing of it is here: memtool fleet sync fetches and indexes it"
            )
        found = OpenedFleet(self._home, state)
        _held.clear()
        _held[self._home] = (stamp, found)
        return found

    def all(self, asked: FleetQuery) -> Iterator[FleetCandidate]:
        """Yield every memory that a query admits, whatever its words, by repository and path.

        Raises:
            FleetUnavailable: nothing was ever synced, or what was is damaged.
        """
        try:
            opened = self.opened()
            may = opened.allowed(asked, self._now, {})
            for number in range(opened.size):
                if may(number):
                    yield self._candidate(opened, number)
        except AbsentCache:
            raise FleetUnavailable(
                "part of it is gone: ask again after memtool fleet sync"
            ) from None
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
        part, local = opened.reader.part(number)
        path = part.shelf.path(local).removeprefix(f"{row.name}/")
        data = part.shelf.body(local).encode()
        return FleetCandidate(
            row.name, row.commit, path, data, opened.reader.text(number), row.team
        )
