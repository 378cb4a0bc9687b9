"""Packages from npm at pinned versions, brought once and kept in the user's cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
INSTALL_S = 600


def install_pinned(name: str, pinned: Mapping[str, str]) -> Path:
    """Return the `node_modules` of packages; the test skips where npm cannot bring them."""
    place = CACHE / name
    folder = place / "node_modules"
    with locked(place):
        if not all((folder / package).exists() for package in pinned):
            install(place, *(f"{package}@{version}" for package, version in pinned.items()))
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep the other processes that run the tests from installing into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(folder: Path, *packages: str) -> None:
    """Install packages into a folder; the test is skipped where npm cannot bring them."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("the tools come from npm, which is not here")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}")
    call = [npm, "install", "--save-exact", "--no-audit", "--no-fund", *packages]
    done = subprocess.run(call, cwd=folder, check=False, capture_output=True, timeout=INSTALL_S)
    if done.returncode:
        pytest.skip("npm could not bring the tools")
