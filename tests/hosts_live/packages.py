"""Packages from npm at pinned versions, brought once and kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
INSTALL_S = 300


def install_pinned(name: str, pinned: Mapping[str, str]) -> Path:
    """Return the `node_modules` of packages; the test skips where npm cannot bring them."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("the tools come from npm, which is not here")
    place = CACHE / name
    folder = place / "node_modules"
    if not all((folder / package).exists() for package in pinned):
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text("{}")
        wanted = [f"{package}@{version}" for package, version in pinned.items()]
        call = [npm, "install", "--save-exact", "--no-audit", "--no-fund", *wanted]
        done = subprocess.run(call, cwd=place, check=False, capture_output=True, timeout=INSTALL_S)
        if done.returncode:
            pytest.skip("npm could not bring the tools")
    return folder
