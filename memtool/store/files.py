"""Files of the worktree: safe reads, and atomic writes below one directory.

A new file is written beside its place, synced, and linked under its name, which fails if the name
is taken; a change is written beside and renamed over. Every directory is opened without following
links, so no write can leave the tree, whatever somebody has put there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import contextmanager, suppress

from memtool.errors import MemtoolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


STALE_S = 86_400

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NameTaken(MemtoolError):
    """A file of that name is already there."""


def create(root: str, path: str, data: bytes) -> None:
    """Write a new file below `root`; `path` is relative, its directories are made.

    Raises:
        Taken: the file is already there; it keeps its bytes.
        MemtoolError: the disk is full or read-only, or a link stands in the way.
    """
    with _told(path), _directory(root, path) as (folder, name):
        temp = _write_beside(folder, name, data)
        try:
            os.link(temp, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise NameTaken(f"{path} is already there", code="exists") from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            _create_without_links(folder, name, data)  # exFAT and some network mounts
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temp, dir_fd=folder)
        os.fsync(folder)
        _sweep(folder)


def create_all(root: str, items: Iterable[tuple[str, bytes]]) -> None:
    """Write many new files below `root`, each as `create` does; all of them or none.

    Raises:
        MemtoolError: one was refused as by `create`; those written before it are removed again.
    """
    made: list[str] = []
    try:
        for path, data in items:
            create(root, path, data)
            made.append(path)
    except BaseException:
        for path in made:
            with suppress(OSError), _directory(root, path) as (folder, name):
                os.unlink(name, dir_fd=folder)
        raise


def replace(root: str, path: str, data: bytes, *, expected: bytes | None) -> None:
    """Put new bytes in the place of `expected` ones; None expects no file.

    Raises:
        MemtoolError: the file holds other bytes by now, or the disk refuses.
    """
    with _told(path), _directory(root, path) as (folder, name):
        temp = _write_beside(folder, name, data, _mode_of(folder, name))
        try:
            if _bytes_of(folder, name) != expected:
                raise MemtoolError(
                    f"{path} changed while it was being edited",
                    hint="run the same command again",
                    code="changed",
                )
            os.replace(temp, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temp, dir_fd=folder)
        os.fsync(folder)


@contextmanager
def locked(directory: str, name: str) -> Iterator[None]:
    """Hold an exclusive lock among memtool processes; without one where it cannot be made."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        handle = os.open(
            os.path.join(directory, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
    except OSError:  # a read-only git directory: the compare in `replace` still protects
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write_beside(folder: int, name: str, data: bytes, mode: int | None = None) -> str:
    temp = f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}-{name[:60]}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(temp, flags, 0o666, dir_fd=folder)
    try:
        if mode is not None:
            os.fchmod(handle, mode)
        _write_all(handle, data)
        os.fsync(handle)
    except BaseException:
        os.unlink(temp, dir_fd=folder)
        raise
    finally:
        os.close(handle)
    return temp


def _create_without_links(folder: int, name: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(name, flags, 0o666, dir_fd=folder)
    except FileExistsError:
        raise NameTaken(f"{name} is already there", code="exists") from None
    try:
        _write_all(handle, data)
        os.fsync(handle)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(handle)


def _sweep(folder: int) -> None:
    """Remove what writers that were killed left behind in a directory."""
    now = time.time()
    for name in os.listdir(folder):
        if name.startswith(TEMP_PREFIX):
            with suppress(FileNotFoundError):
                if now - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime > STALE_S:
                    os.unlink(name, dir_fd=folder)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _mode_of(folder: int, name: str) -> int | None:
    """Return the permissions of a file, which its next version keeps; None where it is none."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return stat.S_IMODE(status.st_mode) if stat.S_ISREG(status.st_mode) else None


def _bytes_of(folder: int, name: str) -> bytes | None:
    try:
        return read_regular(name, folder=folder)
    except FileNotFoundError:
        return None


@contextmanager
def _directory(root: str, path: str) -> Iterator[tuple[int, str]]:
    """Open the directory of a path below root step by step, making what is missing."""
    *folders, name = path.split("/")
    if not {"", ".", "..", ".git"}.isdisjoint((*folders, name)):
        raise MemtoolError(f"{path!r} is not a path below the repository", code="outside")
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            with suppress(FileExistsError):
                os.mkdir(folder, dir_fd=handle)
                os.fsync(handle)
            inner = os.open(folder, _DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle, name
    finally:
        os.close(handle)


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Turn what the operating system says into one sentence for the user."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise MemtoolError(
                f"{path} cannot be written: a link or another file stands in the way",
                hint="remove it; memory is never written outside its directory",
                code="symlink",
            ) from None
        raise MemtoolError(
            f"{path} cannot be written: {os.strerror(error.errno or 0)}; nothing was changed",
            hint="free space or permissions, then run the same command again",
            code="disk",
        ) from None
