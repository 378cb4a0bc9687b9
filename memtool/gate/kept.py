"""Kept: what a check worked out, as one JSON value in the cache with a checksum.

It is written as a whole or not at all. What is missing, damaged or of other rules is None, and
whoever asks works it out anew.
"""

from __future__ import annotations

import json
import os
import zlib

from memtool.gate.checks.secrets import ROOM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_SUM = 9
"""Bytes before the JSON: its checksum in hex, and a line feed."""


def rules(*given: object) -> str:
    """Name what an answer depends on beside the files: the code that gives it, and settings."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    rows = [repr(one) for one in given]
    for room in ("memory", "search", "gate"):
        for entry in sorted(os.scandir(os.path.join(package, room)), key=lambda item: item.name):
            if entry.name.endswith(".py"):
                status = entry.stat()
                rows.append(f"{room}/{entry.name} {status.st_size} {status.st_mtime_ns}")
    text = "\n".join(rows).encode()
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}"


def load(cache_dir: str, kind: str, named: str) -> Any:
    """Return what was kept under a kind and a name of `rules`, None for nothing."""
    try:
        with open(os.path.join(cache_dir, ROOM, f"{kind}-{named}"), "rb") as file:
            data = file.read()
        if data[:_SUM] != b"%08x\n" % zlib.crc32(data[_SUM:]):
            return None
        return json.loads(data[_SUM:])
    except (OSError, ValueError):
        return None


def store(cache_dir: str, kind: str, named: str, value: Any) -> None:
    """Keep a value, and forget those of the kind with another name; it may be impossible."""
    folder = os.path.join(cache_dir, ROOM)
    text = json.dumps(value, separators=(",", ":")).encode()
    temp = os.path.join(folder, f".tmp-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(handle, "wb") as file:
                file.write(b"%08x\n" % zlib.crc32(text) + text)
            os.replace(temp, os.path.join(folder, f"{kind}-{named}"))
        finally:
            if os.path.exists(temp):
                os.unlink(temp)
        for name in _others(folder, kind, named):
            os.unlink(os.path.join(folder, name))
    except OSError:
        return


def _others(folder: str, kind: str, named: str) -> Iterable[str]:
    return [
        name
        for name in os.listdir(folder)
        if name.startswith(f"{kind}-") and name != f"{kind}-{named}"
    ]
