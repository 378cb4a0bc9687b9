"""Command marks: when and where the last command of each session began.

The mark is a private file that holds the directory. Its time is that of the file system, with which
the times of changed files are compared. Hosts may report the directory of a command after its `cd`,
so the one before is kept.
"""

from __future__ import annotations

import os

from memtool.inject import session_seen
from memtool.store import files
from memtool.value import Value

MAX_PATH_BYTES = 4096


class CommandMark(Value):
    """A directory, and the moment at which a command began there; empty and 0 if unknown."""

    folder: str = ""
    moment_ns: int = 0


def write(cache_dir: str, session: str, folder: str) -> None:
    """Note that a command of a session begins now, in a directory.

    Raises:
        OSError: it cannot be written there.
    """
    place = os.path.join(cache_dir, session_seen.COMMANDS)
    os.makedirs(place, mode=0o700, exist_ok=True)
    files.write_private(place, session_seen.hash_session(session), os.fsencode(folder))


def read(cache_dir: str, session: str) -> CommandMark:
    """Return the mark of the last command of a session."""
    if not session:
        return CommandMark()
    path = os.path.join(cache_dir, session_seen.COMMANDS, session_seen.hash_session(session))
    try:
        folder = os.fsdecode(files.read_regular(path, MAX_PATH_BYTES))
        return CommandMark(folder, os.lstat(path).st_mtime_ns)
    except OSError:
        return CommandMark()
