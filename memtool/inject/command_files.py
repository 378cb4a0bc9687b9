"""Command files: the governed files that a command of the shell names, or has changed.

The words of the command line that are paths are looked up as they are written; nothing is expanded.
Whatever else it changed is found by git and by times: a mark is set before the command runs, and a
file that differs from HEAD and was changed since is one that the command changed. A file that
another program changes meanwhile counts, too.
"""

from __future__ import annotations

import os
import stat
from itertools import pairwise

from memtool.errors import MemtoolError
from memtool.inject import file_rules
from memtool.memory.command_line import split_commands
from memtool.search.picks import find_parents
from memtool.store import files
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memtool.inject.gather import RepositoryCandidates
    from memtool.memory.command_line import SimpleCommand
    from memtool.store.context import Context

MAX_WORDS = 400
"""Words of a command line that are looked up."""
MAX_FILES = 20
"""Files of one command that are looked at, of those that it changed and of those that it names."""
MAX_PATH_BYTES = 4096
GIT_LIMIT_S = 0.8
"""Time for git to list the changed files; a hook has two seconds for everything."""
_WILDCARDS = ("*", "?")
_FOLDER_OPTION = "-C"


class ShellCall(Value):
    """The commands of a command line, and the directory in which it ran.

    `since_ns` is when it began, as the clock of the file system has it; 0 if unknown.
    """

    commands: tuple[SimpleCommand, ...]
    folder: str
    since_ns: int = 0


class TouchedFiles(Value):
    """The governed files that a command changed and those that it only names, from the top."""

    changed: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


def read_call(line: str, folder: str, since_ns: int) -> ShellCall:
    """Return the call of a command line that ran in a directory."""
    return ShellCall(tuple(split_commands(line)), folder, since_ns)


def find_touched(context: Context, own: RepositoryCandidates, call: ShellCall) -> TouchedFiles:
    """Return the governed files that a command changed and those that it names."""
    governed = GovernedPaths(list_governed(own), is_open=bool(own.grounds.tree.imported_ids))
    if not governed:
        return TouchedFiles()
    changed = [path for path in _find_changed(context, governed, call) if governed.has(path)]
    is_moving = any("mv" in command.words[:3] for command in call.commands)
    named = [
        path
        for path in dict.fromkeys(_find_named(context, governed, call))
        if path not in changed and (is_moving or governed.has(path))
    ]
    return TouchedFiles(tuple(changed[:MAX_FILES]), tuple(named[:MAX_FILES]))


def list_governed(own: RepositoryCandidates) -> set[str]:
    """Return the files, folders and globs that memories name, as they are called today."""
    entries: set[str] = set()

    def note(entry: str) -> bool:
        entries.add(entry)
        return False

    for tree in filter(None, (own.grounds.tree, own.view.trusted)):
        tree.naming_files(note)
    return entries.union(own.grounds.moves().list_current_paths())


class GovernedPaths:
    """The paths that memories name: plain ones, and globs by the folder above their wildcard.

    With `is_open` any file may be governed, by ties that no memory names.
    """

    def __init__(self, entries: Iterable[str], *, is_open: bool) -> None:
        self.is_open = is_open
        self.plain: set[str] = set()
        self.globs: dict[str, list[str]] = {}
        for entry in entries:
            parts = [part for part in entry.split("/") if part not in ("", ".")]
            at = next((n for n, part in enumerate(parts) if _has_wildcard(part)), len(parts))
            if at == len(parts):
                self.plain.add("/".join(parts))
            else:
                self.globs.setdefault("/".join(parts[:at]), []).append("/".join(parts))
        self.plain.discard("")

    def __bool__(self) -> bool:
        return self.is_open or bool(self.plain or self.globs)

    def has(self, path: str) -> bool:
        """Return whether a file may be governed."""
        if self.is_open:
            return True
        above = [*find_parents(path), ""]
        return any(part in self.plain for part in above) or any(
            files.matches_or_contains(glob, path)
            for part in above
            for glob in self.globs.get(part, ())
        )


def _has_wildcard(part: str) -> bool:
    return any(wildcard in part for wildcard in _WILDCARDS)


def _find_named(context: Context, governed: GovernedPaths, call: ShellCall) -> Iterator[str]:
    """Yield the files of the repository that a command line names, and governed ones now gone."""
    wanted = []
    for path in _list_paths(call):
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            wanted.append(path)
            continue
        if not stat.S_ISDIR(mode):
            wanted.append(path)
        if stat.S_ISLNK(mode) and os.path.isfile(path):
            wanted.append(os.path.realpath(path))
    for path in file_rules.paths_from_top(context, wanted):
        if path in governed.plain or os.path.lexists(os.path.join(context.repository.top, path)):
            yield path


def _list_paths(call: ShellCall) -> list[str]:
    """Return the words of a command line that may be paths, as absolute paths."""
    paths: dict[str, None] = {}
    for command in call.commands:
        folders = [os.path.join(call.folder, command.folder)]
        words = [*command.words, *command.redirects]
        for option, word in pairwise(words):
            if option == _FOLDER_OPTION:
                folders.append(os.path.join(folders[0], word))
        for word in words:
            for part in dict.fromkeys((word, word.partition("=")[2])):
                if not part or "\0" in part or "://" in part or len(part) > MAX_PATH_BYTES:
                    continue
                if len(paths) >= MAX_WORDS:
                    return list(paths)
                paths |= dict.fromkeys(os.path.join(folder, part) for folder in folders)
    return list(paths)


def _find_changed(context: Context, governed: GovernedPaths, call: ShellCall) -> Sequence[str]:
    """Return the files that differ from HEAD and changed since a command began.

    Git is only asked if a governed file is as new as that, or if a folder or glob is governed.
    """
    top = context.repository.top
    if not (call.since_ns and top):
        return ()
    fresh, folders = [], {*governed.globs}
    for path in governed.plain:
        try:
            is_folder = stat.S_ISDIR(os.lstat(os.path.join(top, path)).st_mode)
        except OSError:
            is_folder = False
        if is_folder:
            folders.add(path)
        elif _is_fresh(top, path, call.since_ns):
            fresh.append(path)
    if governed.is_open or "" in folders:
        places = []
    elif fresh or folders:
        places = sorted({*fresh, *folders})
    else:
        return ()
    try:
        rows = context.repository.git.status(*places, timeout_s=GIT_LIMIT_S)
    except MemtoolError:  # it takes too long: a file that is new enough may be unchanged
        return sorted(fresh)
    inside = f"{context.directory}/"
    return [
        path
        for _letters, path in rows
        if not path.startswith(inside) and _is_fresh(top, path, call.since_ns)
    ]


def _is_fresh(top: str, path: str, since_ns: int) -> bool:
    """Return whether a file changed since a moment; of one that is gone, its folder."""
    place = os.path.join(top, path)
    try:
        return os.lstat(place).st_ctime_ns >= since_ns
    except OSError:
        pass
    while len(place) > len(top):
        place = os.path.dirname(place)
        try:
            return os.stat(place).st_mtime_ns >= since_ns
        except OSError:
            continue
    return False
