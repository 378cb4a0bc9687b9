"""Git's own locks: run commands that wait for them, and describe a lock that blocks."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence

from memtool.store.deadline import Deadline
from memtool.store.files import note_wait
from memtool.store.git import GitError
from memtool.store.repository import Repository
from memtool.value import format_count

LOCK_TIMEOUT_S = 20.0
"""How long to wait for another git process."""
FRESH_LOCK_AGE_S = 1.0
"""A younger lock may belong to a process that is not visible yet."""
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def run_patiently(
    repository: Repository,
    args: list[str],
    paths: Sequence[str] | None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run git on paths relative to the top, and retry while another process holds a lock.

    Paths go through stdin, since argument lists are limited to 2 MB. None means a command without
    paths.
    """
    stdin = None
    if paths is not None:
        args = [*args, "--pathspec-from-file=-", "--pathspec-file-nul"]
        stdin = b"".join(b":(top,literal)%s\0" % os.fsencode(path) for path in paths)
    deadline = Deadline(LOCK_TIMEOUT_S)
    pause_s = 0.01
    while True:
        try:
            repository.git.run(*args, stdin=stdin, with_hooks=True, env=env)
            return
        except GitError as error:
            if (
                not error.is_lock
                or deadline.remaining_s() < pause_s
                or is_abandoned(repository, error.lock)
            ):
                raise
        time.sleep(pause_s)
        note_wait(pause_s)
        pause_s = min(pause_s * 1.5, 0.3)


def is_abandoned(repository: Repository, lock: str) -> bool:
    """Return whether a lock is abandoned: it is not new, and no git process works here."""
    age_s = _read_age_s(lock)
    return age_s is not None and age_s > FRESH_LOCK_AGE_S and _find_git_processes(repository) == []


def _read_age_s(lock: str) -> float | None:
    """Return the age of a lock in seconds; None if there is no lock."""
    try:
        return time.time() - os.stat(lock).st_mtime
    except OSError:
        return None


def _find_git_processes(repository: Repository) -> list[int] | None:
    """Return the ids of git processes that work in a repository; None if that cannot be seen.

    Open files would not tell: while an editor or a hook runs, git has closed the lock file.
    """
    prefixes = tuple(
        f"{os.path.realpath(directory)}/"
        for directory in (repository.top, repository.common_dir)
        if directory
    )
    try:
        numbers = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return None
    processes = []
    for number in numbers:
        try:
            with open(f"/proc/{number}/comm", encoding="utf-8") as file:
                is_git = file.read().strip() == "git"
            if is_git and f"{os.readlink(f'/proc/{number}/cwd')}/".startswith(prefixes):
                processes.append(int(number))
        except OSError:  # it ended, or belongs to another user
            continue
    return processes


def describe_lock(repository: Repository, lock: str) -> str:
    """Return the age of a lock and the processes that may own it; empty if there is no lock."""
    age_s = _read_age_s(lock)
    if age_s is None:
        return ""
    unit, size = next((row for row in _UNITS if age_s >= row[1]), _UNITS[-1])
    place = os.path.relpath(lock, repository.top) if repository.top else lock
    count = int(age_s / size)
    text = f"{place} has been there for {format_count(count, unit)}"
    writers = _find_git_processes(repository)
    if writers is None:
        return text
    if not writers:
        return f"{text}, and no git process works in this repository"
    return f"{text}; git works here as process {', '.join(map(str, writers[:3]))}"


def describe_index_lock(repository: Repository) -> tuple[str, str]:
    """Return a description of the lock on git's index, and the command that removes it.

    Both are empty without a lock; the command is also empty if the lock is not abandoned.
    """
    lock = os.path.join(repository.git_dir, "index.lock")
    text = describe_lock(repository, lock)
    return text, f"rm {shlex.quote(lock)}" if text and is_abandoned(repository, lock) else ""
