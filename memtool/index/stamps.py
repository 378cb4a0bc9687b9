"""Stamps: what the memory directory of a worktree looked like when its index was last written.

For each folder and each file there are the size, times and inode that it had, and for each file the
number of its memory. `check` compares them with the directory. Every folder is looked at. A folder
whose times moved is listed again; up to `FEW_FILES`, or where an exact check is asked for, every
file is looked at too. An answer then equals that of reading everything, since a status is always
taken before what it describes is read: what changes in between is seen by the next check.
"""

from __future__ import annotations

import os
import stat
import time

from memtool.store import snapshot
from memtool.store.cache import CorruptCache
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memtool.memory.schema import Problem
    from memtool.store.repository import Repository
    from memtool.store.state import Rows

    Stat = tuple[int, int, int, int]
    """Size, time of change of the content and of the inode in ns, and inode."""

DOUBT_NS = 2_000_000_000
"""How long after a change a further one may leave the same times, on a coarse file system."""
NEVER = (0, 0, 0, 0)
"""Status of no file: what is stored with it is looked at in every check."""
NO_MEMORY = -1
"""Number of a file that could not be read as a memory."""
FEW_FILES = 2_000
"""Up to so many files each of them is looked at, which costs a few milliseconds."""
_WIDTH = 4
_MOST_INODE = (1 << 63) - 1
_NAME_END = b"/"
_CELL_END = "\0"


def stat_of(status: os.stat_result) -> Stat:
    """Return what is compared of a file's or folder's status."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & _MOST_INODE


class Folder:
    """One folder: its path and status, its files by name, and problems of what lies in it.

    A file is its status and its number. Folders in it have rows of their own.
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
    """The folders and files of an index. Whatever it returns may raise CorruptCache."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.folders: dict[str, Stat] = {}
        """The status of each folder by its path, sorted."""
        self.doubtful: dict[str, frozenset[str]] = {}
        """Files that may have changed unseen after they were read: names by folder."""
        self.problems: dict[str, tuple[Problem, ...]] = {}
        """Problems of what lies in a folder, by its path."""
        self.files = 0
        for raw, size, mtime, ctime, inode, files, doubtful, problems in rows.some("folder", "1"):
            path = os.fsdecode(_bytes(raw))
            self.folders[path] = (size, mtime, ctime, inode)  # type: ignore[assignment]  # summed
            self.files += files  # type: ignore[operator, assignment]
            if doubtful is not None:
                self.doubtful[path] = frozenset(_names(doubtful))
            if problems is not None:
                self.problems[path] = _problems(problems)

    def folder(self, path: str) -> Folder:
        """Return a folder with its files."""
        names, flat, numbers = self._listing(path)
        statuses = zip(
            flat[::_WIDTH], flat[1::_WIDTH], flat[2::_WIDTH], flat[3::_WIDTH], strict=True
        )
        files = dict(zip(names, zip(statuses, numbers, strict=True), strict=True))
        return Folder(path, self.folders[path], files, self.problems.get(path, ()))

    def listed(self, path: str) -> tuple[list[str], Sequence[int]]:
        """Return the names of a folder's files, and their statuses one behind the other."""
        names, flat, _numbers = self._listing(path)
        return names, flat

    def _listing(self, path: str) -> tuple[list[str], list[int], list[int]]:
        row = self._rows.one("listing", os.fsencode(path))
        if row is None:
            raise CorruptCache(f"the files of {path} are gone")
        return (
            _names(row[1]),
            memoryview(_bytes(row[2])).cast("q").tolist(),
            memoryview(_bytes(row[3])).cast("q").tolist(),
        )

    @cached_property
    def _folders_read(self) -> dict[str, Folder]:
        return {}

    def status_of(self, path: str) -> Stat | None:
        """Return the status that a file had, None where it is not known."""
        place, _slash, name = path.rpartition("/")
        if place not in self.folders:
            return None
        folder = self._folders_read.get(place)
        if folder is None:
            folder = self._folders_read[place] = self.folder(place)
        return folder.files[name][0] if name in folder.files else None


def write(rows: Rows, folder: Folder, taken_ns: int) -> None:
    """Write a folder as it was seen at a moment.

    A status that was new at that moment is doubtful: a change right after it may leave no trace.
    """
    from struct import pack  # most answers write nothing

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
        _packed_names(doubtful) if is_doubtful else None,
        _packed_problems(folder.problems) if folder.problems else None,
    )
    flat = [part for _name, (status, _number) in files for part in status]
    rows.put(
        "listing",
        path,
        _packed_names(name for name, _file in files),
        pack(f"{len(flat)}q", *flat),
        pack(f"{len(files)}q", *(number for _name, (_status, number) in files)),
    )


def forget(rows: Rows, path: str) -> None:
    """Remove a folder that is gone."""
    for table in ("folder", "listing"):
        rows.remove(table, os.fsencode(path))


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise CorruptCache("a list of files is damaged")
    return value


def _packed_names(names: Iterator[str] | Sequence[str]) -> bytes:
    return b"".join([os.fsencode(name) + _NAME_END for name in names])


def _names(value: object) -> list[str]:
    return os.fsdecode(_bytes(value)).split("/")[:-1]


def _packed_problems(problems: Sequence[Problem]) -> bytes:
    from memtool.memory.schema import Problem

    cells = [str(getattr(one, name)) for one in problems for name in Problem.field_names]
    return os.fsencode("".join([f"{cell}{_CELL_END}" for cell in cells]))


def _problems(value: object) -> tuple[Problem, ...]:
    from memtool.memory.schema import Problem  # nearly every folder has none

    cells = os.fsdecode(_bytes(value)).split(_CELL_END)[:-1]
    width = len(Problem.field_names)
    rows = [cells[start : start + width] for start in range(0, len(cells), width)]
    return tuple(Problem(path, int(line), *others) for path, line, *others in rows)


class Changes:
    """What a check found.

    `folders` are those that differ, as they are now, by path; `vanished` those that are gone.
    `dropped` are the numbers of memories whose files are gone or still to be read. `unread` are the
    files to read: folder, name, and the number that they had.
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
        """The folders in each folder that was listed."""

    def __bool__(self) -> bool:
        """Tell whether anything differs."""
        return bool(self.folders or self.vanished)

    def count(self) -> int:
        """Return how many files differ, without those that are only doubtful and read for that."""
        if self.stamps is None:
            return len(self.unread)
        same = sum(
            self.stamps.status_of(f"{folder.path}/{name}") == folder.files[name][0]
            for folder, name, _number in self.unread
        )
        return max(len(self.dropped), len(self.unread)) - same

    def is_certain(self) -> bool:
        """Tell whether no change of a moment later could leave the same stamps."""
        certain_ns = self.taken_ns - DOUBT_NS
        return all(
            folder.status[2] <= certain_ns
            and all(status[2] <= certain_ns for status, _number in folder.files.values())
            for folder in self.folders.values()
        )

    def folder(self, path: str) -> Folder:
        """Return a folder of the index that is about to differ from it."""
        assert self.stamps is not None
        found = self.folders.get(path)
        if found is None:
            found = self.folders[path] = self.stamps.folder(path)
        return found


def is_ordinary(repository: Repository, directory: str) -> bool:
    """Tell whether the files on disk are all there is: no sparse checkout, no link above them."""
    if os.path.exists(os.path.join(repository.git_dir, "info", "sparse-checkout")):
        return False
    place = repository.top
    for name in directory.split("/"):
        place = f"{place}/{name}"
        if os.path.islink(place):
            return False
    return True


def check(top: str, directory: str, stamps: Stamps | None, *, exact: bool) -> Changes:
    """Compare the memory directory below `top` with its stamps; without them everything is new."""
    if stamps is None:
        seen = Changes(None, is_exact=True)
        _list(top, directory, directory, seen)
        return seen
    is_exact = exact or stamps.files <= FEW_FILES
    seen = Changes(stamps, is_exact=is_exact)
    prefix = top + "/"
    moved = _moved(prefix, stamps)
    if directory not in stamps.folders:
        _list(top, directory, directory, seen)
    elif not moved and not stamps.doubtful and not is_exact:
        return seen  # as nearly always
    for path in stamps.folders:
        if path in seen.folders:
            continue
        parent, _slash, name = path.rpartition("/")
        is_lost = parent in seen.vanished or name not in seen.below.get(parent, (name,))
        if is_lost or path in moved or path in stamps.doubtful:
            status = None if is_lost else _status(prefix + path)
            if status is None or (path != directory and not stat.S_ISDIR(status.st_mode)):
                _vanish(path, seen)
            else:
                _list(top, directory, path, seen)
        elif is_exact:
            _look_at_files(top, path, seen)
    return seen


def _moved(prefix: str, stamps: Stamps) -> set[str]:
    """Return the folders that have another status than they had: nearly always none."""
    lstat = os.lstat
    found = set()
    for path, (size, written, changed, inode) in stamps.folders.items():
        try:
            now = lstat(prefix + path)
        except OSError:
            found.add(path)
            continue
        if (
            now.st_mtime_ns != written
            or now.st_ctime_ns != changed
            or now.st_size != size
            or now.st_ino & _MOST_INODE != inode
        ):
            found.add(path)
    return found


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _vanish(path: str, seen: Changes) -> None:
    assert seen.stamps is not None
    folder = seen.stamps.folder(path)
    seen.vanished.add(path)
    seen.dropped.update(number for _status, number in folder.files.values())


def _look_at_files(top: str, path: str, seen: Changes) -> None:
    """Compare each file of an unchanged folder; one that differs is to be read."""
    assert seen.stamps is not None
    prefix = f"{top}/{path}/"
    names, flat = seen.stamps.listed(path)
    lstat = os.lstat
    columns = flat[::_WIDTH], flat[1::_WIDTH], flat[2::_WIDTH], flat[3::_WIDTH]
    for name, size, written, changed, inode in zip(names, *columns, strict=True):
        try:
            now = lstat(prefix + name)
        except OSError:
            now = None
        if (
            now is None
            or now.st_ctime_ns != changed
            or now.st_size != size
            or now.st_ino & _MOST_INODE != inode
            or now.st_mtime_ns != written
        ):
            folder = seen.folder(path)
            _old, number = folder.files.pop(name)
            if now is None:  # gone since its folder was looked at
                seen.dropped.add(number)
            else:
                _to_read(folder, name, stat_of(now), number, seen)


def _to_read(folder: Folder, name: str, status: Stat, number: int | None, seen: Changes) -> None:
    folder.files[name] = (status, NO_MEMORY)
    seen.unread.append((folder, name, number))
    if number is not None:
        seen.dropped.add(number)


def _lasting(was: Folder | None, files: Mapping[str, tuple[Stat, int]]) -> Iterator[Problem]:
    """Yield what was wrong with files of a folder that were no memories and are as they were."""
    if was is not None:
        for problem in was.problems:
            name = problem.path.rpartition("/")[2]
            if name in files and files[name] is was.files.get(name):
                yield problem


def _list(top: str, directory: str, path: str, seen: Changes) -> None:
    """List a folder, and those below it that the index does not know."""
    stamps = seen.stamps
    is_known = stamps is not None and path in stamps.folders
    place = f"{top}/{path}"
    status = _status(place)
    if status is None:
        if is_known:
            _vanish(path, seen)
        return
    was = stamps.folder(path) if stamps is not None and is_known else None
    old = was.files if was is not None else {}
    doubtful = stamps.doubtful.get(path, ()) if stamps is not None else ()
    files: dict[str, tuple[Stat, int]] = {}
    problems: list[Problem] = []
    folder = seen.folders[path] = Folder(path, stat_of(status), files)
    depth = path.count("/") - directory.count("/")
    names, below = snapshot.list_folder(top, path, depth, problems)
    for name in names:
        now = _status(f"{place}/{name}")
        if now is None:
            continue
        is_now = stat_of(now)
        known = old.get(name)
        if known is not None and known[0] == is_now and name not in doubtful:
            files[name] = known
        else:
            _to_read(folder, name, is_now, None if known is None else known[1], seen)
    for name, (_was, number) in old.items():
        if name not in files:
            seen.dropped.add(number)
    folder.problems = (*problems, *_lasting(was, files))
    seen.below[path] = below
    for name in below:
        inner = f"{path}/{name}"
        if stamps is None or inner not in stamps.folders:
            _list(top, directory, inner, seen)
