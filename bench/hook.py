"""CPU time of `memtool check --staged`, as the hook calls it, beside a bare `python -c pass`.

And of the hooks of an agent's tools, for a file and a command that nothing governs.

    python bench/hook.py [--rounds N] [100 10000 100000]

Of each size a copy of the tree of `corpus` is made, and a search in it builds its index, as any
use of memtool does; one check before that shows what a clone without an index costs. In each round
every row follows in turn: nothing
staged that concerns memtool, one memory or a hundred whose text was looked through before (as
after `memtool new`), and one or a hundred with text that never was. Medians of user plus system
time, children included; byte-code is compiled first and the page cache is warm.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from corpus import NOW, make, vocabulary

import memtool
from memtool.memory import document
from memtool.memory.memory import Memory

HOOK = [
    sys.executable,
    "-P",
    "-c",
    "from memtool.cli.main import command; command()",
    "check",
    "--staged",
]
SEARCH = [*HOOK[:4], "search", "python module"]
PASS = [sys.executable, "-c", "pass"]
ENV = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
    "MEMTOOL_NOW": NOW,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "PYTHONPATH": str(Path(memtool.__file__).parents[1]),
}
ROWS = {
    "nothing staged": (0, False),
    "1 memory, text known": (1, False),
    "1 memory, text new": (1, True),
    "100 memories, text known": (100, False),
    "100 memories, text new": (100, True),
}
"""What is staged: how many memories, and whether nobody has looked through their text yet."""
COMMAND = {"tool_name": "Bash", "tool_input": {"command": "ls -la && make -C src test | tail -3"}}
TOOLS: dict[str, tuple[str, dict[str, object]]] = {
    "edit": ("post-tool-use", {"tool_name": "Edit", "tool_input": {"file_path": "program.py"}}),
    "before a command": ("pre-command", COMMAND),
    "after a command": ("post-tool-use", COMMAND),
    "end of a turn": ("stop", {}),
}
"""Events of tools that are answered with silence, and one that looks at no memory."""


def cpu_ms(argv: list[str], folder: Path) -> float:
    """Return the CPU time of a process and its children, in milliseconds."""
    here = os.getcwd()
    os.chdir(folder)
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
    try:
        child = os.posix_spawnp(argv[0], argv, ENV, file_actions=quiet)
    finally:
        os.chdir(here)
    _pid, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{argv} ended with {os.waitstatus_to_exitcode(status)} in {folder}")
    return (used.ru_utime + used.ru_stime) * 1000


def tool_ms(name: str, folder: Path, number: int) -> float:
    """Return the CPU time of the hook of a tool. Two equal events would count as one."""
    event, fields = TOOLS[name]
    sent = {"session_id": "bench", "cwd": str(folder), "number": number, **fields}
    dry = [] if event == "pre-command" else ["--dry-run"]
    return cpu_ms([*HOOK[:4], "hook", "claude", event, "--input", json.dumps(sent), *dry], folder)


def git(folder: Path, *args: str) -> None:
    subprocess.run(
        ["git", "-C", str(folder), *args], check=True, env=ENV, stdout=subprocess.DEVNULL
    )


class Stage:
    """A tree in which memories are staged, one round after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.words = vocabulary()[:3000]
        self.drawn = 0

    def stage(self, count: int, *, is_new: bool) -> None:
        """Stage so many new memories; without `is_new` those of the last time."""
        git(self.folder, "reset", "-q")
        if is_new:
            self.drawn += 1
        place = self.folder / ".memory" / "semantic" / "2026-02"
        place.mkdir(parents=True, exist_ok=True)
        paths = [self.folder / "program.py"]
        paths[0].write_text(f"print({self.drawn})\n")
        for number in range(count):
            paths.append(place / f"sem-staged-{number}.md")
            paths[-1].write_bytes(document.write(self.memory(number)))
        git(self.folder, "add", "--", *map(str, paths))
        git(self.folder, "write-tree")  # as `git commit` does before it calls the hook

    def memory(self, number: int) -> Memory:
        """Return a memory of the round, 1 KB long, that no other one is like."""
        at = (self.drawn * 101 + number) * 97
        words = [self.words[(at * 7 + step * (31 + at % 89)) % 3000] for step in range(150)]
        return Memory(
            fields={
                "id": f"sem-staged-{number}",
                "timestamp": "2026-02-22T19:33:00Z",
                "type": "semantic",
                "title": " ".join(words[:7]),
                "category": "pattern",
                "confidence": "medium",
                "source": ("human:bench",),
                "tags": ("bench",),
                "temporal_class": "eternal",
            },
            body=" ".join(words[7:]) + ".\n",
        )


def measure(folder: Path, rounds: int) -> dict[str, float]:
    """Return the median of each row and of the yardstick."""
    stage = Stage(folder)
    stage.stage(1, is_new=True)
    without = cpu_ms(HOOK, folder)
    cpu_ms(SEARCH, folder)
    times: dict[str, list[float]] = {"P": []} | {name: [] for name in (*ROWS, *TOOLS)}
    for number in range(rounds + 1):
        for name, (count, is_new) in ROWS.items():
            stage.stage(count, is_new=is_new)
            if count and not is_new:
                cpu_ms(HOOK, folder)
            took = cpu_ms(HOOK, folder)
            bare = cpu_ms(PASS, folder)
            if number:  # the first round makes tables
                times[name].append(took)
                times["P"].append(bare)
        cpu_ms(SEARCH, folder)  # the staged memories are in the index
        for name in TOOLS:
            took = tool_ms(name, folder, number)
            if number:
                times[name].append(took)
    git(folder, "reset", "-q")
    medians = {name: statistics.median(samples) for name, samples in times.items()}
    return medians | {"1 memory, no index": without}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=[100, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=11)
    args = parser.parse_args()
    compileall.compile_dir(Path(memtool.__file__).parent, quiet=1)
    trees = Path(os.environ.get("MEMTOOL_BENCH_DIR", tempfile.gettempdir()))
    for count in args.counts:
        with tempfile.TemporaryDirectory(dir=trees) as folder:
            made = make(trees, count)
            git(made, "clone", "-q", "--shared", str(made), str(Path(folder) / "tree"))
            median_ms = measure(Path(folder) / "tree", args.rounds)
        bare = median_ms.pop("P")
        for name, took in median_ms.items():
            print(
                f"{name:<28}{count:>8}  {took / bare:6.2f} P  ({took:.1f} / {bare:.1f} ms)",
                flush=True,
            )


if __name__ == "__main__":
    main()
