"""Duplicates and conflicts on labelled pairs, and what looking for a twin costs.

    python bench/duplicates.py            precision and recall on the labelled pairs
    python bench/duplicates.py alarms     what is flagged among public texts, for reading
    python bench/duplicates.py cost       time of one new memory in trees of 1,000 and 10,000

The pairs are in `tests/gate/data` and `tests/search/data`. The threshold and the tables were chosen
on those marked `tune`; those marked `held-out` were looked at when nothing was to be changed any
more.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
PAIRS = {"duplicates": TESTS / "gate" / "data", "conflicts": TESTS / "search" / "data"}
NOTES = ROOT.parent / "shared" / "data" / "retrieval"
SETS = ("adrs", "beads", "peps")
ROUNDS = 9
NOW = 1_772_000_000

sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from memtool.gate import near_duplicates  # noqa: E402
from memtool.memory.memory import Memory  # noqa: E402
from memtool.search import contradictions  # noqa: E402
from memtool.store.config import find_option  # noqa: E402
from memtool.store.tree import Record  # noqa: E402


def memory(id_: str, title: str, body: str, row: dict) -> Memory:
    """Return one side of a pair."""
    fields = {
        "id": id_,
        "timestamp": "2026-02-22T19:33:00Z",
        "type": row.get("type", "semantic"),
        "title": title,
        "confidence": "medium",
        "source": ("human:bench",),
        "tags": tuple(row.get("tags", ())),
    }
    return Memory(fields=fields, body=body + "\n")


def pairs(name: str) -> list[tuple[dict, Memory, Memory]]:
    """Read labelled pairs."""
    rows = map(json.loads, (PAIRS[name] / f"{name}.jsonl").read_text().splitlines())
    return [(row, memory("sem-a", *row["a"], row), memory("sem-b", *row["b"], row)) for row in rows]


def measure(name: str, wanted: str, judge: Callable[[Memory, Memory], bool]) -> None:
    """Print precision and recall on each half of a set, and what was judged wrongly."""
    for half in ("tune", "held-out"):
        rows = [row for row in pairs(name) if row[0]["set"] == half]
        judged = [(row, judge(first, other)) for row, first, other in rows]
        right = sum(verdict for row, verdict in judged if row["label"] == wanted)
        flagged = sum(verdict for _row, verdict in judged)
        there = sum(row["label"] == wanted for row, _verdict in judged)
        print(
            f"{name:10} {half:8} {len(rows):3} pairs, {there} to find: "
            f"precision {right / flagged:.2f}, recall {right / there:.2f}"
        )
        for row, verdict in judged:
            if verdict != (row["label"] == wanted):
                what = "flagged" if verdict else "missed"
                print(f"    {what} ({row['kind']}): {row['a'][0]} | {row['b'][0]}")


def quality() -> None:
    """Print the tables."""
    threshold = float(str(find_option(near_duplicates.THRESHOLD_KEY).default))

    def is_twin(first: Memory, other: Memory) -> bool:
        near = near_duplicates.DuplicateIndex([Record(other, "b.md", "b")])
        (twin,) = near_duplicates.find_duplicates(
            [Record(first, "a.md", "a")], near, threshold, NOW
        )
        return twin is not None

    measure("duplicates", "duplicate", is_twin)
    measure(
        "conflicts",
        "conflict",
        lambda first, other: contradictions.find_between(first, other) is not None,
    )


def texts(name: str) -> list[dict]:
    """Return the documents of a public set; lines that are not JSON are left out."""
    rows = []
    with gzip.open(NOTES / name / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            try:
                rows.append(json.loads(line))
            except ValueError:
                print(f"{name}: a line is no JSON")
    return rows


def alarms() -> None:
    """Print which public texts are flagged; their authors meant no conflict."""
    threshold = float(str(find_option(near_duplicates.THRESHOLD_KEY).default))
    for name in SETS:
        notes = [
            memory(f"sem-{at}", row["title"], row["text"], {}) for at, row in enumerate(texts(name))
        ]
        records = [Record(note, f"{note.id}.md", "") for note in notes]
        near = near_duplicates.DuplicateIndex(records)
        twins = near_duplicates.find_duplicates(records, near, threshold, NOW)
        print(f"{name}: {len(notes)} notes, {sum(map(bool, twins))} have a twin")
        for clash in contradictions.find(notes):
            print(f"    {clash.kind} {clash.first} {clash.other}: {clash.reason}")


def cost() -> None:
    """Print the median CPU time of looking for the twins of one new memory."""
    import corpus

    from memtool.store.context import Context

    for count in (1_000, 10_000):
        place = corpus.make(Path(tempfile.gettempdir()) / "memtool-bench", count)
        ws = Context.at(str(place), os.environ)
        where = (ws.repository, ws.directory, ws.settings)
        start = time.process_time()
        tree = ws.tree()
        read_s = time.process_time() - start
        old = tree.records[count // 2].memory
        words = old.body.split()
        words[5::10] = ["other"] * len(words[5::10])
        new = Record(Memory(fields=old.fields | {"id": "sem-new"}, body=" ".join(words)), "", "")
        times = []
        for _round in range(ROUNDS):
            start = time.process_time()
            (twin,) = near_duplicates.find_duplicates(
                [new], near_duplicates.from_worktree(*where), 0.8, ws.clock.now
            )
            times.append(time.process_time() - start)
            assert twin is not None
        middle_ms = sorted(times)[ROUNDS // 2] * 1000
        print(f"{count} memories: {middle_ms:.1f} ms of CPU; reading them all {read_s * 1000:.0f}")


def main() -> int:
    """Run what the first argument names."""
    modes = {"": quality, "alarms": alarms, "cost": cost}
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in modes:
        print(__doc__)
        return 2
    modes[name]()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
