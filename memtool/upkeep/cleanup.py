"""Cleanup: leftovers in memtool's cache, an old index, and sessions that have ended.

Caches are rebuilt, and sessions that have ended lose their messages only where all sessions
together are at their limit, or after so many days as the settings say.
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
from memtool.store.files import TEMP_PREFIX, read_regular, refusing
from memtool.store.repository import Repository
from memtool.value import Value

STALE_S = timestamps.DAY_S
"""Age from which a temporary file is a leftover."""
LEFT_OVER = (TEMP_PREFIX, ".tmp-")
"""How the names of temporary files begin."""
ASIDE = ".broken"
"""Ends the names of broken files that were set aside."""
OLD_CACHES = (
    *("citations", "cochange", "drift", "gate", "lately", "manifest", "twins", "vectors"),
    *("ledger.accesses", "ledger.accesses-settled", "ledger.latencies"),
)
"""Folders and files of versions before derived data lay in SQLite; nothing reads them any more."""
INDEX, STAMP = "index", "maintained"
"""The folder that is rebuilt, and the file that says when it last was."""
RUNS = "upkeep"
"""The file that says when upkeep of each period was last carried out."""
_MOST_STAMP = 100


class Chore(Value):
    """One thing to do: `remove` a file, `prune` a session, `rebuild` the index."""

    do: str
    what: str
    why: str
    bytes: int = 0


def left_over(cache_dir: str, now: int) -> list[Chore]:
    """Return what killed writers, damage and older versions left behind, two levels deep, by path.

    An older version that is still in use renews its files within a day.
    """
    found = []
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
        with suppress(OSError):  # gone since it was listed
            if now - path.lstat().st_mtime > STALE_S:
                found.append(Chore("remove", str(path.relative_to(root)), why, _size(path)))
    return sorted(found, key=lambda chore: chore.what)


def strays(repository: Repository, now: int) -> list[Chore]:
    """Return what killed writers left beside files of the worktree, by absolute path.

    Writers sweep where they write; a later `git add --all` would take what is left elsewhere.
    """
    if repository.is_bare:
        return []
    found = []
    for name in repository.git.names("ls-files", "--others", "--exclude-standard", "-z"):
        path = Path(repository.top, name)
        if files.is_temporary(path.name):
            with suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and now - status.st_mtime > STALE_S:
                    found.append(Chore("remove", str(path), "its writer was killed", _size(path)))
    return sorted(found, key=lambda chore: chore.what)


def rebuilding(cache_dir: str, now: int, days: int) -> list[Chore]:
    """Return the rebuild of the index where it is due: so many days after the last one."""
    size = _size(Path(cache_dir, INDEX))
    last = _rebuilt(cache_dir)
    if not size or (last is not None and 0 <= now - last < days * timestamps.DAY_S):
        return []
    why = f"that was last done on {timestamps.date(last)}" if last else "that was not done yet"
    return [Chore("rebuild", INDEX, why, size)]


def _rebuilt(cache_dir: str) -> int | None:
    try:
        text = read_regular(os.path.join(cache_dir, STAMP), _MOST_STAMP).decode()
        return timestamps.parse(text.strip())
    except (OSError, ValueError):
        return None


def note_rebuilt(cache_dir: str, now: int) -> None:
    """Store when the index was rebuilt. Raises MemtoolError where the disk refuses."""
    path = os.path.join(cache_dir, STAMP)
    try:
        before = read_regular(path, _MOST_STAMP)
    except OSError:
        before = None
    files.replace(cache_dir, STAMP, f"{timestamps.render(now)}\n".encode(), expected=before)


def last_runs(cache_dir: str) -> dict[str, int]:
    """Return when upkeep of a period was last carried out in this clone, by the period."""
    found: dict[str, int] = {}
    with suppress(OSError, UnicodeDecodeError):
        text = read_regular(os.path.join(cache_dir, RUNS), _MOST_STAMP * 10).decode()
        for row in text.splitlines():
            period, _space, moment = row.partition(" ")
            with suppress(ValueError):
                found[period] = timestamps.parse(moment)
    return found


def note_runs(cache_dir: str, periods: Iterable[str], now: int) -> None:
    """Store that upkeep of periods was carried out. Raises MemtoolError where the disk refuses."""
    found = last_runs(cache_dir) | dict.fromkeys(periods, now)
    rows = [f"{period} {timestamps.render(moment)}\n" for period, moment in sorted(found.items())]
    journal.put(os.path.join(cache_dir, RUNS), "".join(rows).encode())


def sessions_due(sessions: Sessions, now: int, prune_days: int) -> list[Chore]:
    """Return the sessions that lose their messages, oldest first.

    Raises:
        MemtoolError: a session cannot be read.
    """
    is_full = retention.stored(sessions).share >= 1
    before = now - prune_days * timestamps.DAY_S
    old = retention.prune(sessions, before=before, dry_run=True).ids if prune_days else ()
    pruned = dict.fromkeys(old, f"it ended more than {prune_days} days ago")
    for id_ in retention.prune(sessions, dry_run=True).ids if is_full else ():
        why = "all sessions together are at their limit, and it ended first"
        pruned.setdefault(id_, why)
    return [Chore("prune", id_, why) for id_, why in pruned.items()]


def do(chores: Iterable[Chore], cache_dir: str, sessions: Sessions) -> None:
    """Do chores; those that are done already are passed over.

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
    with refusing(f"{path} cannot be removed", hint), suppress(FileNotFoundError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files below a directory; links are not followed."""
    total = 0
    for one in (path, *(() if path.is_symlink() else path.rglob("*"))):
        with suppress(FileNotFoundError):
            status = one.lstat()
            total += 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return total
