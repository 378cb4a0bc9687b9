"""The official conformance suite and Inspector, from npm at pinned versions, against the server.

The suite speaks HTTP only, so a bridge stands between. Its other scenarios call what only the
suite's own example server has, or check the HTTP transport: they say nothing about this server.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox
from hosts_live.mcp_bridge import bridge
from hosts_live.packages import install_pinned

pytestmark = pytest.mark.live

PINNED = {
    "@modelcontextprotocol/conformance": "0.1.16",
    "@modelcontextprotocol/inspector": "2.12.0",
    "node": "22.21.1",
}
"""The clients need a newer Node than the system may have; npm's package `node` brings it."""
SCENARIOS = (
    "completion-complete",
    "ping",
    "prompts-list",
    "resources-list",
    "server-initialize",
    "tools-list",
)
CLIENT_S = 120


@pytest.fixture(scope="module")
def programs() -> Path:
    """The directory of the clients; the tests skip where their Node does not start."""
    folder = install_pinned("memtool-live-mcp", PINNED) / ".bin"
    try:
        subprocess.run([folder / "node", "--version"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("npm's package node does not bring a Node for this machine")
    return folder


def run(programs: Path, sandbox: Sandbox, *call: str) -> subprocess.CompletedProcess[str]:
    """Run a client with its own Node, in the repository."""
    env = sandbox.env | {"PATH": f"{programs}{os.pathsep}{sandbox.env['PATH']}"}
    return subprocess.run(
        call,
        cwd=sandbox.path,
        env=env,
        check=False,
        capture_output=True,
        text=True,
        timeout=CLIENT_S,
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_server_conforms(programs: Path, sandbox: Sandbox, scenario: str):
    """The suite's checks of a scenario all pass."""
    sandbox.memory("dec-a")
    sandbox.commit()
    with bridge(sandbox.path, sandbox.env) as url:
        done = run(programs, sandbox, "conformance", "server", "--url", url, "--scenario", scenario)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert re.search(r"Passed: [1-9]\d*/\d+, 0 failed, 0 warnings", output), output


def inspect(programs: Path, sandbox: Sandbox, *args: str) -> Any:
    """Call a method with Inspector, and return the result."""
    done = run(programs, sandbox, "mcp-inspector", "--cli", "memtool", "mcp", *args)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_inspector_finds_no_fault_in_the_schemas(programs: Path, sandbox: Sandbox):
    """Its strict mode fails for a schema that some model or client cannot read."""
    sandbox.memory("dec-a")
    for options in ((), ("--all",), ("--all", "--structured")):
        listed = inspect(programs, sandbox, *options, "--method", "tools/list", "--strict")
        assert len(listed["tools"]) == (20 if options else 7)


def test_inspector_calls_tools_and_reads_memories(programs: Path, sandbox: Sandbox):
    """Numbers that it sends as strings are read; a memory is a resource."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.commit()
    call = ("--method", "tools/call", "--tool-name", "search", "--tool-arg", "query=redis")
    answer = inspect(programs, sandbox, *call, 'limit="1"')
    assert "Title of dec-a" in answer["content"][0]["text"]
    read = inspect(programs, sandbox, "--method", "resources/read", "--uri", "memory://dec-a")
    assert "Sessions live in Redis." in read["contents"][0]["text"]
    primer = inspect(programs, sandbox, "--method", "prompts/get", "--prompt-name", "primer")
    assert primer["messages"]
