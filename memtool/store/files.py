"""Files: safe reads, and atomic writes of memories and of private files.

A new memory is written to a temporary file, synced, and linked under its name, which fails if the
name is taken. A change is written to a temporary file and renamed over the old one. Directories
are opened without following links, so a link in the tree cannot redirect a write to the outside.

Globs of paths support `*` and `?` inside a name and `**` across directories. All other characters
are literal, square brackets too, since real file names have them (`app/[id]/page.tsx`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from memtool.errors import MemtoolError, find_reason
from memtool.value import HEX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

POINTER_NAME = ".memtool.toml"
"""File at the top of a repository that names the memory directory, if it is not `.memory`."""
TEMP_PREFIX = ".tmp-"
"""Prefix of temporary files. Readers and git ignore them; writers remove those of killed writers.
"""
STALE_AGE_S = 86_400
"""Age at which a temporary file is removed in any case."""
ABANDONED_AGE_S = 60
"""Age at which a temporary file is removed if its writer seems to have ended."""
_RANDOM_DIGITS = 8
IGNORE_PATTERN = f"{TEMP_PREFIX}[0-9]*-{'[0-9a-f]' * _RANDOM_DIGITS}-*"
"""The pattern by which git ignores temporary files."""
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_NO_LINK_ERRORS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
"""Errors of file systems without hard links: exFAT and some network mounts."""
_PRIVATE_MODE = 0o600
_write_count = [0]
_waited_s = [0.0]


def count_writes() -> int:
    """Return how many files this process has created or replaced in worktrees so far."""
    return _write_count[0]


def note_wait(seconds: float) -> None:
    """Record that this process waited for a lock of another process."""
    _waited_s[0] += seconds


def take_waited_s() -> float:
    """Return the seconds that this process waited for locks since the last call."""
    waited_s, _waited_s[0] = _waited_s[0], 0.0
    return waited_s


def build_chown_command(path: str) -> str:
    """Return the command that gives a path back to this user; empty if that is not needed.

    The command names the highest folder of the path that another user owns inside a folder of this
    user. A container that runs as root in a mounted clone leaves such folders.
    """
    user, foreign_path = os.geteuid(), ""
    while path != os.path.dirname(path):
        try:
            owner = os.lstat(path).st_uid
        except OSError:
            owner = -1  # the folder above decides
        if owner == user:
            break
        foreign_path = path if owner >= 0 else foreign_path
        path = os.path.dirname(path)
    else:
        return ""
    import shlex

    return f'sudo chown -R "$(id -u):$(id -g)" {shlex.quote(foreign_path)}' if foreign_path else ""


def open_file(
    path: str, flags: int = os.O_RDONLY, *, folder: int | None = None, follows: bool = False
) -> int:
    """Open a file without waiting for a pipe. Unless `follows` is set, it must not be a link.

    A new file (`os.O_CREAT`) is private; a relative path starts at an open `folder`, if given.

    Raises:
        OSError: it cannot be opened, or is a link (ELOOP).
    """
    link = 0 if follows else os.O_NOFOLLOW
    return os.open(path, flags | os.O_NONBLOCK | link, _PRIVATE_MODE, dir_fd=folder)


def open_plain(
    path: str, flags: int = os.O_RDONLY, *, folder: int | None = None
) -> tuple[int, os.stat_result]:
    """Open a regular file as `open_file` does, and also return its status.

    Raises:
        OSError: it is a link, pipe or device (ELOOP), or cannot be opened.
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
        BlockingIOError: another process holds the lock, and `waits` is off.
        OSError: the file system has no locks.
    """
    kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        if not waits:
            raise
        start_s = time.monotonic()
        fcntl.flock(handle, kind)
        note_wait(time.monotonic() - start_s)


def open_to_append(path: str) -> int:
    """Open a private file for appending, and create missing directories.

    Raises:
        OSError: it cannot be written, or is not a regular file.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    try:
        return open_file(path, flags)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return open_file(path, flags)


def append(path: str, data: bytes, max_bytes: int = -1) -> int:
    """Append to a private file in one write, unless it has `max_bytes` already; return its size.

    Raises:
        OSError: it cannot be written, or is not a regular file.
    """
    handle = open_to_append(path)
    try:
        if max_bytes < 0 or os.fstat(handle).st_size < max_bytes:
            os.write(handle, data)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def append_to_log(path: str, entry: bytes, max_bytes: int) -> None:
    """Append to a private log; when it is full, rename it to `.old`. Errors are ignored."""
    try:
        if append(path, entry) > max_bytes:
            os.replace(path, f"{path}.old")
    except OSError:
        return


def read_regular(path: str, max_bytes: int = -1, *, folder: int | None = None) -> bytes:
    """Read a regular file, up to `max_bytes`; -1 means no limit.

    Raises:
        OSError: it is a link, pipe or device (ELOOP), or cannot be read.
    """
    handle, status = open_plain(path, folder=folder)
    try:
        return _read(handle, status.st_size, max_bytes)
    finally:
        os.close(handle)


def read_or_none(path: str, max_bytes: int = -1) -> bytes | None:
    """Read a file as `read_regular` does; None if that fails."""
    try:
        return read_regular(path, max_bytes)
    except OSError:
        return None


class explaining_errors:  # noqa: N801  # as `locked`
    """Turns an OSError in a `with` block into a MemtoolError that begins with `what`."""

    def __init__(self, what: str, hint: str, code: str = "disk") -> None:
        self._what, self._hint, self._code = what, hint, code

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, OSError):
            what = f"{self._what}: {describe_error(error)}"
            raise MemtoolError(what, hint=self._hint, code=self._code) from None


def describe_error(error: OSError) -> str:
    """Return the reason why `read_regular` failed. For a pipe the system's text mentions links."""
    if error.errno == errno.ELOOP:
        return "it is a link, or no plain file"
    return find_reason(error)


def _read(handle: int, size: int, max_bytes: int) -> bytes:
    """Read a file whose size is known; if it has grown since, read to its end.

    A file object would do the same, but costs more than opening and reading a memory.
    """
    data = b""
    while True:
        chunk_bytes = size + 1 if max_bytes < 0 else min(size + 1, max_bytes - len(data))
        part = os.read(handle, chunk_bytes)
        data += part
        is_end = not part or (len(part) < chunk_bytes and len(data) == size)
        if is_end or len(data) == max_bytes:
            return data


class NameTakenError(MemtoolError):
    """A file of that name already exists."""


def ignore_temporaries(common_dir: str) -> None:
    """Make git ignore temporary files in this clone. Errors are ignored."""
    folder = os.path.join(common_dir, "info")
    place = os.path.join(folder, "exclude")
    try:
        try:
            before = read_regular(place)
        except FileNotFoundError:
            before = b""
        line = IGNORE_PATTERN.encode()
        if line in before.splitlines():
            return
        os.makedirs(folder, exist_ok=True)
        start = b"\n" if before and not before.endswith(b"\n") else b""
        with open(place, "ab") as file:
            file.write(b"%s%s\n" % (start, line))
    except OSError:
        return


def create(root: str, path: str, data: bytes, *, sweeps: bool = True) -> None:
    """Write a new file below `root`; `path` is relative, and missing directories are created.

    With `sweeps` it also removes temporary files of killed writers in the same directory.

    Raises:
        NameTakenError: the file already exists; it is unchanged.
        MemtoolError: the disk is full or read-only, or a link is in the way. The file was not
            created, unless the message says so.
    """
    with _DiskErrors(path) as outcome, _Folder(root, path) as (folder, name):
        temp = _write_temporary(folder, name, data)
        try:
            _link_to_name(folder, temp, name, data)
        except FileExistsError:
            raise NameTakenError(f"{path} is already there", code="exists") from None
        finally:
            _remove(temp, folder)
        _write_count[0] += 1
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
        MemtoolError: `create` failed for a file. Those written before it are removed again, except
            for any that the message names.
    """
    created: list[str] = []
    swept: set[str] = set()
    path, data = "", b""
    try:
        for path, data in items:
            folder = path.rpartition("/")[0]
            create(root, path, data, sweeps=folder not in swept)
            swept.add(folder)
            created.append(path)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and _has_content(os.path.join(root, path), data):
            created.append(path)  # the interrupt arrives after a system call, mostly a sync
        remaining = undo_create(root, created)
        if isinstance(error, MemtoolError):
            raise add_done(error, remaining) from None
        raise


def _has_content(place: str, data: bytes) -> bool:
    """Return whether a file has this content."""
    try:
        return read_regular(place) == data
    except OSError:
        return False


def undo_create(root: str, paths: Iterable[str]) -> list[str]:
    """Remove files that this process has just created; return those that cannot be removed."""
    remaining = []
    for path in paths:
        try:
            remove(root, path)
        except MemtoolError:
            remaining.append(path)
    return remaining


def replace(
    root: str, path: str, data: bytes, *, expected: bytes | None, sweeps: bool = True
) -> None:
    """Replace the `expected` content of a file; None means that there must not be a file.

    `sweeps` removes temporary files of killed writers in the folder, which lists all its files.

    Raises:
        MemtoolError: the content has changed meanwhile, or the disk refuses.
    """
    with _DiskErrors(path) as outcome, _Folder(root, path) as (folder, name):
        temp = _write_temporary(folder, name, data, _read_mode(folder, name))
        try:
            if _read_content(folder, name) != expected:
                raise MemtoolError(
                    f"{path} was changed in the meantime",
                    hint="run the command again",
                    code="changed",
                )
            os.replace(temp, name, src_dir_fd=folder, dst_dir_fd=folder)
            outcome.is_done = True
        finally:
            _remove(temp, folder)
        _write_count[0] += 1
        os.fsync(folder)
        if sweeps:
            _sweep(folder)


def remove(root: str, path: str) -> None:
    """Remove a file below `root`; a missing file is not an error.

    Raises:
        MemtoolError: the file cannot be removed.
    """
    if not os.path.lexists(os.path.join(root, path)):
        return
    with explaining_errors(f"{path} cannot be removed", f"rm {path}"):
        try:
            with _Folder(root, path) as (folder, name):
                os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            return


def write_private(folder: str, name: str, data: bytes, *, is_lasting: bool = False) -> None:
    """Write or replace a private file below the git directory atomically.

    `is_lasting` syncs it to disk and removes temporary files of killed writers in the folder.

    Raises:
        OSError: it cannot be written; an old file is unchanged.
    """
    handle = open_folder(folder)
    try:
        temp = _write_temporary(handle, name, data, _PRIVATE_MODE, is_synced=is_lasting)
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


class locked:  # noqa: N801  # a class, since `contextlib` would cost a cold search two modules
    """Holds an exclusive lock among memtool processes in a `with` block.

    If the lock file cannot be created, the block runs without a lock.
    """

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
        except OSError:  # a read-only git directory: the comparison in `replace` still protects
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
    """Write a temporary file that will be renamed to `name`; return its temporary name."""
    temp = f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(_RANDOM_DIGITS // 2).hex()}-{name[:60]}"
    _write_new(folder, temp, data, mode, is_synced=is_synced)
    return temp


def _write_new(
    folder: int, name: str, data: bytes, mode: int | None = None, *, is_synced: bool = True
) -> None:
    """Write a file that does not exist yet; remove it if it cannot be written completely."""
    handle = os.open(name, _NEW_FILE_FLAGS, 0o666 if mode is None else _PRIVATE_MODE, dir_fd=folder)
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


def _link_to_name(folder: int, temp: str, name: str, data: bytes) -> None:
    """Give a temporary file its final name. Raises FileExistsError if the name is taken."""
    try:
        os.link(temp, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINK_ERRORS:
            raise
        _write_new(folder, name, data)


def _sweep(folder: int) -> None:
    """Remove temporary files of killed writers from a directory, as far as possible."""
    now = time.time()
    for name in filter(is_temporary, os.listdir(folder)):
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            continue
        age_s = now - status.st_mtime
        is_abandoned = age_s > STALE_AGE_S or (
            age_s > ABANDONED_AGE_S and not _is_writer_running(name)
        )
        if stat.S_ISREG(status.st_mode) and is_abandoned:
            _remove(name, folder)


def _is_writer_running(name: str) -> bool:
    """Return whether the writer of a temporary file seems to be running still."""
    from memtool.store.process import is_running  # rarely needed

    return is_running(int(name.removeprefix(TEMP_PREFIX).partition("-")[0]))


def is_temporary(name: str) -> bool:
    """Return whether `_write_temporary` could have created a name: process id and hex digits."""
    process, _dash, suffix = name.removeprefix(TEMP_PREFIX).partition("-")
    digits, dash, _name = suffix.partition("-")
    return (
        name.startswith(TEMP_PREFIX)
        and process.isdecimal()
        and len(digits) == _RANDOM_DIGITS
        and HEX.issuperset(digits)
        and dash == "-"
    )


def _remove(name: str, folder: int | None = None) -> None:
    """Remove a temporary file; if that fails, `_sweep` removes it later."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return


def write_all(handle: int, data: bytes) -> None:
    """Write all bytes, in several calls if needed. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _read_mode(folder: int, name: str) -> int | None:
    """Return the permissions of a file; None if it is missing or not a regular file."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return stat.S_IMODE(status.st_mode) if stat.S_ISREG(status.st_mode) else None


def _read_content(folder: int, name: str) -> bytes | None:
    try:
        return read_regular(name, folder=folder)
    except FileNotFoundError:
        return None


class _Folder:
    """Opens the directory of a path below `root`, creating it if missing, and has the file name."""

    def __init__(self, root: str, path: str) -> None:
        *self._folders, self._name = path.split("/")
        if not {"", ".", "..", ".git"}.isdisjoint((*self._folders, self._name)):
            raise MemtoolError(f"{path!r} is outside the repository", code="outside")
        self._root = root

    def __enter__(self) -> tuple[int, str]:
        """Open it folder by folder. Raises OSError if one is a link or not a directory."""
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


_NOTHING_CHANGED = "; nothing was changed"


def add_done(error: MemtoolError, done: Iterable[str], *, commit: bool = False) -> MemtoolError:
    """Add to an error the names of what was written, or with `commit` done, before it."""
    named = ", ".join(done)
    if named:
        how = "done" if commit else "written"
        error.message = (
            f"{error.message.removesuffix(_NOTHING_CHANGED)}; {how} before that: {named}"
        )
    return error


def reporting_done(done: Iterable[str], *, commit: bool = False) -> _DoneReporter:
    """Return a context manager that adds the names in `done` to an error; see `add_done`."""
    return _DoneReporter(done, commit=commit)


class _DoneReporter:
    """Adds to an error the names of what was done before it."""

    def __init__(self, done: Iterable[str], *, commit: bool) -> None:
        self._done = done
        self._commit = commit

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, MemtoolError):
            add_done(error, self._done, commit=self._commit)


class _DiskErrors:
    """Turns an OSError of a write into a MemtoolError for the user."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.is_done = False
        """Whether the file already has its new content."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if not isinstance(error, OSError):
            return
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise MemtoolError(
                f"cannot write {self._path}: a link or another file is in the way",
                hint="remove it, since links are not followed",
                code="symlink",
            ) from None
        reason = find_reason(error)
        if self.is_done:
            raise MemtoolError(
                f"{self._path} was written, but the disk did not confirm it: {reason}",
                hint=f"git diff -- {self._path}",
                code="disk",
            ) from None
        raise MemtoolError(
            f"cannot write {self._path}: {reason}{_NOTHING_CHANGED}",
            hint="free space or fix the permissions, then run the command again",
            code="disk",
        ) from None


def matches(pattern: str, path: str) -> bool:
    """Return whether a glob matches a whole path."""
    return _match_parts(
        [part for part in pattern.split("/") if part],
        [part for part in path.split("/") if part],
        "**",
        matches_name,
    )


def matches_name(pattern: str, name: str) -> bool:
    """Return whether a glob matches one name or line; `/` has no special meaning."""
    return _match_parts(pattern, name, "*", lambda pattern_char, char: pattern_char in ("?", char))


def matches_or_contains(pattern: str, path: str) -> bool:
    """Return whether a glob matches a path or a directory that contains it."""
    return matches(f"{pattern}/**", path)


def _match_parts(
    pattern: Sequence[str], parts: Sequence[str], star: str, fits: Callable[[str, str], bool]
) -> bool:
    """Match greedily; on failure the last star takes one more part. Never exponential."""
    pattern_at = part_at = 0
    star_pattern_at, star_part_at = -1, 0
    while part_at < len(parts):
        if pattern_at < len(pattern) and pattern[pattern_at] == star:
            star_pattern_at, star_part_at = pattern_at, part_at
            pattern_at += 1
        elif pattern_at < len(pattern) and fits(pattern[pattern_at], parts[part_at]):
            pattern_at += 1
            part_at += 1
        elif star_pattern_at >= 0:
            star_part_at += 1
            pattern_at, part_at = star_pattern_at + 1, star_part_at
        else:
            return False
    return all(part == star for part in pattern[pattern_at:])
