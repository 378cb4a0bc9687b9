"""Cleanup: leftovers in memtool's cache, an old index, and ended sessions.

Caches can be rebuilt. Ended sessions lose their messages only if all sessions together have reached
their limit, or after the number of days in the settings.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from memtool.memory import timestamps
from memtool.sessions import journal, model, retention
from memtool.sessions.store import Sessions
from memtool.store import files
from memtool.store.files import TEMP_PREFIX, explaining_errors, read_regular
from memtool.store.repository import Repository
from memtool.value import Value

STALE_S = timestamps.DAY_S
"""Age from which a temporary file is a leftover."""
LEFT_OVER = (TEMP_PREFIX, ".tmp-")
"""Prefixes of temporary files."""
ASIDE = ".broken"
"""Suffix of broken files that were set aside."""
OLD_CACHES = (
    *("citations", "cochange", "drift", "gate", "lately", "manifest", "twins", "vectors"),
    *("ledger.accesses", "ledger.accesses-settled", "ledger.latencies"),
)
"""Folders and files of versions before derived data moved to SQLite; they are not read any more."""
INDEX, STAMP = "index", "maintained"
"""The folder that is rebuilt, and the file with the time of the last rebuild."""
RUNS = "upkeep"
"""The file with the time of the last upkeep of each period."""
_MAX_STAMP = 100


class Chore(Value):
    """One chore: `remove` a file, `prune` a session, `rebuild` the index, or `make` vectors."""

    do: str
    what: str
    why: str
    bytes: int = 0


def find_leftovers(cache_dir: str, now: int) -> list[Chore]:
    """Return the removals of files left by killed writers, damage and older versions, by path.

    The cache is searched two levels deep. An older version that is still in use renews its files
    within a day.
    """
    leftovers = []
    root = Path(cache_dir)
    for path in (*root.glob("*"), *root.glob("*/*")):
        if path.name.endswith(ASIDE):
            why = "it could not be read and was set aside"
        elif path.name.startswith(LEFT_OVER):
            why = "its writer was killed"
        elif path.name in OLD_CACHES and path.parent == root:
            why = "only an older version of memtool reads it"
        else:
            continue
        if path.parent.name == model.FOLDER or path.parent.is_symlink():
            continue
        with suppress(OSError):  # removed since it was listed
            if now - path.lstat().st_mtime > STALE_S:
                leftovers.append(
                    Chore("remove", str(path.relative_to(root)), why, _measure_size(path))
                )
    return sorted(leftovers, key=lambda chore: chore.what)


def find_strays(repository: Repository, now: int) -> list[Chore]:
    """Return the removals of temporary files left in the worktree, by absolute path.

    Killed writers left them. A writer only sweeps the folders that it writes to; `git add --all`
    would add leftovers elsewhere.
    """
    if repository.is_bare:
        return []
    strays = []
    for name in repository.git.names("ls-files", "--others", "--exclude-standard", "-z"):
        path = Path(repository.top, name)
        if files.is_temporary(path.name):
            with suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and now - status.st_mtime > STALE_S:
                    strays.append(
                        Chore("remove", str(path), "its writer was killed", _measure_size(path))
                    )
    return sorted(strays, key=lambda chore: chore.what)


INDEX_DAYS = 28
"""Days after which the index is made anew."""


def find_rebuild_due(cache_dir: str, now: int, days: int) -> list[Chore]:
    """Return the rebuild of the index if it is due: `days` days after the last one."""
    size = _measure_size(Path(cache_dir, INDEX))
    last = _find_rebuilt(cache_dir)
    if not size or (last is not None and 0 <= now - last < days * timestamps.DAY_S):
        return []
    why = (
        f"that was last done on {timestamps.format_date(last)}" if last else "that was not done yet"
    )
    return [Chore("rebuild", INDEX, why, size)]


def _find_rebuilt(cache_dir: str) -> int | None:
    try:
        text = read_regular(os.path.join(cache_dir, STAMP), _MAX_STAMP).decode()
        return timestamps.parse(text.strip())
    except (OSError, ValueError):
        return None


def note_rebuilt(cache_dir: str, now: int) -> None:
    """Store when the index was rebuilt. Raises MemtoolError if the disk refuses."""
    path = os.path.join(cache_dir, STAMP)
    try:
        before = read_regular(path, _MAX_STAMP)
    except OSError:
        before = None
    files.replace(cache_dir, STAMP, f"{timestamps.render(now)}\n".encode(), expected=before)


def read_last_runs(cache_dir: str) -> dict[str, int]:
    """Return when the upkeep of each period was last done in this clone, by period."""
    moments: dict[str, int] = {}
    with suppress(OSError, UnicodeDecodeError):
        text = read_regular(os.path.join(cache_dir, RUNS), _MAX_STAMP * 10).decode()
        for row in text.splitlines():
            period, _space, moment = row.partition(" ")
            with suppress(ValueError):
                moments[period] = timestamps.parse(moment)
    return moments


def note_runs(cache_dir: str, periods: Iterable[str], now: int) -> None:
    """Store that the upkeep of periods was done. Raises MemtoolError if the disk refuses."""
    moments = read_last_runs(cache_dir) | dict.fromkeys(periods, now)
    rows = [f"{period} {timestamps.render(moment)}\n" for period, moment in sorted(moments.items())]
    journal.write_file(os.path.join(cache_dir, RUNS), "".join(rows).encode())


def find_sessions_due(sessions: Sessions, now: int, prune_days: int) -> list[Chore]:
    """Return the prunings of sessions that are due, oldest first.

    Raises:
        MemtoolError: a session cannot be read.
    """
    is_full = retention.measure(sessions).share >= 1
    before = now - prune_days * timestamps.DAY_S
    old = retention.prune(sessions, before=before, dry_run=True).ids if prune_days else ()
    pruned = dict.fromkeys(old, f"it ended more than {prune_days} days ago")
    for id_ in retention.prune(sessions, dry_run=True).ids if is_full else ():
        why = "all sessions together are at their limit, and it ended first"
        pruned.setdefault(id_, why)
    return [Chore("prune", id_, why) for id_, why in pruned.items()]


def do(chores: Iterable[Chore], cache_dir: str, sessions: Sessions) -> None:
    """Do chores, skipping those already done.

    Raises:
        MemtoolError: the disk refuses.
    """
    pruned: list[str] = []
    for chore in chores:
        if chore.do == "prune":
            pruned.append(chore.what)
        else:
            _remove(os.path.join(cache_dir, chore.what))
    if pruned:
        retention.prune(sessions, ids=pruned)


def _remove(path: str) -> None:
    hint = "give yourself permission, then run the same command again"
    with explaining_errors(f"{path} cannot be removed", hint), suppress(FileNotFoundError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _measure_size(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a directory, ignoring links."""
    total = 0
    for place in (path, *(() if path.is_symlink() else path.rglob("*"))):
        with suppress(FileNotFoundError):
            status = place.lstat()
            total += 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return total
