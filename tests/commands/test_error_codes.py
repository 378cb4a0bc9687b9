"""The code of a refusal, as programs get it: one command line for each that is easy to provoke."""

from __future__ import annotations

import json
import shlex
import shutil
from typing import TYPE_CHECKING

import pytest

import memtool

if TYPE_CHECKING:
    from tests.conftest import Sandbox


def code(sandbox: Sandbox, line: str) -> str:
    """The code of a command line that is refused; its hint has three lines at most."""
    done = sandbox.run(*shlex.split(line), "--json")
    assert done.returncode == 2, done.stdout
    error = json.loads(done.stderr[done.stderr.index("{") :])["error"]
    assert error["hint"].count("\n") < 3
    return str(error["code"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("alias add !! login", "bad-alias"),
        ("alias remove nothing", "unknown-alias"),
        ("capture odd.json", "foreign-transcript"),
        ("digest nothing", "unknown-category"),
        ("digest warning", "nothing-to-sum-up"),
        ("drift", "no-commit"),
        ("fleet sync", "no-fleet"),
        ("import jsonl empty.jsonl", "no-records"),
        ("install claude", "broken-settings"),
        ("promote --finding f-none", "no-finding"),
        ("purge --secret 0123456789abcdef", "no-leak"),
        ("purge dec-a", "not-due"),
        ("sign dec-a", "no-key" if shutil.which("ssh-keygen") else "not-installed"),
    ],
)
def test_a_refusal_has_its_code(sandbox: Sandbox, line: str, expected: str) -> None:
    """In a repository with one memory, no commit, and some files that cannot be read."""
    sandbox.memory("dec-a")
    sandbox.write("odd.json", '{"what": "is this"}')
    sandbox.write("empty.jsonl", "")
    sandbox.write(".claude/settings.json", "{")
    assert code(sandbox, line) == expected


def test_a_memory_that_was_just_forgotten_is_not_due(sandbox: Sandbox) -> None:
    """It can be restored until then."""
    sandbox.memory("dec-a")
    sandbox.commit()
    assert sandbox.run("forget", "dec-a", "--reason", "old", "--commit").returncode == 0
    assert code(sandbox, "purge dec-a") == "not-due"


def test_histories_without_a_common_commit_are_unrelated(sandbox: Sandbox) -> None:
    """There is nothing that both changed."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "--orphan", "other")
    sandbox.commit("other")
    assert code(sandbox, "diff main...other") == "unrelated"


def test_a_session_that_has_ended_takes_no_message(sandbox: Sandbox) -> None:
    """Nor has it a message of any number, and two that begin alike are ambiguous."""
    first = sandbox.json("session", "start", "--title", "Refunds")["id"]
    assert code(sandbox, f"session show {first}#99") == "no-message"
    assert sandbox.json("session", "start", "--title", "Again")["id"] != first
    assert code(sandbox, "session show ses-") == "ambiguous-id"
    sandbox.json("session", "end", first)
    assert code(sandbox, f"session add {first} more") == "session-ended"


def test_a_hook_of_somebody_else_is_taken(sandbox: Sandbox) -> None:
    """A program that is no shell script cannot be extended."""
    sandbox.write(".git/hooks/pre-commit", "#!/usr/bin/env python3\n").chmod(0o755)
    assert code(sandbox, "install git --yes") == "hook-taken"


def test_a_newer_format_is_read_and_not_written(sandbox: Sandbox) -> None:
    """The hint is how to upgrade."""
    sandbox.write(".memory/config.toml", "format = 99\n")
    assert code(sandbox, "new decision T --body B") == "too-new"


def test_a_server_cannot_be_started_from_python(sandbox: Sandbox) -> None:
    """It would take the process over."""
    with pytest.raises(memtool.MemtoolError) as caught:
        memtool.open(sandbox.path).mcp()
    assert caught.value.code == "surface"


def test_an_ambiguous_id_is_answered_with_the_command_that_was_called(sandbox: Sandbox) -> None:
    """Titles are listed, whole ids stay in JSON, and the command names the first memory."""
    for number, word in enumerate(("twenty", "thirty"), 1):
        sandbox.memory(f"dec-2026-02-2{number}-hold-{word}-2g5{number}", title=f"Hold {word}")
    done = sandbox.run("supersede", "hold", "Hold forty")
    assert done.stderr == (
        'memtool: cannot supersede: "hold" matches 2 active memories:\n'
        "  dec-2g51  Hold twenty\n  dec-2g52  Hold thirty\n"
        "hint: memtool supersede dec-2g51 'Hold forty'\n"
    )
    done = sandbox.run("forget", "hold", "--reason", "old", "--json")
    assert "memtool forget dec-2026-02-21-hold-twenty-2g51 --reason" in done.stderr


def test_a_removed_memory_is_named_with_its_title_by_every_verb(sandbox: Sandbox) -> None:
    """By its short id too, and before the removal is committed."""
    path = sandbox.memory("dec-2026-02-20-hold-twenty-2g54", title="Hold twenty")
    sandbox.memory("dec-stays")
    sandbox.commit()
    sandbox.git("rm", "--quiet", path)
    done = sandbox.run("confirm", "dec-2g54")
    assert "dec-2g54 (Hold twenty) was removed from the worktree" in done.stderr
    sandbox.write(path, "no frontmatter\n")
    assert sandbox.run("show", "dec-2g54").stderr == (
        f"memtool: dec-2g54 (Hold twenty) cannot be read\nhint: memtool check {path}\n"
    )
    (sandbox.path / path).unlink()
    removed = sandbox.commit("away")
    for verb in ("confirm", "show", "why", "blame"):
        done = sandbox.run(verb, "dec-2g54")
        assert done.stderr == (
            f"memtool: dec-2g54 (Hold twenty) was removed in {removed[:7]}\n"
            "hint: memtool log dec-2g54\n"
        )
    assert "dec-2g5x" in sandbox.run("confirm", "dec-2g5x").stderr


def test_a_memory_of_the_trusted_branch_is_pointed_to(sandbox: Sandbox) -> None:
    """The hint shows it there, by its short id."""
    sandbox.memory("dec-stays")
    first = sandbox.commit()
    sandbox.memory("dec-2026-02-20-hold-twenty-2g54", title="Hold twenty")
    sandbox.commit()
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
    sandbox.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    sandbox.git("checkout", "--quiet", "-b", "older", first)
    done = sandbox.run("confirm", "dec-2g54")
    assert done.stderr == (
        "memtool: dec-2g54 (Hold twenty) is on origin/main, not on this branch\n"
        "hint: memtool show dec-2g54 --at origin/main\n"
    )
    assert sandbox.run("show", "dec-2g54", "--at", "origin/main").returncode == 0


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("import docs/odd", "it is not clear what the records in", "memtool import adr docs/odd"),
        ("import odd", "is neither a path here nor a kind", "memtool import adr PATH"),
        ("inject how long", "takes its text with --prompt", 'memtool inject --prompt "how long"'),
        ("inject '$HOME'", "takes its text with --prompt", "memtool inject --prompt '$HOME'"),
        ("promote f-none", "no lesson begins with f-none", "memtool promote --list"),
        ("diff main..nobranch", "; the branches are", "git log --oneline --all"),
        ("diff main..holds2", 'no revision "holds2"', "did you mean holds20?"),
    ],
)
def test_a_misread_argument_is_answered_with_the_right_call(
    sandbox: Sandbox, line: str, message: str, hint: str
) -> None:
    """What was left out is named, and the hint is the call with it."""
    sandbox.memory("dec-a")
    sandbox.write("docs/odd/keep.md", "# Keep records\n")
    sandbox.commit()
    for branch in ("holds20", "mails"):
        sandbox.git("branch", branch)
    done = sandbox.run(*shlex.split(line))
    assert done.returncode == 2
    assert message in done.stderr
    assert f"hint: {hint}" in done.stderr
