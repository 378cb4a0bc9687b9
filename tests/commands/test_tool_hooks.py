"""Hooks of tools: real commands of a shell between the events that a host sends before and after.

What counts is what the agent is told with the command, and what holds it.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox

from memtool.inject.command_failures import LEAD

CHARGE = "app/billing/charge.py"
CHANGED, GOVERNED = f"This command changed {CHARGE}. ", f"{CHARGE} is governed by:"
RULE = "| Never log card numbers"
FAILURE = "The pool of connections is exhausted"
_calls = itertools.count()


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    """A committed store with a rule for the files of a folder, and one for a single file."""
    sandbox.write(CHARGE, "def charge():\n    return 1\n")
    sandbox.write("app/other.py", "x = 1\n")
    sandbox.write("run.py", "open('app/billing/charge.py', 'a').write('# run\\n')\n")
    sandbox.write("Makefile", "all:\n\techo hi\n")
    sandbox.memory(
        "sem-cards",
        "Never log card numbers; the auditors read the logs.\n",
        title="Never log card numbers",
        type="semantic",
        category="warning",
        files=("app/billing/*.py",),
    )
    sandbox.memory("dec-make", "The build is make.\n", title="Build by make", files=("Makefile",))
    sandbox.commit()
    return sandbox


def send(
    project: Sandbox,
    event: str,
    command: str,
    *,
    cwd: Path | None = None,
    session: str = "s-1",
    host: str = "claude",
    **changes: Any,
) -> str:
    """Send an event of the shell tool, and return the text of the answer, "" for silence."""
    sent = {
        "session_id": session,
        "cwd": str(cwd or project.path),
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": next(_calls),
        **changes,
    }
    done = project.run("hook", host, event, stdin=json.dumps(sent), cwd=project.path.parent)
    assert (done.returncode, done.stderr) == (0, "")
    if not done.stdout:
        return ""
    answer = json.loads(done.stdout)["hookSpecificOutput"]
    if "permissionDecisionReason" in answer:
        assert answer["permissionDecision"] == "deny"
        return str(answer["permissionDecisionReason"])
    return str(answer["additionalContext"])


def shell(project: Sandbox, command: str, *, cwd: Path | None = None, session: str = "s-1") -> str:
    """Run a command between its events; return what the agent is told with the result."""
    assert send(project, "pre-command", command, cwd=cwd, session=session) == ""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=cwd or project.path,
        env=project.env,
        check=False,
        capture_output=True,
    )
    if done.returncode:
        failure = {"error": f"Exit code {done.returncode}"}
        return send(project, "post-tool-use-failure", command, cwd=cwd, session=session, **failure)
    return send(project, "post-tool-use", command, cwd=cwd, session=session)


@pytest.mark.parametrize(
    ("command", "lead"),
    [
        (f"sed -i s/1/2/ {CHARGE}", CHANGED),
        ("cd app/billing && sed -i s/1/2/ charge.py", CHANGED),
        ("sed -i s/1/2/ 'app/billing/charge.py'", CHANGED),
        ("sed -i s/1/2/ app/*/ch*.py", CHANGED),
        ("python run.py", CHANGED),
        ("python run.py; exit 3", CHANGED),
        (f"cat > {CHARGE} <<'EOF'\nx\nEOF", CHANGED),
        (f"python - <<'EOF'\nopen('{CHARGE}', 'w').write('x')\nEOF", CHANGED),
        (f"bash -c 'echo x | tee {CHARGE}'", CHANGED),
        (f"rm {CHARGE}", CHANGED),
        (f"cp -p app/other.py {CHARGE}", CHANGED),
        ("git apply <<'EOF'\n--- a/app/billing/charge.py\n+++ b/app/billing/charge.py\n@@ -1,2 +1,2 @@\n def charge():\n-    return 1\n+    return 2\nEOF", CHANGED),  # noqa: E501
        ("ln -s app/billing/charge.py link; sed -i --follow-symlinks s/1/2/ link", CHANGED),
        (f"cat {CHARGE}", GOVERNED),
        (f"cat $PWD/{CHARGE} < {CHARGE}", GOVERNED),
        (f"git -C app diff --stat -- billing/charge.py; grep -n x --file={CHARGE} Cargo.toml", GOVERNED),  # noqa: E501
        (f"sed -i s/1/2/ {CHARGE} && git commit -qam charge", GOVERNED),
    ],
)  # fmt: skip
def test_a_command_that_touches_a_file_brings_its_rules(
    project: Sandbox, command: str, lead: str
) -> None:
    """Once, however the command names the file, and also if it does not or fails in the end."""
    text = shell(project, command)
    assert lead in text, text
    assert text.count(RULE) == 1
    assert "Makefile" not in text
    assert shell(project, f"echo '# again' >> {CHARGE}") == ""
    assert RULE in shell(project, f"cat {CHARGE}", session="s-2")


@pytest.mark.parametrize(
    "command",
    [
        "ls -la app/billing",
        "sed -i s/1/2/ app/other.py",
        "echo app/billing is fine",
        "git log --oneline",
        "git checkout -q -b other && git commit -q --allow-empty -m x && git checkout -q main",
        "cat ../app/billing/charge.py ~/app/billing/charge.py /etc/hostname",
        "cat nothing.py app/billing/*.nothing",
        "printf '\\000\\377' > blob; cat blob",
        "cat > notes.txt <<'EOF'\nsee app/billing/charge.py\nEOF",
        "touch app/billing/charge.txt",
        ": 'never ended",
    ],
)
def test_a_command_that_touches_nothing_governed_is_silent(project: Sandbox, command: str) -> None:
    """Neither a folder, nor a file outside, nor a name in a text is a file that a rule is for."""
    assert shell(project, command) == ""


def test_a_change_before_the_command_is_not_of_the_command(project: Sandbox) -> None:
    """What the user edited is not reported as changed by the next command."""
    project.write(CHARGE, "the user wrote it\n")
    stamp = project.path / CHARGE
    while os.lstat(stamp).st_ctime_ns >= os.lstat(project.write("tick", "x")).st_ctime_ns:
        pass  # the clock of the file system is coarse
    assert shell(project, "ls") == ""
    assert GOVERNED in shell(project, f"cat {CHARGE}")


def test_a_branch_that_is_checked_out_changes_nothing(project: Sandbox) -> None:
    """Its files are as somebody committed them: the command did not edit them."""
    project.git("checkout", "--quiet", "-b", "side")
    project.write(CHARGE, "other\n")
    project.commit("other")
    assert shell(project, "git checkout -q main") == ""
    assert shell(project, "git merge -q side") == ""


def test_a_moved_file_keeps_its_rules(project: Sandbox) -> None:
    """Under its new name, before the move is committed."""
    assert RULE in shell(project, f"git mv {CHARGE} app/pay.py")


def test_a_command_of_a_megabyte_is_answered(project: Sandbox) -> None:
    """It is cut; what it changed is found all the same."""
    text = shell(project, "x=" + "y" * 100_000 + f"\nsed -i s/1/2/ {CHARGE}")
    assert CHANGED in text
    command = f"cat {CHARGE} " + "a/b.py " * 150_000
    assert GOVERNED in send(project, "post-tool-use", command, session="s-2")


def test_without_the_event_before_only_named_files_count(project: Sandbox) -> None:
    """Nothing tells what a command changed, so nothing is said of other files."""
    project.write(CHARGE, "changed\n")
    assert send(project, "post-tool-use", "make") == ""
    assert GOVERNED in send(project, "post-tool-use", f"cat {CHARGE}")


def test_a_file_that_is_read_brings_its_rules_once(project: Sandbox) -> None:
    """The edit that follows in the session has been warned."""
    read = {"tool_name": "Read", "tool_input": {"file_path": str(project.path / CHARGE)}}
    text = send(project, "post-tool-use", "", **read)
    assert text.count(RULE) == 1
    assert GOVERNED in text
    assert send(project, "post-tool-use", "", **(read | {"tool_name": "Edit"})) == ""
    other = {"tool_name": "Read", "tool_input": {"file_path": str(project.path / "app/other.py")}}
    assert send(project, "post-tool-use", "", session="s-2", **other) == ""


def test_conventions_come_after_decisions(project: Sandbox) -> None:
    """No change has to answer to a rule from a file of rules, but it governs, too."""
    project.memory(
        "sem-money",
        "Amounts are whole cents.\n",
        title="Amounts in cents",
        type="semantic",
        category="pattern",
        files=("app/billing/",),
        importance="0.9",
    )
    project.commit("rule")
    text = shell(project, f"cat {CHARGE}")
    assert 0 < text.index(RULE) < text.index("| Amounts are whole cents.")


@pytest.fixture
def failing(project: Sandbox) -> Sandbox:
    """A store with a confirmed failure of one command, and a candidate of another one."""
    for id_, command, status in (
        ("epi-pool", "pytest -q tests/pool.py", "confirmed"),
        ("epi-lint", "ruff check app", "candidate"),
    ):
        project.memory(
            id_,
            f"{FAILURE}.\n\n## Command\n\n```\n{command}\n```\n\n## Fix\n\nRaise the limit.\n",
            title=FAILURE,
            type="episodic",
            category="error",
            error_signature="ConnectionError: pool",
            status=status,
        )
    project.commit("failures")
    return project


def test_a_command_that_has_failed_before_is_held_once(failing: Sandbox) -> None:
    """Its failure comes before it runs, in each session once, in any spelling of the command."""
    text = send(failing, "pre-command", "cd tests && ../.venv/bin/pytest pool.py | tail -3")
    assert LEAD in text
    assert text.count(f"| {FAILURE}") == 1
    assert send(failing, "pre-command", "pytest -q tests/pool.py") == ""
    assert LEAD in send(failing, "pre-command", "pytest -q tests/pool.py", session="s-2")


@pytest.mark.parametrize(
    "command", ["pytest tests/other.py", "ruff check app", "echo pytest tests/pool.py", "", "'"]
)
def test_another_command_runs(failing: Sandbox, command: str) -> None:
    """Another target, an unconfirmed failure and a name in a text hold nothing."""
    assert send(failing, "pre-command", command) == ""


def test_nothing_is_held_twice_if_it_cannot_be_noted(failing: Sandbox) -> None:
    """A command must not be held for ever: without a session, or a place to note it, it runs."""
    assert send(failing, "pre-command", "pytest tests/pool.py", session="") == ""
    place = failing.path / ".git" / "memtool" / "shown"
    place.parent.mkdir(exist_ok=True)
    place.write_text("")
    assert send(failing, "pre-command", "pytest tests/pool.py") == ""


def test_a_user_may_let_every_command_run(failing: Sandbox) -> None:
    """The setting is the user's."""
    assert failing.run("config", "inject.hold", "false").returncode == 0
    assert send(failing, "pre-command", "pytest tests/pool.py") == ""


def test_the_directory_of_a_failure_counts(failing: Sandbox) -> None:
    """Two packages have a file of one name; the recorded directory tells which one failed."""
    environment = 'argv: ["pytest", "test_api.py"]\ncwd: web\nexit: 1'
    failing.memory(
        "epi-web",
        f"{FAILURE}.\n\n## Command\n\npytest test_api.py\n\n## Environment\n\n{environment}\n",
        title=FAILURE,
        type="episodic",
        category="error",
    )
    failing.commit("web")
    (failing.path / "api").mkdir()
    assert send(failing, "pre-command", "cd api && pytest test_api.py") == ""
    assert LEAD in send(failing, "pre-command", "cd web; pytest -x ./test_api.py")


def test_the_mark_of_an_old_session_goes(project: Sandbox) -> None:
    """Each session has one small file; those of long ago are removed when another one begins."""
    assert shell(project, "ls") == ""
    folder = project.path / ".git/memtool/commands"
    (mark,) = folder.iterdir()
    os.utime(mark, (0, 0))
    start = {"session_id": "s-2", "cwd": str(project.path), "source": "startup"}
    project.run("hook", "claude", "session-start", stdin=json.dumps(start))
    assert list(folder.iterdir()) == []


def test_a_superseded_failure_holds_nothing(failing: Sandbox) -> None:
    """Nor does one that was taken back."""
    done = failing.run("forget", "epi-pool", "--reason", "It was fixed")
    assert done.returncode == 0, done.stderr
    assert send(failing, "pre-command", "pytest tests/pool.py") == ""


def test_the_task_of_a_subagent_gets_its_own_block(project: Sandbox) -> None:
    """It follows the prompt, which stays as it is; the other input does, too."""
    project.memory("dec-redis", "Sessions live in Redis.\n", title="Sessions in Redis")
    project.memory("dec-pinned", "Never force-push.\n", status="pinned")
    project.commit("more")
    task = {"prompt": "Where do sessions live?", "subagent_type": "Explore", "n": [1]}
    sent = {"session_id": "s-1", "cwd": str(project.path), "tool_name": "Agent"}
    event = json.dumps(sent | {"tool_input": task})
    done = project.run("hook", "claude", "pre-task", stdin=event)
    answer = json.loads(done.stdout)["hookSpecificOutput"]
    assert answer.keys() == {"hookEventName", "updatedInput"}
    prompt = answer["updatedInput"].pop("prompt")
    assert answer["updatedInput"] == {"subagent_type": "Explore", "n": [1]}
    assert prompt.startswith("Where do sessions live?\n\n<memory-context")
    assert "| Sessions live in Redis." in prompt
    assert "force-push" not in prompt  # the primer of the subagent has it
    event = json.dumps(sent | {"tool_input": {"prompt": "Count the stars of the Milky Way"}})
    assert project.run("hook", "claude", "pre-task", stdin=event).stdout == ""
