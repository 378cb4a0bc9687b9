"""Files: safe reads, and atomic writes of memories and of private files.

A new memory is written next to its place, synced, and linked under its name, which fails if the
name is taken; a change is written next to the old file and renamed over it. Every directory is
opened without following links, so no write can leave the tree, whatever somebody has put there.

Globs of paths know `*` and `?` inside a name and `**` across directories; all else is as it is
written. Square brackets are no classes: they are part of real file names (`app/[id]/page.tsx`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from memtool.errors import MemtoolError, reason_of
from memtool.value import HEX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

POINTER_NAME = ".memtool.toml"
"""At the top of a repository: says in which directory the memories are, if not `.memory`."""
TEMP_PREFIX = ".tmp-"
"""Leftovers of killed writers begin so; readers and git pass over them, writers sweep them."""
STALE_S = 86_400
"""An older one is swept, whoever wrote it."""
LEFT_S = 60
"""An older one is swept where its writer runs no more, as far as that can be seen from here."""
_DRAWN = 8
IGNORED = f"{TEMP_PREFIX}[0-9]*-{'[0-9a-f]' * _DRAWN}-*"
"""The pattern by which git passes over them."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
"""What file systems without hard links answer: exFAT and some network mounts."""
_PRIVATE = 0o600
_writes = [0]
_waited_s = [0.0]


def writes() -> int:
    """Return how many files this process has created or replaced in worktrees so far."""
    return _writes[0]


def note_wait(seconds: float) -> None:
    """Note how long this process has waited for a lock that another one held."""
    _waited_s[0] += seconds


def take_waited_s() -> float:
    """Return the seconds that were waited for locks since somebody last asked, in this process."""
    found, _waited_s[0] = _waited_s[0], 0.0
    return found


def chown_command(path: str) -> str:
    """Return the command that gives a path back to this user, empty if another one does not own it.

    It names the highest folder above the path that the other user owns inside of one of ours. A
    container that ran as root in a mounted clone leaves such folders.
    """
    user, found = os.geteuid(), ""
    while path != os.path.dirname(path):
        try:
            owner = os.lstat(path).st_uid
        except OSError:
            owner = -1  # the folder above decides
        if owner == user:
            break
        found = path if owner >= 0 else found
        path = os.path.dirname(path)
    else:
        return ""
    import shlex

    return f'sudo chown -R "$(id -u):$(id -g)" {shlex.quote(found)}' if found else ""


def open_file(
    path: str, flags: int = os.O_RDONLY, *, folder: int | None = None, follows: bool = False
) -> int:
    """Open a file, and wait for no pipe. Unless it `follows` links, the last part is none.

    A new file (`os.O_CREAT`) is private; a relative path begins in an open `folder`, if given.

    Raises:
        OSError: it cannot be opened, or is a link (ELOOP).
    """
    link = 0 if follows else os.O_NOFOLLOW
    return os.open(path, flags | os.O_NONBLOCK | link, _PRIVATE, dir_fd=folder)


def open_plain(
    path: str, flags: int = os.O_RDONLY, *, folder: int | None = None
) -> tuple[int, os.stat_result]:
    """Open a file as `open_file` does, if it is no link, pipe or device; return its status, too.

    Raises:
        OSError: it is one of these (ELOOP), or cannot be opened.
    """
    handle = open_file(path, flags, folder=folder)
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode):
        return handle, status
    os.close(handle)
    raise OSError(errno.ELOOP, "it is no plain file")


def open_folder(path: str, *, folder: int | None = None, follows: bool = True) -> int:
    """Open a directory, below an open one if given. Raises OSError."""
    link = 0 if follows else os.O_NOFOLLOW
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | link, dir_fd=folder)


def lock(handle: int, *, is_shared: bool = False, waits: bool = True) -> None:
    """Lock an open file or directory among memtool processes, until it is closed.

    Raises:
        BlockingIOError: another one holds it, and this one does not wait.
        OSError: the file system has no locks.
    """
    kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        if not waits:
            raise
        began = time.monotonic()
        fcntl.flock(handle, kind)
        note_wait(time.monotonic() - began)


def open_to_append(path: str) -> int:
    """Open a private file for appending, with its directories where they are missing.

    Raises:
        OSError: it cannot be written, or something else is in its place.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    try:
        return open_file(path, flags)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return open_file(path, flags)


def append(path: str, data: bytes, most: int = -1) -> int:
    """Append to a private file in one write, unless it has `most` bytes; return its size.

    Raises:
        OSError: it cannot be written, or something else is in its place.
    """
    handle = open_to_append(path)
    try:
        if most < 0 or os.fstat(handle).st_size < most:
            os.write(handle, data)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def append_to_log(path: str, entry: bytes, most: int) -> None:
    """Append to a private log, which takes the place of its `.old` when it is full.

    Where it cannot be written, nothing is.
    """
    try:
        if append(path, entry) > most:
            os.replace(path, f"{path}.old")
    except OSError:
        return


def read_regular(path: str, most: int = -1, *, folder: int | None = None) -> bytes:
    """Return the bytes of a file, at most so many, if it is no link, pipe or device.

    Raises:
        OSError: it is one of these (ELOOP), or cannot be read.
    """
    handle, status = open_plain(path, folder=folder)
    try:
        return _read(handle, status.st_size, most)
    finally:
        os.close(handle)


def read_or_none(path: str, most: int = -1) -> bytes | None:
    """Return the bytes of a file as `read_regular` does, None where it cannot."""
    try:
        return read_regular(path, most)
    except OSError:
        return None


class refusing:  # noqa: N801  # as `locked`
    """Raise a MemtoolError for an OSError during a `with`: what cannot be done, and why."""

    def __init__(self, what: str, hint: str, code: str = "disk") -> None:
        self._what, self._hint, self._code = what, hint, code

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, OSError):
            what = f"{self._what}: {reason(error)}"
            raise MemtoolError(what, hint=self._hint, code=self._code) from None


def reason(error: OSError) -> str:
    """Return why `read_regular` cannot read; for a pipe the system would speak of links."""
    if error.errno == errno.ELOOP:
        return "it is a link, or no plain file"
    return reason_of(error)


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


class NameTaken(MemtoolError):
    """A file of that name is already there."""


def ignore_temporaries(common_dir: str) -> None:
    """Let git pass over temporary files in this clone; where that cannot be noted, it is not."""
    folder = os.path.join(common_dir, "info")
    place = os.path.join(folder, "exclude")
    try:
        try:
            before = read_regular(place)
        except FileNotFoundError:
            before = b""
        line = IGNORED.encode()
        if line in before.splitlines():
            return
        os.makedirs(folder, exist_ok=True)
        start = b"\n" if before and not before.endswith(b"\n") else b""
        with open(place, "ab") as file:
            file.write(b"%s%s\n" % (start, line))
    except OSError:
        return


def create(root: str, path: str, data: bytes, *, sweeps: bool = True) -> None:
    """Write a new file below `root`; `path` is relative, its directories are made.

    It also `sweeps` what killed writers left beside it.

    Raises:
        NameTaken: the file is already there; it keeps its bytes.
        MemtoolError: the disk is full or read-only, or a link is in the way. Nothing is there
            then, unless the message says so.
    """
    with _DiskErrors(path) as outcome, _Folder(root, path) as (folder, name):
        temp = _write_temporary(folder, name, data)
        try:
            _link(folder, temp, name, data)
        except FileExistsError:
            raise NameTaken(f"{path} is already there", code="exists") from None
        finally:
            _remove(temp, folder)
        _writes[0] += 1
        try:
            os.fsync(folder)
        except OSError:
            outcome.is_done = True
            os.unlink(name, dir_fd=folder)
            outcome.is_done = False
            raise
        if sweeps:
            _sweep(folder)


def create_all(root: str, items: Iterable[tuple[str, bytes]]) -> None:
    """Write many new files below `root`, each as `create` does; all of them or none.

    Raises:
        MemtoolError: one was refused as by `create`; those written before it are removed again,
            unless the message names them.
    """
    made: list[str] = []
    swept: set[str] = set()
    path, data = "", b""
    try:
        for path, data in items:
            folder = path.rpartition("/")[0]
            create(root, path, data, sweeps=folder not in swept)
            swept.add(folder)
            made.append(path)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and _holds(os.path.join(root, path), data):
            made.append(path)  # it comes at the end of a call of the system, mostly of a sync
        left = take_back(root, made)
        if isinstance(error, MemtoolError):
            raise partly(error, left) from None
        raise


def _holds(place: str, data: bytes) -> bool:
    """Tell whether a file has these bytes."""
    try:
        return read_regular(place) == data
    except OSError:
        return False


def take_back(root: str, paths: Iterable[str]) -> list[str]:
    """Remove files that this process has just made; return those that cannot be removed."""
    left = []
    for path in paths:
        try:
            remove(root, path)
        except MemtoolError:
            left.append(path)
    return left


def replace(root: str, path: str, data: bytes, *, expected: bytes | None) -> None:
    """Put new bytes in the place of `expected` ones; None expects no file.

    Raises:
        MemtoolError: the file holds other bytes by now, or the disk refuses.
    """
    with _DiskErrors(path) as outcome, _Folder(root, path) as (folder, name):
        temp = _write_temporary(folder, name, data, _mode_of(folder, name))
        try:
            if _bytes_of(folder, name) != expected:
                raise MemtoolError(
                    f"{path} changed while it was being edited",
                    hint="run the same command again",
                    code="changed",
                )
            os.replace(temp, name, src_dir_fd=folder, dst_dir_fd=folder)
            outcome.is_done = True
        finally:
            _remove(temp, folder)
        _writes[0] += 1
        os.fsync(folder)
        _sweep(folder)


def remove(root: str, path: str) -> None:
    """Remove a file below `root`; one that is gone already is no error.

    Raises:
        MemtoolError: the disk refuses, and the file is still there.
    """
    if not os.path.lexists(os.path.join(root, path)):
        return
    with refusing(f"{path} cannot be removed", f"rm {path}"):
        try:
            with _Folder(root, path) as (folder, name):
                os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            return


def put(folder: str, name: str, data: bytes, *, is_lasting: bool = False) -> None:
    """Put a private file in its place below the git directory, in one step, whatever was there.

    `is_lasting` syncs it to the disk and sweeps what killed writers left in the folder.

    Raises:
        OSError: it cannot be written there; what was there is there still.
    """
    handle = open_folder(folder)
    try:
        temp = _write_temporary(handle, name, data, _PRIVATE, is_synced=is_lasting)
        try:
            os.replace(temp, name, src_dir_fd=handle, dst_dir_fd=handle)
        except BaseException:
            _remove(temp, handle)
            raise
        if is_lasting:
            os.fsync(handle)
            _sweep(handle)
    finally:
        os.close(handle)


class locked:  # noqa: N801  # `contextlib` would cost a cold search two modules
    """Hold an exclusive lock among memtool processes during a `with`; none if it cannot be made."""

    def __init__(self, directory: str, name: str, *, is_needed: bool = True) -> None:
        self._directory = directory
        self._name = name
        self._is_needed = is_needed
        self._handle = -1

    def __enter__(self) -> None:
        if not self._is_needed:
            return
        path = os.path.join(self._directory, self._name)
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            self._handle = open_file(path, os.O_RDWR | os.O_CREAT, follows=True)
        except OSError:  # a read-only git directory: the compare in `replace` still protects
            return
        try:
            lock(self._handle)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_error: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _write_temporary(
    folder: int, name: str, data: bytes, mode: int | None = None, *, is_synced: bool = True
) -> str:
    """Write a file that is to get a name later, with some permissions; return its present name."""
    temp = f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(_DRAWN // 2).hex()}-{name[:60]}"
    _write_new(folder, temp, data, mode, is_synced=is_synced)
    return temp


def _write_new(
    folder: int, name: str, data: bytes, mode: int | None = None, *, is_synced: bool = True
) -> None:
    """Write a file that is not there yet; nothing is left of one that cannot be written whole."""
    handle = os.open(name, _NEW, 0o666 if mode is None else _PRIVATE, dir_fd=folder)
    try:
        if mode is not None:
            os.fchmod(handle, mode)
        write_all(handle, data)
        if is_synced:
            os.fsync(handle)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(handle)


def _link(folder: int, temp: str, name: str, data: bytes) -> None:
    """Give a temporary file its name. Raises FileExistsError where the name is taken."""
    try:
        os.link(temp, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write_new(folder, name, data)


def _sweep(folder: int) -> None:
    """Remove what writers that were killed left behind in a directory, as far as that goes."""
    now = time.time()
    for name in filter(is_temporary, os.listdir(folder)):
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            continue
        age_s = now - status.st_mtime
        is_left = age_s > STALE_S or (age_s > LEFT_S and not _is_written(name))
        if stat.S_ISREG(status.st_mode) and is_left:
            _remove(name, folder)


def _is_written(name: str) -> bool:
    """Tell whether the process that began a temporary file still runs, as far as can be seen."""
    from memtool.store.process import is_running  # only where something was left

    return is_running(int(name.removeprefix(TEMP_PREFIX).partition("-")[0]))


def is_temporary(name: str) -> bool:
    """Tell whether a file is called as only `_write_temporary` calls one: with process and hex."""
    process, _dash, rest = name.removeprefix(TEMP_PREFIX).partition("-")
    drawn, dash, _name = rest.partition("-")
    return (
        name.startswith(TEMP_PREFIX)
        and process.isdecimal()
        and len(drawn) == _DRAWN
        and HEX.issuperset(drawn)
        and dash == "-"
    )


def _remove(name: str, folder: int | None = None) -> None:
    """Remove a temporary file; one that cannot be removed is swept later."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return


def write_all(handle: int, data: bytes) -> None:
    """Write all bytes, however often the system takes only some. Raises OSError."""
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


class _Folder:
    """The open directory of a path below `root`, made where it is missing, and the file's name."""

    def __init__(self, root: str, path: str) -> None:
        *self._folders, self._name = path.split("/")
        if not {"", ".", "..", ".git"}.isdisjoint((*self._folders, self._name)):
            raise MemtoolError(f"{path!r} is not a path below the repository", code="outside")
        self._root = root

    def __enter__(self) -> tuple[int, str]:
        """Open it step by step. Raises OSError where a step is a link or no directory."""
        self._handle = open_folder(self._root)
        try:
            for folder in self._folders:
                self._enter(folder)
        except BaseException:
            os.close(self._handle)
            raise
        return self._handle, self._name

    def _enter(self, folder: str) -> None:
        try:
            os.mkdir(folder, dir_fd=self._handle)
            os.fsync(self._handle)
        except FileExistsError:
            pass
        inner = open_folder(folder, folder=self._handle, follows=False)
        os.close(self._handle)
        self._handle = inner

    def __exit__(self, *_error: object) -> None:
        os.close(self._handle)


_NOTHING = "; nothing was changed"


def partly(error: MemtoolError, done: Iterable[str], *, commit: bool = False) -> MemtoolError:
    """Return an error that also names what was done before it, and committed if asked."""
    named = ", ".join(done)
    if named:
        how = "done" if commit else "written"
        error.message = f"{error.message.removesuffix(_NOTHING)}; {how} before that: {named}"
    return error


def naming(done: Iterable[str], *, commit: bool = False) -> _Naming:
    """Return a block: an error that ends it also names what `done` holds by then, see `partly`."""
    return _Naming(done, commit=commit)


class _Naming:
    """Adds to an error what was done before it."""

    def __init__(self, done: Iterable[str], *, commit: bool) -> None:
        self._done = done
        self._commit = commit

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, MemtoolError):
            partly(error, self._done, commit=self._commit)


class _DiskErrors:
    """Turns what the operating system refuses into one sentence for the user."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.is_done = False
        """Whether the file has its new bytes already."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if not isinstance(error, OSError):
            return
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise MemtoolError(
                f"{self._path} cannot be written: a link or another file stands in the way",
                hint="remove it; memory is never written outside its directory",
                code="symlink",
            ) from None
        reason = reason_of(error)
        if self.is_done:
            raise MemtoolError(
                f"{self._path} is written, but the disk does not confirm it: {reason}",
                hint=f"look at the disk; git diff -- {self._path} shows what it holds",
                code="disk",
            ) from None
        raise MemtoolError(
            f"{self._path} cannot be written: {reason}{_NOTHING}",
            hint="free space or permissions, then run the same command again",
            code="disk",
        ) from None


def matches(pattern: str, path: str) -> bool:
    """Tell whether a glob matches a whole path."""
    return _aligned(
        [part for part in pattern.split("/") if part],
        [part for part in path.split("/") if part],
        "**",
        name_matches,
    )


def name_matches(pattern: str, name: str) -> bool:
    """Tell whether a glob matches one name or line, in which `/` means nothing."""
    return _aligned(pattern, name, "*", lambda one, char: one in ("?", char))


def governs(pattern: str, path: str) -> bool:
    """Tell whether a path is what a glob names, or lies in a directory that it names."""
    return matches(f"{pattern}/**", path)


def _aligned(
    pattern: Sequence[str], parts: Sequence[str], star: str, fits: Callable[[str, str], bool]
) -> bool:
    """Match greedily, and on failure let the last star take one part more: never exponential."""
    at = place = 0
    star_at, star_place = -1, 0
    while place < len(parts):
        if at < len(pattern) and pattern[at] == star:
            star_at, star_place = at, place
            at += 1
        elif at < len(pattern) and fits(pattern[at], parts[place]):
            at += 1
            place += 1
        elif star_at >= 0:
            star_place += 1
            at, place = star_at + 1, star_place
        else:
            return False
    return all(part == star for part in pattern[at:])
