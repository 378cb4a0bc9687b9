"""Cold starts: CPU time of whole processes, as multiples of `python -c pass` (P) in the same run.

    python bench/cold.py [10 1000 10000]

Each command runs in turn with the yardstick, so that what else the machine does hits both alike;
the medians of user plus system time are compared. Byte-code is compiled first, as in an install.
"""

from __future__ import annotations

import compileall
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from corpus import NOW, make

import memtool

ROUNDS = 11
YARDSTICK = [sys.executable, "-c", "pass"]
MEMTOOL = [sys.executable, "-m", "memtool"]


def cpu_s(argv: list[str], folder: Path, env: dict[str, str]) -> float:
    """Run a process to its end and return its CPU seconds, those of its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def ratio(argv: list[str], folder: Path, env: dict[str, str]) -> tuple[float, float]:
    """Return the median CPU of a command over that of the yardstick, and its milliseconds."""
    pairs = [(cpu_s(YARDSTICK, folder, env), cpu_s(argv, folder, env)) for _ in range(ROUNDS)]
    own = statistics.median(pair[1] for pair in pairs)
    return own / statistics.median(pair[0] for pair in pairs), own * 1000


def main() -> None:
    """Print one row per command and size."""
    counts = [int(word) for word in sys.argv[1:]] or [10, 1_000, 10_000]
    compileall.compile_dir(os.path.dirname(memtool.__file__), quiet=2)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env |= {"MEMTOOL_NOW": NOW}
    keep = Path(os.environ.get("MEMTOOL_BENCH_DIR", tempfile.gettempdir())) / "memtool-bench"
    print(f"{'command':<28}{'memories':>9}{'x P':>8}{'ms CPU':>9}")
    for count in counts:
        folder = make(keep, count)
        commands = {
            "--help": [*MEMTOOL, "--help"],
            "search": [*MEMTOOL, "search", "default encoding path"],
            "inject --prompt": [*MEMTOOL, "inject", "--prompt", "default encoding of a path"],
        }
        for name, argv in commands.items():
            subprocess.run(argv, cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True)
            times, milliseconds = ratio(argv, folder, env)
            print(f"{name:<28}{count:>9}{times:>8.2f}{milliseconds:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
