"""What hooks leave behind: a log of failures, and a process that builds the index.

The log is `hook.log` in memtool's directory of the git directory. When it is full it replaces
`hook.log.old`. Where it cannot be written, nothing is.

In a fresh clone of many memories the first answer takes longer than a host waits for a hook, at
every prompt again: so a search in the background builds the index.
"""

from __future__ import annotations

import os

from memtool.sessions import background
from memtool.store.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "hook.log"
OLD = ".old"
FAILED = "failed: "
"""Begins the outcome of a hook that failed."""
FULL_BYTES = 64 * 1024
MOST_BYTES = 4 * 1024
"""Of one entry."""
VARIABLE = "MEMTOOL_LOG"
ERROR, ALL = "error", "all"
LEVELS = ("off", ERROR, ALL)
"""Values of the variable: which entries are kept; `error` for any other value."""


def is_kept(level: str, setting: str) -> bool:
    """Tell whether an entry of a level, `error` or `all`, is kept under a value of the variable."""
    most = setting if setting in LEVELS else ERROR
    return LEVELS.index(level) <= LEVELS.index(most)


def last_failure(directory: str) -> str:
    """Return the first line of the last entry of a failure, empty for none."""
    try:
        text = read_regular(os.path.join(directory, NAME)).decode(errors="replace")
    except OSError:
        return ""
    lines = (line for line in reversed(text.split("\n")) if not line.startswith(" "))
    return next((line for line in lines if f": {FAILED}" in line), "")


def note(directory: str, moment: str, what: str, how: str) -> None:
    """Append an entry: the moment, the event, and the outcome, which may have several lines."""
    lines = f"{moment} {what}: {how}".encode(errors="backslashreplace").splitlines()
    entry = b"\n  ".join(lines)[: MOST_BYTES - 1] + b"\n"
    path = os.path.join(directory, NAME)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, entry)
            if os.fstat(handle).st_size > FULL_BYTES:
                os.replace(path, path + OLD)
        finally:
            os.close(handle)
    except OSError:
        return


WARM_NAME = "warming"
"""The file that names the process at work, in the cache directory."""
SEARCH = ("search", "--limit", "1", "--", "memory")
"""Builds everything that a hook needs, without a trace in the ledger."""


def warm(directory: str, top: str, env: Mapping[str, str], now: float) -> bool:
    """Start a search in the background unless one is under way; return whether one was started."""
    path = os.path.join(directory, WARM_NAME)
    if _is_under_way(path, now):
        return False
    process = background.start(["-C", top, *SEARCH], {**env, "MEMTOOL_NO_LEDGER": "1"})
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, str(process).encode())
        finally:
            os.close(handle)
    except OSError:  # then the next hook may start another one
        return bool(process)
    return bool(process)


def _is_under_way(path: str, now: float) -> bool:
    """Tell whether the process that a file names is still running, within its time limit."""
    try:
        if os.stat(path).st_mtime < now - background.MOST_S:
            return False
        os.kill(int(read_regular(path, 20)), 0)
    except (OSError, ValueError, OverflowError):
        return False
    return True
