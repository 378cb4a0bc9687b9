"""`memtool purge`: forgotten memories go for good, in a commit that the gate lets pass."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool import installation

LONG_AGO = {"at": "2026-01-01T00:00:00Z", "reason": "gone"}


@pytest.fixture
def forgotten(sandbox: Sandbox) -> Sandbox:
    """A memory that is due, one that is not, one that is in use, and the hook."""
    sandbox.memory("dec-due", status="deleted", deleted=LONG_AGO)
    sandbox.memory("dec-late", status="deleted", deleted=LONG_AGO | {"at": "2026-02-20T00:00:00Z"})
    sandbox.memory("dec-here")
    sandbox.run("install", "git")
    sandbox.commit()
    return sandbox


def test_the_plan_says_what_is_due_and_changes_nothing(forgotten: Sandbox) -> None:
    """With its day, and how to keep it."""
    done = forgotten.run("purge")
    assert done.stdout.splitlines() == [
        "dec-due  Title of dec-due",
        "  due now, forgotten on 2026-01-01: gone",
        "dec-late  Title of dec-late",
        "  due on 2026-03-22, forgotten on 2026-02-20: gone",
        "To remove what is due: memtool purge --apply --commit. To keep it: memtool restore ID",
    ]
    assert forgotten.git("status", "--porcelain") == ""
    assert forgotten.json("purge", "--apply", "--commit", "--dry-run")["removed"] == []


def test_what_is_due_goes_in_one_commit_that_the_hook_and_ci_let_pass(forgotten: Sandbox) -> None:
    """Its trailer names what it removes; nothing else that is staged goes with it."""
    forgotten.write("other.txt", "mine")
    forgotten.git("add", "other.txt")
    done = forgotten.json("purge", "--apply", "--commit")
    assert done["removed"] == ["dec-due"]
    assert "Purges: dec-due\n" in forgotten.git("log", "-1", "--format=%B")
    changed = forgotten.git("show", "--name-status", "--format=", "HEAD").split()
    assert changed == ["D", ".memory/decision/2026-02/dec-due.md"]
    assert forgotten.git("status", "--porcelain") == "A  other.txt\n"
    assert forgotten.run("check", "--range", "HEAD~1..HEAD").returncode == 0
    assert forgotten.json("purge", "--apply", "--commit")["removed"] == []


def test_no_other_removal_passes_the_hook(forgotten: Sandbox) -> None:
    """Neither by hand, nor by naming another memory."""
    forgotten.git("rm", "-q", ".memory/decision/2026-02/dec-due.md")
    done = forgotten.run("check", "--staged", MEMTOOL_PURGES="dec-here")
    assert done.returncode == 1
    assert "memtool purge dec-due --apply --commit" in done.stdout


def test_what_replaced_a_purged_memory_dangles_nowhere(forgotten: Sandbox) -> None:
    """Neither status nor the gate complains about what a purge removed."""
    forgotten.memory("dec-new", supersedes=("dec-due",))
    forgotten.commit()
    forgotten.json("purge", "--apply", "--commit")
    assert forgotten.json("status")["problems"] == []
    assert forgotten.json("check")["problems"] == []


def test_a_refused_commit_leaves_every_file(forgotten: Sandbox) -> None:
    """A hook of the user may say no."""
    forgotten.write(".git/hooks/pre-commit", "#!/bin/sh\necho no; exit 1\n").chmod(0o755)
    done = forgotten.run("purge", "--apply", "--commit")
    assert (done.returncode, "nothing was removed" in done.stderr) == (2, True)
    assert forgotten.git("status", "--porcelain") == ""


def test_cascade_takes_what_was_derived_from_it_alone(forgotten: Sandbox) -> None:
    """Told without it, done with it; findings are withdrawn, messages stay in their session."""
    forgotten.memory("sem-sum", type="semantic", derived_from=("dec-due",))
    forgotten.commit()
    purged = forgotten.run("purge")
    assert "--cascade also removes" in purged.stderr
    assert " stays: derived from dec-due\n" in purged.stdout
    purged = forgotten.run("purge", "--cascade")
    assert " goes with it: derived from dec-due\n" in purged.stdout
    assert "To remove what is due: memtool purge --apply --commit --cascade." in purged.stdout
    done = forgotten.json("purge", "--apply", "--commit", "--cascade")
    assert done["removed"] == ["dec-due", "sem-sum"]
    assert "Purges: dec-due, sem-sum\n" in forgotten.git("log", "-1", "--format=%B")


def test_cascade_withdraws_the_findings_that_it_came_from(sandbox: Sandbox) -> None:
    """Only words in the private session remain, and the user is told which."""
    transcript = "User: Remember: we always deploy from the release branch, never from main.\n"
    sandbox.run("capture", "-", stdin=transcript)
    made = sandbox.json("promote")["memories"]
    assert len(made) == 1
    sandbox.commit()
    sandbox.run("forget", made[0]["id"], "--reason", "x", "--commit")
    later = {"MEMTOOL_NOW": "2026-06-01T00:00:00Z"}
    done = sandbox.run("purge", "--apply", "--commit", "--cascade", **later)
    assert "still has the messages that they are from" in done.stderr
    (journal,) = (sandbox.path / ".git/memtool/sessions").glob("*/findings.jsonl")
    assert journal.read_text().splitlines()[-1] == f'{{"withdrawn":"{made[0]["finding"]}"}}'


def test_open_branches_are_told_before(forgotten: Sandbox) -> None:
    """A merge of one could take the removed file for a similar one."""
    forgotten.git("switch", "-q", "-c", "open")
    forgotten.write("x", "y")
    forgotten.git("add", "x")
    forgotten.git("commit", "-q", "--no-verify", "-m", "x")
    forgotten.git("switch", "-q", "main")
    assert "merge open first" in forgotten.run("purge").stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("dec-here",), "(dec-here) is not forgotten"),
        (("dec-late",), "(dec-late) is not due until 2026-03-22"),
        (("dec-none",), "no memory is called"),
        (("dec-",), 'match "dec-"'),
        (("--apply",), "--apply needs --commit"),
        (("--into", "x"), "--into needs --history"),
        (("--history", "dec-here", "--apply"), "needs --into: a new directory"),
        (("--history", "dec-none"), "no commit has 'dec-none'"),
        (("--history", "dec-"), "memories of its history match 'dec-'"),
        (("--history", "dec-here", "dec-due"), "needs a single memory or secret"),
        (("--secret", "0123456789abcdef"), "no memory ever had a secret"),
        (("--secret", "hunter2-hunter2"), "--secret takes a fingerprint"),
        (("--history", "dec-here", "--apply", "--into", "inner"), "outside this repository"),
        (("--history", "dec-here", "--apply", "--into", "../home"), "is there already"),
        (("--history", "dec-here", "--apply", "--into", "../a/b"), "in no directory"),
    ],
)
def test_what_cannot_be_purged_is_refused(
    forgotten: Sandbox, args: tuple[str, ...], message: str
) -> None:
    """One sentence, exit code 2, every file as it was."""
    if "--into" in args and "--apply" in args:
        pytest.importorskip("git_filter_repo")
    done = forgotten.run("purge", *args)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert "hunter2" not in done.stderr
    assert forgotten.git("status", "--porcelain") == ""


def test_an_uncommitted_deletion_is_held(forgotten: Sandbox) -> None:
    """A dirty file stays, with the command that makes it ready."""
    forgotten.memory("dec-here", status="deleted", deleted=LONG_AGO)
    done = forgotten.run("purge", "dec-here")
    assert "its deletion is not committed yet" in done.stderr
    assert "git commit -- .memory/decision/2026-02/dec-here.md" in done.stderr


SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA2cD4"


@pytest.fixture
def leaked(sandbox: Sandbox) -> Sandbox:
    """A token in a memory, in a file and in a message; later commits took it out of the files."""
    sandbox.memory("dec-here")
    sandbox.commit("first")
    path = sandbox.memory("dec-key", f"The token is {SECRET} for CI.\n")
    sandbox.write("notes.txt", f"token={SECRET}\n")
    sandbox.commit(f"add {SECRET}")
    sandbox.git("tag", "-a", "v1", "-m", "one")
    sandbox.write(path, (sandbox.path / path).read_text().replace(SECRET, "gone"))
    sandbox.write("notes.txt", "token=\n")
    sandbox.commit("take it out")
    return sandbox


def fingerprint_of(sandbox: Sandbox) -> str:
    (secret,) = sandbox.json("purge", "--history")["secrets"]
    return str(secret["fingerprint"])


def test_the_plan_of_a_leak_says_where_it_stands_and_what_it_costs(leaked: Sandbox) -> None:
    """Files, commits, refs, messages and consequences; never the secret."""
    done = leaked.run("purge", "--secret", fingerprint_of(leaked))
    assert SECRET not in done.stdout + done.stderr
    plan = leaked.json("purge", "--secret", fingerprint_of(leaked))
    assert plan["paths"] == [".memory/decision/2026-02/dec-key.md", "notes.txt"]
    assert (plan["objects"], plan["messages"], len(plan["commits"])) == (3, 1, 2)
    assert plan["refs"] == ["refs/heads/main", "refs/tags/v1"]
    assert "Everybody has to clone again" in done.stdout


def test_a_leak_leaves_a_mirror_and_nothing_else_is_touched(
    leaked: Sandbox, tmp_path: Path
) -> None:
    """No object of the mirror holds it, every other blob is there, and this clone is as it was."""
    pytest.importorskip("git_filter_repo")
    before = leaked.git("for-each-ref")
    objects = leaked.git("cat-file", "--batch-all-objects", "--batch-check")
    into = tmp_path / "cleansed"
    args = ("--secret", fingerprint_of(leaked), "--apply", "--into", str(into))
    plan = leaked.json("purge", *args)
    assert leaked.git("for-each-ref") == before
    assert plan["kept_commits"] == 3
    assert not any(SECRET.encode() in f.read_bytes() for f in into.rglob("*") if f.is_file())
    log = leaked.git("--git-dir", str(into), "log", "-p", "--all")
    assert SECRET not in log
    assert "[REDACTED:github-token]" in log
    assert plan["kept_blobs"] == objects.count(" blob ") - 2
    assert list(into.glob("memtool-*")) == []


def test_the_printed_commands_replace_the_remote(leaked: Sandbox, tmp_path: Path) -> None:
    """They push what changed, refuse after a concurrent push, and make a new clone."""
    pytest.importorskip("git_filter_repo")
    remote = tmp_path / "remote.git"
    leaked.git("init", "-q", "--bare", str(remote))
    leaked.git("remote", "add", "origin", str(remote))
    leaked.git("push", "-q", "origin", "main", "v1")
    plan = leaked.json(
        "purge", "--secret", fingerprint_of(leaked), "--apply", "--into", str(tmp_path / "new")
    )
    assert plan["remotes"] == ["origin"]
    for command in plan["next"]:
        subprocess.run(["sh", "-c", command], cwd=leaked.path, env=leaked.env, check=True)
    log = leaked.git("--git-dir", str(remote), "log", "-p", "--all")
    assert SECRET not in log
    assert "take it out" in log
    clone = str(tmp_path / "new-clone")
    assert leaked.git("-C", clone, "remote", "get-url", "origin").strip() == str(remote)
    assert SECRET not in leaked.git("-C", clone, "log", "-p", "--all")


def test_the_list_of_leaks_ends_with_the_next_command(leaked: Sandbox) -> None:
    """Whoever sees a fingerprint knows what to do with it."""
    last = leaked.run("purge", "--history").stdout.splitlines()[-1]
    assert last.endswith("memtool purge --secret FINGERPRINT")


@pytest.mark.parametrize("name", ["dec-key", "key"])
def test_a_memory_of_the_history_is_named_as_elsewhere(leaked: Sandbox, name: str) -> None:
    """By its id or words of it; the next command names the whole id."""
    (command,) = leaked.json("purge", "--history", name)["next"]
    assert command == "memtool purge --history dec-key --apply --into ../cleansed"


def test_a_memory_leaves_a_mirror_with_every_version(leaked: Sandbox, tmp_path: Path) -> None:
    """All commits stay, without it."""
    pytest.importorskip("git_filter_repo")
    into = tmp_path / "cleansed"
    plan = leaked.json("purge", "--history", "dec-key", "--apply", "--into", str(into))
    assert plan["kept_commits"] == 3
    names = leaked.git("--git-dir", str(into), "log", "--all", "--name-only", "--format=")
    assert "dec-key" not in names
    assert "dec-here" in names


def test_a_secret_in_a_binary_file_is_not_called_gone(leaked: Sandbox, tmp_path: Path) -> None:
    """The rewrite leaves such files alone, and the proof says so instead of success."""
    pytest.importorskip("git_filter_repo")
    leaked.write("blob.bin", b"\0\1" + SECRET.encode())
    leaked.commit("binary")
    done = leaked.run(
        "purge", "--secret", fingerprint_of(leaked), "--apply", "--into", str(tmp_path / "new")
    )
    assert (done.returncode, "objects that still hold the secret: 1" in done.stderr) == (2, True)
    assert "do not push it" in done.stderr


def test_without_the_program_one_sentence_says_how_to_get_it(
    leaked: Sandbox, tmp_path: Path
) -> None:
    """Nothing is made."""
    shadow = leaked.write(
        "shadow/sitecustomize.py", "import sys\nsys.modules['git_filter_repo'] = None\n"
    )
    done = leaked.process(
        "purge",
        "--history",
        "dec-key",
        "--apply",
        "--into",
        str(tmp_path / "new"),
        PYTHONPATH=str(shadow.parent),
        PATH=f"{tmp_path}:/usr/bin:/bin",
    )
    assert (done.returncode, installation.install("purge") in done.stderr) == (2, True)
    assert not (tmp_path / "new").exists()


KILLED = {
    "before git's index follows": "os.unlink",
    "before the commit": "purge.commit_files",
    "before what comes after it": "purge.withdraw",
}


@pytest.mark.parametrize("where", KILLED.values(), ids=KILLED)
def test_the_next_purge_finishes_what_was_cut_off(sandbox: Sandbox, where: str) -> None:
    """Nothing but what was due is gone, whether or not the commit was made."""
    gone = {"at": "2026-01-01T00:00:00Z", "reason": "gone"}
    for id_ in ("dec-a", "dec-b"):
        sandbox.memory(id_, status="deleted", deleted=gone)
    sandbox.memory("dec-here")
    sandbox.memory("sem-sum", type="semantic", derived_from=("dec-a", "dec-b"))
    sandbox.commit()
    code = (
        "import os; from memtool.upkeep import purge; from memtool.cli.main import main;"
        f"{where} = lambda *a, **k: os.kill(os.getpid(), {int(signal.SIGKILL)});"
        "main(['purge', '--apply', '--commit', '--cascade'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=sandbox.path, env=sandbox.env, check=False
    )
    assert done.returncode == -signal.SIGKILL
    again = sandbox.run("purge", "--apply", "--commit", "--cascade")
    assert again.returncode == 0
    assert sandbox.git("status", "--porcelain") == ""
    assert [memory["id"] for memory in sandbox.json("list", "is:deleted")["memories"]] == []
    assert [memory["id"] for memory in sandbox.json("list")["memories"]] == ["dec-here"]
    acts = sandbox.json("log", "--audit", "--kind", "purge")["audit"]
    assert "interrupted" in [act["outcome"] for act in acts]
