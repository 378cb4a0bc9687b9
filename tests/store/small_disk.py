"""A small disk of one's own, which may run full and become read-only: what tests on it need."""

from __future__ import annotations

import shutil
import subprocess

import pytest

ALONE = ("unshare", "-Urm")
"""Runs a command where it may mount, and nobody else sees it."""
HAS_NAMESPACES = shutil.which(ALONE[0]) is not None and (
    subprocess.run(
        [*ALONE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    ).returncode
    == 0
)
needs_small_disk = pytest.mark.skipif(
    not HAS_NAMESPACES, reason="no user namespaces to mount a small disk in"
)
