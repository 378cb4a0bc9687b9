"""Places: where neighbours are looked for, and the tables that spare reading the tree there.

A table in the cache holds the rows of an earlier tree (see `sketches`); git tells which memories
differ from it by now, and only those are read, most of them from `recent`. So the cost follows
what changed since, and the answer is that of reading everything. Where the table is missing or
damaged it is made anew; where it cannot be kept it serves this once.
"""

from __future__ import annotations

import os
import zlib

from memtool.gate import recent, sketches
from memtool.gate.census import Census
from memtool.gate.index_diff import EMPTY_TREE, Difference, without_index
from memtool.gate.neighbours import Neighbours, row_of
from memtool.gate.sketches import Damaged, Row, Table
from memtool.memory import document
from memtool.memory.changes import stem
from memtool.store.files import read_regular
from memtool.store.git import GitError
from memtool.store.snapshot import is_memory_path
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from memtool.gate.census import Stamp
    from memtool.memory.memory import Memory
    from memtool.store.repository import Repository

FOLDER = "twins"
"""Where the tables lie in the cache directory."""
KEPT = 4
"""Tables that stay: branches and worktrees share the cache."""
MOST_CHANGED = 300
"""With more memories changed since, a table moves on to the tree of HEAD."""
RECENT = "recent-"
"""How the name of a file of recent rows begins."""


class Place(Value):
    """Where to look: a repository, its memory directory, and which categories are known.

    `is_kept` says whether a table that had to be made may be left in the cache. `known` are
    records that need not be read again.
    """

    repository: Repository
    directory: str
    categories: Collection[str]
    is_kept: bool = True
    known: Sequence[Record] = ()

    @property
    def folder(self) -> str:
        """Where the tables lie."""
        return os.path.join(self.repository.cache_dir, FOLDER)

    @property
    def name(self) -> str:
        """What tells the tables of one directory and one set of categories from others."""
        parts = (self.directory, *sorted(self.categories))
        return f"{zlib.crc32(os.fsencode(chr(0).join(parts))):08x}"

    @property
    def prefix(self) -> str:
        """How the names of this place's tables begin; the id of their tree follows."""
        return f"{sketches.FORMAT}-{self.name}-"

    @property
    def recent(self) -> str:
        """Where the rows lie that no table has yet."""
        return os.path.join(self.folder, f"{RECENT}{sketches.FORMAT}-{self.name}")

    def read(self, oids: Sequence[str]) -> dict[str, Memory]:
        """Return memories by the ids of their blobs; what is none is left out."""
        if not oids:
            return {}
        blobs = self.repository.git.blobs(oids, document.MAX_BYTES)
        return dict(self._memories(zip(oids, blobs, strict=True)))

    def read_files(self, paths: Iterable[str]) -> dict[str, Memory]:
        """Return the memories of the worktree by their paths; what is none is left out."""
        found = []
        for path in paths:
            try:
                data = read_regular(os.path.join(self.repository.top, path), document.MAX_BYTES + 1)
            except OSError:
                continue
            found.append((path, data))
        return dict(self._memories(found))

    def _memories(self, items: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, Memory]]:
        for name, data in items:
            try:
                yield name, document.read(data, "", self.categories)
            except document.Unreadable:
                continue


def of_index(
    repository: Repository,
    directory: str,
    categories: Collection[str],
    *,
    known: Sequence[Record] = (),
) -> Neighbours:
    """Return the neighbours in what git's index holds; `known` need not be read again."""
    place = Place(repository, directory, categories, known=known)
    return _opened(place, lambda base: _changes(place, "diff-index", "--cached", base))


def of_staged(
    repository: Repository,
    directory: str,
    categories: Collection[str],
    staged: Sequence[Difference],
    known: Sequence[Record],
) -> Neighbours:
    """Return the neighbours in what git's index holds, given where it is not as HEAD.

    `known` are memories that need not be read again. Reading the index once more would cost more
    than all else in a large tree, so the table's tree is compared with that of HEAD.
    """
    place = Place(repository, directory, categories, known=known)
    (info,) = repository.git.infos(["HEAD^{tree}"])
    head = info[0] if info is not None else EMPTY_TREE[repository.object_format]
    ours = {
        row.path: row.oid if row.mode.startswith("100") and row.status not in ("D", "U") else ""
        for row in staged
        if is_memory_path(row.path, directory)
    }
    return _opened(place, lambda base: _between(place, base, head) | ours, head)


def of_worktree(
    repository: Repository,
    directory: str,
    categories: Collection[str],
    *,
    known: Sequence[Record] = (),
    is_kept: bool = True,
) -> Neighbours:
    """Return the neighbours among the files on disk."""
    place = Place(repository, directory, categories, is_kept, known)

    def changes(base: str) -> dict[str, str]:
        others = repository.git.run("ls-files", "--others", "-z", "--", directory)
        untracked = [os.fsdecode(path) for path in others.split(b"\0")[:-1]]
        new = {path: "0" for path in untracked if is_memory_path(path, directory)}
        return _changes(place, "diff-index", base) | new

    return _opened(place, changes)


def of_commit(
    repository: Repository,
    directory: str,
    categories: Collection[str],
    revision: str,
    *,
    known: Sequence[Record] = (),
) -> Neighbours:
    """Return the neighbours in the tree of a commit. Raises MemtoolError where there is none."""
    place = Place(repository, directory, categories, known=known)
    commit = repository.git.rev(revision)
    return _opened(place, lambda base: _between(place, base, commit))


def _between(place: Place, base: str, other: str) -> dict[str, str]:
    """Return what differs between two trees."""
    if base == other:
        return {}
    return _changes(place, "diff-tree", "-r", base, other, env=without_index(place.repository))


def _changes(place: Place, *compare: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what differs: paths with a blob, zeros for a file to read, empty for none."""
    command, *rest = compare
    options = ("--raw", "-z", "--no-abbrev", "--no-renames")
    answer = place.repository.git.run(command, *options, *rest, "--", place.directory, env=env)
    parts = answer.split(b"\0")[:-1]
    found = {}
    for meta, raw in zip(parts[::2], parts[1::2], strict=True):
        _old, mode, _old_oid, oid, status = meta.decode().split()
        path = os.fsdecode(raw)
        if is_memory_path(path, place.directory):
            found[path] = oid if mode.startswith("100") and status != "D" else ""
    return found


def _opened(place: Place, changes: Callable[[str], dict[str, str]], head: str = "") -> Neighbours:
    return Neighbours(_census(place, changes, head))


def _census(
    place: Place,
    changes: Callable[[str], dict[str, str]],
    head: str = "",
    *,
    is_fresh: bool = False,
) -> Census:
    """Return the census on the table last used, or on a new one where much differs from it."""
    table, base, changed = None, "", dict[str, str]()
    if not is_fresh:
        table, base = _last_used(place)
    if table is not None:
        try:
            changed = _settled(place, changes(base), table)
        except GitError:  # its tree is gone, as after a rewritten history
            table = None
    if table is None or len(changed) > MOST_CHANGED:
        git = place.repository.git
        head = head or git.line("rev-parse", "--verify", "--quiet", "HEAD^{tree}", allowed=(0, 1))
        empty = EMPTY_TREE[place.repository.object_format]
        if head in ("", empty):
            table, head = None, empty
        elif table is None or head != base:
            table = _table_of(place, head, table, is_fresh=is_fresh)
        changed = _settled(place, changes(head), table)
    rows, held = _rows_of(place, changed)
    return Census(
        rows,
        held,
        table,
        changed,
        place.read,
        None if is_fresh else lambda: _census(place, changes, head, is_fresh=True),
    )


def _settled(place: Place, changed: dict[str, str], table: Table | None) -> dict[str, str]:
    """Name the files that git wants read by what is known of them; drop those that are the same.

    Git suspects every file after a copy of the repository, until it looks at them again.
    """
    oids = {record.path: record.oid for record in place.known}
    found = {}
    for path, oid in changed.items():
        known = oids.get(path, "") if oid and not oid.strip("0") else ""
        try:
            same = map(table.row, table.called(stem(path))) if table is not None and known else ()
            is_same = any((row.path, row.oid) == (path, known) for row in same)
        except Damaged:
            return changed
        if not is_same:
            found[path] = known or oid
    return found


def _rows_of(place: Place, changed: Mapping[str, str]) -> tuple[list[Row], dict[Stamp, Memory]]:
    """Return the rows of changed files, and the memories that are at hand, by path and blob."""
    stored = {path: oid for path, oid in changed.items() if oid.strip("0")}
    loose = place.read_files(path for path, oid in changed.items() if oid and path not in stored)
    held = {(path, ""): memory for path, memory in loose.items()}
    held |= {(record.path, record.oid): record.memory for record in place.known}
    known = recent.load(place.recent, stored.items()) if stored else {}
    unread = [stamp for stamp in stored.items() if stamp not in known and stamp not in held]
    read = place.read(sorted({oid for _path, oid in unread}))
    held |= {(path, oid): read[oid] for path, oid in unread if oid in read}
    rows, new = [], []
    for path, memory in loose.items():
        rows.append(row_of(memory, path, ""))
    for stamp in stored.items():
        row = known.get(stamp)
        if row is None and stamp in held:
            row = row_of(held[stamp], *stamp)
            new.append(row)
        if row is not None:
            rows.append(row)
    if place.is_kept:
        recent.add(place.recent, new)
    return rows, held


def _last_used(place: Place) -> tuple[Table | None, str]:
    for name in sketches.tables(place.folder):
        if name.startswith(place.prefix):
            try:
                return Table.open(os.path.join(place.folder, name)), name[len(place.prefix) :]
            except Damaged:
                return None, ""
    return None, ""


def _table_of(place: Place, tree: str, old: Table | None, *, is_fresh: bool) -> Table:
    """Return the table of a tree: the one that is there, or a new one."""
    name = place.prefix + tree
    path = os.path.join(place.folder, name)
    if not is_fresh:
        try:
            found = Table.open(path)
            if place.is_kept:
                os.utime(path)
        except (Damaged, OSError):
            pass
        else:
            return found
    data = sketches.build(_rows(place, tree, old))
    if place.is_kept:
        sketches.store(place.folder, name, data, kept=KEPT)
    return Table(memoryview(data))


def _rows(place: Place, tree: str, old: Table | None) -> list[Row]:
    """Return the rows of a tree, by path; what is known already is not read again."""
    git = place.repository.git
    listing = git.run("ls-tree", "-r", "-z", "--full-tree", tree, "--", place.directory)
    entries = []
    for line in listing.split(b"\0")[:-1]:
        meta, _tab, raw = line.partition(b"\t")
        mode, _type, oid = meta.decode().split()
        path = os.fsdecode(raw)
        if mode.startswith("100") and is_memory_path(path, place.directory):
            entries.append((path, oid))
    known = recent.load(place.recent, entries)
    known |= _rows_in(old)
    read = place.read(sorted({oid for path, oid in entries if (path, oid) not in known}))
    rows = []
    for path, oid in sorted(entries):
        row = known.get((path, oid))
        if row is None and oid in read:
            row = row_of(read[oid], path, oid)
        if row is not None:
            rows.append(row)
    return rows


def _rows_in(table: Table | None) -> dict[Stamp, Row]:
    """Return the rows of a table by path and blob, none where it is damaged."""
    try:
        return {(row.path, row.oid): row for row in table.rows()} if table is not None else {}
    except Damaged:
        return {}
