"""How long it takes to say which memories have drifted from the code, on a synthetic history.

    python bench/drift.py [MEMORIES ...]        10000 unless given

A repository of 4,000 files and 2,000 commits is written below the temporary directory; the memories
name one or two files each and are committed on the way, so that each has a commit of its own to be
compared with. Printed is the time of all verdicts without a table, with one, and after 500 more
commits, which write every fourth file anew, in this process; and that the answers with and without
a table are the same.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from memtool.memory import document, timestamps
from memtool.memory.memory import Memory
from memtool.search.scope import build_drift_witness
from memtool.store.context import Context

FILES, COMMITS, MORE, FINALISTS = 4_000, 2_000, 500, 15
BEGIN = timestamps.parse("2026-01-01T00:00:00Z")


def text(draw: random.Random, file: int) -> bytes:
    """Return a file of some forty lines with names of its own."""
    rows = [f"def step_{file}_{n}(value):\n    return {draw.randrange(9)}\n" for n in range(20)]
    return "".join(rows).encode()


def memory(number: int, files: list[int]) -> tuple[str, bytes]:
    """Return path and bytes of a memory that names files, and a function of the first."""
    id_ = f"dec-{number:06}"
    name = f"step_{files[0]}_{number % 20}"
    made = Memory(
        fields={
            "id": id_,
            "timestamp": timestamps.render(BEGIN + number),
            "type": "decision",
            "title": f"What {name} does, number {number}",
            "status": "confirmed",
            "confidence": "medium",
            "source": ("human:Ada",),
            "files": tuple(f"src/d{file % 40}/f{file}.py" for file in files),
        },
        body=f"It calls {name} once.\n",
    )
    return f".memory/decision/2026-01/{id_}.md", document.write(made)


def commits(draw: random.Random, first: int, count: int, memories: range) -> bytes:
    """Return a stream for git fast-import: each commit changes two files and adds memories."""
    out = []
    per = -(-len(memories) // max(1, count))
    remaining = iter(memories)
    for number in range(first, first + count):
        rows = []
        files = range(FILES) if number == 0 else draw.sample(range(FILES), 2)
        rows += [(f"src/d{file % 40}/f{file}.py", text(draw, file)) for file in files]
        some = [number for _n, number in zip(range(per), remaining, strict=False)]
        pairs = [draw.sample(range(FILES), draw.choice((1, 2, 2))) for _number in some]
        rows += [memory(number, files) for number, files in zip(some, pairs, strict=True)]
        out.append(
            b"commit refs/heads/main\ncommitter A <a@example.org> %d +0000\n"
            b"data 1\nx\n" % (BEGIN + number)
        )
        if number == first and number:
            out.append(b"from refs/heads/main^0\n")
        for path, data in rows:
            out.append(b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(data), data))
    return b"".join(out)


def judged(place: Path, env: dict[str, str], limit: int = 0) -> tuple[float, dict[str, str]]:
    """Return the seconds that all verdicts take, or those on the first, and the level of each."""
    context = Context.at(str(place), env)
    tree = context.tree("HEAD")
    _origins = context.origins(tree, tree.records)  # who wrote what is a table of its own
    began = time.perf_counter()
    drifts = build_drift_witness(tree, lambda: context.provenance_reader(tree)).find(
        tree.records[: limit or None]
    )
    return time.perf_counter() - began, {path: drift.level for path, drift in drifts.items()}


def measure(count: int) -> None:
    """Print the times of one size."""
    draw = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="memtool-drift-") as folder:
        place = Path(folder)
        env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "MEMTOOL_GLOBAL": f"{folder}/none"}

        def git(*args: str, stdin: bytes = b"") -> None:
            subprocess.run(["git", "-C", folder, *args], input=stdin, check=True, env=env)

        git("init", "-q", "-b", "main")
        git("fast-import", "--quiet", stdin=commits(draw, 0, COMMITS, range(count)))
        git("reset", "-q", "--hard")
        first, levels = judged(place, env)
        warm, again = judged(place, env)
        git("fast-import", "--quiet", stdin=commits(draw, COMMITS, MORE, range(0)))
        git("reset", "-q", "--hard")
        later, _some = judged(place, env, FINALISTS)
        after, newer = judged(place, env)
        bare, same = judged(place, env | {"MEMTOOL_NO_CACHE": "1"})
        counts = {level: list(levels.values()).count(level) for level in sorted({*levels.values()})}
        print(f"{count:,} memories: {counts}")
        print(
            f"  first {first:.2f} s, warm {warm:.3f} s, after {MORE} commits {later:.3f} s for "
            f"{FINALISTS} memories that an answer shows, {after:.2f} s for the rest, "
            f"without a table {bare:.2f} s"
        )
        print(f"  the same answers: {levels == again and newer == same}")


def main() -> None:
    """Measure each size that is asked for."""
    for count in map(int, sys.argv[1:] or ["10000"]):
        measure(count)


if __name__ == "__main__":
    main()
