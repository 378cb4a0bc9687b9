"""Keeping: the state of a worktree becomes bytes, and those a file; what `state` reads."""

from __future__ import annotations

import os
from _bisect import bisect_left

from memtool.memory.problem import Problem
from memtool.search import layout, state
from memtool.search.state import BY_FOLDER, FILE, KIND, NO_MEMORY, Run, files_sum
from memtool.store import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from memtool.search.state import Folder, State


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
        "folder_stats": layout.column("q", _joined(runs, "statuses")),
        "starts": layout.column("I", starts),
        "names": b"".join([run.names for run in runs]),
        "name_ends": layout.column("Q", _sums(runs, "sizes")),
        "stats": b"".join([run.stats for run in runs]),
        "slots": b"".join([run.slots for run in runs]),
        "sums": layout.column("I", _joined(runs, "sums")),
        "basis": _texts(basis[:2]),
        "dead": layout.column("q", basis[2]),
        "renewed": _texts(basis[3]),
        "problems": _rows(flat),
        "doubtful": _rows(doubtful),
        "carrying": _texts(sorted(carrying)),
        "shelf": carried[0],
        "overlay": carried[1],
    }
    return cache.pack(KIND, [taken_ns, starts[-1]], sections, BY_FOLDER)


def _run(folder: Folder) -> Run:
    """Return a folder as it is stored."""
    files = sorted(folder.files.items())
    names = os.fsencode("".join([f"{name}/" for name, _file in files]))
    stats = layout.column("q", [part for _name, (status, _slot) in files for part in status])
    slots = layout.column("q", [slot for _name, (_status, slot) in files])
    guarded = files_sum(names, stats, slots)
    own = ([folder.path], folder.status, [len(files)], [len(names)], [guarded])
    return Run(*own, names, stats, slots)


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


def _joined(runs: Iterable[Run], name: str) -> list[Any]:
    return [one for run in runs for one in getattr(run, name)]


def _sums(runs: Iterable[Run], name: str) -> list[int]:
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


def store(git_dir: str, data: bytes) -> str:
    """Replace the state of a worktree; return a note if that is impossible."""
    folder, name = os.path.split(os.path.join(git_dir, FILE))
    note = cache.write(folder, name, data)
    return f"the search index is not kept: {note}" if note else ""
