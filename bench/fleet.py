"""The fleet at scale: many repositories on one machine, synced and asked.

    python bench/fleet.py                  200 repositories, 100,000 memories
    python bench/fleet.py 20 100           20 repositories of 100 memories each
    python bench/fleet.py --order          the order of the answers, beside the local search

Repositories are made below the temporary directory, once, of passages of the retrieval sets
(`retrieval.py`), 30 to 120 words each, through git fast-import. Half of them are read where they
lie, the other half are fetched as remotes (file://). Printed are the seconds of a first sync, of
one where nothing changed, and of one where three repositories did; and the milliseconds of a
question, p50 and p95: in a new process each time (`cold`, the whole of `memtool search --fleet`),
and in one process (`warm`). Questions are those of the sets.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import retrieval
from retrieval import ROOT

FOLDER = Path(tempfile.gettempdir()) / "memtool-fleet"
NOW = "2026-11-22T00:00:00Z"
SETS = ("adrs", "peps", "beads")
CHANGED = 3
"""Repositories that change between two syncs, by ten memories each."""
COLD, WARM = 40, 300
"""Questions that are asked."""


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a user of the fleet."""
    names = ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME")
    emails = ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "MEMTOOL_NOW": NOW,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **dict.fromkeys(names, "Ada"),
        **dict.fromkeys(emails, "ada@example.org"),
    }


def passages(draw: random.Random) -> Iterator[tuple[str, str]]:
    """Yield titles and texts without end: passages of the documents of all sets."""
    documents = [row for name in SETS for row in retrieval.corpus(name)]
    texts = [(row["title"], row["text"].split()) for row in documents]
    while True:
        title, words = draw.choice(texts)
        begin = draw.randrange(max(1, len(words) - 60))
        yield title, " ".join(words[begin : begin + draw.randint(30, 120)])


def memory(id_: str, title: str, text: str) -> bytes:
    """Return the file of a memory."""
    plain = " ".join("".join(c if c.isalnum() else " " for c in title).split())[:120] or "untitled"
    return (
        f"---\nid: {id_}\ntimestamp: 2026-10-01T12:00:00Z\ntype: semantic\ntitle: {plain}\n"
        f"category: pattern\nstatus: confirmed\nconfidence: medium\nsource:\n  - human:Ada\n---\n"
        f"{text}\n"
    ).encode()


def commit(place: Path, found: list[tuple[str, str, str]], env: dict[str, str]) -> None:
    """Add memories to a repository as one commit."""
    rows = [b"commit refs/heads/main\ncommitter Ada <ada@example.org> 1790000000 +0000\n"]
    rows.append(b"data 4\nmore")
    has_parent = (place / "refs/heads/main").exists() or (place / "packed-refs").exists()
    rows.append(b"\nfrom refs/heads/main^0\n" if has_parent else b"\n")
    for id_, title, text in found:
        data = memory(id_, title, text)
        rows.append(b"M 100644 inline .memory/semantic/2026-10/%b.md\n" % id_.encode())
        rows.append(b"data %d\n%b\n" % (len(data), data))
    subprocess.run(
        ["git", "-C", str(place), "fast-import", "--quiet"],
        input=b"".join(rows), env=env | {"GIT_DIR": str(place)}, check=True,
    )  # fmt: skip


def fleet(count: int, each: int) -> tuple[Path, dict[str, str]]:
    """Make the repositories and a project that asks them, unless that was done before."""
    place = FOLDER / f"{count}-{each}"
    env = environment(place / "home")
    if (place / "done").exists():
        return place, env
    shutil.rmtree(place, ignore_errors=True)
    (place / "home").mkdir(parents=True)
    draw = random.Random(17)
    source = passages(draw)
    for number in range(count):
        org = place / ("near" if number % 2 else "far") / f"team{number % 12}"
        repository = org / f"service-{number:03}"
        repository.mkdir(parents=True)
        subprocess.run(
            ["git", "init", "-q", "--bare", "-b", "main", str(repository)], env=env, check=True
        )
        names = (f"sem-2026-10-01-note-{n:05}" for n in range(each))
        commit(repository, [(name, *next(source)) for name in names], env)
    project = place / "project"
    subprocess.run(["git", "init", "-q", "-b", "main", str(project)], env=env, check=True)
    for n in range(300):
        title, text = next(source)
        file = project / ".memory/semantic/2026-10" / f"sem-own-{n:04}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(memory(file.stem, title, text))
    subprocess.run(["git", "-C", str(project), "add", "-A"], env=env, check=True)
    subprocess.run(["git", "-C", str(project), "commit", "-qm", "own"], env=env, check=True)
    far = [f"file://{one}" for one in sorted((place / "far").glob("*/*"))]
    memtool(project, env, "--global", "config", "fleet.repositories",
            ",".join([f"{place}/near/*/*", *far]))  # fmt: skip
    (place / "done").touch()
    return place, env


def memtool(place: Path, env: dict[str, str], *args: str) -> str:
    """Run memtool and return its answer."""
    done = subprocess.run(
        [sys.executable, "-m", "memtool", *args],
        cwd=place, env=env | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode > 1:
        raise SystemExit(f"memtool {' '.join(args)}: {done.stderr}")
    return done.stdout


def seconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def percentiles(taken: list[float]) -> str:
    """Return p50 and p95 of seconds as milliseconds."""
    cuts = statistics.quantiles([one * 1000 for one in taken], n=20)
    return f"p50 {statistics.median(taken) * 1000:6.0f} ms   p95 {cuts[18]:6.0f} ms"
