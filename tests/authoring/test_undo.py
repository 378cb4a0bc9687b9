"""`memtool undo`: the newest step is taken back as git would, and nothing of it is lost."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import Sandbox

from memtool.authoring.undo import Undone
from memtool.commands.archive import archive, confirm, deprecate, pin, restore, unpin
from memtool.commands.forget import forget
from memtool.commands.tag import tag
from memtool.commands.undo import render, undo
from memtool.errors import MemtoolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Verb = Callable[..., Any]

BODY = "Sessions live in Redis.\n"


@pytest.fixture
def begun(sandbox: Sandbox) -> Sandbox:
    """A committed memory."""
    sandbox.memory("dec-a", BODY, status="confirmed")
    sandbox.commit()
    return sandbox


@pytest.fixture
def guarded(begun: Sandbox) -> Sandbox:
    """The same with the hook that guards commits."""
    begun.run("install", "git")
    begun.commit("guarded")
    return begun


def successor(sandbox: Sandbox, id_: str = "dec-b", **fields: tuple[str, ...]) -> str:
    fields = {"supersedes": ("dec-a",), **fields}
    return sandbox.memory(id_, "Sessions live in Postgres.\n", **fields)


def taken_back(sandbox: Sandbox, *, commit: bool = True, reason: str = "") -> Undone:
    return undo(sandbox.context(), "dec-a", commit=commit, reason=reason)


def heads(sandbox: Sandbox) -> list[str]:
    lineage = sandbox.context().tree().lineage
    return sorted(id_ for id_ in lineage.supersedes if lineage.is_head(id_))


def codes(sandbox: Sandbox, *args: str) -> list[tuple[str, str]]:
    return [
        (problem["code"], problem["severity"])
        for problem in sandbox.json("check", *args)["problems"]
    ]


def test_a_step_of_its_own_leaves_no_trace_in_the_file(begun: Sandbox) -> None:
    """Committed or not, the bytes are those of before; a commit says what it undid."""
    path = begun.path / ".memory/decision/2026-02/dec-a.md"
    before = path.read_bytes()
    verbs = (confirm, pin, deprecate, archive, partial(forget, reason="over"))
    for verb, is_committed in product((*verbs, partial(tag, add=("auth",))), (True, False)):
        verb(begun.context(), "dec-a", commit=is_committed)
        step = begun.git("rev-parse", "HEAD").strip() if is_committed else ""
        done = taken_back(begun, reason="too early")
        assert path.read_bytes() == before
        assert (done.undoes, done.how) == (step, "changed")
        assert begun.git("status", "--porcelain") == ""
        if is_committed:
            message = begun.git("log", "-1", "--format=%B")
            assert f"Undoes: {step}\nReason: too early\n" in message


def test_undoing_again_goes_further_back(begun: Sandbox) -> None:
    """Undone steps and the undo itself do not count; at last nothing is left to undo."""
    for verb in (archive, restore, pin, unpin, deprecate):
        verb(begun.context(), "dec-a", commit=True)
    seen = [taken_back(begun).step for _number in range(5)]
    assert seen == ["deprecated", "unpinned", "pinned", "restored", "archived"]
    with pytest.raises(MemtoolError) as caught:
        taken_back(begun)
    assert caught.value.code == "no-step"
    assert codes(begun, "--range", "HEAD~10..HEAD") == []


def test_a_step_that_a_squash_took_back_does_not_count(begun: Sandbox) -> None:
    """Only what is in force can be taken back: the archiving was undone by hand."""
    pin(begun.context(), "dec-a", commit=True)
    archive(begun.context(), "dec-a", commit=True)
    path = begun.path / ".memory/decision/2026-02/dec-a.md"
    path.write_text(path.read_text().replace("archived", "pinned"))
    begun.commit("squashed")
    assert taken_back(begun).step == "restored"
    assert taken_back(begun).step == "archived"


@pytest.mark.parametrize("form", ["github", "git"])
def test_a_squash_counts_for_each_memory_by_what_it_did_to_it(begun: Sandbox, form: str) -> None:
    """An undo in its middle takes back one memory's step; another's step stays one."""
    begun.memory("dec-b", "Ports are odd.\n", status="confirmed")
    begun.commit()
    archive(begun.context(), "dec-b", commit=True)
    begun.git("switch", "--quiet", "--create", "side")
    pin(begun.context(), "dec-a", commit=True)
    undo(begun.context(), "dec-b", commit=True, reason="too early")
    bodies = begun.git("log", "--reverse", "--format=* %B", "main..side")
    begun.git("switch", "--quiet", "main")
    begun.git("merge", "--quiet", "--squash", "side")
    message = ("-m", f"Side (#12)\n\n{bodies}") if form == "github" else ("--no-edit",)
    begun.git("commit", "--quiet", *message)
    squash = begun.git("rev-parse", "HEAD").strip()
    with pytest.raises(MemtoolError) as caught:
        undo(begun.context(), "dec-b")
    assert caught.value.code == "no-step"
    done = taken_back(begun)
    assert (done.step, done.undoes) == ("pinned", squash)


def test_a_successor_that_only_this_branch_has_is_removed(guarded: Sandbox) -> None:
    """In a commit of its own, which hook and CI let pass; git revert brings it back."""
    path = successor(guarded)
    added = guarded.commit("replaced")
    guarded.write("other.txt", "mine")
    guarded.git("add", "other.txt")
    done = taken_back(guarded)
    assert (done.step, done.how, done.undoes, done.successor) == (
        "superseded",
        "removed",
        added,
        "dec-b",
    )
    assert heads(guarded) == ["dec-a"]
    assert guarded.git("show", "--name-status", "--format=", "HEAD").split() == ["D", path]
    assert guarded.git("status", "--porcelain") == "A  other.txt\n"
    assert f"Memory-Id: dec-a\nUndoes: {added}\n" in guarded.git("log", "-1", "--format=%B")
    assert codes(guarded, "--range", f"{added}..HEAD") == [("reverted", "warning")]
    assert f"git revert {str(done.commit)[:7]} takes that back" in report(guarded, done)
    guarded.git("commit", "--quiet", "-m", "other")
    guarded.git("revert", "--no-edit", str(done.commit))
    assert heads(guarded) == ["dec-b"]
    assert codes(guarded, "--range", f"{added}..HEAD") == []


def test_without_a_commit_the_file_goes_and_git_says_so(guarded: Sandbox) -> None:
    """The user's next commit passes the hook."""
    path = successor(guarded)
    guarded.commit("replaced")
    done = taken_back(guarded, commit=False)
    assert guarded.git("status", "--porcelain") == f" D {path}\n"
    assert f"git checkout -- {path}" in report(guarded, done)
    guarded.git("commit", "--quiet", "--all", "-m", "taken back")


def test_a_revert_of_a_supersession_passes(guarded: Sandbox) -> None:
    """The hook lets `git revert` pass, and so does a check of the range."""
    successor(guarded)
    added = guarded.commit("replaced")
    guarded.git("revert", "--no-edit", "HEAD")
    assert codes(guarded, "--range", f"{added}..HEAD") == [("reverted", "warning")]
    assert codes(guarded, "--range", f"{added}~1..HEAD") == [("reverted", "warning")]
    assert guarded.run("check", "--range", f"{added}..HEAD").returncode == 0


@pytest.mark.parametrize("case", ["replaced nothing", "is replaced", "both gone", "fork"])
def test_no_other_removal_passes(begun: Sandbox, case: str) -> None:
    """A removal is a loss, unless all that was replaced holds again or a commit is taken back."""
    begun.memory("dec-z", "Uploads go to a bucket.\n")  # comes with it, and stays
    supersedes = () if case == "replaced nothing" else ("dec-a",)
    path = begun.memory("dec-b", "Sessions live in Postgres.\n", supersedes=supersedes)
    if case == "is replaced":
        begun.memory("dec-c", "Sessions live in files.\n", supersedes=("dec-b",))
    if case == "fork":
        begun.memory("dec-c", "Sessions live in files.\n", supersedes=("dec-a",))
    begun.git("add", "--all")
    begun.git("commit", "--quiet", "--no-verify", "-m", "replaced")
    (begun.path / path).unlink()
    if case == "both gone":
        (begun.path / ".memory/decision/2026-02/dec-a.md").unlink()
    assert ("removed", "error") in codes(begun)


def test_a_merge_does_not_drop_what_came_with_a_branch(begun: Sandbox) -> None:
    """A merge that leaves a successor out is refused as ever."""
    begun.git("checkout", "--quiet", "-b", "side")
    path = successor(begun)
    begun.commit("replaced")
    begun.git("checkout", "--quiet", "main")
    begun.write("other.txt", "mine")
    begun.commit("other")
    begun.git("merge", "--quiet", "--no-commit", "--no-ff", "side")
    begun.git("rm", "--quiet", "--force", path)
    assert codes(begun, "--staged") == [("removed", "error")]


def test_what_was_in_no_commit_stays_a_blob(begun: Sandbox) -> None:
    """The answer names it, and git brings the bytes back."""
    path = successor(begun)
    before = (begun.path / path).read_text()
    begun.git("add", path)
    done = taken_back(begun)
    assert (done.how, done.undoes, done.commit) == ("discarded", "", None)
    assert begun.git("status", "--porcelain") == ""
    assert begun.git("cat-file", "blob", done.blob) == before
    assert f"git cat-file blob {done.blob} > {path}" in report(begun, done)


@pytest.mark.parametrize("holder", ["a branch", "a tag", "a remote", "named", "changed", "edited"])
def test_what_others_may_have_is_replaced_by_what_held_before(begun: Sandbox, holder: str) -> None:
    """Nothing is removed; a new memory says again what the old one said, with the reason."""
    successor(begun)
    begun.commit("replaced")
    refs = {"a branch": "heads/b", "a tag": "tags/v1", "a remote": "remotes/origin/main"}
    if holder in refs:
        begun.git("update-ref", f"refs/{refs[holder]}", "HEAD")
    elif holder == "named":
        begun.memory("dec-c", "As dec-b says.\n")
        begun.commit("named")
    else:
        confirm(begun.context(), "dec-b", commit=holder == "changed")
    done = taken_back(begun, reason="measured again")
    why = {"named": "dec-c names it"} | dict.fromkeys(
        ("changed", "edited"), "it was changed since it was written"
    )
    expected = why.get(holder, f"{refs.get(holder, '').partition('/')[2]} has it")
    assert done.how == "superseded"
    assert done.reason.endswith(expected)
    new = begun.context().tree()[Path(done.path).stem].memory
    assert (new.supersedes, new.title) == (("dec-b",), "Title of dec-a")
    assert "measured again" in new.body
    assert new.id in heads(begun)
    assert "dec-b" not in heads(begun)
    assert [row for row in codes(begun) if row[1] == "error"] == []


def test_what_cannot_be_taken_back_alone_is_refused_with_the_way(begun: Sandbox) -> None:
    """A fork, also of what came with it, and one that was replaced itself; nothing is written."""
    begun.memory("dec-x", "Jobs run in cron.\n")
    successor(begun, supersedes=("dec-a", "dec-x"))
    begun.commit("both")
    successor(begun, "dec-y", supersedes=("dec-x",))
    refused(begun, "fork", "memtool resolve dec-b dec-y")
    (begun.path / ".memory/decision/2026-02/dec-y.md").unlink()
    begun.memory("dec-c", "Sessions live in files.\n", supersedes=("dec-b",))
    refused(begun, "not-a-head", "memtool undo dec-b\n")
    (begun.path / ".memory/decision/2026-02/dec-c.md").unlink()
    successor(begun, "dec-d")
    refused(begun, "fork", "memtool resolve dec-d dec-b")


def report(sandbox: Sandbox, undone: Undone) -> str:
    """Return what is reported of an undo next to the path."""
    layout = sandbox.layout()
    assert render(undone, layout) == undone.path
    return "\n".join(layout.reports)


def refused(sandbox: Sandbox, code: str, hint: str) -> None:
    before = sandbox.git("status", "--porcelain", "--untracked-files=all")
    with pytest.raises(MemtoolError) as caught:
        taken_back(sandbox)
    assert caught.value.code == code
    assert hint in caught.value.hint
    assert sandbox.git("status", "--porcelain", "--untracked-files=all") == before


def test_a_hook_that_refuses_leaves_everything(begun: Sandbox) -> None:
    """File, index and HEAD are as they were, and the message says so."""
    successor(begun)
    added = begun.commit("replaced")
    begun.write(".git/hooks/pre-commit", "#!/bin/sh\necho no; exit 1\n").chmod(0o755)
    done = begun.run("undo", "dec-a", "--commit")
    assert (done.returncode, "nothing was removed: no" in done.stderr) == (2, True)
    assert begun.git("rev-parse", "HEAD").strip() == added
    assert begun.git("status", "--porcelain") == ""


def test_a_dry_run_writes_nothing(begun: Sandbox) -> None:
    """It says what would be done, for each way."""
    for ref, how in (("", "discarded"), ("HEAD", "removed"), ("v", "superseded")):
        path = successor(begun)
        if ref:
            begun.git("add", path)
            begun.git("commit", "--quiet", "--allow-empty", "-m", "replaced")
        if ref == "v":
            begun.git("tag", ref)
        before = begun.git("status", "--porcelain", "--untracked-files=all")
        done = undo(begun.context(), "dec-a", dry_run=True)
        assert done.how == how
        assert report(begun, done).startswith('Would take back "superseded by ')
        assert 'superseded by dec-b" (' in report(begun, done)
        assert begun.git("status", "--porcelain", "--untracked-files=all") == before


def test_restore_of_a_superseded_memory_says_what_to_do_instead(begun: Sandbox) -> None:
    """It was never archived; if it was, the note says that it is still superseded."""
    successor(begun)
    done = begun.run("restore", "dec-a")
    assert (done.returncode, "superseded by dec-b" in done.stderr) == (2, True)
    assert "hint: memtool undo dec-a" in done.stderr
    archive(begun.context(), "dec-a")
    assert "memtool undo dec-a" in begun.run("restore", "dec-a").stderr


def test_nothing_to_undo_and_odd_arguments(begun: Sandbox) -> None:
    """Refused with a hint: no step, an unknown memory, a multi-line reason, a secret in it."""
    for args in (
        ("dec-a",),
        ("nothing",),
        ("",),
        ("dec-a", "--reason", "\x07"),
        ("dec-a", "--reason", "AKIA" + "Q3EGRLSCUYQ7XNWD"),
    ):
        done = begun.run("undo", *args)
        assert (done.returncode, "hint: " in done.stderr) == (2, True), args
    shallow = Sandbox(begun.path.parent / "shallow", begun.env)
    archive(begun.context(), "dec-a", commit=True)
    begun.git("clone", "--quiet", "--depth=1", f"file://{begun.path}", str(shallow.path))
    assert "git fetch --unshallow" in shallow.run("undo", "dec-a").stderr


CONTRARY = {
    "dec-a": "Uploads are at most 10 MB.\n",
    "dec-b": "Uploads are at most 25 MB.\n",
    "dec-c": "Uploads are at most 40 MB.\n",
}


@pytest.fixture
def contrary(sandbox: Sandbox) -> Sandbox:
    """Three memories that contradict each other, committed and guarded."""
    for id_, body in CONTRARY.items():
        sandbox.memory(id_, body, title="Size of uploads", status="confirmed")
    sandbox.commit()
    sandbox.run("install", "git")
    sandbox.commit("guarded")
    return sandbox


def files_of(sandbox: Sandbox) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (sandbox.path / ".memory").rglob("*.md")}


def conflicts(sandbox: Sandbox) -> list[list[str]]:
    return [sorted(conflict["ids"]) for conflict in sandbox.json("conflicts")["conflicts"]]


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("how", ["both", "newer", "dec-a", "merge"])
def test_a_settled_conflict_is_open_again(
    contrary: Sandbox, how: str, *, is_committed: bool
) -> None:
    """However it was settled, and at whichever side: every file has its bytes of before."""
    before, open_ = files_of(contrary), conflicts(contrary)
    assert open_
    keep = ("--merge", "Size", "--body", "It depends.") if how == "merge" else ("--keep", how)
    commit = ("--commit",) if is_committed else ()
    contrary.run("resolve", "dec-a", "dec-b", "dec-c", *keep, "--reason", "measured", *commit)
    assert conflicts(contrary) == []
    done = contrary.run("undo", "dec-b", "--reason", "a slip", *commit)
    assert done.returncode == 0
    assert "the same for dec-a, dec-c" in done.stderr
    assert files_of(contrary) == before
    assert conflicts(contrary) == open_
    assert contrary.git("status", "--porcelain") == ""
    rows = codes(contrary, "--range", "HEAD~1..HEAD" if is_committed else "HEAD..HEAD")
    assert {level for _code, level in rows} <= {"warning"}


def test_one_of_two_acceptances_is_taken_back(contrary: Sandbox) -> None:
    """The newest first; the other pair stays accepted."""
    for other in ("dec-b", "dec-c"):
        contrary.run("resolve", "dec-a", other, "--keep", "both", "--reason", "so", "--commit")
    files = files_of(contrary)
    contrary.run("resolve", "dec-b", "dec-c", "--keep", "both", "--reason", "so", "--commit")
    assert conflicts(contrary) == []
    contrary.run("undo", "dec-c", "--commit")
    assert files_of(contrary) == files
    contrary.run("undo", "dec-b", "--commit")
    names = {Path(name).stem for name, data in files_of(contrary).items() if b"accepted" in data}
    assert names == {"dec-a", "dec-c"}


def test_a_settlement_that_others_may_have_is_left_to_git(contrary: Sandbox) -> None:
    """Nothing is written; the command of the hint opens the conflict again."""
    open_ = conflicts(contrary)
    ids = ("dec-a", "dec-b", "dec-c")
    contrary.run("resolve", *ids, "--keep", "newer", "--reason", "measured", "--commit")
    settled = contrary.git("rev-parse", "HEAD").strip()
    contrary.git("tag", "v1")
    refused(contrary, "several", f"to get them back: git revert {settled[:7]}\n")
    contrary.git("revert", "--no-edit", settled)
    assert conflicts(contrary) == open_


@pytest.mark.parametrize("verb", [confirm, archive, pin])
def test_what_is_taken_back_and_not_committed_is_said(sandbox: Sandbox, verb: Verb) -> None:
    """The second time it neither goes further back nor does it again: the hint commits it."""
    sandbox.memory("dec-a", BODY, status="candidate")
    sandbox.commit()
    pin(sandbox.context(), "dec-a", commit=True)
    verb(sandbox.context(), "dec-a", commit=True)
    taken_back(sandbox, commit=False)
    path = ".memory/decision/2026-02/dec-a.md"
    refused(sandbox, "dirty", f'git commit -m "MESSAGE" -- {path}')
    assert taken_back(sandbox, commit=False).how == "changed"


def test_a_removal_that_is_not_committed_is_said(guarded: Sandbox) -> None:
    """The hint commits it, and the hook lets it pass; a memory in no commit is named as that."""
    path = successor(guarded)
    guarded.commit("replaced")
    taken_back(guarded, commit=False)
    refused(guarded, "dirty", f'git commit -m "MESSAGE" -- {path}')
    guarded.git("commit", "-m", "MESSAGE", "--", path)
    refused(guarded, "no-step", "memtool forget dec-a")
    guarded.memory("dec-new")
    assert "was never committed" in guarded.run("undo", "dec-new").stderr
