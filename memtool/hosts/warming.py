"""Warming: what was too much for the time of a hook is done beside it, once.

In a fresh clone of many memories the first answer takes longer than a hook has. It would be given
up at every prompt, and nobody would ever finish the index.
"""

from __future__ import annotations

import os

from memtool.sessions import background
from memtool.store.reading import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "warming"
"""The file that names the process at work, in the cache directory."""
SEARCH = ("search", "--limit", "1", "--", "memory")
"""Makes everything that a hook needs; nothing is noted of it."""


def warm(directory: str, top: str, env: Mapping[str, str], now: float) -> bool:
    """Start a search in the background unless one is under way; return whether one was started."""
    path = os.path.join(directory, NAME)
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
    """Tell whether the process that a file names runs, and may run still."""
    try:
        if os.stat(path).st_mtime < now - background.MOST_S:
            return False
        os.kill(int(read_regular(path, 20)), 0)
    except (OSError, ValueError, OverflowError):
        return False
    return True
