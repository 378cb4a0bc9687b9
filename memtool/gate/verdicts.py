"""Verdicts: which blobs were searched for secrets and found clean, by their ids.

A file of the cache, one id a line, named by the detectors and settings that it was made with. Ids
are only added; a file that has grown too long is begun again.
"""

from __future__ import annotations

import os

from memtool.store import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.config import Config

MOST_BYTES = 16 << 20
MOST_SOUGHT = 100
"""Ids that are looked for one by one."""
ROOM = "gate"
"""The directory below the cache directory in which the gate keeps what it may forget."""
RULES = ("memory", "search", "gate")
"""The rooms of the package whose code decides what a check finds."""


class Verdicts:
    """The clean blobs of one repository, under the present detectors and settings."""

    def __init__(self, cache_dir: str, settings: Config) -> None:
        self._folder = os.path.join(cache_dir, ROOM)
        self._path = os.path.join(
            self._folder, f"clean-{cache.code_version(('gate',), sorted(settings.given.items()))}"
        )
        self._new: list[str] = []
        self._asked = 0
        self._seen: set[str] = set()
        self._known = _read(self._path)

    def is_clean(self, oid: str) -> bool:
        """Tell whether a blob was found clean before."""
        if not oid or oid in self._seen:
            return bool(oid)
        self._asked += 1
        if self._asked == MOST_SOUGHT:  # a whole tree: taking the file apart costs less by now
            self._seen.update(self._known.decode(errors="replace").split("\n"))
        return self._asked < MOST_SOUGHT and self._known.find(f"{oid}\n".encode()) >= 0

    def add(self, oid: str) -> None:
        """Remember that a blob is clean."""
        if oid and oid not in self._seen:
            self._seen.add(oid)
            self._new.append(oid)

    def save(self) -> None:
        """Write what is new; where the cache cannot be written, the next check searches again."""
        if not self._new:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        if len(self._known) > MOST_BYTES:
            flags |= os.O_TRUNC
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            is_new = not os.path.exists(self._path)
            handle = os.open(self._path, flags, 0o600)
            try:
                os.write(handle, "".join(f"{oid}\n" for oid in self._new).encode())
            finally:
                os.close(handle)
            if is_new:
                cache.sweep(self._folder, "clean-", 1, os.path.basename(self._path))
        except OSError:
            return
        self._new.clear()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
