"""Cleanup: leftovers in memtool's cache, an old index, and sessions that have ended.

Nothing here is the only copy of anything: caches are rebuilt, sessions that have ended are
compressed, and lose their messages only where all sessions together are near their limit.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.sessions import journal, model, retention
from memtool.sessions.journal import Writer
from memtool.sessions.model import Head
from memtool.sessions.store import MESSAGES, Sessions, gathered
from memtool.store import files
from memtool.store.files import TEMP_PREFIX, read_regular
from memtool.value import Value

STALE_S = timestamps.DAY_S
"""Age from which a temporary file is a leftover."""
ENDED_S = 7 * timestamps.DAY_S
"""Time after the end of a session until its messages are compressed."""
REBUILT_S = 28 * timestamps.DAY_S
"""Time after which the index is rebuilt."""
LEFT_OVER = (TEMP_PREFIX, ".tmp-")
"""How the names of temporary files begin."""
ASIDE = ".broken"
"""Ends the names of broken files that were set aside."""
INDEX, TWINS, STAMP = "index", "twins", "maintained"
"""The directories of caches that are rebuilt, and the file that says when they last were."""
_MOST_STAMP = 100


class Chore(Value):
    """One thing to do: `remove` a file, `compress` or `prune` sessions, `rebuild` the index."""

    do: str
    what: str
    why: str
    bytes: int = 0


def left_over(cache_dir: str, now: int) -> list[Chore]:
    """Return what killed writers and damage left behind two levels deep, by path."""
    found = []
    root = Path(cache_dir)
    for path in (*root.glob("*"), *root.glob("*/*")):
        is_aside = path.name.endswith(ASIDE)
        why = "it could not be read and was set aside" if is_aside else "its writer was killed"
        is_known = is_aside or path.name.startswith(LEFT_OVER)
        if not is_known or path.parent.name == model.FOLDER or path.parent.is_symlink():
            continue
        with suppress(OSError):  # gone since it was listed
            if now - path.lstat().st_mtime > STALE_S:
                found.append(Chore("remove", str(path.relative_to(root)), why, _size(path)))
    return sorted(found, key=lambda chore: chore.what)


def rebuilding(cache_dir: str, now: int) -> list[Chore]:
    """Return the rebuild of the index where it is due: four weeks after the last one."""
    size = sum(_size(Path(cache_dir, name)) for name in (INDEX, TWINS))
    last = _rebuilt(cache_dir)
    if not size or (last is not None and 0 <= now - last < REBUILT_S):
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


def sessions_due(sessions: Sessions, now: int) -> list[Chore]:
    """Return the sessions to be compressed, and those that lose their messages, oldest first.

    Raises:
        MemtoolError: a session cannot be read.
    """
    is_full = retention.stored(sessions).share >= 1
    pruned = retention.prune(sessions, dry_run=True).ids if is_full else ()
    found = []
    for head in sessions.heads()[0]:
        size = _uncompressed(sessions, head, now)
        if size and head.id not in pruned:
            why = f"it ended on {timestamps.date(head.ended)}"
            found.append(Chore("compress", head.id, why, size))
    found.sort(key=lambda chore: chore.what)
    why = "all sessions together are at their limit, and it ended first"
    return found + [Chore("prune", id_, why) for id_ in pruned]


def _uncompressed(sessions: Sessions, head: Head, now: int) -> int:
    if head.status != "ended" or now - head.ended < ENDED_S:
        return 0
    try:
        return os.stat(sessions.path(head.id, MESSAGES)).st_size
    except FileNotFoundError:
        return 0


def do(chores: Iterable[Chore], cache_dir: str, sessions: Sessions, now: int) -> None:
    """Do chores; those that are done already are passed over.

    Raises:
        MemtoolError: the disk refuses.
    """
    is_pruning = False
    for chore in chores:
        if chore.do == "compress":
            _compress(sessions, chore.what, now)
        elif chore.do == "prune":
            is_pruning = True
        else:
            names = (INDEX, TWINS) if chore.do == "rebuild" else (chore.what,)
            for name in names:
                _remove(os.path.join(cache_dir, name))
    if is_pruning:
        retention.prune(sessions)


def _compress(sessions: Sessions, id_: str, now: int) -> None:
    """Move the messages of a session that has ended into a compressed part."""
    folder = sessions.folder(id_)
    with Writer(os.path.join(folder, MESSAGES)) as writer:
        head = sessions.head(id_)
        if not writer.size or not _uncompressed(sessions, head, now):
            return  # it was opened again, or compressed meanwhile
        known, _torn = gathered(folder, writer.whole())
        older = journal.parts(folder)
        first = older[-1].last + 1 if older else 1
        last = known[-1].number if known else first
        if last < first:  # they are compressed already: that process was killed before this
            writer.clear()
        else:
            journal.compress(folder, writer, first, last)


def _remove(path: str) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise MemtoolError(
            f"{path} cannot be removed: {os.strerror(error.errno or 0)}",
            hint="give yourself permission, then run the same command again",
            code="disk",
        ) from None


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files below a directory; links are not followed."""
    total = 0
    for one in (path, *(() if path.is_symlink() else path.rglob("*"))):
        with suppress(FileNotFoundError):
            status = one.lstat()
            total += 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return total
