"""Stamps: the status of a worktree's memory directory when its index was last written.

For each folder and file a stamp stores size, times and inode, and for each file the number of its
memory. `find_changes` compares the stamps with the directory. It checks the status of every folder,
and lists a folder again if its status changed. Up to `MAX_EXACT_FILES` files, or if an exact check
is asked for, it checks every file too. The answer is then the same as from reading everything. A
status is always taken before the file is read, so the next check sees a change in between.
"""

from __future__ import annotations

import os
import stat
import time

from memtool.store import snapshot
from memtool.store.cache import CorruptCacheError
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memtool.memory.schema import Problem
    from memtool.store.repository import Repository
    from memtool.store.state import Cell, Row, Rows

    Stat = tuple[int, int, int, int]
    """Size, time of change of the content and of the inode in ns, and inode."""

DOUBT_NS = 2_000_000_000
"""On a coarse file system, a second change within this time may leave the same times."""
NEVER = (0, 0, 0, 0)
"""A status that no file has: a file stored with it is read in every check."""
NO_MEMORY = -1
"""The number of a file that could not be read as a memory."""
MAX_EXACT_FILES = 2_000
"""Up to this number every file is checked, which takes a few milliseconds."""
_STAT_FIELDS = 4
_MAX_INODE = (1 << 63) - 1
_NAME_END = b"/"
_CELL_END = "\0"


def to_stat(status: os.stat_result) -> Stat:
    """Return the parts of a file's or folder's status that are compared."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & _MAX_INODE


class Folder:
    """One folder: its path and status, its files by name, and the problems of its content.

    Each file has a status and a number. Subfolders are folders of their own.
    """

    __slots__ = ("files", "path", "problems", "status")

    def __init__(
        self,
        path: str,
        status: Stat,
        files: dict[str, tuple[Stat, int]],
        problems: tuple[Problem, ...] = (),
    ) -> None:
        self.path = path
        self.status = status
        self.files = files
        self.problems = problems


class Stamps:
    """The folders and files of an index. Every method may raise CorruptCache."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._listings: dict[Cell, Row] = {}
        """All rows of `listing` by folder; empty until `load`."""
        self.folders: dict[str, Stat] = {}
        """The status of each folder by its path, sorted."""
        self.doubtful: dict[str, frozenset[str]] = {}
        """Files that may have changed unseen after they were read: names, by folder."""
        self.problems: dict[str, tuple[Problem, ...]] = {}
        """The problems of each folder's content, by its path."""
        self.files = 0
        for raw, size, mtime, ctime, inode, files, doubtful, problems in rows.find("folder", "1"):
            path = os.fsdecode(_check_bytes(raw))
            self.folders[path] = (size, mtime, ctime, inode)  # type: ignore[assignment]  # summed
            self.files += files  # type: ignore[operator, assignment]
            if doubtful is not None:
                self.doubtful[path] = frozenset(_unpack_names(doubtful))
            if problems is not None:
                self.problems[path] = _unpack_problems(problems)

    def load(self) -> None:
        """Read the files of all folders at once; the caller needs each next."""
        self._listings = {row[0]: row for row in self._rows.find("listing", "1")}

    def read_folder(self, path: str) -> Folder:
        """Return a folder with its files."""
        names, flat, numbers = self._read_listing(path)
        statuses = zip(
            flat[::_STAT_FIELDS],
            flat[1::_STAT_FIELDS],
            flat[2::_STAT_FIELDS],
            flat[3::_STAT_FIELDS],
            strict=True,
        )
        files = dict(zip(names, zip(statuses, numbers, strict=True), strict=True))
        return Folder(path, self.folders[path], files, self.problems.get(path, ()))

    def read_statuses(self, path: str) -> tuple[list[str], Sequence[int]]:
        """Return the names of a folder's files, and their statuses in one flat sequence."""
        names, flat, _numbers = self._read_listing(path)
        return names, flat

    def _read_listing(self, path: str) -> tuple[list[str], list[int], list[int]]:
        key = os.fsencode(path)
        row = self._listings.get(key) or self._rows.get("listing", key)
        if row is None:
            raise CorruptCacheError(f"the files of {path} are gone")
        return (
            _unpack_names(row[1]),
            memoryview(_check_bytes(row[2])).cast("q").tolist(),
            memoryview(_check_bytes(row[3])).cast("q").tolist(),
        )

    @cached_property
    def _folders_read(self) -> dict[str, Folder]:
        return {}

    def find_status(self, path: str) -> Stat | None:
        """Return the stored status of a file, None if it is unknown."""
        place, _slash, name = path.rpartition("/")
        if place not in self.folders:
            return None
        folder = self._folders_read.get(place)
        if folder is None:
            folder = self._folders_read[place] = self.read_folder(place)
        return folder.files[name][0] if name in folder.files else None


def write(rows: Rows, folder: Folder, taken_ns: int) -> None:
    """Write a folder as it was at the moment `taken_ns`.

    A status that was new at that moment is doubtful: a change right after it may leave no trace.
    """
    from struct import pack  # most calls write nothing

    path = os.fsencode(folder.path)
    files = sorted(folder.files.items())
    doubt_ns = taken_ns - DOUBT_NS
    doubtful = [name for name, (status, _number) in files if status[2] > doubt_ns]
    is_doubtful = doubtful or folder.status[2] > doubt_ns
    rows.put(
        "folder",
        path,
        *folder.status,
        len(files),
        _pack_names(doubtful) if is_doubtful else None,
        _pack_problems(folder.problems) if folder.problems else None,
    )
    flat = [part for _name, (status, _number) in files for part in status]
    rows.put(
        "listing",
        path,
        _pack_names(name for name, _file in files),
        pack(f"{len(flat)}q", *flat),
        pack(f"{len(files)}q", *(number for _name, (_status, number) in files)),
    )


def forget(rows: Rows, path: str) -> None:
    """Remove the rows of a folder that is gone."""
    for table in ("folder", "listing"):
        rows.remove(table, os.fsencode(path))


def _check_bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise CorruptCacheError("a list of files is damaged")
    return value


def _pack_names(names: Iterator[str] | Sequence[str]) -> bytes:
    return b"".join([os.fsencode(name) + _NAME_END for name in names])


def _unpack_names(value: object) -> list[str]:
    return os.fsdecode(_check_bytes(value)).split("/")[:-1]


def _pack_problems(problems: Sequence[Problem]) -> bytes:
    from memtool.memory.schema import Problem

    cells = [str(getattr(problem, name)) for problem in problems for name in Problem.field_names]
    return os.fsencode("".join([f"{cell}{_CELL_END}" for cell in cells]))


def _unpack_problems(value: object) -> tuple[Problem, ...]:
    from memtool.memory.schema import Problem  # nearly every folder has none

    cells = os.fsdecode(_check_bytes(value)).split(_CELL_END)[:-1]
    width = len(Problem.field_names)
    rows = [cells[start : start + width] for start in range(0, len(cells), width)]
    return tuple(Problem(path, int(line), *texts) for path, line, *texts in rows)


class Changes:
    """The differences between stamps and the directory.

    `folders` are the folders that differ, as they are now, by path; `vanished` are those that are
    gone. `dropped` are the numbers of memories whose files are gone or still to be read. `unread`
    are the files to read: folder, name, and the number that they had.
    """

    def __init__(self, stamps: Stamps | None, *, is_exact: bool) -> None:
        self.taken_ns = time.time_ns()
        self.stamps = stamps
        self.is_exact = is_exact
        self.folders: dict[str, Folder] = {}
        self.vanished: set[str] = set()
        self.dropped: set[int] = set()
        self.unread: list[tuple[Folder, str, int | None]] = []
        self.below: dict[str, list[str]] = {}
        """Names of the subfolders of each folder that was listed."""

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(self.folders or self.vanished)

    def count(self) -> int:
        """Return how many files differ, without unchanged ones that are only read as doubtful."""
        if self.stamps is None:
            return len(self.unread)
        same = sum(
            self.stamps.find_status(f"{folder.path}/{name}") == folder.files[name][0]
            for folder, name, _number in self.unread
        )
        return max(len(self.dropped), len(self.unread)) - same

    def is_certain(self) -> bool:
        """Return whether every change right after this check would leave other stamps."""
        certain_ns = self.taken_ns - DOUBT_NS
        return all(
            folder.status[2] <= certain_ns
            and all(status[2] <= certain_ns for status, _number in folder.files.values())
            for folder in self.folders.values()
        )

    def edit_folder(self, path: str) -> Folder:
        """Return a folder of the index, for editing; from now on it is one that differs."""
        assert self.stamps is not None
        folder = self.folders.get(path)
        if folder is None:
            folder = self.folders[path] = self.stamps.read_folder(path)
        return folder


def is_ordinary(repository: Repository, directory: str) -> bool:
    """Return whether the disk has all files: no sparse checkout, no link on the way to them."""
    if os.path.exists(os.path.join(repository.git_dir, "info", "sparse-checkout")):
        return False
    place = repository.top
    for name in directory.split("/"):
        place = f"{place}/{name}"
        if os.path.islink(place):
            return False
    return True


def find_changes(top: str, directory: str, stamps: Stamps | None, *, exact: bool) -> Changes:
    """Compare the memory directory below `top` with its stamps; without stamps all is new."""
    if stamps is None:
        changes = Changes(None, is_exact=True)
        _list_folder(top, directory, directory, changes)
        return changes
    is_exact = exact or stamps.files <= MAX_EXACT_FILES
    changes = Changes(stamps, is_exact=is_exact)
    prefix = top + "/"
    moved = _find_moved(prefix, stamps)
    if directory not in stamps.folders:
        _list_folder(top, directory, directory, changes)
    elif not moved and not stamps.doubtful and not is_exact:
        return changes  # as nearly always
    if is_exact:
        stamps.load()
    for path in stamps.folders:
        if path in changes.folders:
            continue
        parent, _slash, name = path.rpartition("/")
        is_lost = parent in changes.vanished or name not in changes.below.get(parent, (name,))
        if is_lost or path in moved or path in stamps.doubtful:
            status = None if is_lost else _read_status(prefix + path)
            if status is None or (path != directory and not stat.S_ISDIR(status.st_mode)):
                _mark_vanished(path, changes)
            else:
                _list_folder(top, directory, path, changes)
        elif is_exact:
            _compare_files(top, path, changes)
    return changes


def _find_moved(prefix: str, stamps: Stamps) -> set[str]:
    """Return the folders whose status changed."""
    lstat = os.lstat
    moved = set()
    for path, (size, written, changed, inode) in stamps.folders.items():
        try:
            now = lstat(prefix + path)
        except OSError:
            moved.add(path)
            continue
        if (
            now.st_mtime_ns != written
            or now.st_ctime_ns != changed
            or now.st_size != size
            or now.st_ino & _MAX_INODE != inode
        ):
            moved.add(path)
    return moved


def _read_status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _mark_vanished(path: str, changes: Changes) -> None:
    assert changes.stamps is not None
    folder = changes.stamps.read_folder(path)
    changes.vanished.add(path)
    changes.dropped.update(number for _status, number in folder.files.values())


def _compare_files(top: str, path: str, changes: Changes) -> None:
    """Compare each file of an unchanged folder, and mark those that differ as unread."""
    assert changes.stamps is not None
    prefix = f"{top}/{path}/"
    names, flat = changes.stamps.read_statuses(path)
    lstat = os.lstat
    columns = (
        flat[::_STAT_FIELDS],
        flat[1::_STAT_FIELDS],
        flat[2::_STAT_FIELDS],
        flat[3::_STAT_FIELDS],
    )
    for name, size, written, changed, inode in zip(names, *columns, strict=True):
        try:
            now = lstat(prefix + name)
        except OSError:
            now = None
        if (
            now is None
            or now.st_ctime_ns != changed
            or now.st_size != size
            or now.st_ino & _MAX_INODE != inode
            or now.st_mtime_ns != written
        ):
            folder = changes.edit_folder(path)
            _old, number = folder.files.pop(name)
            if now is None:  # gone since its folder was checked
                changes.dropped.add(number)
            else:
                _mark_unread(folder, name, to_stat(now), number, changes)


def _mark_unread(
    folder: Folder, name: str, status: Stat, number: int | None, changes: Changes
) -> None:
    folder.files[name] = (status, NO_MEMORY)
    changes.unread.append((folder, name, number))
    if number is not None:
        changes.dropped.add(number)


def _find_lasting_problems(
    old_folder: Folder | None, files: Mapping[str, tuple[Stat, int]]
) -> Iterator[Problem]:
    """Yield the old problems of unchanged files that are not memories."""
    if old_folder is not None:
        for problem in old_folder.problems:
            name = problem.path.rpartition("/")[2]
            if name in files and files[name] is old_folder.files.get(name):
                yield problem


def _list_folder(top: str, directory: str, path: str, changes: Changes) -> None:
    """List a folder, and its subfolders that are not in the index."""
    stamps = changes.stamps
    is_known = stamps is not None and path in stamps.folders
    place = f"{top}/{path}"
    status = _read_status(place)
    if status is None:
        if is_known:
            _mark_vanished(path, changes)
        return
    old_folder = stamps.read_folder(path) if stamps is not None and is_known else None
    old_files = old_folder.files if old_folder is not None else {}
    doubtful = stamps.doubtful.get(path, ()) if stamps is not None else ()
    files: dict[str, tuple[Stat, int]] = {}
    problems: list[Problem] = []
    folder = changes.folders[path] = Folder(path, to_stat(status), files)
    depth = path.count("/") - directory.count("/")
    names, below = snapshot.list_folder(top, path, depth, problems)
    for name in names:
        now = _read_status(f"{place}/{name}")
        if now is None:
            continue
        new_stat = to_stat(now)
        old_file = old_files.get(name)
        if old_file is not None and old_file[0] == new_stat and name not in doubtful:
            files[name] = old_file
        else:
            _mark_unread(folder, name, new_stat, None if old_file is None else old_file[1], changes)
    for name, (_was, number) in old_files.items():
        if name not in files:
            changes.dropped.add(number)
    folder.problems = (*problems, *_find_lasting_problems(old_folder, files))
    changes.below[path] = below
    for name in below:
        inner = f"{path}/{name}"
        if stamps is None or inner not in stamps.folders:
            _list_folder(top, directory, inner, changes)
