"""Reverts pass the gate with a warning; every other removal or edit is refused as ever."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from conftest import Sandbox

from memtool.commands.check import check
from memtool.gate import reverts
from memtool.memory.schema import Problem

REDIS = "Sessions live in Redis, since web processes come and go.\n"
POSTGRES = "Sessions live in Postgres, which is backed up anyway.\n"
NIGHT = "Invoices are rendered at night.\n"
QUEUE = "Mails are sent by a queue, so that a request never waits for them.\n"
FOLDER = ".memory/decision/2026-02"


@pytest.fixture
def begun(sandbox: Sandbox) -> Sandbox:
    """A repository with code and the decision dec-a."""
    sandbox.write("src/store.py", "STORE = 'redis'\n")
    sandbox.memory("dec-a", REDIS, title="Keep sessions in Redis")
    sandbox.commit("begin")
    return sandbox


@pytest.fixture
def guarded(begun: Sandbox) -> Sandbox:
    """The same repository with the hooks of `memtool install git`."""
    assert begun.run("install", "git").returncode == 0
    return begun


def head(sandbox: Sandbox) -> str:
    return sandbox.git("rev-parse", "HEAD").strip()


def problems(sandbox: Sandbox, start: str = "") -> list[Problem]:
    """Return what a check of `start..HEAD` finds, or of what is staged."""
    context = sandbox.context()
    report = check(context, range=f"{start}..HEAD") if start else check(context, staged=True)
    return list(report.problems)


def codes(reported: list[Problem]) -> list[tuple[str, str, str]]:
    return [(problem.id, problem.code, problem.severity) for problem in reported]


def paste(sandbox: Sandbox, hint: str) -> None:
    """Run the command with which a hint begins, as a user does who pastes it."""
    command = hint.partition(", then ")[0]
    if command.startswith("memtool "):
        done = sandbox.run(*shlex.split(command)[1:])
        assert done.returncode == 0, done.stderr
    else:
        subprocess.run(command, shell=True, cwd=sandbox.path, env=sandbox.env, check=True)


def add_decision(sandbox: Sandbox, message: str = "Raise the limit") -> str:
    """Commit the decision dec-b together with its code."""
    sandbox.write("src/limit.py", "LIMIT = 10\n")
    sandbox.memory("dec-b", QUEUE, title="Send mails by a queue")
    return sandbox.commit(message)


def test_a_revert_of_a_decision_with_its_code_is_a_warning(begun: Sandbox) -> None:
    """It names the commit and the memory, and the proposed lesson can be pasted."""
    added = add_decision(begun)
    begun.git("revert", "--no-edit", "HEAD")
    for start in (added, f"{added}~1"):
        (problem,) = problems(begun, start)
        assert codes([problem]) == [("dec-b", "reverted", "warning")]
        assert problem.message == (
            f'commit {added[:7]} "Raise the limit" is taken back: '
            'dec-b "Send mails by a queue" is gone'
        )
    paste(begun, problem.hint)
    begun.commit("lesson")
    assert codes(problems(begun, added)) == [("dec-b", "reverted", "warning")]
    (lesson,) = begun.json("list", "type:episodic")["memories"]
    assert lesson["title"] == "Reverted: Send mails by a queue"
    assert begun.json("verify", lesson["id"])["memories"][0]["verdict"] == "sound"


def test_after_the_revert_of_a_squash_the_older_decision_holds(begun: Sandbox) -> None:
    """The superseded memory is what search and show give again."""
    begun.git("switch", "--quiet", "--create", "side")
    begun.memory("dec-b", POSTGRES, title="Keep sessions in Postgres", supersedes=("dec-a",))
    begun.commit("store")
    begun.memory("dec-c", NIGHT)
    begun.commit("invoices")
    begun.git("switch", "--quiet", "main")
    begun.git("merge", "--quiet", "--squash", "side")
    squashed = begun.commit("Sessions in Postgres (#12)")
    assert begun.json("show", "dec-a")["superseded_by"] == ["dec-b"]
    begun.git("revert", "--no-edit", "HEAD")
    (problem,) = problems(begun, squashed)
    assert codes([problem]) == [("dec-b", "reverted", "warning")]
    assert problem.message == (
        f'commit {squashed[:7]} "Sessions in Postgres (#12)" is taken back: '
        'dec-b "Keep sessions in Postgres", dec-c "Title of dec-c" are gone; dec-a holds again'
    )
    assert "'Reverted: Sessions in Postgres (#12)'" in problem.hint
    assert begun.json("show", "dec-a")["superseded_by"] == []
    results = begun.json("search", "sessions")["results"]
    assert [result["id"] for result in results] == ["dec-a"]


def test_a_revert_of_a_merge_takes_back_what_it_brought(begun: Sandbox) -> None:
    """It is one warning, for the merge, and not one for each of its commits."""
    begun.git("switch", "--quiet", "--create", "side")
    begun.memory("dec-b", QUEUE)
    begun.commit("mails")
    begun.memory("dec-c", NIGHT)
    begun.commit("invoices")
    begun.git("switch", "--quiet", "main")
    begun.memory("dec-d", "Uploads go to a bucket.\n")
    begun.commit("uploads")
    begun.git("merge", "--quiet", "--no-ff", "-m", "Merge pull request #12", "side")
    merged = head(begun)
    begun.git("revert", "--no-edit", "-m", "1", "HEAD")
    (problem,) = problems(begun, merged)
    assert codes([problem]) == [("dec-b", "reverted", "warning")]
    assert f'commit {merged[:7]} "Merge pull request #12" is taken back' in problem.message
    begun.git("revert", "--no-edit", "HEAD")
    assert problems(begun, merged) == []


def test_a_revert_of_one_commit_of_a_merge_names_that_commit(begun: Sandbox) -> None:
    """The merge brought another memory, which stays."""
    begun.git("switch", "--quiet", "--create", "side")
    begun.memory("dec-b", QUEUE)
    added = begun.commit("mails")
    begun.memory("dec-c", NIGHT)
    begun.commit("invoices")
    begun.git("switch", "--quiet", "main")
    begun.git("merge", "--quiet", "--no-ff", "--no-edit", "side")
    merged = head(begun)
    begun.git("revert", "--no-edit", added)
    (problem,) = problems(begun, merged)
    assert f'commit {added[:7]} "mails" is taken back' in problem.message


@pytest.mark.parametrize("verb", ["pin", "forget", "archive", "confirm"])
def test_a_revert_of_a_step_of_the_lifecycle_is_silent(begun: Sandbox, verb: str) -> None:
    """Lifecycle fields may change, and change back."""
    assert (
        begun.run(
            verb, "dec-a", "--commit", *(["--reason", "over"] * (verb == "forget"))
        ).returncode
        == 0
    )
    done = head(begun)
    begun.git("revert", "--no-edit", "HEAD")
    assert problems(begun, done) == []


def test_a_revert_of_the_confirmation_of_a_candidate_is_named(begun: Sandbox) -> None:
    """It is a candidate again, which bypasses no review."""
    begun.memory("dec-b", QUEUE, status="candidate")
    begun.commit("proposal")
    assert begun.run("confirm", "dec-b", "--commit").returncode == 0
    done = head(begun)
    begun.git("revert", "--no-edit", "HEAD")
    (problem,) = problems(begun, done)
    assert codes([problem]) == [("dec-b", "reverted", "warning")]
    assert problem.message.endswith("is taken back: the status of dec-b is candidate again")


def test_a_revert_of_a_revert_brings_the_memory_back(guarded: Sandbox) -> None:
    """The same bytes are added again without a warning."""
    added = add_decision(guarded)
    guarded.git("revert", "--no-edit", "HEAD")
    reverted = head(guarded)
    guarded.git("revert", "--no-commit", "HEAD")
    assert problems(guarded) == []
    guarded.git("commit", "--quiet", "--message", "again")
    assert guarded.git("diff", added, "HEAD") == ""
    for start in (f"{added}~1", added, reverted):
        assert problems(guarded, start) == []
    again = head(guarded)
    guarded.git("revert", "--no-edit", "HEAD")
    (problem,) = problems(guarded, again)
    assert f'commit {again[:7]} "again" is taken back' in problem.message


def test_two_reverts_in_one_range_are_two_warnings(begun: Sandbox) -> None:
    """Also if they are squashed into one commit."""
    first = add_decision(begun)
    begun.memory("dec-c", NIGHT)
    second = begun.commit("invoices")
    begun.git("revert", "--no-edit", second)
    begun.git("revert", "--no-edit", first)
    for _squashed in (False, True):
        assert codes(problems(begun, second)) == [
            ("dec-b", "reverted", "warning"),
            ("dec-c", "reverted", "warning"),
        ]
        begun.git("reset", "--quiet", "--soft", second)
        begun.git("commit", "--quiet", "--message", "both back")


def test_a_whole_folder_is_not_taken_back(begun: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each memory came in its own commit, and all at once are a loss."""
    monkeypatch.setattr(reverts, "MAX_REVERTS", 2)
    for name, body in (("dec-b", QUEUE), ("dec-c", NIGHT)):
        begun.memory(name, body)
        begun.commit(name)
    begun.git("rm", "--quiet", f"{FOLDER}/dec-b.md", f"{FOLDER}/dec-c.md")
    assert {problem.severity for problem in problems(begun)} == {"warning"}
    begun.git("rm", "--quiet", f"{FOLDER}/dec-a.md")
    assert codes(problems(begun)) == [
        (name, "removed", "error") for name in ("dec-a", "dec-b", "dec-c")
    ]


def test_a_silent_edit_beside_a_revert_is_refused(begun: Sandbox) -> None:
    """Reverted files are warnings, and the edit an error with a hint that works."""
    added = add_decision(begun)
    begun.git("revert", "--no-edit", "HEAD")
    begun.memory("dec-a", POSTGRES, title="Keep sessions in Redis")
    begun.commit("tidy up")
    reported = problems(begun, added)
    assert codes(reported) == [("dec-a", "silent-edit", "error"), ("dec-b", "reverted", "warning")]
    paste(begun, reported[0].hint)
    begun.commit("mended")
    assert codes(problems(begun, added)) == [("dec-b", "reverted", "warning")]


@pytest.mark.parametrize("is_staged", [True, False])
def test_a_part_of_a_commit_is_not_a_revert(begun: Sandbox, *, is_staged: bool) -> None:
    """One of two memories is refused, and the hint brings it back."""
    begun.memory("dec-b", QUEUE)
    begun.memory("dec-c", NIGHT)
    added = begun.commit("two")
    begun.git("rm", "--quiet", f"{FOLDER}/dec-b.md")
    if not is_staged:
        begun.commit("one less")
        begun.write("src/store.py", "STORE = 'none'\n")
        begun.commit("later")
    start = "" if is_staged else added
    (problem,) = problems(begun, start)
    assert codes([problem]) == [("dec-b", "removed", "error")]
    source = "HEAD" if is_staged else added[:7]
    assert problem.hint.startswith(f"git checkout {source} -- {FOLDER}/dec-b.md, then ")
    paste(begun, problem.hint)
    assert begun.git("status", "--porcelain") == ("" if is_staged else f"A  {FOLDER}/dec-b.md\n")
    if not is_staged:
        begun.commit("back")
    assert problems(begun, start) == []


def test_the_hint_names_a_commit_of_the_range_where_the_base_had_no_such_file(
    begun: Sandbox,
) -> None:
    """Both memories came and one went in the range: the last commit that had it is named."""
    base = head(begun)
    begun.memory("dec-b", QUEUE)
    begun.memory("dec-c", NIGHT)
    begun.commit("two")
    begun.memory("dec-b", QUEUE, status="pinned")
    pinned = begun.commit("pinned")
    begun.git("rm", "--quiet", f"{FOLDER}/dec-b.md")
    begun.commit("one less")
    (problem,) = problems(begun, base)
    assert problem.hint.startswith(f"git checkout {pinned[:7]} -- {FOLDER}/dec-b.md, then ")


def test_a_merge_that_drops_a_memory_has_a_hint_that_works(begun: Sandbox) -> None:
    """HEAD never had it; the commit that is being merged has."""
    begun.git("switch", "--quiet", "--create", "side")
    begun.memory("dec-b", QUEUE)
    begun.memory("dec-c", NIGHT)
    begun.commit("two")
    begun.git("switch", "--quiet", "main")
    begun.write("other.txt", "mine")
    begun.commit("other")
    begun.git("merge", "--quiet", "--no-commit", "--no-ff", "side")
    for name in ("dec-b", "dec-c"):
        begun.git("rm", "--quiet", "--force", f"{FOLDER}/{name}.md")
    reported = problems(begun)
    assert codes(reported) == [("dec-b", "removed", "error"), ("dec-c", "removed", "error")]
    for problem in reported:
        paste(begun, problem.hint)
    assert problems(begun) == []


def test_a_range_in_which_a_merge_dropped_a_memory_has_a_hint_that_works(begun: Sandbox) -> None:
    """Only one parent of the merge has the version that was dropped."""
    begun.memory("dec-b", QUEUE)
    begun.memory("dec-c", NIGHT)
    base = begun.commit("two")
    begun.git("switch", "--quiet", "--create", "side")
    begun.memory("dec-b", QUEUE, status="pinned")
    begun.commit("pinned")
    begun.git("switch", "--quiet", "main")
    begun.write("other.txt", "mine")
    begun.commit("other")
    begun.git("merge", "--quiet", "--no-commit", "--no-ff", "side")
    begun.git("rm", "--quiet", "--force", f"{FOLDER}/dec-b.md")
    begun.git("commit", "--quiet", "--message", "merge")
    (problem,) = problems(begun, base)
    assert codes([problem]) == [("dec-b", "removed", "error")]
    paste(begun, problem.hint)
    begun.commit("back")
    assert problems(begun, base) == []


def test_a_revert_long_after_compares_what_that_commit_touched(begun: Sandbox) -> None:
    """Other memories, and other keys of the same memory, have changed meanwhile."""
    begun.memory("dec-b", QUEUE)
    begun.memory("dec-a", REDIS, title="Keep sessions in Redis", importance="0.9")
    added = begun.commit("mails")
    for name, body in (("dec-c", NIGHT), ("dec-d", "Uploads go to a bucket.\n")):
        begun.memory(name, body)
        begun.commit(name)
    begun.memory("dec-a", REDIS, title="Keep sessions in Redis", importance="0.9", tags=("web",))
    last = begun.commit("tagged")
    begun.git("rm", "--quiet", f"{FOLDER}/dec-b.md")
    assert codes(problems(begun)) == [("dec-b", "removed", "error")]  # dec-a is still important
    begun.memory("dec-a", REDIS, title="Keep sessions in Redis", tags=("web",))
    reverted = begun.commit("back")
    (problem,) = problems(begun, last)
    assert codes([problem]) == [("dec-b", "reverted", "warning")]
    assert f'commit {added[:7]} "mails"' in problem.message
    assert reverted[:7] not in problem.message


def test_a_revert_of_a_silent_edit_passes(begun: Sandbox) -> None:
    """It went past the hook; the range that takes it back is fine."""
    begun.memory("dec-a", POSTGRES, title="Keep sessions in Redis")
    edited = begun.commit("edited")
    begun.git("revert", "--no-edit", "HEAD")
    (problem,) = problems(begun, edited)
    assert codes([problem]) == [("dec-a", "reverted", "warning")]
    assert problem.message.endswith("is taken back: dec-a is as it was before")


def test_a_revert_within_a_range_excuses_no_edit_before_it(begun: Sandbox) -> None:
    """Only the second of two silent edits is taken back."""
    base = head(begun)
    begun.memory("dec-a", POSTGRES, title="Keep sessions in Redis")
    begun.commit("first")
    begun.memory("dec-a", "Sessions live in files.\n", title="Keep sessions in Redis")
    begun.commit("second")
    begun.git("revert", "--no-edit", "HEAD")
    assert codes(problems(begun, base)) == [("dec-a", "silent-edit", "error")]


def test_nobody_confirmed_what_a_candidate_said_before(begun: Sandbox) -> None:
    """Taking back an edit of a candidate that was confirmed since is a silent edit."""
    for body in (NIGHT, QUEUE):
        begun.memory("dec-b", body, status="candidate")
        begun.commit("candidate")
    begun.memory("dec-b", QUEUE)
    begun.commit("confirmed")
    begun.memory("dec-b", NIGHT)
    begun.git("add", "--all")
    assert codes(problems(begun)) == [("dec-b", "silent-edit", "error")]


def test_a_confirmation_that_edited_is_taken_back_with_its_edit(begun: Sandbox) -> None:
    """The candidate comes back whole; while confirmed, it would be an edit."""
    begun.memory("dec-b", NIGHT, status="candidate")
    begun.commit("candidate")
    begun.memory("dec-b", QUEUE)
    confirmed = begun.commit("confirmed")
    begun.memory("dec-b", NIGHT)
    begun.commit("edited")
    assert codes(problems(begun, confirmed)) == [("dec-b", "silent-edit", "error")]
    begun.git("reset", "--quiet", "--hard", confirmed)
    begun.git("revert", "--no-edit", "HEAD")
    assert codes(problems(begun, confirmed)) == [("dec-b", "reverted", "warning")]


def test_a_removed_memory_that_another_one_replaces_is_missed(begun: Sandbox) -> None:
    """The revert would leave the newer memory without what it supersedes."""
    added = add_decision(begun)
    begun.memory("dec-c", NIGHT, supersedes=("dec-b",))
    last = begun.commit("newer")
    begun.git("revert", "--no-edit", added)
    reported = problems(begun, last)
    assert ("dec-c", "dangling", "error") in codes(reported)


def test_show_why_and_log_tell_what_became_of_it(begun: Sandbox) -> None:
    """The commit that removed it is named, with the way to its history."""
    add_decision(begun)
    begun.git("revert", "--no-edit", "HEAD")
    reverted = head(begun)
    for verb in ("show", "why"):
        done = begun.run(verb, "dec-b")
        assert done.returncode == 2
        assert done.stderr == (
            f"memtool: dec-b (Send mails by a queue) was removed in {reverted[:7]}\n"
            "hint: memtool log dec-b\n"
        )
        assert 'no memory is called "dec-x"' in begun.run(verb, "dec-x").stderr
        assert begun.run(verb, "dec-b", "--at", "HEAD~1").returncode == 0
    log = begun.run("log", "dec-b").stdout.splitlines()
    assert log[1].startswith(f'{reverted[:7]}  Revert "Raise the limit"  ')
    assert log[2] == "  removed  dec-b  Send mails by a queue"


def test_the_hook_lets_a_revert_pass(guarded: Sandbox) -> None:
    """Also one with a conflict, which the user commits; it says what is taken back."""
    added = add_decision(guarded)
    guarded.git("revert", "--no-edit", "HEAD")
    guarded.git("reset", "--quiet", "--hard", added)
    guarded.git("revert", "--no-commit", "HEAD")
    assert codes(problems(guarded)) == [("dec-b", "reverted", "warning")]
    guarded.git("commit", "--quiet", "--message", "back")
    guarded.git("reset", "--quiet", "--hard", added)
    guarded.write("src/limit.py", "LIMIT = 11\n")
    guarded.commit("more")
    guarded.git("revert", "--no-edit", added, check=False)
    guarded.git("rm", "--quiet", "--force", "src/limit.py")
    guarded.git("commit", "--quiet", "--no-edit")
    assert (guarded.git("status", "--porcelain"), head(guarded) != added) == ("", True)


def test_a_title_is_quoted_for_the_shell(begun: Sandbox) -> None:
    """Neither a memory nor a message may run anything, or send escapes to a terminal."""
    title = 'It\'s "$(touch owned)" `touch owned`; touch owned'
    begun.memory("dec-b", QUEUE, title=title)
    added = begun.commit("Send \x1b[31m'mails' \"$(touch owned)\"")
    begun.git("revert", "--no-edit", "HEAD")
    (problem,) = problems(begun, added)
    assert "\x1b" not in problem.message + problem.hint
    done = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {problem.hint}"],
        cwd=begun.path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[:4] == ["memtool", "new", "episodic", f"Reverted: {title}"]
    assert not (begun.path / "owned").exists()


def test_where_a_shallow_clone_ends_nothing_is_taken_back(begun: Sandbox) -> None:
    """The oldest commit that it has seems to add all that it holds."""
    begun.git("rm", "--quiet", "--cached", "src/store.py")
    begun.write("other.txt", "mine")
    base = begun.commit("boundary")
    begun.git("rm", "--quiet", f"{FOLDER}/dec-a.md")
    begun.commit("gone")
    assert codes(problems(begun, base)) == [("dec-a", "reverted", "warning")]
    begun.git("clone", "--quiet", "--depth", "2", f"file://{begun.path}", "clone")
    clone = Sandbox(begun.path / "clone", begun.env)
    assert codes(problems(clone, base)) == [("dec-a", "removed", "error")]
