"""Private files: written whole or not at all, readable by their owner alone, never through links.

What the operating system refuses becomes one sentence here, for everything below the directory of
sessions.
"""

from __future__ import annotations

import errno
import os

from memtool.errors import MemtoolError
from memtool.store.files import TEMP_PREFIX

FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How every file here is opened: no link is followed, and no pipe waited for."""
FILE_MODE = 0o600
STALE_S = 86_400
FOLDER_MODE = 0o700


def put(path: str, data: bytes) -> None:
    """Put a file in its place, whole and synced; one that is there gives way.

    Raises:
        MemtoolError: the disk refuses; what was there is there still.
    """
    folder, name = os.path.split(path)
    temp = os.path.join(folder, f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}-{name}")
    try:
        handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FLAGS, FILE_MODE)
        try:
            write_all(handle, data)
            os.fsync(handle)
            os.replace(temp, path)
        except BaseException:
            os.unlink(temp)
            raise
        finally:
            os.close(handle)
        sync_folder(folder)
        _sweep(folder)
    except OSError as error:
        raise refusal(path, "written", error) from None


def _sweep(folder: str) -> None:
    """Remove what writers that were killed left behind. Raises OSError."""
    import time

    now = time.time()
    with os.scandir(folder) as entries:
        for entry in entries:
            is_left = entry.name.startswith(TEMP_PREFIX) and entry.is_file(follow_symlinks=False)
            if is_left and now - entry.stat(follow_symlinks=False).st_mtime > STALE_S:
                os.unlink(entry.path)


def sync_folder(folder: str) -> None:
    """Wait until the names in a directory are on the disk. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all bytes, however often the system takes only some. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def refusal(path: str, done: str, error: OSError) -> MemtoolError:
    """Return what the operating system said as one sentence; `done` is read or written."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
        return MemtoolError(
            f"{path} cannot be {done}: a link or something else that is no file is in the way",
            hint="remove it; sessions never leave their directory",
            code="symlink",
        )
    reason = os.strerror(error.errno or 0)
    if done == "read":
        return MemtoolError(f"{path} cannot be read: {reason}",
                            hint="make it a file that you may read", code="disk")  # fmt: skip
    return MemtoolError(
        f"{path} cannot be written: {reason}; nothing was changed",
        hint="free space or permissions, then run the same command again",
        code="disk",
    )
