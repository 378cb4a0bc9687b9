from __future__ import annotations

from memtool.importing import agents
from memtool.importing.agents import split_agent_file
from memtool.importing.originals import ImportRequest


def headings(text, name="CLAUDE.md"):
    return [" > ".join(part.headings) for part in split_agent_file(text, name)]


def test_inner_headings_stay_in_their_section():
    """A section is one memory, with its smaller headings."""
    (part,) = split_agent_file(
        "## Tests\n\n- run them\n\n### Slow ones\n\n- run them at night\n", "CLAUDE.md"
    )
    assert part.text == "- run them\n\n### Slow ones\n\n- run them at night"


def test_long_sections_are_split():
    """A section too long for one memory becomes one for each inner heading."""
    text = f"## Tests\n\nShort.\n\n### Fast\n\n{'a ' * 1500}\n\n### Slow\n\n{'b ' * 1500}\n"
    assert headings(text) == ["Tests", "Tests > Fast", "Tests > Slow"]


def test_the_title_of_a_file_is_said_where_it_says_something():
    """A first heading that only repeats the file name is left out of the titles."""
    assert headings("# CLAUDE.md\n\n## A\n\ntext\n") == ["A"]
    assert headings("# Shop\n\n## A\n\ntext\n") == ["Shop > A"]


def test_injected_blocks_do_not_come_back():
    """Text between memtool's marks is skipped, to the end if it is never closed."""
    block = "<!-- memtool:begin v1 -->\n## In\n\ntext\n<!-- memtool:end -->\n"
    assert headings(f"## A\n\ntext\n{block}## B\n\ntext\n") == ["A", "B"]
    assert headings("## A\n\ntext\n<!-- memtool:begin -->\n## In\n\ntext\n") == ["A"]


def test_line_numbers_are_those_of_the_file():
    """A source leads to the lines of the section, also behind an injected block."""
    text = "<!-- memtool:begin -->\nx\n<!-- memtool:end -->\n\n## A\n\ntext\n\n## B\n\nmore\n"
    assert [(part.first_line, part.last_line) for part in split_agent_file(text, "x")] == [
        (5, 8),
        (9, 11),
    ]


def test_sections_without_words_are_no_memories():
    """Headings and comments alone say nothing."""
    assert headings("# A\n\n## B\n\n<!-- to be\nwritten -->\n\n## C\n\n### D\n") == []


def test_the_same_heading_twice_is_two_memories(tmp_path):
    """Sections of one name are told apart by their order."""
    (tmp_path / "CLAUDE.md").write_text("## A\n\none\n\n## A\n\ntwo\n")
    first, second = agents.drafts(str(tmp_path), ImportRequest(str(tmp_path)))
    assert (first.key, second.key) == ("CLAUDE.md A", "CLAUDE.md A#2")


def test_copies_and_links_are_read_once(tmp_path):
    """AGENTS.md as a copy of CLAUDE.md, or a link to it, gives no second memory."""
    (tmp_path / "CLAUDE.md").write_text("## A\n\none\n")
    (tmp_path / "AGENTS.md").write_text("## A\n\none\n")
    (tmp_path / "GEMINI.md").symlink_to("CLAUDE.md")
    (draft,) = agents.drafts(str(tmp_path), ImportRequest(str(tmp_path)))
    assert draft.key == "AGENTS.md A"


def test_preferences_are_known_by_their_heading(tmp_path):
    """A wish is a preference, other text a pattern."""
    (tmp_path / "CLAUDE.md").write_text("## Code style\n\none\n\n## Commands\n\ntwo\n")
    drafts = agents.drafts(str(tmp_path), ImportRequest(str(tmp_path)))
    assert [draft.fields["category"] for draft in drafts] == ["preference", "pattern"]
