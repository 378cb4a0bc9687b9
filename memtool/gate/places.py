"""Places: where neighbours are looked for, and the tables that spare reading the tree there.

A table in the cache holds the signatures of an earlier tree (see `sketches`); git tells which
memories differ from it by now, and only those are read. So the cost follows what changed since,
and the answer is that of reading everything. Where the table is missing or damaged it is made
anew; where it cannot be kept it serves this once.
"""

from __future__ import annotations

import os
import zlib

from memtool.gate import sketches
from memtool.gate.neighbours import MOST_CHANGED, Neighbours
from memtool.gate.signatures import signature
from memtool.gate.sketches import Damaged, Row, Table
from memtool.memory import document
from memtool.store.git import GitError
from memtool.store.reading import read_regular
from memtool.store.snapshot import is_memory_path
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from memtool.memory.memory import Memory
    from memtool.store.repository import Repository

FOLDER = "twins"
"""Where the tables lie in the cache directory."""
KEPT = 4
"""Tables that stay: branches and worktrees share the cache."""
_EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}


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
    def prefix(self) -> str:
        """How the names of this directory's tables begin; the id of their tree follows."""
        return f"{sketches.FORMAT}-{zlib.crc32(os.fsencode(self.directory)):08x}-"

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


def of_worktree(
    repository: Repository, directory: str, categories: Collection[str], *, is_kept: bool = True
) -> Neighbours:
    """Return the neighbours among the files on disk."""
    place = Place(repository, directory, categories, is_kept)

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
) -> Neighbours:
    """Return the neighbours in the tree of a commit. Raises MemtoolError where there is none."""
    place = Place(repository, directory, categories)
    commit = repository.git.rev(revision)
    return _opened(place, lambda base: _changes(place, "diff-tree", "-r", base, commit))


def _changes(place: Place, *compare: str) -> dict[str, str]:
    """Return what differs: paths with a blob, zeros for a file to read, empty for none."""
    command, *rest = compare
    options = ("--raw", "-z", "--no-abbrev", "--no-renames")
    answer = place.repository.git.run(command, *options, *rest, "--", place.directory)
    parts = answer.split(b"\0")[:-1]
    found = {}
    for meta, raw in zip(parts[::2], parts[1::2], strict=True):
        _old, mode, _old_oid, oid, status = meta.decode().split()
        path = os.fsdecode(raw)
        if is_memory_path(path, place.directory):
            found[path] = oid if mode.startswith("100") and status != "D" else ""
    return found


def _opened(
    place: Place, changes: Callable[[str], dict[str, str]], *, is_fresh: bool = False
) -> Neighbours:
    """Open the table last used, with what differs from it; or move on to the tree of HEAD."""
    table, base, changed = None, "", dict[str, str]()
    if not is_fresh:
        table, base = _last_used(place)
    if table is not None:
        try:
            changed = changes(base)
        except GitError:  # its tree is gone, as after a rewritten history
            table = None
    if table is None or len(changed) > MOST_CHANGED:
        git = place.repository.git
        head = git.line("rev-parse", "--verify", "--quiet", "HEAD^{tree}", allowed=(0, 1))
        if head and (table is None or head != base):
            table = _table_of(place, head, table, is_fresh=is_fresh)
        if not head:
            table = None
        changed = changes(head or _EMPTY_TREE[place.repository.object_format])
    stored = {path: oid for path, oid in changed.items() if oid.strip("0")}
    read = {record.oid: record.memory for record in place.known if record.oid}
    read |= place.read(sorted({oid for oid in stored.values() if oid not in read}))
    records = [Record(read[oid], path, oid) for path, oid in stored.items() if oid in read]
    loose = place.read_files(path for path, oid in changed.items() if oid and path not in stored)
    records += [Record(memory, path, "") for path, memory in loose.items()]
    renewed = None if is_fresh else lambda: _opened(place, changes, is_fresh=True)
    return Neighbours(records, table, changed, place.read, renewed)


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
    """Return the rows of a tree, by path; what an older table knows is not read again."""
    try:
        known = {(row.path, row.oid): row for row in old.rows()} if old is not None else {}
    except Damaged:
        known = {}
    git = place.repository.git
    listing = git.run("ls-tree", "-r", "-z", "--full-tree", tree, "--", place.directory)
    entries = []
    for line in listing.split(b"\0")[:-1]:
        meta, _tab, raw = line.partition(b"\t")
        mode, _type, oid = meta.decode().split()
        path = os.fsdecode(raw)
        if mode.startswith("100") and is_memory_path(path, place.directory):
            entries.append((path, oid))
    read = place.read(sorted({oid for path, oid in entries if (path, oid) not in known}))
    rows = []
    for path, oid in entries:
        row = known.get((path, oid))
        if row is None and oid in read:
            row = _row(read[oid], path, oid)
        if row is not None:
            rows.append(row)
    return rows


def _row(memory: Memory, path: str, oid: str) -> Row:
    own = signature(memory)
    effective = () if memory.status == "deleted" else memory.supersedes
    return Row(path, oid, memory.id, memory.status, own.fingerprint, effective, own.numbers)
