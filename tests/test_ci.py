"""The templates for CI, run for real: workflows on events of each kind, GitLab's job, a script."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forge as forges
import pytest
import yaml
from conftest import Sandbox

pytestmark = pytest.mark.slow  # each test starts a dozen processes

ROOT = Path(__file__).parent.parent
CI = ROOT / "templates/ci"
WORKFLOWS = sorted(path.name for path in CI.glob("*.yml"))
ZEROS = "0" * 40
HOSTILE = "Ping @team ::error::x ##[error]y </li><img src=x> [a](javascript:b) ` `` #1"


class Site:
    """A hosted repository `origin` whose default branch is trunk, a change, and a made-up forge."""

    def __init__(self, sandbox: Sandbox, forge: forges.Forge) -> None:
        self.sandbox = sandbox
        self.forge = forge
        self.folder = sandbox.path.parent
        self.origin = self.folder / "origin.git"
        sandbox.git("branch", "--move", "trunk")
        sandbox.write("src/pay.py", "RETRIES = 3\n" * 9)
        sandbox.write("docs/a.md", "text\n")
        sandbox.memory("dec-retries", files=("src/*.py",), title=HOSTILE)
        self.base = sandbox.commit("start")
        sandbox.git("clone", "--quiet", "--bare", ".", str(self.origin))
        sandbox.git("remote", "add", "origin", str(self.origin))
        sandbox.git("checkout", "--quiet", "-b", "more-retries")
        sandbox.write("src/pay.py", "RETRIES = 3\n" * 8 + "RETRIES = 5\n")
        self.head = sandbox.commit("Retry five times")
        # A branch that is called main is not the default branch here.
        sandbox.git("push", "--quiet", "origin", "more-retries", "more-retries:main")
        forges.install_programs(self.folder / "bin")
        self.env = sandbox.env | {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{sandbox.env['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
            "GITHUB_API_URL": forge.address,
        }

    def check_out(self, name: str, revision: str, *, depth: int = 0) -> Path:
        """Clone as actions/checkout does: all branches, a detached HEAD, no default branch.

        With a depth only one commit is there.
        """
        path = self.folder / name
        git = Sandbox(path, self.env).git
        path.mkdir()
        git("init", "--quiet", "--initial-branch=unused")
        git("remote", "add", "origin", self.origin.as_uri())
        refs = ["+refs/heads/*:refs/remotes/origin/*", "+refs/pull/*:refs/pull/*"]
        if depth:
            refs = [f"--depth={depth}", f"+{revision}:refs/remotes/pull/7/merge"]
        git("fetch", "--quiet", "origin", *refs)
        git("checkout", "--quiet", "--detach", revision)
        return path

    def merge(self) -> str:
        """Return the merge of the change into trunk, which the forge makes for a pull request."""
        git = self.sandbox.git
        git("checkout", "--quiet", "--detach", self.base)
        git("merge", "--quiet", "--no-ff", "--no-edit", self.head)
        commit = git("rev-parse", "HEAD").strip()
        git("push", "--quiet", "--force", "origin", f"{commit}:refs/pull/7/merge")
        git("checkout", "--quiet", "more-retries")
        return commit

    def pull_request(self, repository: str = "acme/shop") -> dict[str, Any]:
        """Return the event of a pull request from a branch of a repository."""
        return {
            "pull_request": {
                "number": 7,
                "base": {"sha": self.base, "ref": "trunk"},
                "head": {"sha": self.head, "repo": {"full_name": repository}},
            },
            "repository": {"default_branch": "trunk"},
        }

    def run(
        self,
        workflow: str,
        event_name: str,
        event: dict[str, Any],
        name: str = "job",
        *,
        depth: int = 0,
        **github: str,
    ) -> tuple[int, forges.Runner]:
        """Run a workflow in a checkout of what the event is about."""
        revision = self.merge() if "pull_request" in event else github.get("sha", self.head)
        runner = forges.Runner(
            self.check_out(name, revision, depth=depth),
            self.env,
            event_name,
            event,
            {
                "actions/checkout": lambda _inputs: None,
                "actions/setup-python": lambda _inputs: None,
                "actions/upload-artifact": self._upload,
                "actions/download-artifact": self._download,
            },
            **{"sha": revision, "ref": "refs/heads/trunk"} | github,
        )
        return runner.run_workflow(workflow), runner

    @property
    def artifact(self) -> Path:
        """The folder of the artifact that workflows hand over."""
        return self.folder / "artifact"

    def _upload(self, inputs: dict[str, str]) -> None:
        self.artifact.mkdir()
        for path in inputs["path"].split():
            shutil.copy(path, self.artifact)

    def _download(self, inputs: dict[str, str]) -> None:
        shutil.copytree(self.artifact, inputs["path"])


@pytest.fixture
def site(sandbox: Sandbox) -> Iterator[Site]:
    """A hosted repository with a change of governed code."""
    forge = forges.Forge()
    with forges.serve(forge):
        yield Site(sandbox, forge)


def shell_parts() -> Iterator[tuple[str, str]]:
    """Yield the file and the text of each shell part of a template."""
    for path in sorted(CI.rglob("*.yml")):
        todo: list[Any] = [yaml.safe_load(path.read_text("utf-8"))]
        while todo:
            node = todo.pop()
            if isinstance(node, dict):
                todo += node.values()
                yield from ((path.name, node[key]) for key in ("run",) if key in node)
                yield from ((path.name, line) for line in node.get("script", ()))
            elif isinstance(node, list):
                todo += node


def test_no_expression_is_part_of_a_script() -> None:
    """Values reach a script by its environment, where a title cannot end a command."""
    parts = [*shell_parts()]
    assert len(parts) > 20
    assert [name for name, text in parts if "${{" in text] == []


def test_every_shell_part_is_valid() -> None:
    """Bash reads each of them, sh the script."""
    for name, text in shell_parts():
        done = subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False)
        assert done.returncode == 0, (name, done.stderr)
    subprocess.run(["sh", "-n", CI / "report.sh"], check=True)


def test_a_module_is_never_that_of_the_checkout() -> None:
    """Python takes modules from the working directory first, unless -P forbids it."""
    calls = [call for _name, text in shell_parts() for call in re.findall(r"python \S+", text)]
    assert {call for call in calls if not call.startswith('python "$(')} == {"python -P"}


def test_no_template_assumes_the_name_of_the_default_branch() -> None:
    """Git or the event names it."""
    texts = {path.name: path.read_text("utf-8") for path in (*CI.rglob("*.yml"), CI / "report.sh")}
    assert len(texts) > 8
    assert [name for name, text in texts.items() if re.search(r"\b(main|master)\b", text)] == []


SCHEMAS = {
    "github-workflows": "*.yml",
    "github-actions": "action/*.yml",
    "gitlab-ci": "gitlab/*.yml",
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_templates_are_what_their_forge_reads(schema: str, environment: dict[str, str]) -> None:
    """The schemas are those of check-jsonschema, which brings them."""
    pytest.importorskip("check_jsonschema")
    paths = sorted(map(str, CI.glob(SCHEMAS[schema])))
    call = ["-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *paths]
    done = subprocess.run(
        [sys.executable, *call], env=os.environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, bool(paths)) == (0, True), done.stdout


def test_a_pull_request_gets_one_comment(site: Site) -> None:
    """The first run comments, the next one updates, and the last one has nothing to change."""
    status, runner = site.run("memtool-review.yml", "pull_request", site.pull_request())
    assert (status, site.forge.writes) == (0, [("POST", "/repos/acme/shop/issues/7/comments")])
    (comment,) = site.forge.comments
    assert comment["body"].startswith("<!-- memtool review -->\n### Decisions that govern")
    assert "**not mentioned**: `dec-retries`" in comment["body"]
    assert {request.token for request in site.forge.requests} == {"Bearer run-token"}
    assert runner.files["GITHUB_STEP_SUMMARY"].read_text() == comment["body"]
    site.sandbox.git("commit", "--quiet", "--amend", "--message", "More\n\nUpholds: dec-retries")
    site.head = site.sandbox.git("rev-parse", "HEAD").strip()
    site.run("memtool-review.yml", "pull_request", site.pull_request(), "second")
    assert site.forge.writes[1:] == [("PATCH", "/repos/acme/shop/issues/comments/1")]
    assert "**upheld by** `" in comment["body"]
    site.run("memtool-review.yml", "pull_request", site.pull_request(), "third")
    assert len(site.forge.writes) == 2


def test_an_annotation_is_at_the_changed_line(site: Site) -> None:
    """And no text of a memory in the log is a command for the runner."""
    _status, runner = site.run("memtool-review.yml", "pull_request", site.pull_request())
    commands = list_commands(runner.log)
    assert [command.partition("::")[0] for command in commands] == [
        "warning file=src/pay.py,line=9,title=not mentioned"
    ]


def list_commands(log: str) -> list[str]:
    """Return the commands that GitHub's runner takes from a log."""
    stopped, commands = "", []
    for line in log.splitlines():
        match = re.match(r"\s*::([\w-]+)(.*?)::(.*)", line)
        if stopped:
            stopped = "" if match and match[1] == stopped else stopped
        elif match and match[1] == "stop-commands":
            stopped = match[3]
        elif match:
            commands.append(f"{match[1]}{match[2]}::{match[3]}")
        elif "##[" in line:
            commands.append(line)
    return commands


@pytest.mark.parametrize("workflow", ["memtool-review.yml", "memtool-check.yml"])
def test_a_path_is_no_command(site: Site, workflow: str) -> None:
    """A line end in the name of a file begins no line of the log that the runner reads."""
    name = "x\n::add-mask::a\n##[error]b.md"
    site.sandbox.write(f".memory/semantic/{name}", "no frontmatter\n")
    site.sandbox.write("src/new\n::error::y.py", "new = 1\n")
    site.head = site.sandbox.commit("names")
    status, runner = site.run(workflow, "pull_request", site.pull_request())
    commands = list_commands(runner.log)
    assert (status, bool(commands)) == (1, True)
    assert {re.split("[ :]", row)[0] for row in commands} <= {"error", "warning"}
    assert all(" file=.memory/semantic/x%0A" in row or " file=src/" in row for row in commands)


def test_what_a_change_takes_away_fails_where_the_base_says_so(site: Site) -> None:
    """Also a change that was fine before another one was merged; the comment has a task for it."""
    sandbox = site.sandbox
    sandbox.git("checkout", "--quiet", "-B", "trunk-tip", site.base)
    sandbox.write(".memory/config.toml", '[review]\nunsettled = "fail"\n')
    sandbox.memory("dec-new", "Else.\n", supersedes=("dec-retries",))
    site.base = sandbox.commit("newer")
    sandbox.git("push", "--quiet", "origin", "HEAD:trunk")
    sandbox.git("checkout", "--quiet", "more-retries")
    source = ("human:Ada", "memory:dec-retries")
    sandbox.memory("dec-rests", source=source)
    site.head = sandbox.commit("rests on it")
    status, runner = site.run("memtool-review.yml", "pull_request", site.pull_request())
    assert status == 1
    (comment,) = site.forge.comments
    assert "\n- [ ] new here, rests on it: `dec-rests` `Title of dec-rests`\n" in comment["body"]
    assert "\nFirst `git merge origin/trunk`. If one still holds" in comment["body"]
    (command, *_governed) = list_commands(runner.log)
    assert command.startswith("error file=.memory/decision/2026-02/dec-rests.md,line=")


def test_a_shallow_checkout_is_completed(site: Site) -> None:
    """Also that of a workflow without fetch-depth, which has only the merge commit."""
    status, _runner = site.run("memtool-review.yml", "pull_request", site.pull_request(), depth=1)
    assert (status, len(site.forge.comments)) == (0, 1)
    assert "**not mentioned**: `dec-retries`" in site.forge.comments[0]["body"]


def test_who_decides_is_set_by_the_default_branch(site: Site) -> None:
    """A branch that somebody calls main has no say where the default branch is another one."""
    checkout = site.check_out("plain", site.head)
    report(site, checkout, MEMTOOL_BASE=site.base)
    ref = Sandbox(checkout, site.env).git("symbolic-ref", "refs/remotes/origin/HEAD")
    assert ref == "refs/remotes/origin/trunk\n"


def test_errors_fail_after_the_comment(site: Site) -> None:
    """A memory that is not valid is annotated, in the comment, and an error of the job."""
    site.sandbox.write(".memory/semantic/broken.md", "no frontmatter\n")
    site.head = site.sandbox.commit("broken")
    status, runner = site.run("memtool-review.yml", "pull_request", site.pull_request())
    assert status == 1
    assert any(
        row.startswith("error file=.memory/semantic/broken.md") for row in list_commands(runner.log)
    )
    (comment,) = site.forge.comments
    assert "**error: no-frontmatter**" in comment["body"]


def test_a_change_that_nothing_governs_gets_no_comment(site: Site) -> None:
    """But a comment that is there already is updated."""
    site.sandbox.git("reset", "--quiet", "--hard", site.base)
    site.sandbox.write("docs/a.md", "other\n")
    site.head = site.sandbox.commit("docs")
    assert site.run("memtool-review.yml", "pull_request", site.pull_request())[0] == 0
    assert site.forge.writes == []
    site.forge.add("<!-- memtool review -->\nold", forges.BOT)
    site.run("memtool-review.yml", "pull_request", site.pull_request(), "second")
    assert site.forge.writes == [("PATCH", "/repos/acme/shop/issues/comments/1")]


def test_a_comment_of_somebody_else_is_not_ours(site: Site) -> None:
    """Its author could change it afterwards; ours is also found on the second page."""
    for number in range(120):
        site.forge.add(f"<!-- memtool review -->\n{number}", "eve")
    site.forge.add("<!-- memtool review -->\nold", forges.BOT)
    site.run("memtool-review.yml", "pull_request", site.pull_request())
    assert site.forge.writes == [("PATCH", "/repos/acme/shop/issues/comments/121")]


def test_a_token_that_may_not_comment_is_told(site: Site) -> None:
    """The job fails with the reason, and says nothing of the token."""
    site.forge.is_closed = True
    status, runner = site.run("memtool-review.yml", "pull_request", site.pull_request())
    assert status == 1
    assert "HTTP 403: the token may not do this" in runner.log
    assert "run-token" not in runner.log


def fork(site: Site, name: str = "job", actor: str = "eve") -> dict[str, Any]:
    """Run the workflow of a pull request from a fork; return the event of the second workflow."""
    status, _runner = site.run(
        "memtool-review.yml", "pull_request", site.pull_request("eve/shop"), name, actor=actor
    )
    assert (status, site.forge.requests) == (0, [])
    site.forge.pulls["7"] = {"state": "open", "head": {"sha": site.head}}
    return {"workflow_run": {"id": 3, "event": "pull_request", "head_sha": site.head}}


def comment(site: Site, event: dict[str, Any], name: str = "comment") -> tuple[int, forges.Runner]:
    """Run the second workflow in a checkout of the default branch."""
    return site.run("memtool-comment.yml", "workflow_run", event, name, sha=site.base)


def test_a_pull_request_from_a_fork_gets_the_same_comment(site: Site) -> None:
    """Its workflow only hands over data; the second one, which may write, comments."""
    event = fork(site)
    assert sorted(path.name for path in site.artifact.iterdir()) == [
        "check.json",
        "number",
        "review.json",
    ]
    assert comment(site, event)[0] == 0
    assert site.forge.writes == [("POST", "/repos/acme/shop/issues/7/comments")]
    assert "**not mentioned**: `dec-retries`" in site.forge.comments[0]["body"]
    comment(site, event, "again")
    assert len(site.forge.writes) == 1


def test_a_pull_request_of_dependabot_is_like_one_from_a_fork(site: Site) -> None:
    """Its token may only read, too."""
    site.run("memtool-review.yml", "pull_request", site.pull_request(), actor="dependabot[bot]")
    assert (site.artifact.exists(), site.forge.requests) == (True, [])


def test_a_second_workflow_without_a_result_does_nothing(site: Site) -> None:
    """The first one has commented by itself, or was no pull request."""
    site.run("memtool-review.yml", "pull_request", site.pull_request())
    event = {"workflow_run": {"id": 3, "event": "pull_request", "head_sha": site.head}}
    writes = len(site.forge.requests)
    status, _runner = comment(site, event)
    assert (status, len(site.forge.requests)) == (0, writes)
    event["workflow_run"]["event"] = "push"
    assert comment(site, event, "other")[1].steps == []


def test_a_made_up_number_gets_no_comment(site: Site) -> None:
    """It must be that of an open pull request with the commit of the first workflow."""
    event = fork(site)
    site.forge.pulls["8"] = {"state": "open", "head": {"sha": ZEROS}}
    for at, number in enumerate(("8", "$(touch owned)", "7\n8")):
        (site.artifact / "number").write_text(number)
        _status, runner = comment(site, event, f"comment-{at}")
        assert "no comment" in runner.log
    assert site.forge.writes == []
    assert [*site.folder.rglob("owned")] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"MEMTOOL_NUMBER": number}
        for number in ("", "0", "07", "-7", "7/8", "../7", "\u0667", "9" * 30, "7\n")
    ]
    + [
        {"MEMTOOL_HEAD": "main"},
        {"GITHUB_TOKEN": ""},
        {"GITHUB_TOKEN": "a\nb"},
        {"GITHUB_REPOSITORY": "acme/shop/../../x"},
        {"report": "no mark"},
        {"report": "<!-- memtool review -->\n- " + "x" * 60_000},
    ],
)
def test_nothing_is_posted_of_what_is_not_valid(tmp_path: Path, wrong: dict[str, str]) -> None:
    """No request is made, and the reason is one line without the value."""
    forge = forges.Forge()
    file = tmp_path / "report.md"
    file.write_text(wrong.get("report", "<!-- memtool review -->\n- item"))
    with forges.serve(forge):
        env = {
            "GITHUB_API_URL": forge.address,
            "GITHUB_REPOSITORY": "acme/shop",
            "GITHUB_TOKEN": "run-token",
            "MEMTOOL_NUMBER": "7",
        }
        done = subprocess.run(
            [sys.executable, CI / "comment.py", "github", file],
            env=env | wrong,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout, forge.requests) == (1, "", [])
    assert re.fullmatch(r"memtool: no comment: [^\n]+\n", done.stderr)
    assert "a\nb" not in done.stderr


def test_a_closed_or_newer_pull_request_gets_no_comment(site: Site) -> None:
    """The result is about a commit that is not its last one."""
    event = fork(site)
    for state, head in (("closed", site.head), ("open", site.base)):
        site.forge.pulls["7"] = {"state": state, "head": {"sha": head}}
        status, runner = comment(site, event, f"comment-{state}")
        assert (status, site.forge.writes) == (0, [])
        assert "no comment" in runner.log


def test_a_made_up_result_gets_no_comment(site: Site) -> None:
    """What is no answer of memtool is not posted, whatever it holds."""
    event = fork(site)
    for at, result in enumerate(("<!-- memtool review -->\n- @team", "x" * (9 << 20))):
        (site.artifact / "review.json").write_text(result)
        assert comment(site, event, f"comment-{at}")[0] == 1
    assert site.forge.requests == []


def test_texts_of_a_made_up_result_are_plain_text(site: Site) -> None:
    """A fork that writes the result itself gets no mention, link or HTML into the comment."""
    event = fork(site)
    answer = json.loads((site.artifact / "review.json").read_text())
    memory = answer["files"][0]["memories"][0]
    for key in ("id", "title", "reason", "breaks", "was", "pull_request"):
        memory[key] = f"@team <img src=x>\n/close\n`[x](y)` {key}"
    answer["files"] *= 3_000
    answer["files"][0] = answer["files"][0] | {"path": "@team <b>\n# x"}
    (site.artifact / "review.json").write_text(json.dumps(answer))
    assert comment(site, event)[0] == 0
    body = site.forge.comments[0]["body"]
    assert len(body) < 60_000
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", body)
    assert "@" not in outside
    assert "<" not in outside.replace("<!-- memtool ", "")
    assert not re.search("^[/#] ?[a-z]", body, re.MULTILINE)


def test_nothing_of_a_fork_is_run(site: Site) -> None:
    """Programs, modules and settings of the change have no effect in either workflow."""
    for name in ("memtool.py", "json.py", "memtool", "sitecustomize.py", "python", "pip"):
        site.sandbox.write(
            name, f"#!/bin/sh\ntouch {site.folder}/owned\nopen('{site.folder}/owned', 'w')\n"
        )
        (site.sandbox.path / name).chmod(0o755)
    site.head = site.sandbox.commit("evil")
    assert comment(site, fork(site))[0] == 0
    assert not (site.folder / "owned").exists()
    assert len(site.forge.comments) == 1


def test_a_merge_queue_checks_its_branch(site: Site) -> None:
    """From the base of the queue's branch to its end, without a comment."""
    queue = site.merge()
    site.sandbox.git(
        "push", "--quiet", "origin", f"{queue}:refs/heads/gh-readonly-queue/trunk/pr-7"
    )
    event = {
        "merge_group": {"base_sha": site.base, "head_sha": queue, "base_ref": "refs/heads/trunk"},
        "repository": {"default_branch": "trunk"},
    }
    for workflow in ("memtool-review.yml", "memtool-check.yml"):
        status, runner = site.run(workflow, "merge_group", event, workflow, sha=queue)
        assert (status, site.forge.requests) == (0, [])
        assert runner.steps
        if workflow == "memtool-review.yml":
            answer = json.loads((runner.temp / "memtool-report/review.json").read_text())
            assert (answer["from"], answer["to"]) == (site.base, queue)


@pytest.mark.parametrize("before", ["base", "zeros", "lost"])
def test_a_push_is_checked_from_the_commit_before(site: Site, before: str) -> None:
    """Of a new branch everything; of a forced push the commit before may be gone."""
    sha = {"base": site.base, "zeros": ZEROS, "lost": "1" * 40}[before]
    event = {"before": sha, "repository": {"default_branch": "trunk"}}
    runner = forges.Runner(
        site.check_out("push", site.head), site.env, "push", event, {}, sha=site.head
    )
    action = [{"uses": "./.github/actions/memtool"}]
    runner.actions = {"actions/setup-python": lambda _inputs: None}
    env = {"MEMTOOL_INSTALL": "git-memtool @ git+ssh://git.example/memtool@0123"}
    assert runner._run_steps(action, runner.values | {"steps": {}, "env": env}) == 0
    assert [row.partition("::")[0] for row in list_commands(runner.log)] == [
        "warning file=src/pay.py,line=9,title=not mentioned"
    ]


def test_only_pushes_to_the_default_branch_are_checked(site: Site) -> None:
    """Whatever it is called; a tag of its name is none."""
    event = {"before": site.base, "repository": {"default_branch": "trunk"}}
    for ref, count in (
        ("refs/heads/trunk", 3),
        ("refs/heads/other", 0),
        ("refs/heads/main", 0),
        ("refs/tags/trunk", 0),
    ):
        name = ref.replace("/", "-")
        _status, runner = site.run("memtool-check.yml", "push", event, name, ref=ref)
        assert len(runner.steps) == count


def test_every_night_secrets_of_all_history_are_looked_for(site: Site) -> None:
    """Also one that a later commit took out."""
    scanner = site.folder / "bin/kingfisher"
    scanner.write_text("#!/bin/sh\nexit 0\n")
    scanner.chmod(0o755)
    event = {"repository": {"default_branch": "trunk"}}
    assert site.run("memtool-check.yml", "schedule", event, "clean")[0] == 0
    path = site.sandbox.memory("sem-shop", "The password is demo-Shop-2026.\n", type="semantic")
    site.sandbox.commit("leak")
    site.sandbox.git("rm", "-q", path)
    head = site.sandbox.commit("no leak")
    site.sandbox.git("push", "--quiet", "origin", "more-retries")
    status, runner = site.run("memtool-check.yml", "schedule", event, "leak", sha=head)
    (command,) = list_commands(runner.log)
    assert status == 1
    assert command.startswith(f"error file={path}")
    assert "demo-Shop" not in runner.log


def test_the_second_workflow_waits_for_the_first() -> None:
    """By its name."""
    first, second = (
        yaml.safe_load((CI / f"memtool-{name}.yml").read_text("utf-8"))
        for name in ("review", "comment")
    )
    assert second[True]["workflow_run"]["workflows"] == [first["name"]]  # YAML reads `on` as true


def test_what_is_installed_is_the_variable(site: Site) -> None:
    """Or the input of the action; nothing is installed under another name."""
    site.run("memtool-review.yml", "pull_request", site.pull_request())
    log = (site.folder / "bin/pip.log").read_text()
    assert log == "install git-memtool @ git+ssh://git.example/memtool@0123\n"


def gitlab(site: Site, checkout: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run GitLab's job in a shell, as its runner does."""
    (job,) = yaml.safe_load((CI / "gitlab/memtool.yml").read_text("utf-8")).values()
    script = "\n".join(job["script"])
    variables = {
        "MEMTOOL_INSTALL": "git-memtool @ git+ssh://git.example/memtool@0123",
        "MEMTOOL_GITLAB_TOKEN": "gl-token",
        "CI_API_V4_URL": site.forge.address,
        "CI_PROJECT_ID": "12",
        "CI_COMMIT_SHA": site.head,
        "CI_COMMIT_BEFORE_SHA": ZEROS,
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=checkout,
        env=site.env | variables | env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_merge_request_of_gitlab_gets_one_note(site: Site) -> None:
    """By the merge base, or in a merged result by the target branch; also in a shallow clone."""
    request = {"CI_MERGE_REQUEST_IID": "7"}
    site.forge.pulls["7"] = {"sha": site.head}
    first = gitlab(
        site,
        site.check_out("shallow", site.head, depth=1),
        CI_MERGE_REQUEST_DIFF_BASE_SHA=site.base,
        **request,
    )
    assert first.returncode == 0, first.stderr
    assert site.forge.writes == [("POST", "/projects/12/merge_requests/7/notes")]
    assert "**not mentioned**: `dec-retries`" in site.forge.comments[0]["body"]
    assert {row.token for row in site.forge.requests} == {"gl-token"}
    site.forge.comments[0] |= {"body": "<!-- memtool review -->", "author": {"id": 1}}
    del site.forge.comments[0]["user"]
    merged = gitlab(
        site,
        site.check_out("merged", site.merge()),
        CI_MERGE_REQUEST_TARGET_BRANCH_SHA=site.base,
        CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=site.head,
        **request,
    )
    assert merged.returncode == 0, merged.stderr
    assert site.forge.writes[1:] == [("PUT", "/projects/12/merge_requests/7/notes/1")]


def test_gitlab_without_a_token_writes_the_log(site: Site) -> None:
    """As in pipelines of forks, which do not get it, and on the default branch."""
    checkout = site.check_out("job", site.head)
    for env in ({"CI_MERGE_REQUEST_IID": "7", "MEMTOOL_GITLAB_TOKEN": ""}, {}):
        done = gitlab(site, checkout, **env)
        assert (done.returncode, site.forge.requests) == (0, [])
        assert "not mentioned" in done.stdout
    assert (checkout / "memtool-report/report.md").exists()


def test_the_script_finds_the_change_by_git_alone(site: Site) -> None:
    """On any CI: from where HEAD left the branch that the remote calls its default."""
    checkout = site.check_out("plain", site.head)
    done = report(site, checkout)
    assert done.returncode == 0, done.stderr
    assert "1 file changed, governed by 1 memory" in done.stdout
    review = json.loads((checkout / "out/review.json").read_text())
    assert (review["from"], review["to"]) == (site.base, site.head)


def report(site: Site, checkout: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", CI / "report.sh", "out"],
        cwd=checkout,
        env=site.env | env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_script_stops_where_it_cannot_know(site: Site) -> None:
    """An option in place of a commit, and a remote without a branch, end it with a reason."""
    checkout = site.check_out("plain", site.head)
    done = report(site, checkout, MEMTOOL_BASE="--upload-pack=touch owned")
    assert (done.returncode, done.stderr) == (2, "not a revision: --upload-pack=touch owned\n")
    empty = site.folder / "empty.git"
    site.sandbox.git("init", "--quiet", "--bare", str(empty))
    Sandbox(checkout, site.env).git("remote", "set-url", "origin", str(empty))
    done = report(site, checkout)
    assert (done.returncode, "set MEMTOOL_BASE" in done.stderr) == (2, True)
    assert not (checkout / "owned").exists()


def test_a_policy_of_failing_fails_the_script(site: Site) -> None:
    """With the results complete."""
    site.sandbox.git("checkout", "--quiet", "trunk")
    site.sandbox.write(".memory/config.toml", '[review]\npolicy = "fail"\n')
    site.sandbox.commit("strict")
    site.sandbox.git("push", "--quiet", "origin", "trunk")
    checkout = site.check_out("plain", site.head)
    assert report(site, checkout).returncode == 1
    assert (checkout / "out/report.md").read_text().startswith("<!-- memtool review -->\n")


def test_a_redirect_does_not_get_the_token(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that sends it elsewhere is an error."""
    monkeypatch.setattr(
        site.forge, "answer", lambda request: (302, f"{site.forge.address}/elsewhere")
    )
    status, runner = site.run("memtool-review.yml", "pull_request", site.pull_request())
    assert status == 1
    assert "HTTP 302" in runner.log
    assert [row.path for row in site.forge.requests if "elsewhere" in row.path] == []


def _install_agent(site: Site) -> Path:
    """Put an npm, and a claude that notes its arguments, on the PATH; return its notes."""
    notes = site.folder / "claude.log"
    for name, line in {"npm": ":", "claude": f'printf "%s\\n" "$@" >> "{notes}"'}.items():
        program = site.folder / "bin" / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    return notes


def _dispatch(site: Site, name: str, *, depth: int = 0) -> tuple[int, str]:
    """Run the agent's workflow on the head of the change; return its exit code and its log."""
    event = {"inputs": {"task": 'fix "it" $(id)'}, "repository": {"default_branch": "trunk"}}
    site.head = site.sandbox.git("rev-parse", "HEAD").strip()
    status, runner = site.run(
        "memtool-agent.yml", "workflow_dispatch", event, name, depth=depth, sha=site.head
    )
    return status, runner.log


def test_an_agent_starts_only_where_it_gets_memories(site: Site) -> None:
    """Without hooks the job ends before it; with them it gets its task, which no shell reads."""
    notes = _install_agent(site)
    status, log = _dispatch(site, "without")
    assert (status, notes.exists()) == (1, False)
    assert "memtool install claude" in log
    site.sandbox.run("install", "claude", "--yes")
    site.sandbox.commit("hooks")
    site.sandbox.git("push", "--quiet", "origin", "more-retries")
    status, log = _dispatch(site, "with")
    assert status == 0, log
    assert notes.read_text().splitlines()[-2:] == ["--print", 'fix "it" $(id)']
    assert "fetch-depth" not in log
