from __future__ import annotations

from pathlib import Path

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.log import Log, log, render
from memtool.errors import MemtoolError
from memtool.store.context import Context


def summarize(report: Log) -> list[tuple[str, str]]:
    return [(event.id, event.kind) for event in report.events]


def test_all_changes_are_told_newest_first(sandbox: Sandbox) -> None:
    """Each commit gives an event per memory, with commit, author, date and reason."""
    sandbox.memory("dec-a", status="candidate")
    sandbox.memory("dec-b")
    first = sandbox.commit("one")
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", status="deprecated")
    second = sandbox.commit("two\n\nReason: it is old\n")
    report = log(sandbox.context())
    assert summarize(report) == [
        ("dec-a", "confirmed"),
        ("dec-b", "deprecated"),
        ("dec-a", "added"),
        ("dec-b", "added"),
    ]
    assert [event.commit for event in report.events] == [second, second, first, first]
    assert (report.events[1].author, report.events[1].reason) == ("Ada", "it is old")
    assert report.events[0].date == "2026-02-01T05:00:00Z"
    assert not report.has_more


def test_what_is_not_committed_comes_first(sandbox: Sandbox) -> None:
    """Edits, new files and removed files of the worktree have no commit yet."""
    gone = sandbox.memory("dec-a")
    sandbox.memory("dec-b")
    sandbox.commit()
    (sandbox.path / gone).unlink()
    sandbox.memory("dec-b", body="It is not.\n")
    sandbox.memory("dec-c")
    sandbox.git("add", sandbox.memory("dec-d"))
    report = log(sandbox.context())
    assert [(e.id, e.kind, e.commit) for e in report.events[:4]] == [
        ("dec-a", "removed", ""),
        ("dec-b", "edited", ""),
        ("dec-c", "added", ""),
        ("dec-d", "added", ""),
    ]
    assert render(report, PIPED).splitlines()[:3] == [
        "not committed",
        "  removed  dec-a  Title of dec-a",
        "  edited   dec-b  Title of dec-b  body; SILENT EDIT of a confirmed claim",
    ]
    assert summarize(log(sandbox.context(), at="HEAD")) == [("dec-a", "added"), ("dec-b", "added")]


def test_an_unborn_head_has_only_what_is_not_committed(sandbox: Sandbox) -> None:
    """Before the first commit the log is empty or tells the files that wait."""
    layout = sandbox.layout()
    assert render(log(sandbox.context()), layout) == ""
    assert layout.reports == ["no memory was ever committed here"]
    sandbox.memory("dec-a")
    assert summarize(log(sandbox.context())) == [("dec-a", "added")]


def test_a_memory_is_told_with_its_lineage(sandbox: Sandbox) -> None:
    """Its log includes predecessors and successors, and no others."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-other")
    sandbox.commit()
    sandbox.memory("dec-mid", supersedes=("dec-old",))
    sandbox.commit()
    sandbox.memory("dec-new", supersedes=("dec-mid",))
    sandbox.commit()
    expected = [
        ("dec-mid", "superseded"),
        ("dec-new", "added"),
        ("dec-mid", "added"),
        ("dec-old", "superseded"),
        ("dec-old", "added"),
    ]
    for name in ("dec-old", "dec-mid", "dec-new"):
        assert summarize(log(sandbox.context(), name)) == expected
    titles = {event.id: event.title for event in log(sandbox.context(), "dec-new").events}
    assert titles["dec-old"] == "Title of dec-old"


def test_moves_and_new_names_are_followed(sandbox: Sandbox) -> None:
    """A memory keeps its story when its file moves and when its id changes."""
    path = sandbox.memory("dec-a", "A long body.\n\nWith several lines.\n", title="T")
    sandbox.commit()
    sandbox.git("mv", path, ".memory/dec-a.md")
    sandbox.commit()
    (sandbox.path / ".memory/dec-a.md").unlink()
    sandbox.memory("dec-b", "A long body.\n\nWith several lines.\n", title="Better title")
    sandbox.commit()
    sandbox.memory("dec-b", "A long body.\n\nWith several lines.\n", title="T", status="pinned")
    expected = [
        ("dec-b", "pinned"),
        ("dec-b", "edited"),
        ("dec-b", "edited"),
        ("dec-b", "moved"),
        ("dec-a", "moved"),
        ("dec-a", "added"),
    ]
    for name in ("dec-b", "dec-a"):
        report = log(sandbox.context(), name)
        assert (report.id, report.removed) == ("dec-b", False)
        assert summarize(report) == expected


def test_a_new_name_that_is_not_committed_is_followed(sandbox: Sandbox) -> None:
    """Renaming in the worktree does not cut the story off."""
    path = sandbox.memory("dec-a", title="T")
    sandbox.commit()
    (sandbox.path / path).unlink()
    sandbox.memory("dec-b", title="T")
    assert summarize(log(sandbox.context(), "dec-b")) == [("dec-b", "moved"), ("dec-a", "added")]


def test_a_removed_memory_is_still_found(sandbox: Sandbox) -> None:
    """History knows a memory that the tree has lost, and what replaced it."""
    path = sandbox.memory("dec-gone", supersedes=("dec-older",))
    older = sandbox.memory("dec-older")
    sandbox.commit()
    sandbox.git("rm", "-q", path, older)
    sandbox.commit()
    sandbox.memory("dec-kept")
    sandbox.commit()
    for wanted in ("dec-gone", "dec-go", "gone", path):
        report = log(sandbox.context(), wanted)
        assert (report.id, report.removed) == ("dec-gone", True)
        assert summarize(report)[:2] == [("dec-gone", "removed"), ("dec-older", "removed")]
    assert render(report, PIPED).startswith("dec-gone is no longer in the tree\n")


def test_git_pairing_a_memory_with_its_successor_is_not_believed(sandbox: Sandbox) -> None:
    """Deleting the old file and adding a similar one is a removal, not a rename."""
    body = "".join(f"line {n}\n" for n in range(30))
    path = sandbox.memory("dec-a", body, title="T")
    sandbox.commit()
    (sandbox.path / path).unlink()
    sandbox.memory("dec-b", body, title="T", supersedes=("dec-a",))
    sandbox.commit()
    assert summarize(log(sandbox.context(), "dec-b"))[:3] == [
        ("dec-a", "superseded"),
        ("dec-a", "removed"),
        ("dec-b", "added"),
    ]


def test_a_file_that_broke_and_was_mended_is_told(sandbox: Sandbox) -> None:
    """The log continues past unreadable versions."""
    path = sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.write(path, b"\xff\xfe not a memory")
    sandbox.commit()
    assert summarize(log(sandbox.context(), "dec-a"))[0] == ("dec-a", "unreadable")
    sandbox.memory("dec-a")
    sandbox.commit()
    report = log(sandbox.context(), "dec-a")
    assert [kind for _id, kind in summarize(report)] == ["mended", "unreadable", "added"]
    assert not report.removed


def test_the_limit_counts_events(sandbox: Sandbox) -> None:
    """The newest events are kept, and it is said that there are more."""
    for number in range(4):
        sandbox.memory(f"dec-{number}")
        sandbox.commit()
    report = log(sandbox.context(), limit=2)
    assert (summarize(report), report.has_more) == ([("dec-3", "added"), ("dec-2", "added")], True)
    assert render(report, PIPED).endswith("\nand more (memtool log --limit 0)")
    assert len(log(sandbox.context(), limit=0).events) == 4
    assert not log(sandbox.context(), limit=4).has_more


def test_many_files_are_read_in_parts(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a few files at a time gives the same log."""
    for number in range(5):
        sandbox.memory("dec-a", f"{number}\n")
        sandbox.memory(f"dec-{number}")
        sandbox.commit()
    expected = log(sandbox.context())
    monkeypatch.setattr("memtool.commands.log.MAX_FILES_PER_BATCH", 3)
    assert log(sandbox.context()) == expected


def test_a_shallow_clone_names_no_author_beyond_its_boundary(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """The author of the boundary commit is unknown, and a note says why."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.memory("dec-a", status="pinned")
    last = sandbox.commit()
    sandbox.git("clone", "-q", "--depth=2", f"file://{sandbox.path}", str(tmp_path / "shallow"))
    workspace = Context.at(str(tmp_path / "shallow"), sandbox.env)
    report = log(workspace)
    assert [(e.id, e.kind, e.commit, e.author) for e in report.events] == [
        ("dec-a", "pinned", last, "Ada"),
        ("dec-a", "unknown", "", ""),
        ("dec-b", "unknown", "", ""),
    ]
    assert "shallow" in workspace.notes[0]
    assert summarize(log(workspace, "dec-b")) == [("dec-b", "unknown")]
    (tmp_path / "shallow" / report.events[2].path).unlink()
    rows = render(log(workspace, "dec-b"), PIPED).splitlines()
    assert [row for row in rows if not row.startswith(" ")][1:] == [
        "not committed",
        "not in this clone",
    ]


def test_a_bare_repository_has_a_log_at_a_revision(sandbox: Sandbox, tmp_path: Path) -> None:
    """--at works without a worktree."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    workspace = Context.at(str(tmp_path / "bare.git"), sandbox.env)
    assert summarize(log(workspace, at="HEAD")) == [("dec-a", "added")]
    with pytest.raises(MemtoolError, match="bare"):
        log(workspace)


@pytest.mark.parametrize(
    ("wanted", "at", "code"),
    [
        ("nothing", None, "unknown-id"),
        ("", "--all", "unknown-revision"),
        ("", "HEAD..HEAD", "unknown-revision"),
        ("dec", None, "ambiguous-id"),
        ("--output=x", None, "unknown-id"),
        ("dec-a", ":index", "unknown-revision"),
        ("*", None, "unknown-id"),
    ],
)
def test_bad_arguments_are_answered_in_words(
    sandbox: Sandbox, wanted: str, at: str | None, code: str
) -> None:
    """Unknown and ambiguous ids, and revisions that are none, are the user's errors."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b")
    sandbox.commit()
    with pytest.raises(MemtoolError) as caught:
        log(sandbox.context(), wanted, at=at)
    assert caught.value.code == code


def test_a_circle_of_superseding_ends(sandbox: Sandbox) -> None:
    """Memories that supersede each other are told once."""
    sandbox.memory("dec-a", supersedes=("dec-b",))
    sandbox.memory("dec-b", supersedes=("dec-a",))
    sandbox.commit()
    assert summarize(log(sandbox.context(), "dec-a")) == [
        ("dec-a", "added"),
        ("dec-a", "superseded"),
        ("dec-b", "added"),
        ("dec-b", "superseded"),
    ]


def test_the_command_prints_json_and_hides_control_characters(sandbox: Sandbox) -> None:
    """Author names cannot send control characters to the terminal."""
    sandbox.memory("dec-a")
    sandbox.git("add", "-A")
    sandbox.git("-c", "user.name=x", "commit", "-qm", "evil\x1b[2J", "--author=E\x1b[31m <e@x>")
    answer = sandbox.json("log", "dec-a")
    assert set(answer) == {"id", "removed", "more", "events"}
    assert set(answer["events"][0]) == {
        "kind",
        "id",
        "title",
        "path",
        "details",
        "commit",
        "author",
        "date",
        "subject",
        "reason",
    }
    assert "\x1b" not in sandbox.run("log").stdout
