from __future__ import annotations

import random
from pathlib import Path

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.diff import Diff, diff, render
from memtool.errors import MemtoolError
from memtool.memory.changes import compare
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store import versions
from memtool.store.context import Context


def summarize(report: Diff) -> list[tuple[str, str]]:
    return [(change.id, change.kind) for change in report.changes]


def test_without_a_range_head_is_compared_with_the_worktree(sandbox: Sandbox) -> None:
    """The difference is all uncommitted changes."""
    sandbox.memory("dec-a", status="candidate")
    sandbox.memory("dec-b")
    head = sandbox.commit()
    layout = sandbox.layout()
    assert render(diff(sandbox.context()), layout) == ""
    assert layout.reports == [f"no memory changed in {head[:SHORT_ID_DIGITS]}..worktree"]
    sandbox.memory("dec-a", status="pinned")
    sandbox.memory("dec-c", supersedes=("dec-b",))
    report = diff(sandbox.context())
    assert (report.old, report.new) == (head, "worktree")
    assert summarize(report) == [("dec-a", "pinned"), ("dec-b", "superseded"), ("dec-c", "added")]


def test_two_revisions_are_compared(sandbox: Sandbox) -> None:
    """Many commits between them count as one change; the worktree does not matter."""
    sandbox.memory("dec-a")
    first = sandbox.commit()
    sandbox.memory("dec-a", status="deprecated")
    sandbox.commit()
    sandbox.memory("dec-a", status="archived")
    second = sandbox.commit()
    sandbox.memory("dec-a", status="pinned")
    report = diff(sandbox.context(), "HEAD~2..HEAD")
    assert (report.old, report.new) == (first, second)
    assert summarize(report) == [("dec-a", "archived")]
    assert summarize(diff(sandbox.context(), "HEAD..HEAD~2")) == [("dec-a", "restored")]
    assert summarize(diff(sandbox.context(), "HEAD~2..")) == [("dec-a", "archived")]
    assert summarize(diff(sandbox.context(), "HEAD~2")) == [("dec-a", "pinned")]


def test_three_dots_compare_with_where_the_branches_parted(sandbox: Sandbox) -> None:
    """A...B tells what B did, not what A did meanwhile."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("checkout", "-q", "-b", "side")
    sandbox.memory("dec-side")
    sandbox.commit()
    sandbox.git("checkout", "-q", "main")
    sandbox.memory("dec-main")
    sandbox.commit()
    assert summarize(diff(sandbox.context(), "main...side")) == [("dec-side", "added")]
    assert summarize(diff(sandbox.context(), "main..side")) == [
        ("dec-main", "removed"),
        ("dec-side", "added"),
    ]


def test_a_silent_edit_is_marked(sandbox: Sandbox) -> None:
    """Changing what a confirmed memory claims is said loudly, editing a candidate is not."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", status="candidate")
    head = sandbox.commit()
    sandbox.memory("dec-a", "It is not.\n")
    sandbox.memory("dec-b", "It is not.\n", status="candidate")
    rows = render(diff(sandbox.context()), PIPED).splitlines()
    assert rows == [
        "~  dec-a  Title of dec-a  (edited: body; SILENT EDIT of a confirmed claim)",
        "~  dec-b  Title of dec-b  (edited: body)",
        f"{head[:SHORT_ID_DIGITS]}..worktree: 2 edited",
    ]


def test_redactions_moves_and_removals_are_told(sandbox: Sandbox) -> None:
    """Each has its own word, and a moved file is not removed and added."""
    sandbox.memory("dec-a", "The key is abcdef.\n")
    moved = sandbox.memory("dec-b")
    gone = sandbox.memory("dec-c")
    sandbox.commit()
    sandbox.memory("dec-a", "The key is [REDACTED:token].\n")
    (sandbox.path / moved).rename(sandbox.path / ".memory/dec-b.md")
    (sandbox.path / gone).unlink()
    assert summarize(diff(sandbox.context())) == [
        ("dec-a", "redacted"),
        ("dec-b", "moved"),
        ("dec-c", "removed"),
    ]


def test_a_broken_file_is_not_removed(sandbox: Sandbox) -> None:
    """A file that became unreadable is told so, with the fault."""
    path = sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.write(path, "<<<<<<< nothing\n")
    assert summarize(diff(sandbox.context())) == [("dec-a", "unreadable")]


def test_an_unborn_head_is_compared_with_nothing(sandbox: Sandbox) -> None:
    """Before the first commit every memory is added."""
    sandbox.memory("dec-a")
    report = diff(sandbox.context())
    assert (report.old, summarize(report)) == ("", [("dec-a", "added")])
    assert render(report, PIPED).splitlines() == [
        "+  dec-a  Title of dec-a",
        "nothing..worktree: 1 added",
    ]
    with pytest.raises(MemtoolError, match='no revision "HEAD"'):
        diff(sandbox.context(), "HEAD")


def test_a_bare_repository_compares_revisions(sandbox: Sandbox, tmp_path: Path) -> None:
    """Without a worktree the hint names a range."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    bare = Context.at(str(tmp_path / "bare.git"), sandbox.env)
    assert summarize(diff(bare, "HEAD~1..HEAD")) == [("dec-b", "added")]
    for range_ in ("", "HEAD"):
        with pytest.raises(MemtoolError) as caught:
            diff(bare, range_)
        assert caught.value.code == "bare"


@pytest.mark.parametrize(
    "range_",
    ["nowhere", "a..b", "HEAD..HEAD..HEAD", "HEAD..nowhere", "--output=x", "-p..HEAD", "....", " "],
)
def test_nonsense_is_answered_in_words(sandbox: Sandbox, range_: str) -> None:
    """Text that names no revision is the user's error, and never an option of git."""
    sandbox.memory("dec-a")
    sandbox.commit()
    with pytest.raises(MemtoolError) as caught:
        diff(sandbox.context(), range_)
    assert caught.value.code == "unknown-revision"
    assert not (sandbox.path / "x").exists()


def test_histories_without_a_common_commit_have_no_three_dots(sandbox: Sandbox) -> None:
    """Where nothing is shared the two-dot form is the hint."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("checkout", "-q", "--orphan", "island")
    sandbox.git("commit", "-qm", "island")
    with pytest.raises(MemtoolError, match="no commit in common"):
        diff(sandbox.context(), "main...island")


def test_the_json_says_from_and_to(sandbox: Sandbox) -> None:
    """The promised names are there."""
    sandbox.memory("dec-a")
    head = sandbox.commit()
    sandbox.memory("dec-b")
    answer = sandbox.json("diff")
    assert (answer["from"], answer["to"]) == (head, "worktree")
    assert set(answer["changes"][0]) == {"kind", "id", "title", "path", "details"}


@pytest.mark.parametrize("range_", ["HEAD~..HEAD", "HEAD~"])
def test_what_is_superseded_has_its_title_though_its_file_is_not_read(
    sandbox: Sandbox, range_: str
) -> None:
    """Only files that differ are compared, and a reader still sees what was replaced."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-quiet")
    sandbox.commit()
    sandbox.memory("dec-b", supersedes=("dec-a",))
    sandbox.commit()
    changes = {change.id: change for change in diff(sandbox.context(), range_).changes}
    assert (changes["dec-a"].kind, changes["dec-a"].title) == ("superseded", "Title of dec-a")
    assert changes["dec-a"].path.endswith("/dec-a.md")
    assert sorted(changes) == ["dec-a", "dec-b"]


@pytest.mark.parametrize("seed", range(8))
def test_comparing_what_differs_is_comparing_all(sandbox: Sandbox, seed: int) -> None:
    """Files that stayed as they were take no part in a difference, whatever the others did."""
    draw = random.Random(seed)
    names = ["dec-a", "dec-b", "dec-c", "dec-d"]
    for _commit in range(2):
        for at, name in enumerate(names):
            if draw.random() < 0.4:
                continue
            old = draw.choice(["", *names[:at]])
            status = draw.choice(["candidate", "confirmed", "archived", "deprecated"])
            path = sandbox.memory(name, status=status, supersedes=(old,) if old else ())
            if draw.random() < 0.2:
                sandbox.write(path, "<<<<<<< nothing\n")
            if draw.random() < 0.1:
                (sandbox.path / path).unlink()
                (sandbox.path / path).symlink_to("nowhere")
        sandbox.git("add", "--all")
        sandbox.git("commit", "--quiet", "--allow-empty", "--message", "change")
    ws = sandbox.context()
    before, after = (versions.list_versions(ws.tree(at)) for at in ("HEAD~", "HEAD"))
    assert diff(ws, "HEAD~..HEAD").changes == compare(before, after)
    assert diff(ws, "HEAD~").changes == compare(before, versions.list_versions(ws.tree()))
