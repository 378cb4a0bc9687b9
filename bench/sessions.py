"""Sessions under load: what is lost when processes race or are killed, and what adding costs.

    python bench/sessions.py [--rounds N]

Writers are processes; each tells through a pipe which message it was given a number for, so that
"lost" is counted against what somebody was promised. The cost of a cold `session add` is shown
beside `P`, a bare `python -c pass`, in the same run; that of a capture is one process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from memtool.sessions import journal
from memtool.sessions.model import Message, Session
from memtool.sessions.store import Sessions, add

PROCESSES, EACH = 16, 500
MODULE = [sys.executable, "-c", "from memtool.cli.main import command; command()"]
ENV = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
LARGE = 4_000_000
TRANSCRIPT_BYTES = 5_000_000


def write(sessions: Sessions, name: str, count: int, write_fd: int) -> None:
    """Append messages, and tell after each which number it got."""
    for number in range(count):
        text = f"{name} says {number} " + "x" * (number % 300)
        added = add(sessions, "load", [Message(0, "assistant", text)], 1)
        os.write(write_fd, f"{added.messages[0].number} {name} {number}\n".encode())


def store(folder: Path, name: str) -> Sessions:
    sessions = Sessions(str(folder / name))
    sessions.create(Session("load", 1))
    return sessions


def promised(read: int) -> dict[int, str]:
    """Return what writers were promised, by number; a line that was cut off promised nothing."""
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    lines = [line.split() for line in data.split(b"\n")[:-1]]
    return {int(row[0]): f"{row[1].decode()} says {row[2].decode()}" for row in lines}


def compared(sessions: Sessions, wanted: dict[int, str]) -> str:
    """Return how many promised messages are not there, and how many lines are torn."""
    stored, torn = sessions.messages("load")
    there = {message.number: " ".join(message.text.split()[:3]) for message in stored}
    lost = sum(there.get(number) != text for number, text in wanted.items())
    gaps = len(stored) != (stored[-1].number if stored else 0)
    aside = Path(sessions.directory, "load", "messages.jsonl.torn")
    cut = aside.read_bytes().count(b"\n") if aside.exists() else 0
    summary = (
        f"{len(wanted):,} promised, {len(stored):,} there, {lost} lost, {torn} torn in the journal"
    )
    return f"{summary}, {cut} half lines set aside{', NUMBERS WITH GAPS' if gaps else ''}"


def race(folder: Path) -> None:
    sessions = store(folder, "race")
    read, write_fd = os.pipe()
    started = time.perf_counter()
    workers = [
        multiprocessing.Process(target=write, args=(sessions, f"w{number}", EACH, write_fd))
        for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    os.close(write_fd)
    wanted = promised(read)
    for worker in workers:
        worker.join()
    took = time.perf_counter() - started
    print(f"{PROCESSES} processes x {EACH}: {compared(sessions, wanted)}; {took:.1f} s")


def killed(folder: Path, kills: int) -> None:
    sessions = store(folder, "killed")
    chance = random.Random(7)
    wanted: dict[int, str] = {}
    for number in range(kills):
        read, write_fd = os.pipe()
        args = (sessions, f"k{number}", 10**6, write_fd)
        worker = multiprocessing.Process(target=write, args=args)
        worker.start()
        os.close(write_fd)
        time.sleep(chance.uniform(0.02, 0.09))
        os.kill(worker.pid or 0, signal.SIGKILL)
        worker.join()
        wanted |= promised(read)
    print(f"{kills} SIGKILLs: {compared(sessions, wanted)}")


def write_large(path: str, number: int, write_fd: int) -> None:
    for turn in range(10**6):
        journal.append(path, [{"of": f"{number}/{turn}", "text": "x" * LARGE}])
        os.write(write_fd, f"{number}/{turn}\n".encode())


def torn(folder: Path, kills: int) -> None:
    """Kill writers of lines so long that a kill tears some of them."""
    path = str(folder / "large.jsonl")
    chance = random.Random(9)
    wanted: set[str] = set()
    for number in range(kills):
        read, write_fd = os.pipe()
        worker = multiprocessing.Process(target=write_large, args=(path, number, write_fd))
        worker.start()
        os.close(write_fd)
        time.sleep(chance.uniform(0.005, 0.05))
        os.kill(worker.pid or 0, signal.SIGKILL)
        worker.join()
        with os.fdopen(read) as pipe:
            wanted.update(pipe.read().split("\n")[:-1])
    there = {row["of"] for row in journal.read(path)[0]}
    aside = Path(path + journal.TORN_SUFFIX)
    cut = aside.read_bytes().count(b"\n") if aside.exists() else 0
    summary = f"{len(wanted)} promised, {len(wanted - there)} lost, {cut} half lines set aside"
    print(f"{kills} SIGKILLs while writing lines of {LARGE / 1e6:g} MB: {summary}")
    Path(path).unlink()


def cpu_ms(argv: list[str], cwd: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=cwd, env=ENV, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def cold(folder: Path, rounds: int) -> None:
    project = folder / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / ".memory").mkdir()
    done = subprocess.run(
        [*MODULE, "session", "start"],
        cwd=project,
        env=ENV,
        check=True,
        capture_output=True,
        text=True,
    )
    calls = {
        "P": [sys.executable, "-c", "pass"],
        "session add": [*MODULE, "session", "add", done.stdout.strip(), "We never retry payments."],
        "session show": [*MODULE, "session", "show", done.stdout.strip()],
        "session list": [*MODULE, "session", "list"],
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _round in range(rounds):
        for name, argv in calls.items():
            times[name].append(cpu_ms(argv, project))
    medians = {name: statistics.median(samples) for name, samples in times.items()}
    for name, median in medians.items():
        print(f"{name:<14}{median:8.1f} ms {median / medians['P']:6.1f} P")
    capture(folder, project)


def capture(folder: Path, project: Path) -> None:
    """Time the capture of a long transcript, then of ten more lines, then of nothing new."""
    path = folder / "long.jsonl"
    words = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text().split()
    chance = random.Random(11)
    with path.open("w") as file:
        number = 0
        while file.tell() < TRANSCRIPT_BYTES:
            number += 1
            file.write(turn(number, " ".join(chance.choices(words, k=chance.randint(20, 400)))))
    first = cpu_ms([*MODULE, "capture", str(path)], project)
    with path.open("a") as file:
        for step in range(10):
            file.write(turn(number + 1 + step, "one more line"))
    second = cpu_ms([*MODULE, "capture", str(path)], project)
    third = cpu_ms([*MODULE, "capture", str(path)], project)
    print(
        f"capture of {TRANSCRIPT_BYTES / 1e6:g} MB, {number:,} lines: {first / 1000:.2f} s CPU; "
        f"ten more lines {second:.0f} ms; nothing new {third:.0f} ms"
    )


def turn(number: int, text: str) -> str:
    """Return a line of a transcript: a typed prompt, or the output of a tool."""
    result = {"type": "tool_result", "tool_use_id": "t", "content": text, "is_error": False}
    content = text if number % 10 == 1 else [result]
    return (
        json.dumps(
            {
                "type": "user",
                "uuid": f"{number:032x}",
                "sessionId": "long-session",
                "cwd": "/w",
                "timestamp": "2026-02-20T09:00:00Z",
                "message": {"role": "user", "content": content},
            }
        )
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--kills", type=int, default=200)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="memtool-bench-"))
    try:
        race(folder)
        killed(folder, args.kills)
        torn(folder, args.kills // 3)
        cold(folder, args.rounds)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
