from __future__ import annotations

import pytest

from memtool.importing import agents
from memtool.importing.originals import ForeignRecord, ImportRequest
from memtool.memory.schema import Problem


def read(path):
    return list(agents.drafts(str(path), ImportRequest(str(path))))


def titles(path):
    return [item.fields["title"] for item in read(path) if isinstance(item, ForeignRecord)]


def messages(path):
    return [item.message for item in read(path) if isinstance(item, Problem)]


def test_the_same_heading_twice_is_two_memories(tmp_path):
    """Sections of one name are told apart by their order, and by their titles."""
    (tmp_path / "CLAUDE.md").write_text("## Alpha\n\none\n\n## Alpha\n\ntwo\n")
    first, second = read(tmp_path)
    assert (first.key, second.key) == ("CLAUDE.md Alpha", "CLAUDE.md Alpha#2")
    assert [first.fields["title"], second.fields["title"]] == ["Alpha", "Alpha (CLAUDE)"]


def test_copies_and_links_are_read_once(tmp_path):
    """AGENTS.md as a copy of CLAUDE.md, or a link to it, gives no second memory."""
    (tmp_path / "CLAUDE.md").write_text("## A\n\none\n")
    (tmp_path / "AGENTS.md").write_text("## A\n\none\n")
    (tmp_path / "GEMINI.md").symlink_to("CLAUDE.md")
    (draft,) = read(tmp_path)
    assert draft.key == "AGENTS.md A"


def test_a_link_to_a_file_of_another_name_is_read(tmp_path):
    """The memory cites the file itself."""
    (tmp_path / "guide.md").write_text("## Errors\n\nThey are values.\n")
    (tmp_path / "AGENTS.md").symlink_to("guide.md")
    (draft,) = read(tmp_path)
    assert draft.original.name == "guide.md"


def test_a_link_out_of_the_folder_is_not_read(tmp_path):
    """Its text belongs to somebody else."""
    (tmp_path / "secret.md").write_text("## Errors\n\nThey are values.\n")
    inside = tmp_path / "repository"
    inside.mkdir()
    (inside / "AGENTS.md").symlink_to("../secret.md")
    assert read(inside) == []


def test_preferences_are_known_by_their_heading(tmp_path):
    """A wish is a preference, other text a pattern."""
    (tmp_path / "CLAUDE.md").write_text("## Code style\n\none\n\n## Commands\n\ntwo\n")
    assert [draft.fields["category"] for draft in read(tmp_path)] == ["preference", "pattern"]


def test_a_file_of_a_subdirectory_governs_it(tmp_path):
    """Its memories name the directory; those of the top name none."""
    for folder in ("", "web/api", "web/.claude"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "CLAUDE.md").write_text(f"## Errors {folder}\n\nAre values.\n")
    files = {draft.original.name: draft.fields.get("files") for draft in read(tmp_path)}
    assert files == {
        "CLAUDE.md": None,
        "web/api/CLAUDE.md": ("web/api/**",),
        "web/.claude/CLAUDE.md": ("web/**",),
    }


def test_imports_are_followed(tmp_path):
    """An imported file is read once, with its own lines, however the imports turn in circles."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "CLAUDE.md").write_text("@docs/a.md\n\n## Errors\n\nAre values, see @docs/b.md.\n")
    (tmp_path / "docs" / "a.md").write_text("## Alpha\n\nOne.\n\n@b.md\n")
    (tmp_path / "docs" / "b.md").write_text("## Beta\n\nTwo.\n\n@../CLAUDE.md @a.md\n")
    assert titles(tmp_path) == ["Errors", "Alpha", "Beta"]
    assert messages(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "`@docs/a.md`",
        "```\n@docs/a.md\n```",
        "    @docs/a.md",
        "me@docs/a.md",
        "@types/node @param",
    ],
)
def test_what_is_no_import_is_not_followed(tmp_path, text):
    """Code, addresses and names with an @ are text."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("## Alpha\n\nOne.\n")
    (tmp_path / "CLAUDE.md").write_text(f"## Errors\n\nAre values.\n\n{text}\n")
    assert titles(tmp_path) == ["Errors"]
    assert messages(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../outside.md", "which is outside of the repository"),
        ("link.md", "which is outside of the repository"),
        ("gone.md", "which is not there"),
        ("README.md", "which holds no text for agents"),
    ],
)
def test_an_import_that_is_left_out_is_named(tmp_path, name, why):
    """Nothing outside of the repository is read, also not through a link."""
    (tmp_path / "outside.md").write_text("## Alpha\n\nOne.\n")
    inside = tmp_path / "repository"
    inside.mkdir()
    (inside / "README.md").write_text("## Alpha\n\nOne.\n")
    (inside / "link.md").symlink_to("../outside.md")
    (inside / "CLAUDE.md").write_text(f"## Errors\n\nAre values.\n\n@{name}\n")
    assert titles(inside) == ["Errors"]
    assert messages(inside) == [f"it imports @{name}, {why}; that is left out"]


def test_imports_end_after_five(tmp_path):
    """A chain of files is not followed without end."""
    (tmp_path / "CLAUDE.md").write_text("## Top\n\nText.\n\n@1.md\n")
    for number in range(1, 9):
        (tmp_path / f"{number}.md").write_text(f"## Part{number}\n\nText.\n\n@{number + 1}.md\n")
    assert titles(tmp_path) == ["Top", "Part1", "Part2", "Part3", "Part4", "Part5"]
    assert messages(tmp_path) == ["it imports @6.md, after 5 imports in a row; that is left out"]


def test_prohibitions_about_files_are_warnings(tmp_path):
    """They are shown to agents that edit these files."""
    (tmp_path / "web").mkdir()
    text = "## Rules\n\n- Never import the client on the server.\n- Use the router for links.\n"
    (tmp_path / "web" / "AGENTS.md").write_text(text)
    assert [draft.fields["category"] for draft in read(tmp_path)] == ["warning", "preference"]


def test_a_hidden_directory_with_a_file_of_its_own_is_governed(tmp_path):
    """`.github/workflows/AGENTS.md` is about the workflows, `.github/AGENTS.md` about all."""
    for folder in (".github", ".github/workflows"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "AGENTS.md").write_text(f"## Errors {folder}\n\nAre values.\n")
    files = {draft.original.name: draft.fields.get("files") for draft in read(tmp_path)}
    assert files == {
        ".github/AGENTS.md": None,
        ".github/workflows/AGENTS.md": (".github/workflows/**",),
    }
