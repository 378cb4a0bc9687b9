"""`memtool demo`: the same team everywhere, in every state that a page has to show."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from conftest import PIPED, Sandbox
from scene import environment

from memtool.cli.main import main
from memtool.commands.check import check
from memtool.commands.conflicts import conflicts
from memtool.commands.demo import demo, render
from memtool.commands.drift import drift
from memtool.commands.maintain import maintain
from memtool.commands.promote import promote
from memtool.commands.session import session_list
from memtool.commands.stats import stats
from memtool.commands.status import status
from memtool.demo import Demo, build
from memtool.errors import MemtoolError

HEAD = "a4b9f44726338392e871f65389d5cc0438469987"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Demo, Sandbox]:
    """The demo, built once."""
    base = tmp_path_factory.mktemp("demo")
    env = environment(base / "home")
    made = build(env, str(base / "harbor"), dry_run=False)
    return made, Sandbox(base / "harbor", env | {"MEMTOOL_NOW": made.now})


def test_commits_have_the_same_ids_wherever_it_is_built(built: tuple[Demo, Sandbox]):
    """Authors, dates and bytes are those of the story, not those of the machine."""
    made, harbor = built
    assert made.head == HEAD == harbor.git("rev-parse", "HEAD").strip()
    assert harbor.git("status", "--porcelain") == ""


def test_check_reports_the_fork_and_nothing_else(built: tuple[Demo, Sandbox]):
    """The memories of the demo are sound; the only warning is the intended fork."""
    report = check(built[1].context())
    assert {(problem.code, problem.severity) for problem in report.problems} == {
        ("fork", "warning")
    }
    assert report.exit_code == 0


def test_every_state_has_a_memory(built: tuple[Demo, Sandbox]):
    """Whoever looks around meets each status, expiry, drift, and each kind of conflict."""
    context = built[1].context()
    state = status(context)
    assert set(state.statuses) == {
        "candidate",
        "confirmed",
        "pinned",
        "deprecated",
        "archived",
        "deleted",
    }
    assert state.states["expired"] == 2
    assert {memory.drift.level for memory in drift(context).memories} >= {"broken", "changed"}
    assert {conflict.kind for conflict in conflicts(context).conflicts} == {
        "fork",
        "opposition",
        "values",
    }
    assert any(conflict.accepted for conflict in conflicts(context, all=True).conflicts)


def test_upkeep_renews_none_of_what_is_due(built: tuple[Demo, Sandbox]):
    """They were shown in answers but not confirmed; deprecated ones are archived."""
    context = built[1].context()
    due = set(status(context).due)
    assert len(due) == 21
    planned = maintain(context)
    assert [step.id for step in planned.steps if step.do == "renew"] == []
    archived = {step.id for step in planned.steps if step.do == "archive"} & due
    assert {context.tree()[id_].memory.status for id_ in archived} == {"deprecated"}
    assert due - archived == {flag.ids[0] for flag in planned.flags if flag.kind == "due"}


def test_sessions_have_findings_and_the_ledger_has_answers(built: tuple[Demo, Sandbox]):
    """Private data too: an open session, findings of two agents, sixty days of use."""
    context = built[1].context()
    assert [session.status for session in session_list(context).sessions].count("open") == 1
    findings = promote(context, list=True).findings
    assert max(finding.points for finding in findings) == 6
    used = stats(context)
    assert used.last_injected
    assert {latency.verb for latency in used.latencies} == {
        "hook-start",
        "inject",
        "search",
        "show",
    }


def test_the_remote_lacks_the_last_commits(built: tuple[Demo, Sandbox]):
    """There is a trusted ref, a branch that is not merged, and something that is only local."""
    _made, harbor = built
    assert harbor.git("rev-list", "--count", "origin/main..main").strip() == "2"
    assert harbor.git("branch", "--no-merged", "main").split() == ["push-messages"]
    assert harbor.git("ls-remote", "--heads", "origin").count("refs/heads/") == 3


def test_another_team_lies_inside_and_no_setting_is_made(built: tuple[Demo, Sandbox]):
    """A fleet of two has one contrary and one same decision; who wants it sets it as printed."""
    made, harbor = built
    assert "cannot ask other repositories" in harbor.run("fleet", "status").stderr
    (wanted,) = re.findall(r"next: memtool (--global config .+)", render(made, PIPED))
    assert harbor.run(*wanted.split()).returncode == 0
    assert harbor.run("fleet", "sync").returncode == 0
    assert harbor.json("fleet", "similar")["kinds"] == {"contrary": 1, "same": 1}


@pytest.mark.parametrize("name", ["file", "full"])
def test_nothing_is_built_over_what_is_there(sandbox: Sandbox, name: str):
    """A directory that holds something, and a file, are refused and keep what they hold."""
    sandbox.write("file", "mine\n")
    sandbox.write("full/mine", "mine\n")
    with pytest.raises(MemtoolError, match=name) as refused:
        demo(sandbox.context(), name)
    assert refused.value.code == "exists"
    assert os.listdir(sandbox.path / "full") == ["mine"]


def test_a_dry_run_builds_nothing(sandbox: Sandbox):
    """It says what would be built, of a directory that is absent afterwards."""
    planned = demo(sandbox.context(), "harbor", dry_run=True)
    assert planned.dry_run
    assert planned.memories >= 60
    assert render(planned, PIPED).startswith("would build ")
    assert not (sandbox.path / "harbor").exists()


def test_it_needs_no_repository_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """It is the first command that a user runs, so it works in any directory, as with -C."""
    for key, value in environment(tmp_path / "home").items():
        monkeypatch.setenv(key, value)
    assert main(["-C", str(tmp_path), "demo", "harbor"]) == 0
    assert f"next: cd {tmp_path}/harbor" in capsys.readouterr().out
    assert (tmp_path / "harbor/.memory/config.toml").is_file()


def test_what_fails_leaves_nothing_behind(built: tuple[Demo, Sandbox], tmp_path: Path):
    """Where git cannot be run the directory is as it was: absent."""
    with pytest.raises(MemtoolError):
        build(built[1].env | {"PATH": str(tmp_path)}, str(tmp_path / "harbor"), dry_run=False)
    assert not (tmp_path / "harbor").exists()
