"""Reading one file that may be anything: no link is followed, no pipe is waited for."""

from __future__ import annotations

import errno
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
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        with open(handle, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(handle)
