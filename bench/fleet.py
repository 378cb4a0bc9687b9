"""The fleet at scale: many repositories on one machine, synced and asked.

    python bench/fleet.py                  200 repositories, 100,000 memories
    python bench/fleet.py 20 100           20 repositories of 100 memories each
    python bench/fleet.py --order          the order of the answers, beside the local search
    python bench/fleet.py --similar        all decisions compared with each other: CPU and memory

Repositories are made below the temporary directory, once, of passages of the retrieval sets
(`retrieval.py`), 30 to 120 words each, through git fast-import. Half of them are read where they
lie, the other half are fetched as remotes (file://). Printed are the seconds of a first sync, of
one where nothing changed, and of one where three repositories did; and the milliseconds of a
question, p50 and p95: in a new process each time (`cold`, the whole of `memtool search --fleet`),
and in one process (`warm`). Questions are those of the sets.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
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


def memory(id_: str, title: str, text: str, kind: str = "semantic") -> bytes:
    """Return the file of a memory."""
    plain = " ".join("".join(c if c.isalnum() else " " for c in title).split())[:120] or "untitled"
    return (
        f"---\nid: {id_}\ntimestamp: 2026-10-01T12:00:00Z\ntype: {kind}\ntitle: {plain}\n"
        f"category: pattern\nstatus: confirmed\nconfidence: medium\nsource:\n  - human:Ada\n---\n"
        f"{text}\n"
    ).encode()


def commit(
    place: Path, documents: list[tuple[str, str, str]], env: dict[str, str], kind: str = "semantic"
) -> None:
    """Add memories to a repository as one commit."""
    rows = [b"commit refs/heads/main\ncommitter Ada <ada@example.org> 1790000000 +0000\n"]
    rows.append(b"data 4\nmore")
    has_parent = (place / "refs/heads/main").exists() or (place / "packed-refs").exists()
    rows.append(b"\nfrom refs/heads/main^0\n" if has_parent else b"\n")
    for id_, title, text in documents:
        data = memory(id_, title, text, kind)
        path = f".memory/{kind}/2026-10/{id_}.md"
        rows.append(b"M 100644 inline %b\n" % path.encode())
        rows.append(b"data %d\n%b\n" % (len(data), data))
    subprocess.run(
        ["git", "-C", str(place), "fast-import", "--quiet"],
        input=b"".join(rows),
        env=env | {"GIT_DIR": str(place)},
        check=True,
    )


def fleet(count: int, each: int, kind: str = "semantic") -> tuple[Path, dict[str, str]]:
    """Make the repositories and a project that asks them, unless that was done before."""
    place = FOLDER / (f"{count}-{each}" + (kind == "decision") * "-decisions")
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
        commit(repository, [(name, *next(source)) for name in names], env, kind)
    project = place / "project"
    subprocess.run(["git", "init", "-q", "-b", "main", str(project)], env=env, check=True)
    for n in range(300):
        title, text = next(source)
        file = project / ".memory/semantic/2026-10" / f"sem-own-{n:04}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(memory(file.stem, title, text))
    subprocess.run(["git", "-C", str(project), "add", "-A"], env=env, check=True)
    subprocess.run(["git", "-C", str(project), "commit", "-qm", "own"], env=env, check=True)
    far = [f"file://{path}" for path in sorted((place / "far").glob("*/*"))]
    memtool(
        project,
        env,
        "--global",
        "config",
        "fleet.repositories",
        ",".join([f"{place}/near/*/*", *far]),
    )
    (place / "done").touch()
    return place, env


def memtool(place: Path, env: dict[str, str], *args: str) -> str:
    """Run memtool and return its answer."""
    done = subprocess.run(
        [sys.executable, "-m", "memtool", *args],
        cwd=place,
        env=env | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode > 1:
        raise SystemExit(f"memtool {' '.join(args)}: {done.stderr}")
    return done.stdout


def seconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def percentiles(times_s: list[float]) -> str:
    """Return p50 and p95 of seconds as milliseconds."""
    cuts = statistics.quantiles([duration_s * 1000 for duration_s in times_s], n=20)
    return f"p50 {statistics.median(times_s) * 1000:6.0f} ms   p95 {cuts[18]:6.0f} ms"


def scale(count: int, each: int) -> None:
    """Print what syncs and questions cost."""
    place, env = fleet(count, each)
    project = place / "project"
    shutil.rmtree(place / "home/.cache", ignore_errors=True)
    print(f"{count} repositories, {count * each:,} memories, half of them fetched")
    print(
        f"sync, the first time   {seconds(lambda: memtool(project, env, 'fleet', 'sync')):8.1f} s"
    )
    print(
        f"sync, nothing changed  {seconds(lambda: memtool(project, env, 'fleet', 'sync')):8.1f} s"
    )
    source = passages(random.Random(time.time_ns()))
    for number, repository in enumerate(sorted(place.glob("*/team*/service-*"))[:CHANGED]):
        names = (f"sem-2026-10-02-more-{time.time_ns()}-{number}{n}" for n in range(10))
        commit(repository, [(name, *next(source)) for name in names], env)
    print(
        f"sync, {CHANGED} changed        "
        f"{seconds(lambda: memtool(project, env, 'fleet', 'sync')):8.1f} s"
    )
    status = json.loads(memtool(project, env, "fleet", "status", "--json"))
    print(f"on disk {status['size'] / 1e6:.0f} MB, {status['memories']:,} memories")
    questions = [text for name in SETS[:2] for text, _grades in retrieval.questions(name)]
    questions = [" ".join(words(text)) for text in questions]
    questions = random.Random(3).sample(questions, min(WARM, len(questions)))
    memtool(project, env, "search", questions[0])
    local, cold = [], []
    for text in questions[: min(COLD, count)]:
        local.append(seconds(lambda text=text: memtool(project, env, "search", text)))
        cold.append(seconds(lambda text=text: memtool(project, env, "search", "--fleet", text)))
    fleet_s = [max(0.0, total - other) for total, other in zip(cold, local, strict=True)]
    print(f"cold, search            {percentiles(local)}")
    print(f"cold, search --fleet    {percentiles(cold)}")
    print(f"cold, the fleet's part  {percentiles(fleet_s)}")
    warm, late = [], 0
    for text, duration_s in asking(project, env, questions):
        warm.append(duration_s)
        late += text != ""
    print(f"warm, the fleet's part  {percentiles(warm)}   without an answer: {late} of {len(warm)}")


def similar(count: int, each: int) -> None:
    """Print what it costs to compare all decisions with each other."""
    place, env = fleet(count, each, "decision")
    memtool(place / "project", env, "fleet", "sync")
    command = [sys.executable, "-m", "memtool", "fleet", "similar", "--all", "--seconds", "3600"]
    began = time.perf_counter()
    child = subprocess.Popen(
        command,
        cwd=place / "project",
        env=env | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    output = child.stdout.read() if child.stdout else ""
    _pid, _status, used = os.wait4(child.pid, 0)
    print(
        f"{used.ru_utime + used.ru_stime:.1f} s of CPU, {time.perf_counter() - began:.1f} s, "
        f"{used.ru_maxrss / 1024:.0f} MB: {output.splitlines()[-1]}"
    )


def words(text: str) -> list[str]:
    """Return the words of a question, without what might be an operator."""
    plain = "".join(c if c.isalnum() else " " for c in text)
    return [word for word in plain.split() if word != "OR"]


def asking(project: Path, env: dict[str, str], questions: list[str]) -> Iterator[tuple[str, float]]:
    """Ask in this process, and yield of each question why there was no answer, and its seconds."""
    from memtool.fleet import ask
    from memtool.index import index, scoring
    from memtool.store.context import Context

    context = Context.at(str(project), env)
    own = index.open(context).index
    for text in questions:
        began = time.perf_counter()
        answer = ask.ask_fleet(context, scoring.parse_question(text), own, limit=10, text=text)
        yield "" if answer.is_reached else answer.note, time.perf_counter() - began


SPREAD = 20
"""Repositories over which a set is spread."""


def repository_of(path: str, count: int) -> str:
    """Return which of `n` repositories a document is in."""
    return f"acme/r{zlib.crc32(path.encode()) % count}"


def order() -> None:
    """Print how near the order of the fleet is to that of the local search, by whose statistics.

    The set lies in one repository where its own statistics rank it, else it is spread over several.
    """
    import quality

    from memtool.fleet import rank
    from memtool.fleet.backend import CANDIDATES, FleetCandidate
    from memtool.index import scoring
    from memtool.index.index import open as index_of
    from memtool.index.reader import IndexReader
    from memtool.index.revision import build_in_memory
    from memtool.index.scoring import MIN_MEMORIES
    from memtool.store.context import Context

    env = environment(FOLDER / "nobody")
    contexts = [Context.at(str(quality.made(name)), env) for name in SETS[:2]]
    stores = {name: index_of(context).index for name, context in zip(SETS, contexts, strict=False)}

    def limit_index(index: IndexReader, count: int) -> IndexReader:
        """Return an index of a few of the memories."""
        numbers = random.Random(5).sample(range(index.count), count)
        return IndexReader(
            [build_in_memory(list(map(index.record, numbers)), contexts[0].settings)]
        )

    print("same order of ten, same set, same first; recall@5, nDCG@10")
    for name, index in stores.items():
        other = next(store for key, store in stores.items() if key != name)
        statistics_of = {
            "the set itself": index,
            "the other set": other,
            "ten of the other": limit_index(other, 10),
            "no memories": limit_index(other, 0),
        }
        rows: dict[str, list[tuple[float, ...]]] = {}
        for text, grades in retrieval.questions(name):
            question = scoring.parse_question(text)
            best = index.find_best(question.weights, 30, lambda _number: True)
            hits = index.rerank(question, best)[:10]
            local = [Path(index.path(number)).stem for number, _score in hits]
            rows.setdefault("local search", []).append((1, 1, 1, *retrieval.scores(local, grades)))
            for key, own in statistics_of.items():
                numbers = own.statistics(question.weights)
                query = rank.build_query(question, numbers)
                best = index.find_best(query.weights, CANDIDATES, lambda _number: True)
                is_one = own is index
                candidates = [
                    FleetCandidate(
                        repository_of(index.path(n), 1 if is_one else SPREAD),
                        "",
                        index.path(n),
                        b"",
                        index.text(n),
                    )
                    for n, _score in best
                ]
                for voices in ("", ", and voices") if own.count < MIN_MEMORIES else ("",):
                    if voices:
                        numbers = rank.with_repository_votes(numbers, question, candidates)
                    ranked = rank.rank_candidates(question, candidates, numbers)[:10]
                    ids = [Path(hit.candidate.path).stem for hit in ranked]
                    rows.setdefault(key + voices, []).append(
                        (
                            ids == local,
                            set(ids) == set(local),
                            ids[:1] == local[:1],
                            *retrieval.scores(ids, grades),
                        )
                    )
        for key, values in rows.items():
            means = [statistics.mean(column) for column in zip(*values, strict=True)]
            print(
                f"{name:5} {len(values):4} questions  {key:29} "
                + "  ".join(f"{mean:.3f}" for mean in means)
            )


if __name__ == "__main__":
    if not retrieval.DATA.is_dir():
        raise SystemExit(f"the retrieval sets are not there: {retrieval.DATA}")
    if "--order" in sys.argv:
        order()
    else:
        numbers = [int(word) for word in sys.argv[1:] if word.isdigit()] or [200, 500]
        (similar if "--similar" in sys.argv else scale)(*numbers)
