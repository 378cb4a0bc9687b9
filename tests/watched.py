"""Processes of memtool that report what they loaded, opened and started."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from conftest import Sandbox

DRIVER = """
import sys
at_start = set(sys.modules)
opened, started = [], []
def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        opened.append(args[0] if isinstance(args[0], str) else args[0].decode())
    elif event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "os.system"):
        started.append(event)
sys.addaudithook(watch)
from memtool.cli.main import main
status = main(sys.argv[1:])
loaded = sorted(set(sys.modules) - at_start)
import json
print(json.dumps({"status": status, "loaded": loaded, "opened": opened, "started": started}),
      file=sys.stderr)
"""


def drive(sandbox: Sandbox, *args: str, **env: str) -> tuple[bytes, dict[str, Any]]:
    """Run memtool in a process that reports what it loaded, opened and started."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *args],
        cwd=sandbox.path,
        env=sandbox.env | env,
        capture_output=True,
        check=False,
    )
    *noise, report = done.stderr.decode().splitlines()
    assert noise == []
    trace = json.loads(report)
    assert trace["status"] == 0
    return done.stdout, trace


def warm(sandbox: Sandbox, *args: str) -> tuple[bytes, dict[str, Any]]:
    """Drive until files that were just written are no longer doubted; return that run."""
    for _run in range(100):
        answer, trace = drive(sandbox, *args)
        if not any(path.endswith(".md") for path in trace["opened"]):
            break
    return answer, trace


def libraries(trace: dict[str, Any]) -> set[str]:
    """Return the top-level names of what a run loaded, without memtool itself."""
    return {name.partition(".")[0] for name in trace["loaded"]} - {"memtool"}
