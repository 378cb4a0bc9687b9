"""`bench/landing.py` on an invented history with known results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

BENCH = Path(__file__).resolve().parent.parent / "bench" / "landing.py"
LATER = 101
"""Commits after the last merge: the benchmark looks at the hundredth."""
FLOWS = ("squash", "rebase")
CASES = 4 * 2 * 4
"""Of one kind and place: four branches, confirmed and only written, at four distances."""


def rows(name: str, *, is_late: bool = False) -> bytes:
    """Return a file with every line new in the second of two versions."""
    return b"".join(b"%b_step_%d(%d)\n" % (name.encode(), n, n + 100 * is_late) for n in range(9))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a history with four pull requests of two commits.

    The first commit adds a file, the second writes each of its lines anew under the same names.
    """
    parts: list[bytes] = []

    def commit(branch: str, parents: tuple[str, ...], files: dict[str, bytes]) -> str:
        number = sum(part.startswith(b"commit ") for part in parts) + 1
        message = f"Merge pull request #{number}" if len(parents) == 2 else f"commit {number}"
        head = f"commit refs/heads/{branch}\nmark :{number}\n"
        head += f"committer A <a@example.org> {1_700_000_000 + 60 * number} +0000\n"
        head += f"data {len(message)}\n{message}\n"
        head += "".join(
            f"{'merge' if n else 'from'} {parent}\n" for n, parent in enumerate(parents)
        )
        parts.append(head.encode())
        for path, data in files.items():
            parts.append(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
        return f":{number}"

    tip = commit("main", (), {"README": b"Steps.\n"})
    for name in ("red", "green", "blue", "white"):
        path = f"src/{name}/steps.py"
        early = commit(name, (tip,), {path: rows(name)})
        late = commit(name, (early,), {path: rows(name, is_late=True)})
        before = commit("main", (tip,), {f"notes/{name}": b"Meanwhile.\n"})
        tip = commit("main", (before, late), {path: rows(name, is_late=True)})
    for number in range(LATER):
        tip = commit("main", (tip,), {"README": b"Steps, %d.\n" % number})
    folder = tmp_path_factory.mktemp("history")
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", folder], check=True)
    stream = b"".join(parts)
    subprocess.run(["git", "-C", folder, "fast-import", "--quiet"], input=stream, check=True)
    return folder


@pytest.fixture(scope="module")
def answer(history: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the benchmark says of the history."""
    command = [sys.executable, BENCH, "--json", "--count", "4", history]
    temporary = tmp_path_factory.mktemp("temporary")
    env = os.environ | {"TMPDIR": str(temporary)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert not list(temporary.iterdir())
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def test_levels_are_those_after_a_merge(answer: dict[str, Any]) -> None:
    rows = {row["name"]: row for row in answer["drift"]}
    wrong = [row for row in rows.values() if row["unknown"] or row["missed"] or row["invented"]]
    assert not wrong
    lines = [rows[f"{flow}, {at}: lines"] for flow in FLOWS for at in ("head", "middle")]
    assert [row["cases"] for row in lines] == [row["equal"] for row in lines] == 4 * [CASES]
    all_ = [rows[f"{flow}, all without folders"] for flow in FLOWS]
    assert [row["cases"] for row in all_] == 2 * [2 * 3 * CASES]
    assert all_[1]["equal"] == all_[1]["cases"]


def test_a_share_of_lines_that_were_squashed_away_cannot_be_told(answer: dict[str, Any]) -> None:
    rows = {row["name"]: row for row in answer["drift"]}
    assert rows["squash, middle: files"]["equal"] == 0
    levels = {(row["kind"], row["merged"], row["level"]) for row in answer["differences"]}
    assert levels == {
        ("files", "changed", "touched"),
        ("names", "changed", "touched"),
        ("folder", "changed", "same"),
        ("file@", "weak", "sound"),
    }


def test_the_landing_commit_alone_misses_what_the_branch_changed(answer: dict[str, Any]) -> None:
    rows = {row["name"]: row for row in answer["drift"]}
    assert rows["squash, head: lines"]["simple"] == CASES
    middle = rows["squash, middle: lines"]
    assert middle["simple"] == middle["simple_close"] == 0


def test_cited_commits_are_found_where_they_landed(answer: dict[str, Any]) -> None:
    rows = {row["name"]: row for row in answer["sources"]}
    for flow in ("merge", *FLOWS):
        for kind in ("commit", "file@"):
            row = rows[f"{flow}: {kind}"]
            assert row["cases"] == row["right"] == row["resolved"] == 2 * CASES
