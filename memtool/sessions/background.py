"""Background work that no agent waits for: captures, and the index of a fresh clone.

In a fresh clone with many memories, the first search takes longer than a host waits for a hook, and
every prompt would time out again. So a search in the background builds the index. This module
imports as little as possible: a hook should cost no more than a cold start.
"""

from __future__ import annotations

import os
import stat

from memtool.agents import BY_NAME
from memtool.sessions import consent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memtool.store.context import Context


MAX_S = 600
"""Time limit of a background process, whatever it waits for."""
_PROGRAM = "from memtool.cli.main import command; command()"


def capture_hook(
    context: Context, host: str, session_id: str, transcript_path: str, event: str
) -> bool:
    """Start a capture of a transcript in the background; return whether one was started.

    None is started if captures are switched off, or if the path is not a file of this user. `event`
    is the event that the host reported: after `session-end` nothing more will come, so the session
    is ended. `transcript_path` may be empty for a host that is known to store it in one place.
    """
    agent, env = BY_NAME[host], context.caller.env
    transcript_path = transcript_path or agent.find_transcript(session_id, env)
    if not consent.is_capturing(context) or not is_own(transcript_path):
        return False
    args = ["-C", context.repository.top or context.repository.git_dir, "capture", "--host", host]
    args += ["--session", session_id] if session_id else []
    args += ["--end"] if event == "session-end" else []
    return bool(start([*args, "--", transcript_path], env))


def is_own(path: str) -> bool:
    """Return whether a path is absolute, and a regular file that this user owns."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return os.path.isabs(path) and stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def start(args: list[str], env: Mapping[str, str]) -> int:
    """Start memtool detached, without standard streams; return the process id, 0 if it failed."""
    from memtool.store.process import start_detached  # imported late: most hooks do not need it

    return start_detached(_PROGRAM, args, env, MAX_S)


INDEXING = "warming"
"""Name of the file, in the cache directory, with the id of the running process."""
SEARCH = ("search", "--limit", "1", "--", "memory")
"""A search that builds everything a hook needs, without an entry in the ledger."""


PRIMER = ("inject", "--primer")
"""The text at the start of a session, for which the history is read as well."""
DRIFT = ("drift", "--json")
"""Checks the files that memories name, so that a hook knows which were renamed."""


def inject_files(files: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments that answer for files, and so derive what their hooks need."""
    return ("inject", *(f"--files={file}" for file in files[:1]))


def warm(
    directory: str, top: str, env: Mapping[str, str], now: float, verb: Sequence[str] = SEARCH
) -> bool:
    """Start a verb in the background unless one is running; return whether it was started."""
    path = os.path.join(directory, INDEXING)
    if _is_under_way(path, now):
        return False
    from memtool.store import files  # imported late: most hooks do not need it
    from memtool.store.git import LOCATION_VARIABLES

    # Git points a hook to the index of its commit, which will not exist for long.
    inherited = {key: value for key, value in env.items() if key not in LOCATION_VARIABLES}
    process = start(["-C", top, *verb], {**inherited, "MEMTOOL_NO_LEDGER": "1"})
    try:
        handle = files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(handle, str(process).encode())
        finally:
            os.close(handle)
    except OSError:
        pass  # at worst the next hook starts another one
    return bool(process)


def _is_under_way(path: str, now: float) -> bool:
    """Return whether the process named in a file is still running, within its time limit."""
    from memtool.store.files import read_regular  # imported late: most hooks do not need it
    from memtool.store.process import is_running

    try:
        if os.stat(path).st_mtime < now - MAX_S:
            return False
        return is_running(int(read_regular(path, 20)))
    except (OSError, ValueError):
        return False
