"""Git's own locks: commands that wait for them, and what is known of one that is in the way."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence

from memtool.store.deadline import Deadline
from memtool.store.files import note_wait
from memtool.store.git import GitError
from memtool.store.repository import Repository
from memtool.value import plural

LOCK_PATIENCE_S = 20.0
"""How long to wait for another git process before saying so."""
FRESH_LOCK_S = 1.0
"""A younger lock may be of a process that is not to be seen yet."""
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def run_patiently(
    repository: Repository,
    args: list[str],
    paths: Sequence[str] | None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run git on paths from the top, trying again while another process holds a lock.

    They go through stdin: an argument list ends at 2 MB. None is a command without paths.
    """
    stdin = None
    if paths is not None:
        args = [*args, "--pathspec-from-file=-", "--pathspec-file-nul"]
        stdin = b"".join(b":(top,literal)%s\0" % os.fsencode(path) for path in paths)
    deadline = Deadline(LOCK_PATIENCE_S)
    pause_s = 0.01
    while True:
        try:
            repository.git.run(*args, stdin=stdin, with_hooks=True, env=env)
            return
        except GitError as error:
            if not error.is_lock or deadline.left_s() < pause_s or is_left(repository, error.lock):
                raise
        time.sleep(pause_s)
        note_wait(pause_s)
        pause_s = min(pause_s * 1.5, 0.3)


def is_left(repository: Repository, lock: str) -> bool:
    """Tell whether a lock was left behind: it is not new, and no git process works here."""
    age_s = _age(lock)
    return age_s is not None and age_s > FRESH_LOCK_S and _writers(repository) == []


def _age(lock: str) -> float | None:
    """Return how old a lock is, in seconds; None where there is none."""
    try:
        return time.time() - os.stat(lock).st_mtime
    except OSError:
        return None


def _writers(repository: Repository) -> list[int] | None:
    """Return the git processes that work in a repository; None where that cannot be seen.

    While an editor or a hook runs, git has its lock, but not the file of it open.
    """
    places = tuple(
        f"{os.path.realpath(one)}/" for one in (repository.top, repository.common_dir) if one
    )
    try:
        numbers = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return None
    found = []
    for number in numbers:
        try:
            with open(f"/proc/{number}/comm", encoding="utf-8") as file:
                is_git = file.read().strip() == "git"
            if is_git and f"{os.readlink(f'/proc/{number}/cwd')}/".startswith(places):
                found.append(int(number))
        except OSError:  # it ended, or is somebody else's
            continue
    return found


def lock_text(repository: Repository, lock: str) -> str:
    """Return how old a lock is and whose, empty where there is none."""
    age_s = _age(lock)
    if age_s is None:
        return ""
    unit, size = next((row for row in _UNITS if age_s >= row[1]), _UNITS[-1])
    place = os.path.relpath(lock, repository.top) if repository.top else lock
    count = int(age_s / size)
    text = f"{place} has been there for {plural(count, unit)}"
    writers = _writers(repository)
    if writers is None:
        return text
    if not writers:
        return f"{text}, and no git process works in this repository"
    return f"{text}; git works here as process {', '.join(map(str, writers[:3]))}"


def index_lock(repository: Repository) -> tuple[str, str]:
    """Return what is known of the lock on git's index, and the command that takes it away.

    The texts are empty where there is no lock, and where none was left behind.
    """
    lock = os.path.join(repository.git_dir, "index.lock")
    text = lock_text(repository, lock)
    return text, f"rm {shlex.quote(lock)}" if text and is_left(repository, lock) else ""
