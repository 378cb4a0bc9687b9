"""`bench/questions.py` on an invented store with known answers, and the form of its questions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parent.parent / "bench"
FOLDER = "docs/adr"
RECORDS = {
    "0001-sessions.md": "# 1. Keep sessions in Redis\n\n## Status\n\nAccepted\n\n"
    "## Decision\n\nSessions live in Redis, since Postgres was too slow.\n",
    "0002-backups.md": "# 2. Encrypt backups with age\n\n## Status\n\nAccepted\n\n"
    "## Decision\n\nNightly backups are encrypted with age before they leave Oslo.\n",
    "0003-queue.md": "# 3. Use RabbitMQ as queue\n\n## Status\n\nAccepted\n\n"
    "## Decision\n\nEvents of the harbour go through RabbitMQ.\n",
}
ASKED = (
    ("why do we keep sessions in redis?", ["0001-sessions.md"], "answer"),
    ("are backups encrypted with age?", ["0002-backups.md"], "answer"),
    ("do we keep sessions in redis?", ["0003-queue.md"], "answer"),
    ("who cleans the windows of the office?", [], "near miss"),
    ("reverse a linked list in python", [], "generic"),
)


def git(folder: Path, *args: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    return subprocess.run(
        [*command, *args], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """Make a mirror with one repository, and a file of questions to it and to a missing one."""
    clone = tmp_path / "mirror" / "acme+harbor" / "repo"
    (clone / FOLDER).mkdir(parents=True)
    for name, text in RECORDS.items():
        (clone / FOLDER / name).write_text(text)
    git(clone, "init", "-q", "-b", "main")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "records")
    store = {"repository": "acme/harbor", "commit": git(clone, "rev-parse", "HEAD")}
    rows: list[dict[str, Any]] = [
        {**store, "folder": FOLDER, "question": text, "expect": expect, "kind": kind}
        for text, expect, kind in ASKED
    ]
    rows.append(rows[0] | {"repository": "acme/missing"})
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "questions.jsonl").write_text(lines)
    return tmp_path / "mirror"


@pytest.mark.slow
def test_answers_are_counted_and_missing_stores_are_reported(mirror: Path, tmp_path: Path) -> None:
    """Nothing stays below the temporary directory."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, BENCH / "questions.py", "--json", "--mirror", mirror]
    done = subprocess.run(
        [*command, "--questions", tmp_path / "questions.jsonl"],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert done.returncode == 0, done.stderr
    assert "acme/missing is left out: it is not in the mirror" in done.stderr
    assert not list(temporary.iterdir())
    answer = json.loads(done.stdout)
    assert answer["figures"]["acme/harbor"] == {
        "records": 3,
        "asked": 3,
        "right": 2,
        "wrong": 1,
        "silent": 0,
        "lost": 0,
        "three": 2,
        "shown": "1.00",
        "near": "0/1",
        "generic": "0/1",
    }
    verdicts = [outcome["verdict"] for outcome in answer["outcomes"]]
    assert verdicts == ["right", "right", "wrong", "silent", "silent"]


def test_every_store_has_questions_of_each_kind() -> None:
    """Three to six with an answer, two near misses and two generic prompts; none twice."""
    lines = (BENCH / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    kinds: dict[str, Counter[str]] = {}
    for row in rows:
        kinds.setdefault(row["repository"], Counter())[row["kind"]] += 1
        assert bool(row["expect"]) == (row["kind"] == "answer") == ("style" in row), row
    wrong = {
        name: counts
        for name, counts in kinds.items()
        if not 3 <= counts["answer"] <= 6 or counts["near miss"] != 2 or counts["generic"] != 2
    }
    assert not wrong
    assert len({(row["repository"], row["question"]) for row in rows}) == len(rows)
