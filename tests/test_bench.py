"""The benchmarks run, on the smallest input each of them takes. What they measure is not judged."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCH = Path(__file__).resolve().parent.parent / "bench"
SETS = ("peps", "adrs", "beads")
DOCUMENTS = 70
"""`bench/silence.py` takes samples of 60, half of which are asked about."""
SMALLEST = {
    "agents": ("decision in a prompt",),
    "cold.py": ("--rounds", "1", "100"),
    "drift.py": ("20",),
    "duplicates.py": (),
    "extraction.py": (),
    "hook.py": ("--rounds", "1", "100"),
    "maintain.py": ("100",),
    "mcp_server.py": ("--rounds", "1", "--calls", "1", "100"),
    "passes.py": ("show", "check"),
    "redaction.py": (),
    "sessions.py": ("--rounds", "1"),
    "site.py": ("--queries", "5", "100"),
    "web.py": ("--seconds", ".1", "--changes", "1", "--writes", "1", "100"),
}
ON_SETS = ("poison.py", "quality.py", "silence.py")
LIBRARIES = {"corpus.py", "retrieval.py"}
OWN_INPUT = {"fleet_faults.py", "fleet_server.py", "landing.py", "replay", "rivals.py"}
"""Ask the database of another tool, which has to be made first, a server from Maven's cache, or the
histories that `test_bench_landing.py` and `test_bench_replay.py` make."""


def run(script: Path, *args: str, temporary: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"TMPDIR": str(temporary)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, str(script), *args],
        check=False,
        capture_output=True,
        text=True,
        env=env,
    )


@pytest.mark.parametrize("name", sorted(SMALLEST))
def test_a_benchmark_runs(name: str, tmp_path: Path) -> None:
    done = run(BENCH / name, *SMALLEST[name], temporary=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Make a copy of the benchmarks next to small retrieval sets, as they look for them."""
    data = tmp_path / "shared" / "data" / "retrieval"
    for name in SETS:
        (data / name).mkdir(parents=True)
        ids = [f"{name}-{number:03}" for number in range(DOCUMENTS)]
        rows = [
            {
                "id": id_,
                "title": f"Choice {id_}",
                "text": f"The {id_} daemon keeps its ledger in {'store' + str(number)}.",
                "meta": {"type": "decision", "date": "2024-01-01", "tags": [], "status": "active"},
            }
            for number, id_ in enumerate(ids)
        ]
        with gzip.open(data / name / "corpus.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        queries = [
            {"qid": f"q{number}", "text": f"where is the ledger of {id_}?", "asof": "2025-01-01"}
            for number, id_ in enumerate(ids)
        ]
        (data / name / "queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in queries))
        grades = [f"q{number}\t{id_}\t1\n" for number, id_ in enumerate(ids)]
        (data / name / "qrels.tsv").write_text("".join(grades))
    chain = data / "peps-supersession"
    shutil.copytree(data / "peps", chain)
    (chain / "supersession.tsv").write_text(
        "".join(f"q{number}\tpeps-{number:03}\tcurrent\n" for number in range(DOCUMENTS))
    )
    shutil.copytree(BENCH, tmp_path / "clone" / "bench")
    return tmp_path / "clone" / "bench"


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        *((name, (), "peps") for name in ON_SETS),
        ("fleet.py", ("--order",), "peps"),
        ("fleet.py", ("3", "4"), "3 repositories, 12 memories"),
    ],
)
def test_a_benchmark_on_the_retrieval_sets_runs(
    name: str, args: tuple[str, ...], expected: str, copied: Path, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = run(copied / name, *args, temporary=temporary)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


@pytest.mark.parametrize("name", [*ON_SETS, "fleet.py"])
def test_absent_sets_are_named(name: str, copied: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "shared")
    done = run(copied / name, temporary=tmp_path)
    assert done.returncode == 1
    assert "the retrieval sets are not there" in done.stderr


def test_every_benchmark_is_run() -> None:
    there = {
        path.name
        for path in BENCH.iterdir()
        if path.suffix == ".py" or (path / "__main__.py").exists()
    }
    assert there == {*SMALLEST, *LIBRARIES, *OWN_INPUT, *ON_SETS, "fleet.py"}
