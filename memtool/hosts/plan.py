"""Plans: what installing would do, step by step, so that it can be shown before it is done."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress

from memtool.errors import MemtoolError
from memtool.store import files
from memtool.store.reading import read_regular
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MODE = 0o755
"""The permissions of a hook; the user's mask is taken off."""


class Step(Value):
    """One step: what is done to the file at a path. All paths are absolute.

    `write` puts a program there, `remove` takes it away, `keep` renames a file to `target`. `edit`
    puts `data` where `before` is, None for no file; `drop` removes a file that holds `before`, and
    the directories below `target` that are empty then.
    """

    kind: str
    path: str
    target: str = ""
    data: bytes = b""
    before: bytes | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether it changes the bytes of a file that memtool may not have written."""
        return self.kind == "edit" and self.before is not None


class Plan(Value):
    """Steps in order, and what the user should know beside them."""

    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()


@contextmanager
def alone(directories: Iterable[str]) -> Iterator[None]:
    """Keep other memtool processes from installing below the same directories meanwhile.

    The directories themselves are locked, so nothing is left behind.
    """
    import fcntl

    handles: list[int] = []
    try:
        for directory in sorted(set(directories)):
            with suppress(OSError):  # what cannot be opened is told by the steps
                handles.append(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
                fcntl.flock(handles[-1], fcntl.LOCK_EX)
        yield
    finally:
        for handle in handles:
            os.close(handle)


def carry_out(steps: Iterable[Step]) -> None:
    """Do the steps in order, all of them or none.

    Raises:
        MemtoolError: the disk refuses, or a file changed meanwhile; what was done is undone.
    """
    undo: list[Callable[[], None]] = []
    for step in steps:
        try:
            undo.append(_way_back(step))
            _do(step)
        except (OSError, MemtoolError) as error:
            for back in reversed(undo):
                with suppress(OSError):
                    back()
            if isinstance(error, MemtoolError):
                raise
            raise MemtoolError(
                f"{step.path} cannot be changed: {os.strerror(error.errno or 0)}; "
                "nothing was changed",
                hint="give yourself permission, then run the same command again",
                code="disk",
            ) from None


def _do(step: Step) -> None:
    if step.kind == "keep":
        os.rename(step.path, step.target)
    elif step.kind == "remove":
        os.unlink(step.path)
    elif step.kind == "edit":
        _edit(step)
    elif step.kind == "drop":
        _drop(step)
    else:
        _write(step.path, step.data)


def _way_back(step: Step) -> Callable[[], None]:
    """Return what undoes a step that is about to be done, and may then be done by half."""
    if step.kind == "keep":

        def rename() -> None:
            if not os.path.lexists(step.path):
                os.rename(step.target, step.path)

        return rename
    data = bytes_at(step.path)
    mode = stat.S_IMODE(os.stat(step.path).st_mode) if data is not None else 0
    stays = os.path.dirname(step.path)
    while not os.path.isdir(stays):
        stays = os.path.dirname(stays)

    def restore() -> None:
        now = bytes_at(step.path)
        if data is not None and now != data:
            _write(step.path, data, mode)
        elif data is None:
            if now == step.data:
                os.unlink(step.path)
            _remove_empty(os.path.dirname(step.path), stays)

    return restore


def bytes_at(path: str) -> bytes | None:
    """Return the bytes of a file, None where there is no file that can be read."""
    try:
        return read_regular(path)
    except OSError:
        return None


def is_program(path: str) -> bool:
    """Tell whether a file may be run."""
    try:
        return bool(os.stat(path).st_mode & stat.S_IXUSR)
    except OSError:
        return False


def _edit(step: Step) -> None:
    folder, name = os.path.split(step.path)
    os.makedirs(folder, exist_ok=True)
    files.replace(folder, name, step.data, expected=step.before)


def _drop(step: Step) -> None:
    if bytes_at(step.path) != step.before:
        raise MemtoolError(
            f"{step.path} changed meanwhile", hint="run the same command again", code="changed"
        )
    os.unlink(step.path)
    _remove_empty(os.path.dirname(step.path), step.target)


def _remove_empty(folder: str, top: str) -> None:
    """Remove a directory and those above it, below `top`, as far as they are empty."""
    with suppress(OSError):  # not empty: somebody else's files are in it
        while folder.startswith(f"{top}/"):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def _write(path: str, data: bytes, mode: int = MODE) -> None:
    """Write a program whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temp = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(temp, path)
    except BaseException:
        os.unlink(temp)
        raise
