"""Shared by browser tests: Chromium from the system, axe-core from npm, hostile texts."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP evil.test 127.0.0.1",
)
RULES = ("wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice")
AXE = Path(tempfile.gettempdir()) / f"memtool-axe-{os.getuid()}"
PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=http://evil.test/a onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<details open ontoggle=alert(1)>x</details>",
    "[a](javascript:alert(1))",
    "[b](JaVaScRiPt:alert(1))",
    "[c](java&#115;cript:alert(1))",
    "[d](data:text/html,<script>alert(1)</script>)",
    "![e](http://evil.test/pixel.png)",
    "[f](//evil.test/)",
    "</style><script>alert(1)</script>",
    "' onfocus=alert(1) autofocus='",
)


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser; without it or what drives it the test skips."""
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.skip("Chromium is not here")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not here")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGS))
        yield browser
        browser.close()


def axe_source() -> str:
    """The source of axe-core, which npm brings once."""
    source = AXE / "node_modules/axe-core/axe.min.js"
    npm = shutil.which("npm")
    if not source.exists():
        if npm is None:
            pytest.skip("axe-core comes from npm, which is not here")
        AXE.mkdir(exist_ok=True)
        (AXE / "package.json").write_text("{}")
        call = [npm, "install", "--no-audit", "--no-fund", "axe-core"]
        done = subprocess.run(call, cwd=AXE, check=False, capture_output=True, timeout=300)
        if done.returncode:
            pytest.skip("npm could not bring axe-core")
    return source.read_text(encoding="utf-8")
