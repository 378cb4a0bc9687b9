"""The HTTP API does what its OpenAPI document says, tried with made-up calls on a real server."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Sandbox

ABSENT = [name for name in ("schemathesis", "openapi_spec_validator") if find_spec(name) is None]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(ABSENT), reason="the extra browser brings schemathesis"),
]
SETTINGS = """\
[checks]
# What a verb refuses fits its schema all the same: 404, and 422.
positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422"]
# A body over 1 MiB is refused, too; that a list is too long would be seen only after reading it.
negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "413", "415", "422"]

[phases.coverage]
unexpected-methods = ["OPTIONS", "TRACE"]
"""
LIMIT_S = 600
"""Long after every run; on a quiet machine one takes under a minute."""


LATE = "^/api/[m-z]"
"""The half of the verbs that another case tries."""


@pytest.mark.parametrize(
    ("flags", "phases", "chosen"),
    [
        ((), "coverage,fuzzing", ("--include-tag", "read", "--exclude-path-regex", LATE)),
        ((), "coverage,fuzzing", ("--include-tag", "read", "--exclude-path-regex", "^/api/[a-l]")),
        ((), "fuzzing", ("--include-tag", "write", "--include-tag", "clients")),
        (("--write",), "coverage,fuzzing", ("--include-tag", "write", "--include-tag", "clients")),
    ],
    ids=["reads", "reads-late", "refuses", "writes"],
)
def test_the_api_keeps_to_its_document(
    sandbox: Sandbox,
    serving: Any,
    tmp_path: Path,
    flags: tuple[str, ...],
    phases: str,
    chosen: tuple[str, ...],
):
    """No call of the document fails, none outside of it is taken, no answer is another."""
    sandbox.run("demo", str(tmp_path / "harbor"))
    settings = sandbox.write("schemathesis.toml", SETTINGS)
    sandbox.path = tmp_path / "harbor"
    sandbox.env = sandbox.env | {"MEMTOOL_GLOBAL": str(tmp_path / "global")}
    with serving(flags=flags) as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings), "run"),
                *("--header", f"Authorization: Bearer {server.token}", "--no-color"),
                *("--phases", phases, "--max-examples", "2", "--seed", "1"),
                *("--generation-deterministic", *chosen, f"{server.url}/api/openapi.json"),
            ],
            cwd=tmp_path,
            env=sandbox.env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == 0, "\n".join(row[:300] for row in done.stdout.splitlines())[-8_000:]


def test_the_document_is_valid(tmp_path: Path, web: Any):
    """By the schema of OpenAPI 3.1 itself."""
    place = tmp_path / "openapi.json"
    place.write_text(web.get("/api/openapi.json").text)
    done = subprocess.run(
        [sys.executable, "-m", "openapi_spec_validator", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
