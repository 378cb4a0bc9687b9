"""Cold and warm times of the verbs somebody waits for, each beside a yardstick in the same run.

    python bench/cold.py [--rounds N] [1000 10000 100000]

A round runs every command of a row in turn, so that whatever else the machine does hits all alike;
the medians of user plus system time are compared. `P` is a bare `python -c pass`. Byte-code is
compiled and packed first, as by `memtool install`, and the page cache is warm. The first rows are
of the repository of `memtool demo`; the trees after it are those of `corpus`. Both are kept in
`$MEMTOOL_BENCH_DIR`.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import stat
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import rivals
from corpus import NOW, make, vocabulary

import memtool
from memtool import templates

MODULE = [sys.executable, "-c", "from memtool.cli.main import command; command()"]
PASS = [sys.executable, "-c", "pass"]
RANKS = (80, 300, 1_200, 5_000)
"""How frequent the words of the question are; `the` and `self` are nearer to 0."""
DEMO_QUESTION = "how long is a seat held"
ENV = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"MEMTOOL_NOW": NOW}


class Cost:
    """The CPU seconds of one process, including its children."""

    def __init__(self, argv: list[str], folder: Path) -> None:
        here = os.getcwd()
        os.chdir(folder)
        quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        try:
            child = os.posix_spawnp(argv[0], argv, ENV, file_actions=quiet)
        finally:
            os.chdir(here)
        _pid, status, used = os.wait4(child, 0)
        if os.waitstatus_to_exitcode(status):
            raise SystemExit(f"{argv} ended with {os.waitstatus_to_exitcode(status)} in {folder}")
        self.cpu_s = used.ru_utime + used.ru_stime


def peak_mb(argv: list[str], folder: Path) -> float:
    """Return the megabytes of a process at its largest, mapped files included.

    A small process starts it: the size of who starts counts, too.
    """
    script = (
        "import os, sys; child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions"
        "=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]); "
        "print(os.wait4(child, 0)[2].ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *argv],
        cwd=folder,
        env=ENV,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout) / 1024


def medians(commands: dict[str, tuple[list[str], Path]], rounds: int) -> dict[str, float]:
    """Return the median CPU milliseconds of each command, all run in turn."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, (argv, folder) in commands.items():
            cost = Cost(argv, folder)
            if number:  # the first round warms
                times[name].append(cost.cpu_s * 1000)
    return {name: statistics.median(samples) for name, samples in times.items()}


def row(what: str, count: int, value: str, target: str) -> None:
    print(f"{what:<46}{count:>8}  {value:<34}{target}", flush=True)


def over(median_ms: dict[str, float], first: str, other: str, unit: str = "x") -> str:
    """Write a ratio with both of its sides."""
    ratio = median_ms[first] / median_ms[other]
    return f"{ratio:.2f} {unit}  ({median_ms[first]:.1f} / {median_ms[other]:.1f} ms)"


def script_in(folder: Path) -> list[str]:
    """Write the console script as installers put it on the path, and return how it is called."""
    place = folder / "memtool"
    text = templates.read("launcher")
    place.write_text(f"#!{sys.executable}\n{text.partition(chr(10))[2]}")
    place.chmod(place.stat().st_mode | stat.S_IXUSR)
    return [str(place)]


def cold(folder: Path, count: int, calls: dict[str, list[str]], script: list[str], n: int) -> None:
    """Print the cold times in P, and the memory."""
    commands = {"P": (PASS, folder)}
    for verb, args in calls.items():
        commands[verb] = ([*MODULE, *args], folder)
        commands[f"{verb}, script"] = ([*script, *args], folder)
        commands[f"{verb}, -m"] = ([sys.executable, "-m", "memtool", *args], folder)
    median_ms = medians(commands, n)
    for verb in calls:
        row(f"cold {verb}, module", count, over(median_ms, verb, "P", "P"), "")
        row(f"cold {verb}, console script", count, over(median_ms, f"{verb}, script", "P", "P"), "")
        row(f"cold {verb}, python -m", count, over(median_ms, f"{verb}, -m", "P", "P"), "")
    peak = max(peak_mb([*MODULE, *args], folder) for args in calls.values())
    row("peak memory of a cold search", count, f"{peak:.0f} MB", "60 MB at 100k")


PHASES = (
    ("memtool.cli.arguments", "parse", "read the arguments"),
    ("memtool.store.context", "discover", "find the repository"),
    ("memtool.index.index", "open_catalog", "check the files, open the index"),
    ("memtool.inject.gather", "compute_effective_lineage", "weigh what supersedes what"),
    ("memtool.inject.gather", "_search", "search"),
    ("memtool.inject.gather", "find_origins", "citations and trust"),
    ("memtool.inject.select", "choose", "choose among the hits"),
    ("memtool.inject.tiers", "fill", "fill the budget, write the block"),
    ("memtool.calls.output", "write", "print"),
    ("memtool.commands._record", "record_answer", "note it in the ledger"),
)
"""Functions of one cold `inject`, none inside another."""
PROFILE = """
import sys, time
began = time.perf_counter()
from importlib import import_module
from memtool.cli import main
phases = eval(sys.argv.pop(1))
for module in ("memtool.index.index", "Stemmer"):
    import_module(module)
modules = {name: import_module(name) for name, _function, _what in phases}
rows = [("load the modules", time.perf_counter() - began)]
def timed(module, name, what):
    run = getattr(module, name)
    spent = [what, 0.0]
    rows.append(spent)
    def call(*args, **named):
        start = time.perf_counter()
        try:
            return run(*args, **named)
        finally:
            spent[1] += time.perf_counter() - start
    setattr(module, name, call)
for module, name, what in phases:
    timed(modules[module], name, what)
start = time.perf_counter()
main.main(sys.argv[1:])
total = time.perf_counter() - start
rows.append(("everything else", total - sum(spent for _what, spent in rows[1:])))
for what, spent in rows:
    print(f"{what}\t{spent * 1000}", file=sys.stderr)
"""


def profile(folder: Path, count: int, inject: list[str], n: int) -> None:
    """Print what the milliseconds of one cold inject are spent on, medians of the wall clock."""
    samples: dict[str, list[float]] = {}
    argv = [sys.executable, "-c", PROFILE, repr(PHASES), *inject]
    for number in range(n + 1):
        done = subprocess.run(argv, cwd=folder, env=ENV, capture_output=True, text=True, check=True)
        for line in done.stderr.splitlines() if number else ():
            what, tab, spent = line.partition("\t")
            if tab:
                samples.setdefault(what, []).append(float(spent))
    for what, spent in samples.items():
        row(f"inject: {what}", count, f"{statistics.median(spent):.2f} ms", "")


def against(folder: Path, count: int, search: list[str], question: str, n: int) -> None:
    """Print the cold search next to other engines over the same texts."""
    store = folder / ".git" / "rivals"
    for engine in rivals.ENGINES:
        if not (store / engine).exists():
            rivals.build(engine, folder, store / engine)
    commands = {"memtool": ([*MODULE, *search], folder)}
    for engine in rivals.ENGINES:
        program = str(Path(rivals.__file__))
        commands[engine] = (
            [sys.executable, program, engine, str(store / engine), question],
            folder,
        )
    if shutil.which("rg"):
        pattern = "|".join(question.split())
        commands["rg -l"] = (["rg", "-l", "-w", "-i", pattern, ".memory"], folder)
    median_ms = medians(commands, n)
    targets = {
        "bm25s": "0.10 at 10k, 0.06 at 100k",
        "fts5": "0.9 at 10k, 0.5 at 100k",
        "rg -l": "0.2 at 10k, 0.05 at 100k",
    }
    for engine, target in targets.items():
        if engine in median_ms:
            row(f"cold search / {engine}", count, over(median_ms, "memtool", engine), target)
        else:
            row(f"cold search / {engine}", count, "not installed here", target)


def changes(folder: Path, twin: Path, count: int, search: list[str], n: int) -> None:
    """Print the first search after a change of one file, and the exact check."""
    files = sorted((twin / ".memory").rglob("*.md"))
    same, changed = [], []
    for number in range(n + 1):
        same.append(Cost([*MODULE, *search], folder).cpu_s * 1000)
        file = files[number * 7919 % len(files)]
        copy = file.with_name(".beside")
        copy.write_bytes(file.read_bytes() + b"One more sentence.\n")
        copy.replace(file)
        changed.append(Cost([*MODULE, *search], twin).cpu_s * 1000)
    median_ms = {"changed": statistics.median(changed[1:]), "same": statistics.median(same[1:])}
    row("one changed file / unchanged", count, over(median_ms, "changed", "same"), "1.1")
    median_ms = medians(
        {
            "exact": ([*MODULE, *search, "--exact"], folder),
            "status": (["git", "status", "--porcelain", "--", ".memory"], folder),
        },
        n,
    )
    row("search --exact / git status", count, over(median_ms, "exact", "status"), "1.25 at 100k")


def rebuild(folder: Path, count: int, search: list[str], n: int) -> None:
    """Print a full rebuild next to the usual libraries doing the same work."""
    times: dict[str, list[float]] = {"memtool": [], "libraries": []}
    for _round in range(n):
        shutil.rmtree(folder / ".git" / "memtool" / "index", ignore_errors=True)
        times["memtool"].append(Cost([*MODULE, *search], folder).cpu_s * 1000)
        argv = [sys.executable, str(Path(rivals.__file__)), "libraries", str(folder), ""]
        times["libraries"].append(Cost(argv, folder).cpu_s * 1000)
    median_ms = {name: statistics.median(values) for name, values in times.items()}
    row(
        "full rebuild / frontmatter+markdown-it+bm25s",
        count,
        over(median_ms, "memtool", "libraries"),
        "0.2",
    )
    for name in ("index", "state"):
        files = (folder / ".git" / "memtool" / name).rglob("*")
        size = sum(file.stat().st_size for file in files if file.is_file())
        row(f"size of {name}", count, f"{size / 1e6:.1f} MB", "")


def wide(folder: Path, count: int, n: int) -> None:
    """Print the verbs that look at all memories, and the first search after a commit of one."""
    shutil.rmtree(folder / ".git" / "memtool" / "state", ignore_errors=True)
    first = Cost([*MODULE, "conflicts"], folder).cpu_s
    row("conflicts, first time", count, f"{first:.2f} s", "")
    calls = {
        "list --limit 5": ["list", "--limit", "5"],
        "status": ["status"],
        "stats": ["stats"],
        "conflicts": ["conflicts"],
        "doctor": ["doctor"],
    }
    commands = {verb: ([*MODULE, *args], folder) for verb, args in calls.items()}
    for verb, milliseconds in medians(commands, n).items():
        row(verb, count, f"{milliseconds / 1000:.2f} s", "")


def warm(folder: Path, count: int, words: list[str]) -> None:
    """Print what a call of a long-lived process costs."""
    import random
    import time

    os.environ["MEMTOOL_NOW"] = NOW
    draw = random.Random(3)
    project = memtool.open(str(folder))
    questions = [
        " ".join(draw.choices(words[40:6_000], k=draw.randrange(1, 6))) for _ in range(250)
    ]
    for name, ask in (("search", project.search), ("inject", lambda q: project.inject(prompt=q))):
        times = []
        for question in questions:
            began = time.process_time()
            ask(question)
            times.append((time.process_time() - began) * 1000)
        times = sorted(times[20:])
        value = f"p50 {times[len(times) // 2]:.1f} ms, p95 {times[len(times) * 95 // 100]:.1f} ms"
        row(f"warm {name}, Python API", count, value, "p95 2 ms at 30k, 4 ms at 100k")


def hot_calls(folder: Path, question: str) -> dict[str, list[str]]:
    """Return the command lines of what an agent, a commit or a person waits for."""
    prompt = f"how does {question} work?"
    event = json.dumps({"cwd": str(folder), "session_id": "", "prompt": prompt})
    began = json.dumps({"cwd": str(folder), "session_id": "bench", "source": "startup"})
    return {
        "search": ["search", question],
        "inject": ["inject", "--prompt", prompt],
        "hook": ["hook", "claude", "user-prompt-submit", "--input", event],
        "session-start": ["hook", "claude", "session-start", "--dry-run", "--input", began],
        "check": ["check", "--staged"],
    }


def demo(keep: Path) -> Path:
    """Return the demo repository, which is made once."""
    folder = keep / "harbor"
    if not folder.exists():
        keep.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [*MODULE, "demo", str(folder)], env=ENV, stdout=subprocess.DEVNULL, check=True
        )
    return folder


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("counts", nargs="*", type=int, default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--quick", action="store_true", help="only the cold times and the profile")
    options = parser.parse_args()
    compileall.compile_dir(os.path.dirname(memtool.__file__), quiet=2)
    keep = Path(os.environ.get("MEMTOOL_BENCH_DIR") or Path(tempfile.gettempdir(), "memtool-bench"))
    words = vocabulary()
    question = " ".join(words[rank] for rank in RANKS)
    script = script_in(Path(tempfile.mkdtemp()))
    print(f"question: {question}; {options.rounds} rounds")
    harbor = demo(keep)
    cold(harbor, 64, hot_calls(harbor, DEMO_QUESTION), script, options.rounds)
    for count in options.counts:
        folder = make(keep, count)
        calls = hot_calls(folder, question)
        search, inject = calls["search"], calls["inject"]
        cold(folder, count, calls, script, options.rounds)
        profile(folder, count, inject, options.rounds)
        if not options.quick:
            against(folder, count, search, question, options.rounds)
            changes(folder, make(keep / "twin", count), count, search, options.rounds)
            warm(folder, count, words)
            wide(folder, count, 1 if count > 20_000 else 3)
            rebuild(folder, count, search, 1 if count > 20_000 else 3)
    if len(options.counts) > 1:
        low, high = (make(keep, count) for count in (options.counts[0], options.counts[-1]))
        for verb in ("search", "inject"):
            args = hot_calls(low, question)[verb]
            median_ms = medians(
                {"high": ([*MODULE, *args], high), "low": ([*MODULE, *args], low)}, options.rounds
            )
            row(
                f"cold {verb}, {options.counts[-1]} / {options.counts[0]}",
                options.counts[-1],
                over(median_ms, "high", "low"),
                "2 at 100k / 1k",
            )


if __name__ == "__main__":
    main()
