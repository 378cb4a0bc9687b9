"""Freshness: what of the memory directory differs from the state of the last reading.

Every folder is looked at. A folder whose times moved is listed anew; up to `FEW_FILES`, or where
an exact check is asked for, every file is looked at too. An answer then equals that of reading
everything, since a status is always taken before what it describes is read: what changes in
between is seen by the next check.
"""

from __future__ import annotations

import os
import stat

from memtool.search.state import MOST_INODE, NO_MEMORY, WIDTH, Folder, stat_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.problem import Problem
    from memtool.search.state import Stat, State

FEW_FILES = 2_000
"""Up to so many files each of them is looked at, which costs a few milliseconds."""
UNREAD = NO_MEMORY
"""What stands for the slot of a file that is still to be read; the list `unread` says so."""


class Seen:
    """What a check found.

    `folders` are those that differ, as they are now, by path; `vanished` those that are gone.
    `dropped` are the slots of memories whose files are gone or still to be read, `moved` the paths
    of all such files. `unread` are the files to read: folder, name, and the slot that they had.
    """

    def __init__(self, state: State | None, *, is_exact: bool) -> None:
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

    def folder(self, number: int) -> Folder:
        """Return a folder of the state that is about to differ from it."""
        assert self.state is not None
        path = self.state.folders[number]
        found = self.folders.get(path)
        if found is None:
            found = self.folders[path] = self.state.folder(number)
        return found


def check(top: str, directory: str, state: State | None, *, exact: bool) -> Seen:
    """Compare the memory directory below `top` with its state; without one everything is new."""
    if state is None:
        seen = Seen(None, is_exact=True)
        _list(top, directory, directory, seen)
        return seen
    is_exact = exact or state.files <= FEW_FILES
    seen = Seen(state, is_exact=is_exact)
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


def _moved(prefix: str, state: State) -> set[int]:
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


def _vanish(number: int, seen: Seen) -> None:
    assert seen.state is not None
    folder = seen.state.folder(number)
    seen.vanished.add(folder.path)
    for name, (_status, slot) in folder.files.items():
        seen.drop(f"{folder.path}/{name}", slot)


def _look_at_files(top: str, number: int, seen: Seen) -> None:
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


def _to_read(folder: Folder, name: str, status: Stat, slot: int | None, seen: Seen) -> None:
    folder.files[name] = (status, UNREAD)
    seen.unread.append((folder, name, slot))
    if slot is not None:
        seen.drop(f"{folder.path}/{name}", slot)


def _list(top: str, directory: str, path: str, seen: Seen, number: int | None = None) -> None:
    """List a folder, and those below it that the state does not know.

    `number` is that of the folder in the state, where it has one.
    """
    state = seen.state
    place = f"{top}/{path}"
    status = _status(place)
    if status is None:
        if number is not None:
            _vanish(number, seen)
        return
    old = state.folder(number).files if state is not None and number is not None else {}
    doubtful = state.doubtful.get(path, ()) if state is not None else ()
    files: dict[str, tuple[Stat, int]] = {}
    problems: list[Problem] = []
    folder = seen.folders[path] = Folder(path, stat_of(status), files)
    from memtool.store import snapshot  # only where a folder changed

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
    folder.problems = tuple(problems)
    seen.below[path] = below
    for name in below:
        inner = f"{path}/{name}"
        if state is None or state.place_of(inner) is None:
            _list(top, directory, inner, seen)
