"""Hostile files give problems, not tracebacks; odd but honest ones pass."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NOW, PIPED, Sandbox
from gate import hostile
from gate.hostile import Case

from memtool.commands.check import check, render
from memtool.store.context import Context

CASES = {case.name: case for case in hostile.cases()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One repository without commits, for all cases: a new one each would take a minute."""
    path = tmp_path_factory.mktemp("hostile")
    subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True)
    return path


@pytest.fixture
def opened(place: Path) -> Context:
    shutil.rmtree(place / ".memory", ignore_errors=True)
    (place / ".git" / "index").unlink(missing_ok=True)
    (place / ".memory").mkdir()
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(place), "MEMTOOL_NOW": NOW}
    return Context.at(str(place), env)


def test_the_corpus_is_large_and_has_controls() -> None:
    """Refusing everything must not pass, nor accepting everything."""
    refused = [case for case in hostile.cases() if case.code]
    assert len(list(hostile.cases())) == len(CASES)
    assert len(refused) >= 150
    assert len(CASES) - len(refused) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_worktree_gets_its_verdict(opened: Context, place: Path, name: str) -> None:
    """Every case is refused by its code and file, or accepted, and no file changes."""
    case = CASES[name]
    hostile.write(case, place / ".memory")
    before = snapshot(place / ".memory")
    report = check(opened)
    verdict(case, report.problems)
    assert render(report, PIPED)
    assert snapshot(place / ".memory") == before


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if "2,000" in name else name for name in CASES],
)
def test_the_index_gets_the_same_verdict(opened: Context, place: Path, name: str) -> None:
    """A file that is refused on disk is refused when it is staged."""
    case = CASES[name]
    hostile.write(case, place / ".memory")
    subprocess.run(["git", "-C", str(place), "add", "-A", "-f"], check=True, capture_output=True)
    verdict(case, check(opened, staged=True).problems)


def verdict(case: Case, problems: tuple) -> None:
    errors = [problem for problem in problems if problem.severity == "error"]
    rows = [(problem.code, problem.path, problem.message) for problem in problems]
    if not case.code:
        assert not errors, rows
        return
    assert errors, rows
    paths = {problem.path for problem in errors}
    mine = {f".memory/{path}" for path in (*case.files, *case.links)}
    assert paths <= mine
    if case.code != "*":
        assert case.code in {problem.code for problem in errors}, rows
    assert all(problem.hint and problem.message for problem in errors), rows


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.slow
def test_a_process_prints_no_traceback_and_no_control_characters(sandbox: Sandbox) -> None:
    """All cases at once, each in a directory of its own, in a real process with a C locale."""
    for number, case in enumerate(CASES.values()):
        if "2,000" not in case.name and len(case.files) < 4:
            hostile.write(case, sandbox.path / ".memory" / f"case{number}")
    for options in ((), ("--json",)):
        done = subprocess.run(
            [sys.executable, "-m", "memtool", "check", *options],
            cwd=sandbox.path,
            env=sandbox.env | {"LC_ALL": "C", "LANG": "C"},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 1, done.stderr[-2000:]
        assert b"Traceback" not in done.stderr
        assert not set(done.stdout) & (set(range(32)) - {10})
        assert "\u202e".encode() not in done.stdout


def test_directories_have_a_depth(opened: Context, place: Path) -> None:
    """Deeper directories are reported, not walked."""
    deep = "/".join("abcdefghijklmnop")
    hostile.write(Case("deep", {f"{deep}/dec-x.md": hostile.whole()}, ""), place / ".memory")
    (problem,) = check(opened).problems
    assert problem.code == "unreadable"
    assert f".memory/{deep}".startswith(problem.path)


def test_a_pipe_in_the_tree_is_not_waited_for(sandbox: Sandbox) -> None:
    """A named pipe would block who opens it."""
    import os

    (sandbox.path / ".memory" / "decision").mkdir()
    os.mkfifo(sandbox.path / ".memory" / "decision" / "dec-x.md")
    report = check(sandbox.context())
    assert [problem.code for problem in report.problems] == ["symlink"]


def test_a_memory_directory_that_is_a_link_is_refused(sandbox: Sandbox) -> None:
    """Nothing is read through it."""
    (sandbox.path / ".memory").rmdir()
    outside = sandbox.path.parent / "outside"
    outside.mkdir()
    (outside / "dec-x.md").write_bytes(hostile.whole())
    (sandbox.path / ".memory").symlink_to(outside)
    report = check(sandbox.context())
    assert (report.checked, [problem.code for problem in report.problems]) == (0, ["symlink"])
    sandbox.git("add", ".memory")
    staged = check(sandbox.context(), staged=True)
    assert [problem.code for problem in staged.problems] == ["symlink"]
