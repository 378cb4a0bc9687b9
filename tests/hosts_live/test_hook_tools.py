"""Hooks of husky and lefthook, from npm at pinned versions, next to those of memtool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Sandbox
from hosts_live.packages import install_pinned

from memtool.commands.install import install, uninstall
from memtool.hosts import diagnostics, git_probe

pytestmark = pytest.mark.live

PINNED = {"husky": "9.1.7", "lefthook": "2.0.4"}


@pytest.fixture(scope="module")
def modules() -> Path:
    """Return the `node_modules` of the tools; the tests skip where npm cannot bring them."""
    return install_pinned("memtool-live-hooks", PINNED)


@pytest.fixture
def project(sandbox: Sandbox, modules: Path) -> Sandbox:
    """A repository with the tools, as `npm install` leaves it."""
    sandbox.write("package.json", "{}\n")
    sandbox.write(".gitignore", "node_modules\n")
    (sandbox.path / "node_modules").symlink_to(modules)
    return sandbox


def tool(project: Sandbox, *words: str) -> None:
    """Run a program of the project."""
    call = [str(project.path / "node_modules" / ".bin" / words[0]), *words[1:]]
    subprocess.run(call, cwd=project.path, env=project.env, check=True, capture_output=True)


def commit(project: Sandbox, *words: str) -> tuple[int, str]:
    """Run git, with the programs of the project on the path; return the code and what is said."""
    env = project.env | {"PATH": f"{project.path}/node_modules/.bin:{project.env['PATH']}"}
    done = subprocess.run(
        ["git", *words], cwd=project.path, env=env, check=False, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def both_run(project: Sandbox) -> None:
    """Prove by commits and a merge that both the team's check and the gate run."""
    assert diagnostics.hooks(project.context()).state == "good"
    assert [sign.state for sign in git_probe.run_probe(project.context())] == ["good", "good"]
    project.git("add", "--all")
    code, output = commit(project, "commit", "-m", "first")
    assert (code, "TEAM LINT RAN" in output) == (0, True), output
    project.write("LINT_FAILS", "")
    project.git("add", "--all")
    code, output = commit(project, "commit", "-m", "lint refuses this")
    assert (code, "TEAM LINT RAN" in output) == (1, True), output
    project.git("rm", "--quiet", "-f", "LINT_FAILS")
    project.memory("dec-a", supersedes=("dec-nowhere",))
    project.git("add", ".memory")
    code, output = commit(project, "commit", "-m", "the gate refuses this")
    assert (code, "dec-nowhere" in output) == (1, True), output
    project.git("checkout", "--quiet", "-b", "side")
    commit(project, "commit", "--no-verify", "-m", "past the gate")
    project.git("checkout", "--quiet", "main")
    project.write("other", "other")
    project.git("add", "other")
    commit(project, "commit", "-m", "other")
    code, output = commit(project, "merge", "--no-ff", "--no-edit", "side")
    assert (code, "dec-nowhere" in output) == (1, True), output
    project.git("merge", "--abort")


def test_husky_and_memtool_both_run(project: Sandbox) -> None:
    """They do after `npm install` made husky's folder anew, and husky is as before in the end."""
    project.git("commit", "--quiet", "--allow-empty", "-m", "begin")
    tool(project, "husky")
    project.write(".husky/pre-commit", "echo TEAM LINT RAN\ntest ! -e LINT_FAILS\n")
    before = sorted(
        (path, path.read_bytes()) for path in (project.path / ".husky").rglob("*") if path.is_file()
    )
    install(project.context(), "git")
    tool(project, "husky")
    both_run(project)
    uninstall(project.context(), "git")
    after = sorted(
        (path, path.read_bytes()) for path in (project.path / ".husky").rglob("*") if path.is_file()
    )
    assert after == before


def test_lefthook_and_memtool_both_run(project: Sandbox) -> None:
    """They do after `lefthook install`, which doctor asks for until then."""
    project.git("commit", "--quiet", "--allow-empty", "-m", "begin")
    rule = "echo TEAM LINT RAN && test ! -e LINT_FAILS"
    project.write("lefthook.yml", f"pre-commit:\n  commands:\n    lint:\n      run: {rule}\n")
    tool(project, "lefthook", "install")
    install(project.context(), "git")
    assert diagnostics.hooks(project.context()).hint == "lefthook install"
    tool(project, "lefthook", "install")
    both_run(project)
    uninstall(project.context(), "git")
    assert not (project.path / "lefthook-local.yml").exists()
