"""Work in the background: captures, and the index of a fresh clone. No agent waits for it.

In a fresh clone of many memories the first answer takes longer than a host waits for a hook, at
every prompt again: so a search in the background builds the index. This module loads next to
nothing, as a hook answers in the time of a cold start.
"""

from __future__ import annotations

import os
import stat

from memtool.sessions import consent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.store.context import Context


MOST_S = 600
"""Seconds after which a capture in the background is ended, whatever it waits for."""
_PROGRAM = "from memtool.cli.main import command; command()"


def capture_hook(
    context: Context, host: str, session_id: str, transcript_path: str, event: str
) -> bool:
    """Start a capture of a transcript in the background; return whether one was started.

    None is started where it is switched off, or where the path is no file of this user. `event` is
    what the host reported: at the end of a session nothing more will come, and it is ended. A host
    that names no transcript may keep all of them in one place.
    """
    transcript_path = transcript_path or kept_by(host, context.caller.env)
    if not consent.is_capturing(context) or not is_own(transcript_path):
        return False
    args = ["-C", context.repository.top or context.repository.git_dir, "capture", "--host", host]
    args += ["--session", session_id] if session_id else []
    args += ["--end"] if event == "session-end" else []
    return bool(start([*args, "--", transcript_path], context.caller.env))


def kept_by(host: str, env: Mapping[str, str]) -> str:
    """Return the path of the file in which a host keeps all sessions, empty where it has none."""
    if host != "opencode":
        return ""
    data = env.get("XDG_DATA_HOME") or os.path.join(env.get("HOME", ""), ".local", "share")
    return os.path.join(data, "opencode", "opencode.db")


def is_own(path: str) -> bool:
    """Tell whether a path is absolute, and a regular file that belongs to this user."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return os.path.isabs(path) and stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def start(args: list[str], env: Mapping[str, str]) -> int:
    """Start memtool in a session of its own, without streams; return the process, 0 for none."""
    from memtool.store.process import start_apart  # a hook that is in time needs none of it

    return start_apart(_PROGRAM, args, env, MOST_S)


INDEXING = "warming"
"""The file that names the process at work, in the cache directory."""
SEARCH = ("search", "--limit", "1", "--", "memory")
"""Builds everything that a hook needs, without a trace in the ledger."""


def warm(directory: str, top: str, env: Mapping[str, str], now: float) -> bool:
    """Start a search in the background unless one is under way; return whether one was started."""
    path = os.path.join(directory, INDEXING)
    if _is_under_way(path, now):
        return False
    from memtool.store import files  # a hook that is in time needs none of it
    from memtool.store.git import LOCATION_VARIABLES

    # A git hook is given the index of its commit, which will be gone.
    inherited = {key: value for key, value in env.items() if key not in LOCATION_VARIABLES}
    process = start(["-C", top, *SEARCH], {**inherited, "MEMTOOL_NO_LEDGER": "1"})
    try:
        handle = files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(handle, str(process).encode())
        finally:
            os.close(handle)
    except OSError:
        pass  # then the next hook may start another one
    return bool(process)


def _is_under_way(path: str, now: float) -> bool:
    """Tell whether the process that a file names is still running, within its time limit."""
    from memtool.store.files import read_regular  # a hook that is in time needs none of it
    from memtool.store.process import is_running

    try:
        if os.stat(path).st_mtime < now - MOST_S:
            return False
        return is_running(int(read_regular(path, 20)))
    except (OSError, ValueError):
        return False
