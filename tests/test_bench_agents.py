"""The measurement of what an agent could know: a task of it runs, and its stub is honest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

AGENTS = Path(__file__).resolve().parent.parent / "bench" / "agents"
TASK = "trap at an edit"


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(AGENTS), *args], check=False, capture_output=True, text=True
    )


def test_a_task_shows_what_memory_adds() -> None:
    """Without memory the trap is not known; with it, at the edit and not before."""
    done = run(TASK, "--json")
    assert done.returncode == 0, done.stderr
    (task,) = json.loads(done.stdout)["tasks"]
    arms = task["arms"]
    assert [
        (name, arm["right"], arm["present"], arm["tokens"] > 0) for name, arm in arms.items()
    ] == [
        ("without", 0, 0, False),
        ("memtool", 1, 1, True),
        ("notes", 1, 1, True),
    ]
    assert [step["tokens"] > 0 for step in arms["memtool"]["steps"]] == [True, False, True]
    assert arms["memtool"]["again"] == 0


@pytest.mark.slow
def test_a_program_is_asked_in_place_of_the_stub(tmp_path: Path) -> None:
    """It reads what the session has seen and the options, and the last one that it names counts."""
    model = tmp_path / "model.py"
    model.write_text(
        "import sys\n"
        "given = sys.stdin.read()\n"
        "assert 'card-number, payment-id' in given and 'You edited' in given\n"
        "print('Not card-number:' if 'Never log' in given else '', 'PAYMENT-ID')\n"
    )
    done = run(TASK, "--json", "--model-command", f"{sys.executable} {model}")
    assert done.returncode == 0, done.stderr
    (task,) = json.loads(done.stdout)["tasks"]
    assert [arm["right"] for arm in task["arms"].values()] == [1, 1, 1]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("no such task",), "there is no task 'no such task'"),
        ((TASK, "--model-command", "/nowhere/model"), "the model command failed"),
        ((TASK, "--model-command", "'"), "--model-command cannot be read"),
        ((TASK, "--model-command", ""), "--model-command cannot be read"),
    ],
)
def test_what_cannot_be_run_is_named(args: tuple[str, ...], words: str) -> None:
    """Before anything is made, as far as that can be seen."""
    done = run(*args)
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr
