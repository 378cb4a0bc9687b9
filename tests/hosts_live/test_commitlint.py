"""commitlint from npm at a pinned version, in a commit-msg hook, and what memtool commits."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import Sandbox
from hosts_live.packages import install_pinned

pytestmark = pytest.mark.live

PINNED = {"@commitlint/cli": "20.5.0", "@commitlint/config-conventional": "20.5.0"}
LINT = "node_modules/.bin/commitlint"
LONG = "We would rather hold a seat for twenty minutes than lose a booking, "


@pytest.fixture(scope="module")
def modules() -> Path:
    return install_pinned("memtool-live-commitlint", PINNED)


@pytest.fixture
def project(sandbox: Sandbox, modules: Path) -> Sandbox:
    """A repository whose commit-msg hook runs commitlint with the conventional rules."""
    (sandbox.path / "node_modules").symlink_to(modules)
    sandbox.write(".gitignore", "node_modules\n")
    set_rules(sandbox, {})
    sandbox.commit("feat: seats can be held")
    hook = sandbox.write(".git/hooks/commit-msg", f'#!/bin/sh\nexec {LINT} --edit "$1"\n')
    hook.chmod(0o755)
    return sandbox


def set_rules(project: Sandbox, rules: dict[str, object]) -> None:
    """Configure commitlint: the conventional rules, and others."""
    settings = {"extends": ["@commitlint/config-conventional"], "rules": rules}
    project.write(".commitlintrc.json", json.dumps(settings))


def paste(project: Sandbox, hint: str) -> None:
    """Run the command in the first line of a hint, with --commit."""
    assert (
        project.run(*shlex.split(hint.split("\n", maxsplit=1)[0])[1:], "--commit").returncode == 0
    )


def test_the_hint_of_a_refusal_makes_every_verb_pass(project: Sandbox) -> None:
    """The default subject is refused; with the pasted setting commitlint accepts all commits."""
    words = ["new", "decision", "Hold a seat for 20 minutes.", "--body", "It is long enough."]
    done = project.run(*words, "--commit", "--json")
    error = json.loads(done.stderr)["error"]
    assert (done.returncode, error["code"]) == (2, "commit-refused")
    assert "type must be one of" in error["message"]
    assert error["hint"].startswith('memtool config commit.subject "docs(memory): {summary}"\n')
    paste(project, error["hint"])
    project.git("add", ".memory")
    project.git("commit", "--quiet", "-m", "docs: the first memory")
    verbs = [
        ["remember", "Never lock the table of seats while we sell."],
        ["supersede", "seat-for-20", "Hold a seat for 25 minutes", "--body", "Banks are slow."],
        ["archive", "lock-the-table", "--reason", LONG * 3],
        ["restore", "lock-the-table"],
        ["confirm", "lock-the-table"],
        ["pin", "seat-for-25"],
        ["unpin", "seat-for-25"],
        ["tag", "seat-for-25", "--add", "seats"],
        ["forget", "lock-the-table", "--reason", "it is a rule of the database now"],
        ["undo", "lock-the-table"],
        ["config", "search.limit", "12"],
        ["alias", "add", "seat", "place"],
        ["digest", "--all"],
    ]
    for verb in verbs:
        done = project.run(*verb, "--commit")
        assert done.returncode == 0, (verb, done.stderr)
    first = project.git("rev-list", "--max-parents=0", "HEAD").strip()
    lint = [LINT, "--from", first, "--to", "HEAD"]
    checked = subprocess.run(
        lint, cwd=project.path, env=project.env, check=False, text=True, capture_output=True
    )
    assert checked.returncode == 0, checked.stdout
    assert int(project.git("rev-list", "--count", f"{first}..HEAD")) > len(verbs)


def test_the_hint_of_a_missing_sign_off_is_enough(project: Sandbox) -> None:
    """Where the rules ask for a sign-off as well, the second hint names the trailers."""
    set_rules(project, {"signed-off-by": [2, "always", "Signed-off-by:"]})
    project.run("config", "commit.subject", "chore(memory): {summary}")
    done = project.run("remember", "Seats are held for 20 minutes.", "--commit", "--json")
    hint = json.loads(done.stderr)["error"]["hint"]
    assert hint.startswith("memtool config commit.trailers Signed-off-by\n")
    paste(project, hint)
    assert project.run("pin", "seats-are-held", "--commit").returncode == 0
    trailer = project.git("log", "-1", "--format=%(trailers:key=Signed-off-by,valueonly)").strip()
    author = project.git("log", "-1", "--format=%an <%ae>").strip()
    assert trailer == author
