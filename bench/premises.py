"""What it costs to ask what rests on what no longer holds, with an index in place.

    python bench/premises.py [--rounds N] [COUNT]        10000 unless given

Each graph is a repository of its own below the temporary directory:

- `sparse`: half as many edges as memories, to memories that are older; of 100 memories, 5 are
  superseded, 2 deprecated, 1 has ended, and 3 are settled.
- `dense`: twice as many edges as memories, with the same memories out.
- `chain`: each memory rests on the one before; the first is deprecated. `short chain` is a tenth.
- `star`: all rest on one memory, which is superseded.

Printed is the median CPU time of each question in a process that has opened the index, in
milliseconds and as a ratio to `P`, a bare `python -c pass` in the same run.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from corpus import ENV, NOW, vocabulary

from memtool.index import index
from memtool.memory import document, timestamps
from memtool.memory.memory import FieldValue, Memory
from memtool.search.unsettled import Unsettled
from memtool.store import files
from memtool.store.context import Context
from memtool.store.state import close_shared

PASS = [sys.executable, "-c", "pass"]
NOW_S = timestamps.parse(NOW)
BEGIN = NOW_S - 3 * 365 * timestamps.DAY_S
STEP_S = 9_000
"""Seconds between two memories, so that the folder of a month has a few hundred."""
HITS = 3


def name(number: int) -> str:
    return f"sem-{number:06}"


def make_fields(number: int, premises: list[int], **fields: FieldValue) -> dict[str, FieldValue]:
    """Return the fields of a memory, newer than the one before."""
    sources = ("human:bench", *(f"memory:{name(premise)}" for premise in premises))
    base: dict[str, FieldValue] = {
        "id": name(number),
        "timestamp": timestamps.render(BEGIN + number * STEP_S),
        "type": "semantic",
        "title": f"Rule {number}",
        "confidence": "medium",
        "source": sources,
        "temporal_class": "eternal",
    }
    return base | fields


def make_random(count: int, edges: int) -> Iterator[dict[str, FieldValue]]:
    """Yield memories that rest on older ones, of which a few are out."""
    draw = random.Random(7)
    premises: list[list[int]] = [[] for _ in range(count)]
    for _ in range(edges):
        conclusion = draw.randrange(1, count)
        premises[conclusion].append(draw.randrange(conclusion))
    for number in range(count):
        fields: dict[str, FieldValue] = {}
        place = number % 100
        if place in range(0, 100, 20) and number > 9:
            fields["supersedes"] = (name(number - 10),)
        elif place in (3, 53):
            fields["status"] = "deprecated"
        elif place == 7:
            fields["valid_through"] = "2025-01-01"
        elif place in (11, 41, 71) and premises[number]:
            fields["settled_on"] = (f"without:{name(premises[number][0])}",)
        yield make_fields(number, list(dict.fromkeys(premises[number])), **fields)


def make_chain(count: int) -> Iterator[dict[str, FieldValue]]:
    yield make_fields(0, [], status="deprecated")
    for number in range(1, count):
        yield make_fields(number, [number - 1])


def make_star(count: int) -> Iterator[dict[str, FieldValue]]:
    yield make_fields(0, [])
    for number in range(1, count - 1):
        yield make_fields(number, [0])
    yield make_fields(count - 1, [], supersedes=(name(0),))


def write(folder: Path, memories: Iterator[dict[str, FieldValue]]) -> Path:
    """Write a repository and commit it."""
    words = vocabulary(2_000)
    draw = random.Random(7)
    git = ["git", "-C", str(folder)]
    folder.mkdir()
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True, env=ENV)
    for fields in memories:
        place = (
            folder / ".memory" / "semantic" / str(fields["timestamp"])[:7] / f"{fields['id']}.md"
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        body = " ".join(draw.choices(words, k=30)) + ".\n"
        place.write_bytes(document.write(Memory(fields=fields, body=body)))
    subprocess.run([*git, "add", "--all"], check=True, env=ENV)
    subprocess.run([*git, "commit", "-q", "-m", "memories"], check=True, env=ENV)
    return folder


def open_unsettled(folder: Path) -> Unsettled:
    """Open a repository, as a process does that begins, and read who replaces whom."""
    context = Context.at(str(folder), ENV)
    unsettled = Unsettled(index.open(context), NOW_S)
    _ = unsettled.lineage
    return unsettled


def measure(ask: Callable[[Unsettled], object], folder: Path, rounds: int) -> float:
    """Return the median CPU milliseconds of a question, each in a catalog of its own."""
    times = []
    for _ in range(rounds):
        unsettled = open_unsettled(folder)
        began = time.process_time()
        ask(unsettled)
        times.append((time.process_time() - began) * 1000)
        close_shared()
    return statistics.median(times)


def measure_change(folder: Path, id_: str, rounds: int) -> tuple[float, float]:
    """Return the median CPU milliseconds after a change of one memory: opened, and asked of it."""
    (place,) = folder.glob(f".memory/**/{id_}.md")
    path = str(place.relative_to(folder))
    opening, asking = [], []
    for number in range(rounds):
        data = place.read_bytes()
        text = data + f"Again {number}.\n".encode()
        files.replace(str(folder), path, text, expected=data)
        began = time.process_time()
        unsettled = open_unsettled(folder)
        opened_at = time.process_time()
        unsettled.find([id_])
        asking.append((time.process_time() - opened_at) * 1000)
        opening.append((opened_at - began) * 1000)
        assert f"Again {number}." in unsettled.tree[id_].memory.body
        close_shared()
    return statistics.median(opening), statistics.median(asking)


def measure_opening(folder: Path, rounds: int) -> float:
    """Return the median CPU milliseconds of a repository that is opened without a change."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        open_unsettled(folder)
        times.append((time.process_time() - began) * 1000)
        close_shared()
    return statistics.median(times)


def measure_yardstick(rounds: int) -> float:
    times = []
    for _ in range(rounds):
        child = os.posix_spawn(PASS[0], PASS, ENV)
        used = os.wait4(child, 0)[2]
        times.append((used.ru_utime + used.ru_stime) * 1000)
    return statistics.median(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    count, rounds = args.count, args.rounds
    short = max(2, count // 10)
    yardstick = measure_yardstick(rounds)

    def row(what: str, size: int, cpu_ms: float, note: str = "") -> None:
        ratio = cpu_ms / yardstick
        print(f"{what:<42}{size:>8,}{cpu_ms:>9.1f} ms{ratio:>8.2f} P  {note}", flush=True)

    row("P: python -c pass", 1, yardstick)
    with tempfile.TemporaryDirectory() as temporary:
        top = Path(temporary)
        sparse = write(top / "sparse", make_random(count, count // 2))
        dense = write(top / "dense", make_random(count, count * 2))
        graphs = {
            "sparse": (sparse, count),
            "dense": (dense, count),
            "short chain": (write(top / "short", make_chain(short)), short),
            "chain": (write(top / "chain", make_chain(count)), count),
            "star": (write(top / "star", make_star(count)), count),
        }
        for graph, (folder, size) in graphs.items():
            causes = open_unsettled(folder).all
            number = sum(map(len, causes.values()))
            note = f"{len(causes):,} unsettled, {number:,} causes"
            hits = [*causes, name(size - 2)][-HITS:]
            row(
                f"{graph}: all",
                size,
                measure(lambda unsettled: unsettled.all, folder, rounds),
                note,
            )
            ask = measure(lambda unsettled, hits=hits: unsettled.find(hits), folder, rounds)  # type: ignore[misc]
            row(f"{graph}: {HITS} hits", size, ask)
        row("sparse: opened, nothing changed", count, measure_opening(sparse, rounds))
        id_ = next(iter(open_unsettled(sparse).all))
        opening_ms, asking_ms = measure_change(sparse, id_, rounds)
        row("sparse: opened after one changed", count, opening_ms)
        row("sparse: the question about that one", count, asking_ms)


if __name__ == "__main__":
    main()
