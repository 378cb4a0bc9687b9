"""Memories of a branch that was squashed, rebased, amended or cherry-picked elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import Sandbox

from memtool.memory.trust import SHORT_ID_DIGITS

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = "def fetch_page(url):\n    return get(url)\n\n\ndef save_page(page):\n    put(page)\n"
SECOND = FIRST.replace("get(url)", "get(url, timeout=5)")
THIRD = SECOND.replace("put(page)", "put(page, sync=True)")


@pytest.fixture
def branch(sandbox: Sandbox) -> Sandbox:
    """A branch `work` with three commits: code, a decision that cites it, and more code."""
    sandbox.write("src/page.py", FIRST)
    sandbox.write("README", "pages\n")
    sandbox.commit("begin")
    sandbox.git("switch", "--quiet", "--create", "work")
    sandbox.write("src/page.py", SECOND)
    cited = sandbox.commit("wait for five seconds")
    done = sandbox.run(
        "new",
        "decision",
        "Pages are fetched with a time limit",
        "--body",
        "Use fetch_page, see src/page.py:5-6.",
        *("--id", "dec-limit", "--set", "files=src/page.py"),
        *("--source", f"commit:{cited}", "--source", f"file:src/page.py#L1-L2@{cited}"),
    )
    assert done.returncode == 0, done.stderr
    sandbox.git("add", ".memory")
    sandbox.git("commit", "--quiet", "-m", "decide")
    confirm(sandbox)
    return sandbox


def confirm(sandbox: Sandbox) -> None:
    done = sandbox.run("confirm", "dec-limit")
    assert done.returncode == 0, done.stderr
    sandbox.git("add", ".memory")
    sandbox.git("commit", "--quiet", "-m", "confirm")


def squash(sandbox: Sandbox) -> None:
    sandbox.git("switch", "--quiet", "main")
    sandbox.git("merge", "--quiet", "--squash", "work")
    sandbox.git("commit", "--quiet", "-m", "Wait for pages (#12)")


def rebase(sandbox: Sandbox) -> None:
    sandbox.git("switch", "--quiet", "main")
    sandbox.write("README", "all pages\n")
    sandbox.commit("meanwhile")
    sandbox.git("switch", "--quiet", "work")
    sandbox.git("rebase", "--quiet", "main")
    sandbox.git("switch", "--quiet", "main")
    sandbox.git("merge", "--quiet", "--ff-only", "work")


def amend(sandbox: Sandbox) -> None:
    sandbox.git("rebase", "--quiet", "--exec", "git commit --quiet --amend -m amended", "main")
    sandbox.git("branch", "--force", "main", "work")


def pick(sandbox: Sandbox) -> None:
    sandbox.git("switch", "--quiet", "main")
    sandbox.write("README", "all pages\n")
    sandbox.commit("meanwhile")
    sandbox.git("cherry-pick", "-x", "main..work")


def merge(sandbox: Sandbox) -> None:
    sandbox.git("switch", "--quiet", "main")
    sandbox.git("merge", "--quiet", "--no-ff", "-m", "Merge pull request #12", "work")


FLOWS: dict[str, Callable[[Sandbox], None]] = {
    "squash": squash,
    "rebase": rebase,
    "amend": amend,
    "pick": pick,
}


def fresh_clone(sandbox: Sandbox, *options: str) -> Sandbox:
    """Return a clone of the branch main, as another developer has it."""
    path = sandbox.path.parent / "clone"
    sandbox.git(
        *("clone", "--quiet", "--no-local", "--single-branch", "--branch=main", *options),
        *(f"file://{sandbox.path}", str(path)),
    )
    clone = Sandbox(path, sandbox.env)
    clone.tick = sandbox.tick
    return clone


def statuses(sandbox: Sandbox) -> list[str]:
    memories = sandbox.json("verify", "--all")["memories"]
    return [source["status"] for memory in memories for source in memory["sources"]]


def level(sandbox: Sandbox) -> str:
    memories = sandbox.json("drift", "--all")["memories"]
    return memories[0]["level"] if memories else "same"


@pytest.mark.parametrize("flow", FLOWS)
def test_a_rewritten_branch_is_sound_in_another_clone(branch: Sandbox, flow: str) -> None:
    """Nothing is broken or unknown, and a later change of cited lines is told."""
    FLOWS[flow](branch)
    clone = fresh_clone(branch)
    assert statuses(clone) == ["landed", "ok"]
    assert level(clone) == "same"
    assert clone.run("check").stdout == clone.run("check", MEMTOOL_NO_CACHE="1").stdout
    assert clone.json("check")["problems"] == []
    assert "You can act on it: its sources resolve" in clone.run("why", "dec-limit").stdout
    clone.write("src/page.py", THIRD)
    clone.commit("save at once")
    assert level(clone) == "broken"
    assert "lines 5 to 6 of src/page.py have changed" in clone.run("drift").stdout
    assert clone.run("drift", MEMTOOL_NO_CACHE="1").stdout == clone.run("drift").stdout


@pytest.mark.parametrize("flow", FLOWS)
def test_what_the_branch_changed_later_is_told_after_it(branch: Sandbox, flow: str) -> None:
    """The memory was confirmed in the middle of the branch; that code is nowhere any more."""
    branch.write("src/page.py", THIRD)
    branch.commit("save at once")
    FLOWS[flow](branch)
    clone = fresh_clone(branch)
    assert level(clone) == "broken"
    assert ", where it landed  dec-limit\n" in clone.run("drift", "dec-limit").stdout


def test_a_file_that_the_branch_removed_again_is_gone(branch: Sandbox) -> None:
    """Nothing of it is in the history that others have, but the memories record it."""
    branch.write("src/draft.py", THIRD)
    cited = branch.commit("draft")
    for id_, named in (
        ("dec-drafts", ("--set", "files=src/draft.py")),
        ("dec-cited", ("--source", f"file:src/draft.py@{cited}")),
    ):
        done = branch.run(
            "new", "decision", f"Drafts are kept, {id_}", "--body", "For now.", "--id", id_, *named
        )
        assert done.returncode == 0, done.stderr
    branch.git("add", ".memory")
    branch.git("rm", "--quiet", "--cached", "src/draft.py")
    branch.git("commit", "--quiet", "-m", "no drafts")
    squash(branch)
    clone = fresh_clone(branch)
    broken = clone.json("drift")["memories"]
    assert [memory["reason"] for memory in broken] == 2 * ["src/draft.py is no longer there"]
    assert sorted(statuses(clone)) == ["gone", "landed", "ok", "stated"]


def test_code_that_is_committed_after_its_memory_is_not_gone(sandbox: Sandbox) -> None:
    """`new --commit` commits the memory alone; the file that it names comes later."""
    sandbox.write("README", "pages\n")
    sandbox.commit("begin")
    sandbox.write("src/page.py", FIRST)
    body = ("--body", "See src/page.py.", "--set", "files=src/page.py", "--commit")
    done = sandbox.run("new", "decision", "Pages are fetched one by one", *body)
    assert done.returncode == 0, done.stderr
    assert "src/page.py=" in Path(sandbox.path, done.stdout.strip()).read_text()
    assert level(sandbox) == "same"
    sandbox.write("README", "all pages\n")
    sandbox.git("commit", "--quiet", "-m", "meanwhile", "README")
    assert level(sandbox) == "same"


def test_a_plain_merge_is_as_before(branch: Sandbox) -> None:
    merge(branch)
    clone = fresh_clone(branch)
    assert statuses(clone) == ["ok", "ok"]
    assert level(clone) == "same"


def test_a_squash_is_named_with_its_commit(branch: Sandbox) -> None:
    squash(branch)
    at = branch.git("rev-parse", "HEAD")[:SHORT_ID_DIGITS]
    clone = fresh_clone(branch)
    assert f"has landed as {at} (squash of #12)" in clone.run("verify", "--all").stdout
    assert f"landed as {at} (squash of #12): Wait" in clone.run("why", "dec-limit").stdout


def test_a_message_that_lists_the_commits_names_the_landing(branch: Sandbox) -> None:
    """As `git merge --squash` writes it, if the message is not changed."""
    branch.git("switch", "--quiet", "main")
    branch.git("merge", "--quiet", "--squash", "work")
    branch.git("commit", "--quiet", "--no-edit")
    at = branch.git("rev-parse", "HEAD")[:SHORT_ID_DIGITS]
    branch.write("README", "more\n")
    branch.commit("more")
    assert f"has landed as {at}" in fresh_clone(branch).run("verify", "--all").stdout


def test_a_commit_that_nobody_recorded_may_be_made_up(branch: Sandbox) -> None:
    """After the landing it is unknown, with the commit that brought the memory; before, broken."""
    branch.memory("dec-made-up", source=(f"commit:{'d' * 40}",))
    branch.commit("invent")
    assert "missing" in statuses(branch)
    squash(branch)
    clone = fresh_clone(branch)
    assert statuses(clone) == ["unknown", "landed", "ok"]
    output = clone.run("verify", "--all").stdout
    at = branch.git("rev-parse", "HEAD")[:SHORT_ID_DIGITS]
    assert f"{at} brought the memory and may hold it" in output


def test_two_pull_requests_land_in_either_order(branch: Sandbox) -> None:
    """Each memory is compared with the commit that brought it."""
    branch.git("switch", "--quiet", "--create", "other", "main")
    branch.write("src/other.py", "def other_way():\n    pass\n")
    cited = branch.commit("another way")
    options = ("--set", "files=src/other.py", "--source", f"commit:{cited}")
    (branch.path / ".memory").mkdir()
    text = ("Another way", "--body", "Use other_way.")
    done = branch.run("new", "decision", *text, "--id", "dec-other", *options)
    assert done.returncode == 0, done.stderr
    branch.commit("decide on another way")
    for name in ("other", "work"):
        branch.git("switch", "--quiet", "main")
        branch.git("merge", "--quiet", "--squash", name)
        branch.git("commit", "--quiet", "-m", f"Land {name}")
    clone = fresh_clone(branch)
    assert statuses(clone) == ["landed", "ok", "landed"]
    assert clone.json("drift", "--all")["memories"] == []


def test_a_conflict_that_was_resolved_by_hand(branch: Sandbox) -> None:
    """The landed file is neither side's, and the cited lines are not what was confirmed."""
    branch.git("switch", "--quiet", "main")
    branch.write("src/page.py", FIRST.replace("get(url)", "fetch(url)"))
    branch.commit("fetch instead")
    branch.git("merge", "--quiet", "--squash", "work", check=False)
    branch.write("src/page.py", SECOND.replace("get(url", "fetch(url"))
    branch.git("add", "--all")
    branch.git("commit", "--quiet", "-m", "Wait for pages (#12)")
    clone = fresh_clone(branch)
    assert statuses(clone) == ["landed", "changed"]
    assert level(clone) == "broken"


def test_a_shallow_clone_says_that_it_cannot_tell(branch: Sandbox) -> None:
    squash(branch)
    branch.write("README", "more\n")
    branch.commit("more")
    clone = fresh_clone(branch, "--depth=1")
    assert statuses(clone) == ["unknown", "unknown"]


def test_a_branch_that_was_merged_twice(branch: Sandbox) -> None:
    """Squashed, gone on with, and squashed again: the second landing counts for what it brought."""
    squash(branch)
    branch.git("switch", "--quiet", "work")
    branch.write("src/page.py", THIRD)
    branch.commit("save at once")
    done = branch.run("confirm", "dec-limit", "--still-holds")
    assert done.returncode == 0, done.stderr
    branch.commit("confirm again")
    branch.git("switch", "--quiet", "main")
    branch.git("merge", "--quiet", "--squash", "work", check=False)
    branch.git("checkout", "work", "--", ".")
    branch.git("commit", "--quiet", "-m", "Save at once (#13)")
    clone = fresh_clone(branch)
    assert level(clone) == "same"
    assert statuses(clone)[0] == "landed"


def test_what_is_kept_follows_history(branch: Sandbox) -> None:
    """A commit that was not found is looked for in later history; none is looked for twice."""
    squash(branch)
    clone = fresh_clone(branch)
    before = clone.run("verify", "--all").stdout
    clone.write("README", "more\n")
    clone.commit("more")
    assert clone.run("verify", "--all").stdout == before
    clone.git("commit", "--quiet", "--amend", "-m", "rewritten")  # history has not only grown
    assert clone.run("verify", "--all").stdout == before


def test_a_hook_looks_nothing_up_in_history(
    branch: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit right after a clone is answered from known data; unknown results are not cached."""
    from memtool.store.landing import Landings

    squash(branch)
    clone = fresh_clone(branch)
    searched: list[object] = []
    search = Landings._search
    monkeypatch.setattr(
        Landings, "_search", lambda self, *args: searched.append(args) or search(self, *args)
    )
    call = '{"tool_name": "Edit", "tool_input": {"file_path": "src/page.py"}, "session_id": "s"}'
    assert clone.run("hook", "claude", "pre-tool-use", stdin=call).returncode == 0
    assert searched == []
    assert level(clone) == "same"
    assert searched


def test_older_memories_get_a_record_while_the_commits_are_here(branch: Sandbox) -> None:
    """After a squash without it, doctor counts them and says what brings the commits back."""
    cited = branch.git("rev-parse", "HEAD~2").strip()
    branch.memory("dec-old", source=(f"commit:{cited}",), files=("src/page.py",))
    branch.commit("decide by hand")
    shown = branch.run("migrate").stdout
    assert "record what was seen of the code: 1 file" in shown
    branch.git("branch", "without")
    assert branch.run("migrate", "--commit").returncode == 0
    assert "nothing to migrate" in branch.run("migrate").stdout
    squash(branch)
    clone = fresh_clone(branch)
    assert statuses(clone) == ["landed", "ok", "landed"]
    assert clone.json("check")["problems"] == []
    assert "no memory rests on a commit that is lost" in clone.run("doctor", "--verbose").stdout


def test_doctor_names_what_brings_lost_commits_back(branch: Sandbox) -> None:
    cited = branch.git("rev-parse", "HEAD~2").strip()
    branch.memory("dec-old", source=(f"commit:{cited}",), files=("src/page.py",))
    branch.commit("decide by hand")
    head = branch.git("rev-parse", "HEAD").strip()
    squash(branch)
    branch.git("update-ref", "refs/pull/12/head", head)
    clone = fresh_clone(branch)
    output = clone.run("doctor").stdout
    assert "1 memory rests on commits that a squash or a rebase has replaced" in output
    assert "refs/pull/" in output
    clone.git("fetch", "--quiet", "origin", "refs/pull/12/head")
    assert clone.run("migrate", "--commit").returncode == 0
    assert "refs/pull/" not in clone.run("doctor").stdout
    assert "unknown" not in statuses(clone)


def test_a_record_alone_is_no_step_of_a_memory(branch: Sandbox) -> None:
    branch.memory("dec-old", files=("src/page.py",))
    branch.commit("decide by hand")
    assert branch.run("migrate", "--commit").returncode == 0
    assert "confirmed" not in branch.run("log", "dec-old").stdout
    assert branch.json("check", "--range", "main..HEAD")["problems"] == []


def test_an_older_commit_of_the_same_second_is_no_copy(sandbox: Sandbox) -> None:
    """Programs make many commits in one second; the copy of a commit is never older than it."""
    sandbox.write("src/page.py", FIRST)
    before = sandbox.tick
    sandbox.commit("begin")
    sandbox.git("switch", "--quiet", "--create", "work")
    sandbox.tick = before
    sandbox.write("src/page.py", SECOND)
    cited = sandbox.commit("wait for five seconds")
    seconds = sandbox.git("log", "--format=%at").split()
    assert seconds[0] == seconds[1]
    sandbox.run(
        "new",
        "decision",
        "Pages wait",
        "--body",
        "Five seconds.",
        "--id",
        "dec-a",
        "--source",
        f"commit:{cited}",
    )
    assert f"{cited[:10]}=0" in next(sandbox.path.glob(".memory/**/dec-a.md")).read_text()
    sandbox.tick += 30
    sandbox.commit("decide")
    squash(sandbox)
    at = sandbox.git("rev-parse", "HEAD")[:SHORT_ID_DIGITS]
    clone = fresh_clone(sandbox)
    assert f"has landed as {at} (squash of #12)" in clone.run("verify", "--all").stdout
    assert clone.json("check")["problems"] == []
