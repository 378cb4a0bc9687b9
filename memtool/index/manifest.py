"""The manifest: what the memory directory of a worktree looked like when it was last read.

One file in the worktree's own git directory. It names the segment that holds most memories, gives
for each folder and each file the size, times and inode that it had, says which memory of the
segment each file is, and carries the few memories that are in no segment yet. It is replaced as a
whole; readers never wait, and of two writers the last one wins, since both write the truth.

`check` compares it with the directory. Every folder is looked at. A folder whose times moved is
listed again; up to `FEW_FILES`, or where an exact check is asked for, every file is looked at too.
An answer then equals that of reading everything, since a status is always taken before what it
describes is read: what changes in between is seen by the next check.
"""

from __future__ import annotations

import os
import stat
import time
from bisect import bisect_left
from zlib import crc32

from memtool.index import postings
from memtool.store import cache, snapshot
from memtool.store.cache import CorruptCache
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from memtool.memory.schema import Problem
    from memtool.store.repository import Repository

    Stat = tuple[int, int, int, int]
    """Size, time of change of the content and of the inode in ns, and inode."""


FILE = os.path.join("memtool", "manifest")

KIND = f"manifest {postings.FORMAT}"

SECTIONS: dict[str, Any] = {
    "folders": "B",
    "folder_stats": "q",
    "starts": "I",
    "names": "B",
    "name_ends": "Q",
    "stats": "q",
    "slots": "q",
    "sums": "I",
    "basis": "B",
    "dead": "q",
    "problems": "B",
    "doubtful": "B",
    "carrying": "B",
    "memories": "B",
    "texts": "B",
}

BY_FOLDER = ("names", "stats", "slots")
"""Sections in which the files of every folder have a checksum of their own, in `sums`."""

DOUBT_NS = 2_000_000_000
"""How long after a change a further one may leave the same times, on a coarse file system."""

NEVER = (0, 0, 0, 0)
"""Status of no file: what is stored with it is looked at in every refresh."""
NO_MEMORY = -1
"""Slot of a file that could not be read as a memory. Others are numbers of the segment, or, from
-2 down, of the memories that the manifest carries itself."""

WIDTH = 4

MOST_INODE = (1 << 63) - 1


def stat_of(status: os.stat_result) -> Stat:
    """Return what is compared of a file's or folder's status."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & MOST_INODE


class Folder:
    """One folder: its path and status, its files by name, and problems of what lies in it.

    A file is its status and its slot. Folders in it have rows of their own.
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


class FolderRun(Value):
    """Folders one behind the other, and their files, as they are stored.

    Of each folder there is its path, the four parts of its status, how many files it has, the size
    of their names in bytes, and the checksum of its files; of these all names, statuses and slots.
    """

    folders: Sequence[str]
    statuses: Sequence[int]
    counts: Sequence[int]
    sizes: Sequence[int]
    sums: Sequence[int]
    names: bytes | memoryview
    stats: bytes | memoryview
    slots: bytes | memoryview


class Manifest:
    """A manifest as it was written. Folders are sorted by path, the files of each by name."""

    def __init__(self, raw: memoryview) -> None:
        """Take the bytes of a manifest. Raises CorruptCache."""
        try:
            self._section = cache.Sections(raw, KIND, SECTIONS)
            self.taken_ns, self.files = self._section.numbers
            self.key, self.segment = self._texts("basis")
            self.dead: frozenset[int] = frozenset(self._section["dead"])
            """Memories of the segment that no file holds any more."""
            self.problems: dict[str, tuple[Problem, ...]] = {}
            for folder, path, line, *rest in self._table("problems"):
                from memtool.memory.schema import Problem  # nearly every folder has none

                problem = Problem(path, int(line), *rest)
                self.problems[folder] = (*self.problems.get(folder, ()), problem)
            """Problems of what lies in a folder, by its path."""
            self.doubtful = {row[0]: tuple(row[1:]) for row in self._table("doubtful")}
            """Files that may have changed unseen after they were read: names by folder."""
            self.carrying = self._texts("carrying")
            """Folders with files whose memories the manifest carries itself."""
            self.folders = self._texts("folders")
            self.starts = self._section["starts"]
            self._stats = self._section["folder_stats"].tolist()
            self._sums = self._section["sums"]
            self._ends = self._section["name_ends"]
            self._rows = {name: self._section.unchecked(name) for name in BY_FOLDER}
            self._whole: set[int] = set()
            if len(self.starts) != len(self.folders) + 1:
                raise CorruptCache("the sections do not fit together")
        except (ValueError, KeyError) as error:
            raise CorruptCache(str(error)) from None

    def memories(self) -> memoryview:
        """Return the memories that are in no segment, as stored fields."""
        return self._section.unchecked("memories")  # type: ignore[no-any-return]

    def texts(self) -> memoryview:
        """Return the texts of these memories as terms, for a delta."""
        return self._section.unchecked("texts")  # type: ignore[no-any-return]

    def status(self, folder: int) -> Stat:
        """Return the status that a folder had."""
        place = folder * WIDTH
        return tuple(self._stats[place : place + WIDTH])

    def statuses(self) -> Iterable[tuple[str, int, int, int, int]]:
        """Return the path of each folder with the status that it had."""
        stats = self._stats
        return zip(
            self.folders, stats[::WIDTH], stats[1::WIDTH], stats[2::WIDTH], stats[3::WIDTH],
            strict=True,
        )  # fmt: skip

    def folder(self, number: int) -> Folder:
        """Return a folder with its files. Raises CorruptCache."""
        path = self.folders[number]
        _count, names, stats, slots = self.raw(number)
        rows = memoryview(stats).cast("q").tolist()
        columns = rows[::WIDTH], rows[1::WIDTH], rows[2::WIDTH], rows[3::WIDTH]
        own = zip(zip(*columns, strict=True), memoryview(slots).cast("q").tolist(), strict=True)
        files = dict(zip(_named(names), own, strict=True))
        return Folder(path, self.status(number), files, self.problems.get(path, ()))

    def listed(self, number: int) -> tuple[list[str], list[int]]:
        """Return the names of a folder's files, and their statuses one behind the other."""
        _count, names, stats, _slots = self.raw(number)
        return _named(names), memoryview(stats).cast("q").tolist()

    def raw(self, number: int) -> tuple[int, bytes, bytes, bytes]:
        """Return the files of a folder as they are stored: count, names, statuses, slots.

        Raises CorruptCache where they are not what was written.
        """
        first, last = self.starts[number], self.starts[number + 1]
        names = bytes(self._rows["names"][self._ends[number] : self._ends[number + 1]])
        stats = bytes(self._rows["stats"][first * WIDTH : last * WIDTH])
        slots = bytes(self._rows["slots"][first:last])
        if number not in self._whole:
            if files_sum(names, stats, slots) != self._sums[number]:
                raise CorruptCache(f"the files of folder {number} are damaged")
            self._whole.add(number)
        return last - first, names, stats, slots

    def run(self, first: int, last: int) -> FolderRun:
        """Return some folders, to be stored again; their files are not looked at, nor checked."""
        starts, ends = self.starts[first : last + 1], self._ends[first : last + 1]
        begin, end = starts[0], starts[-1]
        return FolderRun(
            self.folders[first:last],
            self._stats[first * WIDTH : last * WIDTH],
            _sizes(starts),
            _sizes(ends),
            self._sums[first:last],
            self._rows["names"][ends[0] : ends[-1]],
            self._rows["stats"][begin * WIDTH : end * WIDTH],
            self._rows["slots"][begin:end],
        )

    def place_of(self, path: str) -> int | None:
        """Return the number of the folder with a path."""
        at = bisect_left(self.folders, path)
        return at if at < len(self.folders) and self.folders[at] == path else None

    def status_of(self, path: str) -> Stat | None:
        """Return the status that a file had, None where it is not known."""
        place, _slash, name = path.rpartition("/")
        number = self.place_of(place)
        if number is None:
            return None
        _count, names, stats, _slots = self.raw(number)
        at = (b"/" + names).find(b"/%b/" % os.fsencode(name))
        if at < 0:
            return None
        row = names.count(b"/", 0, at) * WIDTH
        size, written, changed, inode = memoryview(stats).cast("q")[row : row + WIDTH]
        return size, written, changed, inode

    def _texts(self, name: str) -> list[str]:
        return os.fsdecode(bytes(self._section[name])).split("\0")[:-1]

    def _table(self, name: str) -> list[list[str]]:
        """Return rows of texts; a text that is just a slash ends each."""
        found: list[list[str]] = [[]]
        for text in self._texts(name):
            if text == "/":
                found.append([])
            else:
                found[-1].append(text)
        return found[:-1]


def _sizes(ends: Sequence[int]) -> list[int]:
    return [ends[place] - ends[place - 1] for place in range(1, len(ends))]


def files_sum(names: bytes, stats: bytes, slots: bytes) -> int:
    """Return the checksum of a folder's files as they are stored."""
    return crc32(slots, crc32(stats, crc32(names)))


def _named(names: bytes) -> list[str]:
    return os.fsdecode(names).split("/")[:-1]


def load(own_dir: str) -> Manifest | None:
    """Return the manifest of a worktree; None where there is none, or none that can be used."""
    try:
        return Manifest(cache.mapped(os.path.join(own_dir, FILE)))
    except CorruptCache:
        return None


def pack(
    basis: tuple[str, str, tuple[int, ...]],
    taken_ns: int,
    folders: Mapping[str, Folder],
    kept: tuple[Manifest, Iterable[int]] | None,
    carried: tuple[bytes, bytes],
) -> bytes:
    """Return the bytes of a manifest taken at a moment.

    `basis` is the key, the name of the segment, and the memories of it that no file holds any more.
    `kept` are folders that are as they were in an older manifest, and `carried` the stored fields
    and the texts of what is in no segment. A status that was new when it was taken is doubtful: a
    change right after it may leave no trace in it.
    """
    from memtool.memory.schema import Problem

    doubt_ns = taken_ns - DOUBT_NS
    doubtful = []
    for path, folder in sorted(folders.items()):
        names = [name for name, (status, _slot) in folder.files.items() if status[2] > doubt_ns]
        if names or folder.status[2] > doubt_ns:
            doubtful.append([path, *sorted(names)])
    problems = {path: folder.problems for path, folder in folders.items() if folder.problems}
    carrying = {
        path
        for path, folder in folders.items()
        if any(slot < NO_MEMORY for _status, slot in folder.files.values())
    }
    runs = [_run(folder) for folder in folders.values()]
    if kept is not None:
        old, numbers = kept
        cuts = {bisect_left(old.folders, path) for path in folders}
        for first, last in _spans(numbers, cuts):
            runs.append(old.run(first, last))
            for path in old.problems.keys() & set(runs[-1].folders):
                problems[path] = old.problems[path]
    runs.sort(key=lambda run: run.folders[0])
    flat = [
        [path, *(str(getattr(problem, name)) for name in Problem.field_names)]
        for path in sorted(problems)
        for problem in problems[path]
    ]
    starts = _sums(runs, "counts")
    sections = {
        "folders": _texts(_joined(runs, "folders")),
        "folder_stats": postings.column("q", _joined(runs, "statuses")),
        "starts": postings.column("I", starts),
        "names": b"".join([run.names for run in runs]),
        "name_ends": postings.column("Q", _sums(runs, "sizes")),
        "stats": b"".join([run.stats for run in runs]),
        "slots": b"".join([run.slots for run in runs]),
        "sums": postings.column("I", _joined(runs, "sums")),
        "basis": _texts(basis[:2]),
        "dead": postings.column("q", basis[2]),
        "problems": _rows(flat),
        "doubtful": _rows(doubtful),
        "carrying": _texts(sorted(carrying)),
        "memories": carried[0],
        "texts": carried[1],
    }
    return cache.pack(KIND, [taken_ns, starts[-1]], sections, BY_FOLDER)


def _run(folder: Folder) -> FolderRun:
    """Return a folder as it is stored."""
    files = sorted(folder.files.items())
    names = os.fsencode("".join([f"{name}/" for name, _file in files]))
    stats = postings.column("q", [part for _name, (status, _slot) in files for part in status])
    slots = postings.column("q", [slot for _name, (_status, slot) in files])
    guarded = files_sum(names, stats, slots)
    return FolderRun(
        [folder.path], folder.status, [len(files)], [len(names)], [guarded], names, stats, slots
    )


def _spans(numbers: Iterable[int], cuts: Collection[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as spans: the first, and the one behind the last.

    Before a number where there is a cut, a span ends.
    """
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number and number not in cuts:
            found[-1] = (found[-1][0], number + 1)
        else:
            found.append((number, number + 1))
    return found


def _joined(runs: Iterable[FolderRun], name: str) -> list[Any]:
    return [one for run in runs for one in getattr(run, name)]


def _sums(runs: Iterable[FolderRun], name: str) -> list[int]:
    """Return where parts end that are joined, beginning with 0, by how large they are."""
    ends = [0]
    for size in _joined(runs, name):
        ends.append(ends[-1] + size)
    return ends


def _texts(texts: Iterable[str]) -> bytes:
    """Return texts that hold no NUL, each ended by one."""
    return os.fsencode("".join([f"{text}\0" for text in texts]))


def _rows(rows: Iterable[Iterable[str]]) -> bytes:
    """Return rows of texts, each row ended by a slash; none of the texts is one."""
    return b"".join([_texts([*row, "/"]) for row in rows])


FEW_FILES = 2_000
"""Up to so many files each of them is looked at, which costs a few milliseconds."""

UNREAD = NO_MEMORY
"""What stands for the slot of a file that is still to be read; the list `unread` says so."""


class Changes:
    """What a check found.

    `folders` are those that differ, as they are now, by path; `vanished` those that are gone.
    `dropped` are the slots of memories whose files are gone or still to be read, `moved` the paths
    of all such files. `unread` are the files to read: folder, name, and the slot that they had.
    """

    def __init__(self, state: Manifest | None, *, is_exact: bool) -> None:
        self.taken_ns = time.time_ns()
        self.state = state
        self.is_exact = is_exact
        self.folders: dict[str, Folder] = {}
        self.vanished: set[str] = set()
        self.dropped: set[int] = set()
        self.moved: set[str] = set()
        self.unread: list[tuple[Folder, str, int | None]] = []
        self.below: dict[str, list[str]] = {}
        """The folders in each folder that was listed."""

    def drop(self, path: str, slot: int) -> None:
        """Forget what a file held."""
        self.dropped.add(slot)
        self.moved.add(path)

    def count(self, state: Manifest) -> int:
        """Return how many files differ, without those that are only doubtful and read for that."""
        same = sum(
            state.status_of(f"{folder.path}/{name}") == folder.files[name][0]
            for folder, name, _slot in self.unread
        )
        return max(len(self.dropped), len(self.unread)) - same

    def folder(self, number: int) -> Folder:
        """Return a folder of the manifest that is about to differ from it."""
        assert self.state is not None
        path = self.state.folders[number]
        found = self.folders.get(path)
        if found is None:
            found = self.folders[path] = self.state.folder(number)
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


def check(top: str, directory: str, state: Manifest | None, *, exact: bool) -> Changes:
    """Compare the memory directory below `top` with its manifest; without one everything is new."""
    if state is None:
        seen = Changes(None, is_exact=True)
        _list(top, directory, directory, seen)
        return seen
    is_exact = exact or state.files <= FEW_FILES
    seen = Changes(state, is_exact=is_exact)
    prefix = top + "/"
    moved = _moved(prefix, state)
    if directory not in state.folders:
        _list(top, directory, directory, seen)
    elif not moved and not state.doubtful and not is_exact:
        return seen  # as nearly always
    for number, path in enumerate(state.folders):
        if path in seen.folders:
            continue
        parent, _slash, name = path.rpartition("/")
        is_lost = parent in seen.vanished or name not in seen.below.get(parent, (name,))
        if is_lost or number in moved or path in state.doubtful:
            status = None if is_lost else _status(prefix + path)
            if status is None or (path != directory and not stat.S_ISDIR(status.st_mode)):
                _vanish(number, seen)
            else:
                _list(top, directory, path, seen, number)
        elif is_exact:
            _look_at_files(top, number, seen)
    return seen


def _moved(prefix: str, state: Manifest) -> set[int]:
    """Return the folders that have another status than they had: nearly always none."""
    lstat = os.lstat
    found = set()
    for number, (path, size, written, changed, inode) in enumerate(state.statuses()):
        try:
            now = lstat(prefix + path)
        except OSError:
            found.add(number)
            continue
        if (
            now.st_mtime_ns != written
            or now.st_ctime_ns != changed
            or now.st_size != size
            or now.st_ino & MOST_INODE != inode
        ):
            found.add(number)
    return found


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _vanish(number: int, seen: Changes) -> None:
    assert seen.state is not None
    folder = seen.state.folder(number)
    seen.vanished.add(folder.path)
    for name, (_status, slot) in folder.files.items():
        seen.drop(f"{folder.path}/{name}", slot)


def _look_at_files(top: str, number: int, seen: Changes) -> None:
    """Compare each file of an unchanged folder; one that differs is to be read."""
    state = seen.state
    assert state is not None
    prefix = f"{top}/{state.folders[number]}/"
    names, stats = state.listed(number)
    lstat = os.lstat
    columns = stats[::WIDTH], stats[1::WIDTH], stats[2::WIDTH], stats[3::WIDTH]
    for name, size, written, changed, inode in zip(names, *columns, strict=True):
        try:
            now = lstat(prefix + name)
        except OSError:
            now = None
        if (
            now is None
            or now.st_ctime_ns != changed
            or now.st_size != size
            or now.st_ino & MOST_INODE != inode
            or now.st_mtime_ns != written
        ):
            folder = seen.folder(number)
            _old, slot = folder.files.pop(name)
            if now is None:  # gone since its folder was looked at
                seen.drop(f"{folder.path}/{name}", slot)
            else:
                _to_read(folder, name, stat_of(now), slot, seen)


def _to_read(folder: Folder, name: str, status: Stat, slot: int | None, seen: Changes) -> None:
    folder.files[name] = (status, UNREAD)
    seen.unread.append((folder, name, slot))
    if slot is not None:
        seen.drop(f"{folder.path}/{name}", slot)


def _lasting(was: Folder | None, files: Mapping[str, tuple[Stat, int]]) -> Iterator[Problem]:
    """Yield what was wrong with files of a folder that were no memories and are as they were."""
    if was is not None:
        for problem in was.problems:
            name = problem.path.rpartition("/")[2]
            if name in files and files[name] is was.files.get(name):
                yield problem


def _list(top: str, directory: str, path: str, seen: Changes, number: int | None = None) -> None:
    """List a folder, and those below it that the manifest does not know.

    `number` is that of the folder in the state, where it has one.
    """
    state = seen.state
    place = f"{top}/{path}"
    status = _status(place)
    if status is None:
        if number is not None:
            _vanish(number, seen)
        return
    was = state.folder(number) if state is not None and number is not None else None
    old = was.files if was is not None else {}
    doubtful = state.doubtful.get(path, ()) if state is not None else ()
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
    for name, (_was, slot) in old.items():
        if name not in files:
            seen.drop(f"{path}/{name}", slot)
    folder.problems = (*problems, *_lasting(was, files))
    seen.below[path] = below
    for name in below:
        inner = f"{path}/{name}"
        if state is None or state.place_of(inner) is None:
            _list(top, directory, inner, seen)


def store(own_dir: str, data: bytes) -> str:
    """Replace the manifest of a worktree; return a note if that is impossible."""
    folder, name = os.path.split(os.path.join(own_dir, FILE))
    note = cache.write(folder, name, data)
    return f"the search index is not kept: {note}" if note else ""
