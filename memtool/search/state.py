"""The state of a worktree: what its memory directory looked like when it was last read.

One file in the worktree's own git directory. It names the segment that holds most memories, gives
for each folder and each file the size, times and inode that it had, says which memory of the
segment each file is, and carries the few memories that are in no segment yet. It is replaced as a
whole; readers never wait, and of two writers the last one wins, since both tell the truth.
"""

from __future__ import annotations

import os
from _bisect import bisect_left
from zlib import crc32

from memtool.search import layout
from memtool.store import cache
from memtool.store.cache import CorruptCache, Sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from memtool.memory.problem import Problem

    Stat = tuple[int, int, int, int]
    """Size, time of change of the content and of the inode in ns, and inode."""

FILE = os.path.join("memtool", "state")
KIND = f"state {layout.FORMAT}"
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
    "renewed": "B",
    "problems": "B",
    "doubtful": "B",
    "carrying": "B",
    "shelf": "B",
    "overlay": "B",
}
BY_FOLDER = ("names", "stats", "slots")
"""Sections in which the files of every folder have a checksum of their own, in `sums`."""
DOUBT_NS = 2_000_000_000
"""How long after a change a further one may leave the same times, on a coarse file system."""
NO_MEMORY = -1
"""Slot of a file that could not be read as a memory. Others are numbers of the segment, or, from
-2 down, of the memories that the state carries itself."""
WIDTH = 4
MOST_INODE = (1 << 63) - 1


def stat_of(status: os.stat_result) -> Stat:
    """Return what is compared of a file's or folder's status."""
    return (
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino & MOST_INODE,
    )


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


class Run:
    """Folders one behind the other, and their files, as they are stored.

    Of each folder there is its path, the four parts of its status, how many files it has, the size
    of their names in bytes, and the checksum of its files; of these all names, statuses and slots.
    """

    __slots__ = ("counts", "folders", "names", "sizes", "slots", "stats", "statuses", "sums")

    def __init__(
        self,
        folders: Sequence[str],
        statuses: Sequence[int],
        counts: Sequence[int],
        sizes: Sequence[int],
        sums: Sequence[int],
        names: bytes | memoryview,
        stats: bytes | memoryview,
        slots: bytes | memoryview,
    ) -> None:
        self.folders = folders
        self.statuses = statuses
        self.counts = counts
        self.sizes = sizes
        self.sums = sums
        self.names = names
        self.stats = stats
        self.slots = slots


class State:
    """A state as it was written. Folders are sorted by path, the files of each by name."""

    def __init__(self, raw: memoryview) -> None:
        """Take the bytes of a state. Raises CorruptCache."""
        try:
            self._section = Sections(raw, KIND, SECTIONS)
            self.taken_ns, self.files = self._section.numbers
            self.key, self.segment = self._texts("basis")
            self.dead: frozenset[int] = frozenset(self._section["dead"])
            """Memories of the segment that no file holds any more."""
            self.renewed = frozenset(self._texts("renewed"))
            """Paths of which the segment does not know the problems."""
            self.problems: dict[str, tuple[Problem, ...]] = {}
            for folder, path, line, *rest in self._table("problems"):
                from memtool.memory.problem import Problem  # nearly every folder has none

                problem = Problem(path, int(line), *rest)
                self.problems[folder] = (*self.problems.get(folder, ()), problem)
            """Problems of what lies in a folder, by its path."""
            self.doubtful = {row[0]: tuple(row[1:]) for row in self._table("doubtful")}
            """Files that may have changed unseen after they were read: names by folder."""
            self.carrying = self._texts("carrying")
            """Folders with files whose memories the state carries itself."""
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

    def shelf(self) -> memoryview:
        """Return the memories that are in no segment, as a shelf."""
        return self._section.unchecked("shelf")  # type: ignore[no-any-return]

    def overlay(self) -> memoryview:
        """Return the texts of these memories, as an overlay."""
        return self._section.unchecked("overlay")  # type: ignore[no-any-return]

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

    def run(self, first: int, last: int) -> Run:
        """Return some folders, to be stored again; their files are not looked at, nor checked."""
        starts, ends = self.starts[first : last + 1], self._ends[first : last + 1]
        begin, end = starts[0], starts[-1]
        return Run(
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


def load(git_dir: str) -> State | None:
    """Return the state of a worktree; None where there is none, or none that can be used."""
    try:
        return State(cache.mapped(os.path.join(git_dir, FILE)))
    except CorruptCache:
        return None
