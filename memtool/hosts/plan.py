"""Plans: what installing would do, step by step, so that it can be shown before it is done."""

from __future__ import annotations

import os
import stat

from memtool.errors import MemtoolError
from memtool.store.reading import read_regular
from memtool.value import Value

MODE = 0o755
"""The permissions of a hook; the user's mask is taken off."""


class Step(Value):
    """One step: `write` bytes to a path, `remove` it, or `keep` it by renaming it to `target`.

    Paths are absolute. `data` is what is written.
    """

    kind: str
    path: str
    target: str = ""
    data: bytes = b""


def carry_out(steps: list[Step]) -> None:
    """Do the steps in order. Raises MemtoolError where the disk refuses; what is done stays."""
    for step in steps:
        try:
            if step.kind == "keep":
                os.rename(step.path, step.target)
            elif step.kind == "remove":
                os.unlink(step.path)
            else:
                _write(step.path, step.data)
        except OSError as error:
            raise MemtoolError(
                f"{step.path} cannot be changed: {os.strerror(error.errno or 0)}",
                hint="give yourself permission, then run the same command again",
                code="disk",
            ) from None


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


def _write(path: str, data: bytes) -> None:
    """Write a program whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temp = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(temp, path)
    except BaseException:
        os.unlink(temp)
        raise
