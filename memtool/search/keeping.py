"""Keeping: the state of a worktree becomes bytes, and those a file; what `state` reads."""

from __future__ import annotations

import os

from memtool.memory.problem import Problem
from memtool.search import layout, state
from memtool.search.state import FILE, MAGIC, NO_MEMORY, files_sum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.search.state import Folder, Stat, State

TEMP_PREFIX = ".tmp-state-"
STALE_S = 3600
"""Age at which what a killed writer left behind is swept away."""


def pack(
    basis: tuple[str, str, tuple[int, ...], tuple[str, ...]],
    taken_ns: int,
    folders: Mapping[str, Folder],
    kept: tuple[State, Iterable[int]] | None,
    carried: tuple[bytes, bytes],
) -> bytes:
    """Return the bytes of a state taken at a moment.

    `basis` is the key, the name of the segment, the memories of it that no file holds any more,
    and the paths of which it does not know the problems. `kept` are folders that are as they were
    in an older state, and `carried` the shelf and the overlay of what is in no segment. A status
    that was new when it was taken is doubtful: a change right after it may leave no trace in it.
    """
    doubt_ns = taken_ns - state.DOUBT_NS
    rows = {path: _row(folder) for path, folder in folders.items()}
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
    if kept is not None:
        old, numbers = kept
        for number in numbers:
            path = old.folders[number]
            rows[path] = (old.status(number), *old.raw(number))
            if path in old.problems:
                problems[path] = old.problems[path]
    paths = sorted(rows)
    ordered = [rows[path] for path in paths]
    starts = [0]
    for _status, count, _names, _stats, _slots in ordered:
        starts.append(starts[-1] + count)
    flat = [
        [path, *(str(getattr(problem, name)) for name in Problem.field_names)]
        for path in sorted(problems)
        for problem in problems[path]
    ]
    sections = {
        "folders": _texts(paths),
        "folder_stats": layout.column("q", [part for row in ordered for part in row[0]]),
        "starts": layout.column("I", starts),
        "names": b"".join([row[2] for row in ordered]),
        "name_ends": layout.ends("Q", [row[2] for row in ordered]),
        "stats": b"".join([row[3] for row in ordered]),
        "slots": b"".join([row[4] for row in ordered]),
        "sums": layout.column("I", [files_sum(*row[2:]) for row in ordered]),
        "basis": _texts(basis[:2]),
        "dead": layout.column("q", basis[2]),
        "renewed": _texts(basis[3]),
        "problems": _rows(flat),
        "doubtful": _rows(doubtful),
        "carrying": _texts(sorted(carrying)),
        "shelf": carried[0],
        "overlay": carried[1],
    }
    return layout.bind(MAGIC, [taken_ns, starts[-1]], sections)


def _texts(texts: Iterable[str]) -> bytes:
    """Return texts that hold no NUL, each ended by one."""
    return b"".join([os.fsencode(text) + b"\0" for text in texts])


def _rows(rows: Iterable[Iterable[str]]) -> bytes:
    """Return rows of texts, each row ended by a slash; none of the texts is one."""
    return b"".join([_texts([*row, "/"]) for row in rows])


def _row(folder: Folder) -> tuple[Stat, int, bytes, bytes, bytes]:
    """Return a folder as it is stored: status, count of files, names, their statuses, slots."""
    files = sorted(folder.files.items())
    names = b"".join([os.fsencode(name) + b"/" for name, _file in files])
    stats = layout.column("q", [part for _name, (status, _slot) in files for part in status])
    slots = layout.column("q", [slot for _name, (_status, slot) in files])
    return folder.status, len(files), names, stats, slots


def store(git_dir: str, data: bytes) -> str:
    """Replace the state of a worktree; return a note if that is impossible."""
    place = os.path.join(git_dir, FILE)
    folder = os.path.dirname(place)
    temp = os.path.join(folder, f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        try:
            with open(temp, "xb") as file:
                file.write(data)
            os.replace(temp, place)
        except BaseException:
            if os.path.exists(temp):
                os.unlink(temp)
            raise
        _sweep(folder, os.stat(place).st_mtime)
    except OSError as error:
        return f"the search index is not kept: {folder}: {os.strerror(error.errno or 0)}"
    return ""


def _sweep(folder: str, now: float) -> None:
    """Remove what writers that were killed left behind."""
    for name in os.listdir(folder):
        if name.startswith(TEMP_PREFIX):
            place = os.path.join(folder, name)
            try:
                if os.lstat(place).st_mtime < now - STALE_S:
                    os.unlink(place)
            except OSError:
                continue
