"""A range of commits, as CI checks it, and all of history."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.check import CheckReport, check
from memtool.gate import sources

KEY = "AK" + "IA" + "QWERTYUIOPASDFGH"
BODY = "Sessions live in Redis, since web processes come and go.\n"
PLACE = ".memory/decision/2026-02"


def errors(checked: CheckReport) -> list[tuple[str, str]]:
    return [(p.id, p.code) for p in checked.problems if p.severity == "error"]


def test_a_secret_that_was_taken_out_again_is_still_found(sandbox: Sandbox) -> None:
    """It is in history for good; the message names the commit, not the secret."""
    sandbox.memory("dec-a", BODY)
    base = sandbox.commit()
    sandbox.memory("dec-b", f"The key is {KEY}.\n")
    bad = sandbox.commit()
    sandbox.memory("dec-b", "The key is [REDACTED:aws-access-key].\n")
    sandbox.commit()
    (problem,) = check(sandbox.context(), range=f"{base}..HEAD").problems
    assert (problem.code, problem.path) == ("secret", f"{PLACE}/dec-b.md")
    assert bad[:7] in problem.message
    assert KEY not in repr(problem)
    assert check(sandbox.context(), range=f"{bad}..HEAD").problems == ()


def test_what_a_later_commit_mended_is_fine(sandbox: Sandbox) -> None:
    """A broken file in the middle of a branch does no harm."""
    base = sandbox.git("commit-tree", "-m", "base", sandbox.git("write-tree").strip()).strip()
    sandbox.git("reset", "--quiet", "--soft", base)
    sandbox.write(f"{PLACE}/dec-a.md", "not yet\n")
    broken = sandbox.commit()
    assert errors(check(sandbox.context(), range=f"{base}..HEAD")) == [("", "no-frontmatter")]
    sandbox.memory("dec-a", BODY)
    sandbox.commit()
    assert check(sandbox.context(), range=f"{base}..HEAD").problems == ()
    assert check(sandbox.context(), range=f"{broken}..HEAD").problems == ()


def test_a_silent_edit_is_found_by_its_commit(sandbox: Sandbox) -> None:
    """Also one of a memory that the range itself brought; going back to the claim mends it."""
    sandbox.write("README.md", "hello\n")
    base = sandbox.commit()
    sandbox.memory("dec-a", BODY)
    sandbox.commit()
    sandbox.memory("dec-a", "Sessions live in Postgres.\n")
    edited = sandbox.commit()
    sandbox.memory("dec-a", "Sessions live in Postgres.\n", status="pinned")
    sandbox.commit()
    (problem,) = check(sandbox.context(), range=f"{base}..HEAD").problems
    assert problem.code == "silent-edit"
    assert edited[:7] in problem.message
    sandbox.memory("dec-a", BODY)
    sandbox.commit()
    assert check(sandbox.context(), range=f"{base}..HEAD").problems == ()


def test_the_way_around_through_a_candidate_is_found(sandbox: Sandbox) -> None:
    """Taking back the confirmation, editing and confirming again is one silent edit."""
    sandbox.memory("dec-a", BODY)
    base = sandbox.commit()
    for body, status in ((BODY, "candidate"), ("Other.\n", "candidate"), ("Other.\n", "confirmed")):
        sandbox.memory("dec-a", body, status=status)
        sandbox.commit()
    assert errors(check(sandbox.context(), range=f"{base}..HEAD")) == [("dec-a", "silent-edit")]


def test_a_removal_needs_the_trailer_of_a_purge(sandbox: Sandbox) -> None:
    """Whoever removes a memory for good says so, for exactly that memory."""
    for name in ("dec-a", "dec-b", "dec-c", "dec-d"):
        sandbox.memory(name, f"All that {name} is about, in its own {name} words.\n")
    base = sandbox.commit()
    sandbox.git("rm", "--quiet", f"{PLACE}/dec-a.md", f"{PLACE}/dec-b.md")
    sandbox.git("commit", "--quiet", "--message", "purge\n\nPurges: dec-a, dec-abc")
    sandbox.git("rm", "--quiet", f"{PLACE}/dec-c.md")
    sandbox.git("commit", "--quiet", "--message", "tidy up; Purges: dec-c")
    report = check(sandbox.context(), range=f"{base}..HEAD")
    assert errors(report) == [("dec-b", "removed"), ("dec-c", "removed")]


@pytest.mark.parametrize("form", ["github", "git"])
def test_a_squash_of_a_purge_passes(sandbox: Sandbox, form: str) -> None:
    """Its trailer counts in the middle of a message, too, as forges and git join commits."""
    sandbox.memory("dec-a", BODY)
    sandbox.memory("dec-b", "Sessions live in Postgres.\n", supersedes=("dec-a",))
    base = sandbox.commit()
    sandbox.git("switch", "--quiet", "--create", "side")
    sandbox.git("rm", "--quiet", f"{PLACE}/dec-a.md")
    sandbox.git("commit", "--quiet", "--message", "purge\n\nPurges: dec-a")
    sandbox.write("a.py", "a = 1\n")
    sandbox.commit("code")
    sandbox.git("switch", "--quiet", "main")
    sandbox.git("merge", "--quiet", "--squash", "side")
    bullets = "Tidy up (#12)\n\n* purge\n\nPurges: dec-a\n\n* code\n"
    sandbox.git("commit", "--quiet", *(("-m", bullets) if form == "github" else ("--no-edit",)))
    assert errors(check(sandbox.context(), range=f"{base}..HEAD")) == []
    assert errors(check(sandbox.context())) == []
    assert sandbox.json("status")["problems"] == []


def test_what_a_purged_memory_was_superseded_by_may_stay(sandbox: Sandbox) -> None:
    """Its successor names an id that is not there, and history says why."""
    sandbox.memory("dec-a", BODY)
    sandbox.memory("dec-b", "Sessions live in Postgres.\n", supersedes=("dec-a",))
    base = sandbox.commit()
    sandbox.git("rm", "--quiet", f"{PLACE}/dec-a.md")
    sandbox.git("commit", "--quiet", "--message", "purge\n\nPurges: dec-a")
    assert errors(check(sandbox.context(), range=f"{base}..HEAD")) == []
    assert errors(check(sandbox.context())) == []


def test_an_edit_by_rename_detection_is_found(sandbox: Sandbox) -> None:
    """Git takes a successor for the renamed old file, and puts another branch's edit into it."""
    text = "".join(f"Line {n} of what both have in common.\n" for n in range(20))
    sandbox.memory("dec-a", text, status="candidate")
    sandbox.memory("dec-z", BODY)
    base = sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.memory("dec-a", text.replace("Line 7 ", "LINE 7 "), status="candidate")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    sandbox.git("rm", "--quiet", f"{PLACE}/dec-a.md")
    sandbox.memory("dec-b", text, supersedes=("dec-a",))
    sandbox.commit()
    sandbox.git("merge", "--quiet", "--no-edit", "side")
    assert "LINE 7" in (sandbox.path / PLACE / "dec-b.md").read_text()
    rows = errors(check(sandbox.context(), range=f"{base}..HEAD"))
    assert {("dec-a", "removed"), ("dec-b", "silent-edit")} <= set(rows)


def test_every_way_around_the_hook_is_seen(sandbox: Sandbox) -> None:
    """Cherry-pick, rebase, plumbing and a fast-forward run no hook; the range sees all."""
    assert sandbox.run("install", "git").returncode == 0
    sandbox.memory("dec-a", BODY)
    base = sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.memory("dec-b", f"The key is {KEY}.\n")
    sandbox.git("add", "--all")
    sandbox.git("commit", "--quiet", "--no-verify", "--message", "bad")
    bad = sandbox.git("rev-parse", "HEAD").strip()
    ways = {
        "cherry-pick": ("cherry-pick", bad),
        "rebase": ("rebase", "--quiet", "--onto", "main", base, "side"),
        "fast-forward": ("merge", "--ff-only", "side"),
        "merge": ("merge", "--no-verify", "--no-ff", "--no-edit", "side"),
    }
    for number, words in enumerate(ways.values()):
        sandbox.git("checkout", "--quiet", "-B", f"try-{number}", base)
        sandbox.git(*words)
        report = check(sandbox.context(), range=f"{base}..HEAD")
        assert errors(report) == [("dec-b", "secret")], words
    tree = sandbox.git("rev-parse", f"{bad}^{{tree}}").strip()
    made = sandbox.git("commit-tree", "-p", base, "-m", "plumbing", tree).strip()
    assert errors(check(sandbox.context(), range=f"{base}..{made}")) == [("dec-b", "secret")]


def test_warnings_are_only_of_what_the_range_touched(sandbox: Sandbox) -> None:
    """A pull request is not told about files that it leaves alone, unless they are broken."""
    sandbox.memory("dec-a", BODY, files=("src/none/*.py",))
    base = sandbox.commit()
    sandbox.memory("dec-b", "Invoices are rendered at night.\n", files=("src/none.py",))
    sandbox.commit()
    report = check(sandbox.context(), range=f"{base}..HEAD")
    assert [(p.id, p.code) for p in report.problems] == [("dec-b", "no-such-file")]
    assert report.checked == 2


def test_a_range_without_memories_is_quiet(sandbox: Sandbox) -> None:
    """A pull request about code costs nothing and prints nothing."""
    sandbox.memory("dec-a", BODY)
    base = sandbox.commit()
    sandbox.write("README.md", "hello\n")
    sandbox.commit()
    done = sandbox.run("check", "--range", f"{base}..HEAD")
    assert (done.returncode, done.stdout) == (0, "")


def test_three_dots_begin_where_both_parted(sandbox: Sandbox) -> None:
    """The other branch's own commits are not ours to answer for."""
    sandbox.memory("dec-a", BODY)
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.memory("dec-b", "Invoices are rendered at night.\n")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    sandbox.memory("dec-c", f"The key is {KEY}.\n")
    sandbox.commit()
    for dots in ("..", "..."):
        assert check(sandbox.context(), range=f"main{dots}side").problems == ()
        assert errors(check(sandbox.context(), range=f"side{dots}main")) == [("dec-c", "secret")]


def test_every_ref_and_every_version_is_searched(sandbox: Sandbox) -> None:
    """Each secret is told once, with the commit that first held it and its author."""
    sandbox.memory("dec-a", f"The key is {KEY}.\n")
    first = sandbox.commit()
    sandbox.memory("dec-a", "The key is gone.\n")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.write(".memory/config.toml", f"# {KEY}\n")
    second = sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    sandbox.git("tag", "kept", "side")
    sandbox.git("branch", "--quiet", "-D", "side")
    report = check(sandbox.context(), history=True)
    assert [(p.path, p.code, p.line) for p in report.problems] == [
        (".memory/config.toml", "secret", 1),
        (".memory/decision/2026-02/dec-a.md", "secret", 10),
    ]
    assert [
        commit[:7] in p.message for p, commit in zip(report.problems, (second, first), strict=True)
    ] == [True, True]
    assert all("by Ada on 2026-02-" in problem.message for problem in report.problems)
    assert KEY not in repr(report)
    assert (report.checked, report.exit_code) == (3, 1)


def test_only_the_memory_directory_is_searched(sandbox: Sandbox) -> None:
    """The rest of the repository has other scanners."""
    sandbox.write("src/key.py", f"KEY = '{KEY}'\n")
    sandbox.commit()
    assert check(sandbox.context(), history=True).checked == 0


def test_no_history_is_no_problem(sandbox: Sandbox) -> None:
    """Before the first commit there is nothing to find."""
    assert check(sandbox.context(), history=True).problems == ()


def test_batches_find_what_one_pass_finds(sandbox: Sandbox, monkeypatch) -> None:
    """However few blobs are in memory at once, none is passed over."""
    for number in range(7):
        sandbox.memory(f"dec-{number:03}", f"Number {number}: {KEY if number % 3 == 0 else ''}.\n")
        sandbox.commit()
    whole = check(sandbox.context(), history=True)
    monkeypatch.setattr(sources, "MAX_BATCH_OBJECTS", 2)
    assert check(sandbox.context(), history=True) == whole
    assert (whole.checked, len(whole.problems)) == (7, 3)
