"""The static site: how long it takes to make, what it weighs, and what a search reads of it.

    python bench/site.py [--queries N] [1000 10000]

`memtool site` runs as a process of its own on a clone of a tree of `corpus` to which people have
come back: every twentieth memory was superseded, and every tenth confirmed, in twenty commits.
`cold` has no cache at all, as in CI; `warm` writes another folder after that; `nothing` and `one
change` go over the folder that is there. Seconds are of the wall, `CPU` is user and system time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from corpus import CATEGORIES, ENV, make, vocabulary

from memtool.index.analyzer import ENGLISH, is_stop, stem, terms
from memtool.memory import document, timestamps
from memtool.memory.memory import Memory

SUPERSEDED, CONFIRMED, COMMITS = 20, 10, 20


def git(place: Path, *args: str) -> None:
    """Run git quietly."""
    subprocess.run(["git", "-C", str(place), *args], check=True, env=ENV, capture_output=True)


def lived_in(original: Path, place: Path) -> None:
    """Clone a tree, and let memories be superseded and confirmed in some commits."""
    git(original, "clone", "--quiet", str(original), str(place))
    program = [sys.executable, "-m", "memtool", "redact"]  # words drawn by lot look like secrets
    subprocess.run(program, cwd=place, env=ENV, check=False, capture_output=True)
    shutil.rmtree(place / ".git/memtool")
    paths = sorted(place.glob(".memory/*/*/*.md"))
    for number in range(COMMITS):
        some = paths[number::COMMITS]
        for path in some[::SUPERSEDED]:
            supersede(path)
        for path in some[1::CONFIRMED]:
            text = path.read_text()
            path.write_text(text.replace("\nconfidence: medium\n", "\nconfidence: high\n", 1))
        git(place, "add", "--all")
        git(place, "commit", "--quiet", "--message", f"change {number}")


def supersede(path: Path) -> None:
    """Write a memory that replaces another."""
    old = document.read(path.read_bytes(), str(path), CATEGORIES)
    second = old.timestamp + timestamps.DAY_S
    id_ = f"{old.id}-b"
    fields = old.fields | {
        "id": id_,
        "timestamp": timestamps.render(second),
        "title": f"{old.title} now",
        "supersedes": (old.id,),
    }
    path.with_name(f"{id_}.md").write_bytes(document.write(Memory(fields, old.body)))


def measured(place: Path, site: Path) -> tuple[float, float, dict[str, int]]:
    """Make a site, and return wall and CPU seconds and what it answered."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    argv = [sys.executable, "-m", "memtool", "site", str(site), "--json"]
    done = subprocess.run(argv, cwd=place, env=ENV, check=True, capture_output=True)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, cpu, json.loads(done.stdout)


def weighed(site: Path, queries: int) -> list[str]:
    """Return rows about sizes: pages, the index, and what a question of five words reads."""
    sizes = {
        path.relative_to(site).as_posix(): (path.stat().st_size, packed(path))
        for path in site.rglob("*")
        if path.is_file()
    }
    pages = sorted(gz for name, (_size, gz) in sizes.items() if name.endswith(".html"))
    parts = {name: gz for name, (_size, gz) in sizes.items() if name.startswith("words/words-")}
    table = sum(gz for name, (_size, gz) in sizes.items() if name.startswith("words/memories-"))
    index = json.loads((site / "words/index.js").read_text()[len('memtool("index",') : -3])
    draw, words = random.Random(7), vocabulary()[:20_000]
    weights = [1 / (rank + 2.7) for rank in range(len(words))]
    read = []
    for _ in range(queries):
        query_words = [
            word for text in draw.choices(words, weights, k=5) for word in looked_up(text)
        ]
        wanted = {f"words/words-{part(index['words'], word)}.js" for word in query_words}
        read.append(sum(parts[name] for name in wanted if name in parts))
    read.sort()
    return [
        f"  {len(sizes):,} files, {sum(size for size, _gz in sizes.values()) / 1e6:.1f} MB",
        f"  page: median {pages[len(pages) // 2] / 1e3:.1f} kB gz, most {pages[-1] / 1e3:.1f}",
        f"  table of memories: {(table + sizes['words/index.js'][1]) / 1e3:.0f} kB gz, once",
        f"  {len(parts)} parts of words: most {max(parts.values()) / 1e3:.1f} kB gz",
        f"  five words: median {read[len(read) // 2] / 1e3:.1f} kB gz, most {read[-1] / 1e3:.1f}",
    ]


def packed(path: Path) -> int:
    """Return the size of a file as a web server sends it."""
    return len(gzip.compress(path.read_bytes(), 6))


def looked_up(text: str) -> set[str]:
    """Return what a page looks up for a word: as it is written, and its terms."""
    forms = terms(text, "")
    stems = {stem(form, ENGLISH) for form in forms}
    return {*forms, *(term for term in stems if not is_stop(term))}


def part(prefixes: list[str], word: str) -> int:
    """Return the number of the part that holds a word."""
    return max((len(prefix), at) for at, prefix in enumerate(prefixes) if word.startswith(prefix))[
        1
    ]


def main() -> None:
    """Measure trees of the sizes that were given."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--queries", type=int, default=500)
    options.add_argument("counts", nargs="*", type=int, default=[1000, 10000])
    args = options.parse_args()
    base = Path(tempfile.gettempdir()) / "memtool-bench"
    for count in args.counts:
        with tempfile.TemporaryDirectory() as folder:
            place, site = Path(folder) / "clone", Path(folder) / "site"
            lived_in(make(base, count), place)
            print(f"{count:,} memories", flush=True)
            for name, goal in (("cold", "first"), ("warm", "site"), ("nothing", "site")):
                shutil.rmtree(Path(folder) / "first", ignore_errors=True)
                took, cpu, report = measured(place, Path(folder) / goal)
                print(
                    f"  {name}: {took:.1f} s, CPU {cpu:.1f} s, {report['written']:,} written",
                    flush=True,
                )
            supersede(sorted(place.glob(".memory/*/*/*.md"))[count // 2])
            git(place, "add", "--all")
            git(place, "commit", "--quiet", "--message", "one more")
            took, cpu, report = measured(place, site)
            print(f"  one change: {took:.1f} s, CPU {cpu:.1f} s, {report['written']:,} written")
            print("\n".join(weighed(site, args.queries)), flush=True)


if __name__ == "__main__":
    main()
