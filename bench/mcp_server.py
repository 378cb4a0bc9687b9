"""Times of `memtool mcp` as a host sees them: the start, and warm calls.

    python bench/mcp_server.py [--rounds N] [--calls N] [1000 10000]

A host is played by a few lines of JSON over pipes, so that what is measured is the server. The
start is the time from the start of the process to the answer of the handshake and of the first
search, medians of as many rounds. Warm calls ask questions of one to five words; the wall clock is
the host's, the CPU time the server's. Verbs that look at all memories are asked fewer times, warm
and as the first call after a commit of one memory, on a clone. The trees are those of `corpus`, in
`$MEMTOOL_BENCH_DIR`.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus import NOW, make, vocabulary

import memtool

SERVER = [
    sys.executable,
    "-P",
    "-c",
    "from memtool.cli.main import command; command()",
    "mcp",
    "--structured",
]
ENV = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
    "MEMTOOL_NOW": NOW,
    "PYTHONPATH": str(Path(memtool.__file__).parents[1]),
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
WIDE = ("status", "log", "list", "conflicts", "why", "blame", "show")
"""Tools that are measured after a commit, too."""
ROUNDS = 9
CHANGE = """\
---
id: {id}
timestamp: 2026-02-01T10:00:00Z
type: state
title: Bench change {number}
source: [human:bench]
confidence: medium
---
It is number {number}.
"""
SKIPPED = 20
"""Warm calls that are not counted: they load what later ones have."""


class Host:
    """One server and the host that it speaks with."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [*SERVER, *options], cwd=folder, env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.sent_count = 0
        self.clock = (~self.process.pid << 3) | 2  # the CPU clock of another process, on Linux

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return its result."""
        assert self.process.stdin
        assert self.process.stdout
        self.sent_count += 1
        request = {"jsonrpc": "2.0", "id": self.sent_count, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.sent_count
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return its result. A refusal ends the measurement."""
        result = self.ask("tools/call", name=tool, arguments=arguments)
        if result.get("isError"):
            raise SystemExit(f"{tool} {arguments}: {result}")
        return result

    def cpu_ms(self) -> float:
        return time.clock_gettime(self.clock) * 1000

    def wall_ms(self) -> float:
        return (time.perf_counter() - self.began) * 1000

    def leave(self) -> None:
        """Close the connection, which ends the server."""
        self.process.communicate()
        if self.process.returncode:
            raise SystemExit(f"the server ended with {self.process.returncode}")


def row(what: str, count: int, value: str) -> None:
    print(f"{what:<34}{count:>8}  {value}", flush=True)


def start(folder: Path, count: int, rounds: int) -> None:
    """Print how long a host waits for its first answers."""
    samples: dict[str, list[tuple[float, float]]] = {}
    for _round in range(rounds + 1):
        host = Host(folder)
        host.ask("initialize", **HELLO)
        samples.setdefault("start to handshake", []).append((host.wall_ms(), host.cpu_ms()))
        host.call("search", query="first")
        samples.setdefault("start to first tool answer", []).append((host.wall_ms(), host.cpu_ms()))
        host.leave()
    for what, times in samples.items():
        wall, cpu = (statistics.median(column) for column in zip(*times[1:], strict=True))
        row(what, count, f"{wall:.0f} ms wall, {cpu:.0f} ms CPU")


def warm(folder: Path, count: int, calls: int, words: list[str]) -> None:
    """Print what warm calls take."""
    draw = random.Random(3)
    host = Host(folder)
    host.ask("initialize", **HELLO)
    ids = [memory["id"] for memory in host.call("list", limit=200)["structuredContent"]["memories"]]
    questions = [
        " ".join(draw.choices(words[40:6_000], k=draw.randrange(1, 6)))
        for _call in range(calls + SKIPPED)
    ]
    asks = {
        "ping": lambda _question: host.ask("ping"),
        "search": lambda question: host.call("search", query=question),
        "inject": lambda question: host.call("inject", prompt=question),
        "show": lambda _question: host.call("show", id=draw.choice(ids)),
        "resources/read": lambda _question: host.ask(
            "resources/read", uri=f"memory://{draw.choice(ids)}"
        ),
    }
    for name, ask in asks.items():
        times = []
        for question in questions:
            began, used = time.perf_counter(), host.cpu_ms()
            ask(question)
            times.append(((time.perf_counter() - began) * 1000, host.cpu_ms() - used))
        wall, cpu = (_spread(column) for column in zip(*times[SKIPPED:], strict=True))
        row(f"warm {name}", count, f"wall {wall}; CPU {cpu}")
    host.leave()


def changed(folder: Path, count: int) -> None:
    """Print what wide verbs take, warm and first after a commit."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        copy = Path(place, "clone")
        _git(folder, "clone", "-q", "--no-hardlinks", str(folder), str(copy))
        host = Host(copy, "--all")
        host.ask("initialize", **HELLO)
        some = host.call("list", limit=1)["structuredContent"]["memories"][0]["id"]
        made = 0
        for tool in WIDE:
            arguments = {"id": some} if tool in ("why", "blame", "show") else {}
            host.call(tool, **arguments)
            for when in ("warm", "after a commit"):
                times = []
                for _round in range(ROUNDS):
                    if when != "warm":
                        made += 1
                        path = copy / f".memory/state/2026-02/sta-2026-02-01-bench-{made:04}.md"
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_text(CHANGE.format(id=path.stem, number=made))
                        _git(copy, "add", "--all")
                        _git(copy, "commit", "-q", "-m", f"change {made}")
                    began, used = time.perf_counter(), host.cpu_ms()
                    host.call(tool, **arguments)
                    times.append(((time.perf_counter() - began) * 1000, host.cpu_ms() - used))
                wall, cpu = (_spread(column) for column in zip(*times, strict=True))
                row(f"{tool} {when}", count, f"wall {wall}; CPU {cpu}")
        host.leave()


def _git(folder: Path, *args: str) -> None:
    who = ["-c", "user.name=bench", "-c", "user.email=b@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *args], check=True, env=ENV)


def _spread(times: Sequence[float]) -> str:
    ordered = sorted(times)
    p50, p95 = ordered[len(ordered) // 2], ordered[len(ordered) * 95 // 100]
    return f"p50 {p50:.1f} p95 {p95:.1f} ms"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("counts", nargs="*", type=int, default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--calls", type=int, default=200)
    args = parser.parse_args()
    compileall.compile_dir(os.path.dirname(memtool.__file__), quiet=2)
    keep = Path(os.environ.get("MEMTOOL_BENCH_DIR") or Path(tempfile.gettempdir(), "memtool-bench"))
    words = vocabulary()
    for count in args.counts:
        folder = make(keep, count)
        start(folder, count, args.rounds)
        warm(folder, count, args.calls, words)
        changed(folder, count)


if __name__ == "__main__":
    main()
