"""Suggested files: what imported decisions probably govern, without a word in their files."""

from __future__ import annotations

import json

import pytest
from conftest import Sandbox

CLOCK, MOON = "src/tide/clock.py", "src/tide/moon-phase.ts"


@pytest.fixture
def harbor(sandbox: Sandbox) -> Sandbox:
    """A repository with two decision records, of which the first names code."""
    for path in (CLOCK, MOON, "tools/clock.py", "Makefile"):
        sandbox.write(path, f"# {path}\n")
    sandbox.write(
        "docs/adr/0001-tides.md",
        "# Read tides from a table\n\n## Status\n\nAccepted\n\n## Decision\n\n"
        f"The table is read by {CLOCK}, the moon by `moon-phase.ts`; see docs/notes.md.\n",
    )
    sandbox.write(
        "docs/adr/0002-plain.md", "# Keep it plain\n\n## Status\n\nAccepted\n\nNo framework.\n"
    )
    sandbox.run("init")
    sandbox.commit()
    return sandbox


def find_suggested(harbor: Sandbox, id_: str = "adr-0001-tides") -> list[str]:
    """Return the suggested files of a memory as programs get them."""
    files: list[str] = harbor.json("show", id_).get("suggested_files", [])
    return files


def test_a_decision_suggests_the_files_that_it_names(harbor: Sandbox) -> None:
    """By a path from the top, or the end of one path; the memory does not hold them."""
    rows = harbor.json("import", "adr", "docs/adr", "--dry-run")["memories"]
    assert [row.get("suggested_files") for row in rows] == [[CLOCK, MOON], None]
    harbor.run("import", "adr", "docs/adr", "--commit")
    assert find_suggested(harbor) == [CLOCK, MOON]
    assert find_suggested(harbor, "adr-0002-plain") == []
    listed = {row["id"]: row for row in harbor.json("list")["memories"]}
    assert listed["adr-0001-tides"]["suggested_files"] == [CLOCK, MOON]
    assert "suggested_files" not in listed["adr-0002-plain"]
    assert "files" not in harbor.json("show", "adr-0001-tides")
    assert "Probably" in harbor.run("show", "adr-0001-tides").stdout


def test_what_is_gone_or_ambiguous_is_not_suggested(harbor: Sandbox) -> None:
    """A name must lead to one file of today."""
    harbor.run("import", "adr", "docs/adr", "--commit")
    harbor.write("web/moon-phase.ts", "\n")
    harbor.git("rm", "--quiet", CLOCK)
    harbor.commit()
    assert find_suggested(harbor) == []
    assert harbor.json("show", "adr-0001-tides", "--at", "HEAD^")["suggested_files"] == [
        CLOCK,
        MOON,
    ]


def test_what_five_records_name_is_suggested_for_none(harbor: Sandbox) -> None:
    """A file that all records name is what each of them takes for granted."""
    for number in range(3, 7):
        text = f"# Choice {number}\n\n## Status\n\nAccepted\n\nOf {number}, as in {CLOCK}.\n"
        harbor.write(f"docs/adr/000{number}-choice.md", text)
    harbor.commit()
    harbor.run("import", "adr", "docs/adr", "--commit")
    assert find_suggested(harbor) == [MOON]
    assert find_suggested(harbor, "adr-0003-choice") == []


def test_an_edit_shows_the_record_as_probable(harbor: Sandbox) -> None:
    """After what governs the file for certain, and in the other verbs not at all."""
    harbor.run("import", "adr", "docs/adr", "--commit")
    event = {"session_id": "s", "cwd": str(harbor.path)}
    edit = event | {"tool_name": "Edit", "tool_input": {"file_path": str(harbor.path / MOON)}}
    hook = ("hook", "claude", "post-tool-use", "--input", json.dumps(edit))
    assert "probably: its text names this file" in harbor.run(*hook, "--dry-run").stdout
    harbor.memory("sem-moon", "The moon has four phases.\n", files=(MOON,))
    harbor.commit()
    text = harbor.run("inject", "--files", MOON).stdout
    assert text.index("sem-moon") < text.index("adr-0001") < text.index("probably")
    assert harbor.json("drift", "--all")["checked"] == 1
    harbor.git("checkout", "--quiet", "-b", "work")
    harbor.write(CLOCK, "# changed\n")
    harbor.commit()
    assert harbor.json("review", "main..HEAD")["files"] == []


def test_accepted_files_are_written_and_govern(harbor: Sandbox) -> None:
    """A confirmation adds them in place, once, and the gate agrees."""
    harbor.run("import", "adr", "docs/adr", "--commit")
    done = harbor.run("confirm", "adr-0001-tides", "--accept-files", "--commit")
    assert done.returncode == 0, done.stderr
    assert harbor.json("show", "adr-0001-tides")["files"] == [CLOCK, MOON]
    assert find_suggested(harbor) == []
    text = harbor.run("inject", "--files", CLOCK).stdout
    assert "adr-0001" in text
    assert "probably" not in text
    assert harbor.json("check", "--range", "HEAD^..HEAD")["problems"] == []
    again = harbor.run("confirm", "adr-0001-tides", "--accept-files", "--dry-run")
    assert "no files are suggested" in again.stderr


def test_a_changed_file_is_not_accepted(harbor: Sandbox) -> None:
    """What a confirmation vouches for is committed."""
    harbor.run("import", "adr", "docs/adr", "--commit")
    harbor.write(CLOCK, "# changed\n")
    done = harbor.run("confirm", "adr-0001-tides", "--accept-files")
    assert done.returncode == 2
    assert f"{CLOCK} has uncommitted changes" in done.stderr


@pytest.mark.parametrize(("choice", "files"), [("accept", [CLOCK, MOON]), ("off", [])])
def test_an_import_settles_the_files(harbor: Sandbox, choice: str, files: list[str]) -> None:
    """`accept` writes them, `off` that there are none; neither leaves a suggestion."""
    argv = ("import", "adr", "docs/adr", "--suggest-files", choice, "--commit")
    assert harbor.run(*argv).returncode == 0
    assert harbor.json("show", "adr-0001-tides")["files"] == files
    assert find_suggested(harbor) == []
    assert ("adr-0001" in harbor.run("inject", "--files", CLOCK).stdout) == bool(files)
    assert harbor.json(*argv)["unchanged"] == 2
    assert harbor.json("check")["problems"] == []


def test_the_document_of_a_record_is_not_governed(harbor: Sandbox) -> None:
    """An import names no code by the records that it was made from."""
    harbor.run("import", "adr", "docs/adr", "--commit")
    assert harbor.run("drift").stdout == "no memory names code\n"
    assert harbor.run("inject", "--files", "docs/adr/0002-plain.md").stdout.count("adr-0002") == 0
    assert [
        row["id"] for row in harbor.json("list", "file:docs/adr/0002-plain.md")["memories"]
    ] == ["adr-0002-plain"]


@pytest.mark.parametrize(
    "line", [f"files: [{CLOCK}]", f"files: [{CLOCK}, Makefile]", "files: []", ""]
)
def test_accepted_files_may_be_corrected_in_place(harbor: Sandbox, line: str) -> None:
    """Whatever was recorded of the code at the confirmation, the gate lets them change."""
    harbor.run("import", "adr", "docs/adr", "--commit")
    harbor.run("confirm", "adr-0001-tides", "--accept-files", "--commit")
    (path,) = (harbor.path / ".memory").rglob("adr-0001-tides.md")
    text = path.read_text()
    old = f"files: [{CLOCK}, {MOON}]\n"
    assert old in text
    path.write_text(text.replace(old, f"{line}\n" if line else ""))
    harbor.git("add", "--all")
    assert harbor.json("check", "--staged")["problems"] == []
    harbor.commit()
    assert harbor.json("check", "--range", "HEAD^..HEAD")["problems"] == []
    assert harbor.json("drift", "--all")["checked"] == (1 if CLOCK in line else 0)


def test_accepted_files_outlive_a_change_of_the_record(harbor: Sandbox) -> None:
    """The memory that a later import supersedes hands them on, as any correction does."""
    harbor.run("import", "adr", "docs/adr", "--commit")
    harbor.run("confirm", "adr-0001-tides", "--accept-files", "--commit")
    record = harbor.path / "docs/adr/0001-tides.md"
    record.write_text(record.read_text() + "\nIt is read twice a day.\n")
    harbor.commit()
    (row,) = harbor.json("import", "adr", "docs/adr", "--commit")["memories"]
    assert harbor.json("show", row["id"])["supersedes"] == ["adr-0001-tides"]
    assert harbor.json("show", row["id"])["files"] == [CLOCK, MOON]
