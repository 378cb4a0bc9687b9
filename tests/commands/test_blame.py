from __future__ import annotations

from pathlib import Path

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.blame import BlamePart, blame, render
from memtool.errors import MemtoolError
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store.context import Context

BODY = "Opening.\n\n## Chosen\n\nThis.\n\n## Rationale\n\nBecause.\n"


def states(parts: tuple[BlamePart, ...]) -> dict[str, str]:
    return {part.name: part.commit or part.state for part in parts}


def test_each_part_names_the_newest_commit_of_its_lines(sandbox: Sandbox) -> None:
    """Fields and sections are told apart, each with the last commit that changed it."""
    sandbox.memory("dec-a", BODY, tags=("x",))
    first = sandbox.commit()
    sandbox.memory("dec-a", BODY, tags=("x", "y"), status="pinned")
    second = sandbox.commit()
    sandbox.memory("dec-a", BODY.replace("This", "That"), tags=("x", "y"), status="pinned")
    third = sandbox.commit()
    report = blame(sandbox.context(), "dec-a")
    fields = states(report.fields)
    assert (fields["title"], fields["tags"], fields["status"]) == (first, second, second)
    assert states(report.sections) == {"(opening)": first, "Chosen": third, "Rationale": first}
    part = next(part for part in report.fields if part.name == "tags")
    assert (part.value, part.author, part.date) == ("x, y", "Ada", "2026-02-01T05:00:00Z")


def test_lists_over_several_lines_count_as_one_field(sandbox: Sandbox) -> None:
    """The newest of the lines of a key decides."""
    sandbox.memory("dec-a", source=("human:Ada", "human:Bob"))
    sandbox.commit()
    sandbox.memory("dec-a", source=("human:Ada", "human:Eve"))
    second = sandbox.commit()
    assert states(blame(sandbox.context(), "dec-a").fields)["source"] == second


def test_a_section_added_below_leaves_the_one_above_alone(sandbox: Sandbox) -> None:
    """The blank line before a new heading does not make the old section newer."""
    sandbox.memory("dec-a", "One.\n\n## A\n\nText.\n")
    first = sandbox.commit()
    sandbox.memory("dec-a", "One.\n\n## A\n\nText.\n\n## B\n\nMore.\n")
    second = sandbox.commit()
    assert states(blame(sandbox.context(), "dec-a").sections) == {
        "(opening)": first,
        "A": first,
        "B": second,
    }


def test_lines_of_the_worktree_are_not_committed(sandbox: Sandbox) -> None:
    """Uncommitted lines are marked as such; --at asks a revision instead."""
    path = sandbox.memory("dec-a", BODY)
    first = sandbox.commit()
    sandbox.memory("dec-a", BODY.replace("Opening.", "Opened."), status="pinned")
    report = blame(sandbox.context(), "dec-a")
    assert states(report.fields)["status"] == "uncommitted"
    assert states(report.fields)["title"] == first
    assert states(report.sections)["(opening)"] == "uncommitted"
    (status,) = (row for row in render(report, PIPED).splitlines() if row.startswith("status "))
    assert status.split() == ["status", "pinned", "not", "committed"]
    before = blame(sandbox.context(), path, at="HEAD")
    assert set(states((*before.fields, *before.sections)).values()) == {first}


def test_a_file_that_was_never_committed_is_all_uncommitted(sandbox: Sandbox) -> None:
    """New files and repositories without a commit are answered too."""
    sandbox.memory("dec-a")
    report = blame(sandbox.context(), "dec-a")
    assert {part.state for part in (*report.fields, *report.sections)} == {"uncommitted"}
    sandbox.write("code.py", "1\n")
    sandbox.git("add", "code.py")
    sandbox.git("commit", "-qm", "code")
    assert blame(sandbox.context(), "dec-a") == report


def test_a_moved_file_keeps_its_lines(sandbox: Sandbox) -> None:
    """Moving a file, committed or not, does not make its lines new."""
    path = sandbox.memory("dec-a", BODY)
    first = sandbox.commit()
    sandbox.git("mv", path, ".memory/dec-a.md")
    assert set(states(blame(sandbox.context(), "dec-a").fields).values()) == {first}
    sandbox.commit()
    assert set(states(blame(sandbox.context(), "dec-a").fields).values()) == {first}


def test_windows_line_ends_and_a_mark_are_read(sandbox: Sandbox) -> None:
    """Line numbers stay right with CRLF and a byte-order mark."""
    path = sandbox.memory("dec-a", BODY)
    text = (sandbox.path / path).read_bytes()
    sandbox.write(path, b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
    first = sandbox.commit()
    windows = (sandbox.path / path).read_bytes()
    sandbox.write(path, windows.replace(b"Because", b"Therefore"))
    report = blame(sandbox.context(), "dec-a")
    assert states(report.sections) == {
        "(opening)": first,
        "Chosen": first,
        "Rationale": "uncommitted",
    }


def test_a_file_of_equal_lines_is_answered_quickly(sandbox: Sandbox) -> None:
    """Tens of thousands of equal lines are not compared with each other."""
    sandbox.memory("dec-a", "a\n" * 25_000)
    sandbox.commit()
    sandbox.memory("dec-a", "b\n" + "a\n" * 24_000 + "c\n")
    (section,) = blame(sandbox.context(), "dec-a").sections
    assert section.state == "uncommitted"


def test_a_shallow_clone_does_not_name_its_tip(sandbox: Sandbox, tmp_path: Path) -> None:
    """Lines from before the boundary have no author here."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.git("clone", "-q", "--depth=1", f"file://{sandbox.path}", str(tmp_path / "shallow"))
    report = blame(Context.at(str(tmp_path / "shallow"), sandbox.env), "dec-a")
    assert {(part.state, part.commit, part.author) for part in report.fields} == {
        ("shallow", "", "")
    }


def test_text_and_json_have_every_part(sandbox: Sandbox) -> None:
    """The table is aligned, cuts long values and has short ids; the JSON has the promised names."""
    sandbox.memory("dec-a", "A very long opening, " * 9 + "\n\n## Chosen\n\nThis.\n")
    commit = sandbox.commit()[:SHORT_ID_DIGITS]
    rows = render(blame(sandbox.context(), "dec-a"), PIPED).splitlines()
    assert rows[0] == ".memory/decision/2026-02/dec-a.md"
    assert {row.rindex(f"  {commit}  Ada  2026-02-01") for row in rows[1:]} == {60}
    assert rows[-1].startswith("## Chosen   This.  ")
    assert rows[-2].startswith("(opening)   A very long opening, A very long opening, A ver…  ")
    id_ = "dec-2026-02-01-hold-a-seat-for-20-minutes-2g54"
    sandbox.memory(id_)
    row = render(blame(sandbox.context(), id_), sandbox.layout(width=80)).splitlines()[1]
    assert row.split() == ["id", "dec-2g54", "not", "committed"]
    answer = sandbox.json("blame", "dec-a", "--at", "HEAD")
    assert set(answer) == {"id", "path", "fields", "sections"}
    assert {"name", "value", "commit", "author", "date", "state"} <= set(answer["fields"][0])


@pytest.mark.parametrize(
    ("wanted", "at", "code"),
    [
        ("nothing", None, "unknown-id"),
        ("dec-a", "--root", "unknown-revision"),
        ("dec-a", "nowhere", "unknown-revision"),
        ("dec-broken", None, "no-frontmatter"),
        ("", None, "unknown-id"),
    ],
)
def test_bad_arguments_are_answered_in_words(
    sandbox: Sandbox, wanted: str, at: str | None, code: str
) -> None:
    """Unknown ids and revisions, and files that are not memories, are reported in a sentence."""
    sandbox.memory("dec-a")
    sandbox.write(".memory/dec-broken.md", "no frontmatter\n")
    sandbox.commit()
    with pytest.raises(MemtoolError) as caught:
        blame(sandbox.context(), wanted, at=at)
    assert caught.value.code == code
