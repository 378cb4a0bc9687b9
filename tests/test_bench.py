"""The benchmarks run, on the smallest input each of them takes. What they measure is not judged."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    "premises.py": ("--rounds", "1", "100"),
    "redaction.py": (),
    "sessions.py": ("--rounds", "1", "--kills", "6"),
    "site.py": ("--queries", "5", "100"),
    "web.py": ("--seconds", ".1", "--changes", "1", "--writes", "1", "100"),
}
ON_SETS = {"poison.py": (), "quality.py": (), "silence.py": ("--default",)}
LIBRARIES = {"corpus.py", "retrieval.py"}
OWN_INPUT = {
    "fleet_faults.py",
    "fleet_server.py",
    "landing.py",
    "precisionmem.py",
    "questions.py",
    "replay",
    "rivals.py",
}
"""Ask the database of another tool, which has to be made first, a server from Maven's cache, cases
that others publish, or what `test_bench_landing.py`, `test_bench_questions.py` and
`test_bench_replay.py` make."""


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
        *((name, ON_SETS[name], "peps") for name in ON_SETS),
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


def test_cases_of_beliefs_are_asked_in_the_repository_of_their_scope(tmp_path: Path) -> None:
    """What is pinned, replaced or of another scope or user is not returned."""

    def belief(id_: str, content: str, scope: str, **fields: Any) -> dict[str, Any]:
        plain = {"user_id": "test-user", "type": "entity", "aliases": [], "why_it_matters": "Yes."}
        states = {"pinned": False, "superseded_by": None, "resolved_at": None}
        row = {"_id": id_, "canonical_name": id_, "content": content, "scope": [scope]}
        return {**plain, **states, **row, "created_at": "2026-09-01T00:00:00Z", **fields}

    beliefs = [
        belief("b-parrot", "The parrot sleeps in the attic.", "domain:home"),
        belief("b-cellar", "The parrot sleeps in the cellar.", "domain:home"),
        belief("b-play", "The parrot of the play is stuffed.", "domain:stage"),
        belief("b-pin", "The parrot bites.", "domain:home", pinned=True),
        belief("b-guest", "The parrot is called Otto.", "domain:home", user_id="other-user"),
    ]
    beliefs[1]["superseded_by"] = "b-parrot"
    expect = {"relevantBeliefs": {"shouldOnlyInclude": ["b-parrot"]}}
    query = "where does the parrot sleep?"
    case = {"caseId": "c1", "scope": ["domain:home"], "query": query, "expect": expect}
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "beliefs.seed.json").write_text(json.dumps(beliefs))
    (tmp_path / "fixtures" / "retrieval.cases.json").write_text(json.dumps([case]))
    done = run(BENCH / "precisionmem.py", str(tmp_path), temporary=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1.000     1.000     1 of 1" in done.stdout


def test_every_benchmark_is_run() -> None:
    there = {
        path.name
        for path in BENCH.iterdir()
        if path.suffix == ".py" or (path / "__main__.py").exists()
    }
    assert there == {*SMALLEST, *LIBRARIES, *OWN_INPUT, *ON_SETS, "fleet.py"}
