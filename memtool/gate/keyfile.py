"""The key of this clone, under which secrets are hashed; it never leaves the git directory."""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store.files import TEMP_PREFIX, read_regular

NAME = "redaction.key"
LENGTH = 32


def key(directory: str) -> bytes:
    """Return the key that lies in a directory, made on first use.

    It is never drawn from a seed, which somebody might know.

    Raises:
        MemtoolError: it can be neither read nor made.
    """
    path = os.path.join(directory, NAME)
    try:
        try:
            found = read_regular(path, LENGTH + 1)
        except FileNotFoundError:
            _make(directory, path)
            found = read_regular(path, LENGTH + 1)
    except OSError as error:
        raise MemtoolError(
            f"the key for hashes, {path}, cannot be read or made: {os.strerror(error.errno or 0)}",
            hint="use --strategy token, which needs no key",
            code="redaction-key",
        ) from None
    if len(found) != LENGTH:
        raise MemtoolError(
            f"{path} is no key: it has {len(found)} bytes, not {LENGTH}",
            hint="remove it; hashes made from now on compare with none made before",
            code="redaction-key",
        )
    return found


def _make(directory: str, path: str) -> None:
    """Write a key whole, or leave the one that another process was faster to write."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    beside = os.path.join(directory, f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}-{NAME}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, os.urandom(LENGTH))
        os.fsync(handle)
        os.link(beside, path)
    except FileExistsError:
        pass
    finally:
        os.close(handle)
        os.unlink(beside)
