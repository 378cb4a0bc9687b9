from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox

from memtool.reports import answers


@pytest.fixture
def review(sandbox: Sandbox) -> dict[str, Any]:
    """The answer of a review with one decision, which is not mentioned."""
    sandbox.write("a.py", "a = 1\n")
    sandbox.memory("dec-a", files=("a.py",))
    sandbox.commit()
    sandbox.write("a.py", "b = 1\n")
    sandbox.commit()
    return dict(sandbox.json("review", "HEAD~1"))


@pytest.mark.parametrize("format", ["text", "markdown", "github", "sarif"])
@pytest.mark.parametrize("call", [("check",), ("review", "HEAD~1")])
def test_an_answer_is_formatted_as_if_it_were_new(
    sandbox: Sandbox, review: dict[str, Any], call: tuple[str, ...], format: str
) -> None:
    """The JSON has all that a format shows, and the exit code is that of the verb."""
    sandbox.write(".memory/semantic/broken.md", "no frontmatter\n")
    sandbox.git("config", "x.y", "z")
    (sandbox.path / "answer.json").write_text(json.dumps(sandbox.json(*call)))
    again = sandbox.run(call[0], "--from", "answer.json", "--format", format)
    fresh = sandbox.run(*call, "--format", format)
    text = fresh.stdout
    if call[0] == "review" and format == "text":
        assert "dec-a" in text
    assert (again.stdout, again.returncode) == (text, fresh.returncode)
    assert review["unmentioned"] == 1


def edit(path: str, value: object) -> Callable[[dict[str, Any]], object]:
    """Return what replaces a part of an answer, as `files.0.line`."""

    def change(answer: dict[str, Any]) -> object:
        at: Any = answer
        *above, last = (int(key) if key.isdigit() else key for key in path.split("."))
        for key in above:
            at = at[key]
        if value is None:
            del at[last]
        else:
            at[last] = value
        return answer

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda _answer: [],
        lambda _answer: "text",
        lambda answer: {**answer, "touched": 10**12},
        edit("touched", "1"),
        edit("touched", True),
        edit("touched", -1),
        edit("touched", 1.5),
        edit("from", "--output=x"),
        edit("files", {}),
        edit("files.0", 3),
        edit("files.0.path", ["a"]),
        edit("files.0.memories.0.due", "false"),
        edit("files.0.memories.0.state", "</li><b>"),
        edit("files.0.memories.0.title", None),
    ],
)
def test_an_answer_of_another_form_is_refused(
    sandbox: Sandbox, review: dict[str, Any], change: Callable[[dict[str, Any]], object]
) -> None:
    """Who made the file may be a stranger: a wrong type is one sentence, and quotes nothing."""
    sandbox.write("answer.json", json.dumps(change(review)))
    done = sandbox.run("review", "--from", "answer.json", "--format", "markdown")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not an answer of review" in done.stderr
    assert "</li>" not in done.stderr


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[" * 100_000, b"{", b'{"checked": NaN}'])
def test_what_is_no_json_is_refused(sandbox: Sandbox, data: bytes) -> None:
    """Also if it is nested without end."""
    sandbox.write("answer.json", data)
    done = sandbox.run("check", "--from", "answer.json", "--json")
    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["code"] == "no-answer"


def test_a_problem_has_a_code_and_a_severity(sandbox: Sandbox) -> None:
    """They are shown as words of ours, so they cannot be anything else."""
    problem = {"path": "a", "line": 1, "code": "x", "message": "m", "severity": "error"}
    for wrong in ({"code": "[x](y)"}, {"code": ""}, {"severity": "::error"}, {"code": "x" * 41}):
        answer = {"checked": 1, "problems": [problem | wrong]}
        sandbox.write("answer.json", json.dumps(answer))
        assert sandbox.run("check", "--from", "answer.json").returncode == 2
    sandbox.write("answer.json", json.dumps({"checked": 1, "problems": [problem], "new": {}}))
    assert sandbox.run("check", "--from", "answer.json").returncode == 1


def test_only_a_regular_file_of_some_size_is_read(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No link, pipe or directory, and nothing that fills the memory."""
    monkeypatch.setattr(answers, "MAX_BYTES", 1_000)
    sandbox.write("large.json", json.dumps({"checked": 1, "problems": [], "x": "x" * 1_000}))
    (sandbox.path / "link.json").symlink_to(tmp_path)
    os.mkfifo(sandbox.path / "pipe.json")
    for name in ("large.json", "link.json", "pipe.json", "absent.json", "."):
        done = sandbox.run("check", "--from", name)
        assert (done.returncode, done.stdout) == (2, "")


def test_an_answer_excludes_what_would_be_checked(sandbox: Sandbox) -> None:
    """A file that was written before has no range any more."""
    for call in (("check", "--staged"), ("check", ".memory"), ("review", "HEAD")):
        done = sandbox.run(*call, "--from", "answer.json")
        assert done.returncode == 2
        assert "exclude each other" in done.stderr
