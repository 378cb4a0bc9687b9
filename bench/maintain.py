"""How long upkeep takes, and what it plans, on synthetic memories.

    python bench/maintain.py [COUNT ...]        3000 and 10000 unless given

Each store is written below the temporary directory and committed: memories of all categories, a
year old at most, 5 % of them candidates, 2 % of them twice, 10 % superseded, and a ledger in
which every tenth was looked at one to nine times. Printed is what `maintain --weekly` and
`maintain` plan, how long the plan and its commit take as processes of their own, and that nothing
is left to plan by then.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from memtool.memory import document, timestamps
from memtool.memory.fields import CATEGORIES
from memtool.memory.memory import FieldValue, Memory
from memtool.store import ledger, usage_log
from memtool.store.usage_log import Note, ShownItem

NOW = timestamps.parse("2026-11-22T00:00:00Z")
TYPES = {
    "decision": "decision",
    "architecture": "decision",
    "error": "episodic",
    "task_progress": "state",
}
WORDS = [
    f"{first}{last}"
    for first in (
        "net",
        "data",
        "user",
        "build",
        "cache",
        "auth",
        "queue",
        "page",
        "mail",
        "test",
        "log",
        "token",
    )
    for last in (
        "store",
        "path",
        "flow",
        "gate",
        "line",
        "works",
        "base",
        "port",
        "ring",
        "set",
        "map",
        "unit",
    )
]


def make(place: Path, count: int) -> dict[str, str]:
    """Write and commit a store; return the environment in which it is used."""
    draw = random.Random(7)  # the same store every time
    env = os.environ | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "MEMTOOL_NOW": timestamps.render(NOW),
        "MEMTOOL_GLOBAL": str(place / "nowhere"),
        **{
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
        },
    }
    subprocess.run(["git", "init", "-q", "-b", "main", str(place)], check=True, env=env)
    bodies: list[tuple[str, str]] = []
    for number in range(count):
        row = draw.choice(CATEGORIES)
        sentence = " ".join(draw.choices(WORDS, k=24)).capitalize()
        title = " ".join(draw.choices(WORDS, k=5)).capitalize()
        if bodies and draw.random() < 0.02:
            title, sentence = draw.choice(bodies)
        bodies.append((title, sentence))
        written = NOW - draw.randrange(365 * timestamps.DAY_S)
        fields: dict[str, FieldValue] = {
            "id": f"mem-{number:06}",
            "timestamp": timestamps.render(written),
            "type": TYPES.get(row.name, "semantic"),
            "title": title,
            "category": row.name,
            "status": "candidate" if draw.random() < 0.05 else "confirmed",
            "confidence": draw.choice(("low", "medium", "high")),
            "source": ("human:Ada",),
            "importance": f"{draw.randrange(1, 10) / 10:g}",
        }
        if number > 10 and draw.random() < 0.1:
            fields["supersedes"] = (f"mem-{draw.randrange(number):06}",)
        data = document.write(Memory(fields=fields, body=f"{sentence}.\n"))
        path = place / ".memory" / str(fields["type"]) / f"{number % 12:02}" / f"{fields['id']}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    subprocess.run(["git", "add", "-A"], cwd=place, check=True, env=env)
    then = timestamps.render(NOW - 2 * timestamps.DAY_S)  # candidates wait for a day
    dated = env | {"GIT_AUTHOR_DATE": then, "GIT_COMMITTER_DATE": then}
    subprocess.run(["git", "commit", "-q", "-m", "memories"], cwd=place, check=True, env=dated)
    directory = str(place / ".git" / "memtool")
    for number in range(0, count, 10):
        for _access in range(draw.randrange(1, 10)):
            moment = NOW - draw.randrange(30 * timestamps.DAY_S)
            usage_log.append_note(
                directory, Note(moment, "inject", 1.0, items=(ShownItem(f"mem-{number:06}"),))
            )
    ledger.fold(directory)
    return env


def run(place: Path, env: dict[str, str], *args: str) -> tuple[float, float, dict[str, object]]:
    """Run `maintain`; return the seconds that it took, its CPU seconds, and its answer."""
    command = [sys.executable, "-m", "memtool", "maintain", *args, "--json"]
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(command, cwd=place, env=env, check=True, capture_output=True)
    took, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    return took, cpu, json.loads(done.stdout)


def kinds(answer: dict[str, object], key: str, name: str) -> str:
    """Return how many rows of each kind there are."""
    rows = answer[key]
    assert isinstance(rows, list)
    names = [row[name] for row in rows]
    return ", ".join(f"{names.count(kind)} {kind}" for kind in dict.fromkeys(names)) or "none"


def measure(count: int) -> None:
    """Print what upkeep plans in a store of a size, and how long it takes."""
    with tempfile.TemporaryDirectory(prefix="memtool-maintain-") as folder:
        place = Path(folder)
        env = make(place, count)
        for args in (("--weekly",), ("--nightly",), ("--monthly",), ()):
            took, cpu, answer = run(place, env, *args)
            steps, flags = kinds(answer, "steps", "do"), kinds(answer, "flags", "kind")
            print(
                f"{count:6} {' '.join(args) or 'all':10} plan {took:6.2f} s, CPU {cpu:6.2f} s: "
                f"{steps}; flags: {flags}",
                flush=True,
            )
        for args in (("--weekly", "--apply"), ("--apply",)):
            took, cpu, _answer = run(place, env, *args)
            print(f"{count:6} {' '.join(args):18} {took:6.2f} s, CPU {cpu:6.2f} s", flush=True)
        took, cpu, answer = run(place, env)
        steps, chores = kinds(answer, "steps", "do"), kinds(answer, "chores", "do")
        print(f"{count:6} again, all  {took:6.2f} s: steps {steps}, chores {chores}", flush=True)


if __name__ == "__main__":
    for size in map(int, sys.argv[1:] or ("3000", "10000")):
        measure(size)
