"""Synthetic memory trees for the benchmarks: the same number always gives the same bytes.

Words are drawn by Zipf's law from the identifiers and docstrings of the standard library, so that
the vocabulary, the lengths and the spread of terms are those of text about code.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import sysconfig
from pathlib import Path

import memtool
from memtool.memory import document, timestamps
from memtool.memory.memory import Memory

TYPES = ("decision", "semantic", "episodic", "state")
CATEGORIES = ("decision", "architecture", "pattern", "preference", "error")
BEGIN = timestamps.parse("2022-01-01T00:00:00Z")
NOW = "2026-03-01T12:00:00Z"
ENV = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
    "MEMTOOL_NOW": NOW,
    "PYTHONPATH": str(Path(memtool.__file__).parents[1]),
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "bench",
    "GIT_AUTHOR_EMAIL": "b@example.org",
    "GIT_COMMITTER_NAME": "bench",
    "GIT_COMMITTER_EMAIL": "b@example.org",
}
"""The environment of a program that is measured: the memtool that this one imports, no settings."""


def vocabulary(limit: int = 60_000) -> list[str]:
    """Return words of the standard library's sources, most frequent first."""
    counts: dict[str, int] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for word in "".join(c if c.isalnum() or c == "_" else " " for c in text).split():
            if len(word) > 2 and not word.isdigit():
                counts[word] = counts.get(word, 0) + 1
    return sorted(counts, key=lambda word: (-counts[word], word))[:limit]


def make(folder: Path, count: int, *, seed: int = 7) -> Path:
    """Make a git repository with `count` committed memories below a folder, unless it is there."""
    place = folder / f"memories-{count}"
    if (place / ".git" / "done").exists():
        return place
    draw = random.Random(seed)
    words = vocabulary()
    weights = [1 / (rank + 2.7) for rank in range(len(words))]
    place.mkdir(parents=True, exist_ok=True)
    env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", "-b", "main", str(place)], check=True, env=env)
    for number in range(count):
        second = BEGIN + number * (3 * 365 * timestamps.DAY_S // count)
        title = " ".join(draw.choices(words, weights, k=7))
        body = "\n\n".join(
            " ".join(draw.choices(words, weights, k=draw.randrange(25, 75))) + "." for _ in range(3)
        )
        kind = TYPES[number % 4]
        id_ = f"{kind[:3]}-{timestamps.format_date(second)}-{number:06}"
        memory = Memory(
            fields={
                "id": id_,
                "timestamp": timestamps.render(second),
                "type": kind,
                "title": title,
                "category": CATEGORIES[number % 5],
                "confidence": "medium",
                "source": ("human:bench",),
                "tags": tuple(w.lower() for w in draw.choices(words, weights, k=3)),
                "files": (f"src/{draw.choice(words[:200])}/*.py",),
                "temporal_class": "eternal",
            },
            body=body + "\n",
        )
        path = place / ".memory" / kind / timestamps.format_date(second)[:7] / f"{id_}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(document.write(memory))
    git = ["git", "-C", str(place), "-c", "user.name=bench", "-c", "user.email=b@example.org"]
    subprocess.run([*git, "add", "--all"], check=True, env=env)
    subprocess.run([*git, "commit", "-q", "-m", "memories"], check=True, env=env)
    (place / ".git" / "done").touch()
    return place


if __name__ == "__main__":
    print(make(Path(sys.argv[1]), int(sys.argv[2])))
