"""Reading one file that may be anything: no link is followed, no pipe is waited for."""

from __future__ import annotations

import os
import stat

TEMP_PREFIX = ".tmp-"
"""Leftovers of killed writers begin so; readers pass over them, writers sweep them after a day."""


def read_regular(path: str, most: int = -1, *, folder: int | None = None) -> bytes:
    """Return the bytes of a file, at most so many, if it is no link, pipe or device.

    Raises:
        OSError: it is one of these (ELOOP), or cannot be read.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait
    handle = os.open(path, flags, dir_fd=folder)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            import errno  # a table of its own, only for what is refused

            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return _read(handle, status.st_size, most)
    finally:
        os.close(handle)


def _read(handle: int, size: int, most: int) -> bytes:
    """Return the bytes of a file of some size; one that has grown since is read to its end.

    A file object, which reads in the same way, costs more than opening and reading a memory.
    """
    found = b""
    while True:
        asked = size + 1 if most < 0 else min(size + 1, most - len(found))
        part = os.read(handle, asked)
        found += part
        is_end = not part or (len(part) < asked and len(found) == size)
        if is_end or len(found) == most:
            return found
