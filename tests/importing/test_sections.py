from __future__ import annotations

import pytest

from memtool.importing import sections
from memtool.importing.sections import split_file, split_passages


def headings(text, name="CLAUDE.md"):
    return [" > ".join(part.headings) for part in split_file(text, name)]


def titles(text, name="AGENTS.md", label=""):
    return [passage.titles[0] for passage in split_passages(text, name, label)]


def test_inner_headings_stay_in_their_section():
    """A section of prose is one memory, with its smaller headings."""
    (part,) = split_file(
        "## Tests\n\nRun them.\n\n### Slow ones\n\nRun them at night.\n", "CLAUDE.md"
    )
    assert part.text == "Run them.\n\n### Slow ones\n\nRun them at night."


def test_long_sections_are_split():
    """A section too long for one memory becomes one for each inner heading."""
    text = f"## Tests\n\nShort.\n\n### Fast\n\n{'a ' * 1500}\n\n### Slow\n\n{'b ' * 1500}\n"
    assert headings(text) == ["Tests", "Tests > Fast", "Tests > Slow"]


def test_the_title_of_a_file_is_said_where_it_says_something():
    """A first heading that only repeats the file name is no heading of its sections."""
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
    assert [(part.first_line, part.last_line) for part in split_file(text, "x")] == [
        (5, 8),
        (9, 11),
    ]


def test_sections_without_words_are_no_memories():
    """Headings and comments alone say nothing."""
    assert headings("# A\n\n## B\n\n<!-- to be\nwritten -->\n\n## C\n\n### D\n") == []


RULES = """# Shop

## Code style

These rules hold everywhere:

- Use four spaces, never tabs.
- **Names**: write them out, as in
  `customer_address`.
- Keep functions short. A screen is enough.

  Helpers stay in the same file.
"""


def test_a_list_of_rules_is_one_memory_a_rule():
    """A rule is called by its sentence, has its own lines, and all that its item holds."""
    first, second, third = split_passages(RULES, "AGENTS.md")
    assert first.titles[0] == "Use four spaces, never tabs"
    assert (second.first_line, second.last_line) == (8, 9)
    assert second.text == "**Names**: write them out, as in\n`customer_address`."
    assert third.titles[0] == "Keep functions short"
    assert third.text.endswith("Helpers stay in the same file.")


@pytest.mark.parametrize(
    "text",
    [
        "## Commands\n\n- Run `make` to build.\n- Run `make test` to test.\n",
        "## Release\n\n1. Write the notes.\n2. Tag the commit.\n",
        "## Adding a table\n\n- Write a migration.\n- Add the model.\n",
        "## It hangs\n\n- **Cause**: Mock calls wait.\n- **Solution**: Use a clock.\n",
        "## Layout\n\n- `src/` has the code.\n- `tests/` mirrors it.\n",
        "## Money\n\nTo round a price:\n\n- Use the helper.\n- Keep four digits.\n",
        f"## Money\n\n{'Prices are kept in cents. ' * 9}\n\n- Use cents.\n- Never use floats.\n",
    ],
)
def test_other_lists_stay_in_their_section(text):
    """Commands, steps, parts of a whole, and what explains the prose around it are no rules."""
    assert len(split_passages(text, "AGENTS.md")) == 1


def test_what_a_list_forbids_stays_forbidden():
    """Below “Don't” an item means its opposite, so title and text say so."""
    passages = split_passages("## Don't\n\n- use floats\n- never mind\n", "AGENTS.md")
    assert passages[0].titles[0] == "Don't: use floats"
    assert passages[0].text == "Don't:\n\n- use floats"
    assert passages[1].titles[0] == "never mind"


def test_prose_beside_rules_stays_a_memory():
    """The text of a section that is no rule is still there, without the rules."""
    text = (
        "## Prices\n\nPrices are in cents.\n\n- Use the type Money for amounts.\n- Never round.\n"
    )
    section, *rules = split_passages(text, "AGENTS.md")
    assert (section.titles[0], section.text) == ("Prices", "Prices are in cents.")
    assert [rule.titles[0] for rule in rules] == [
        "Prices: Use the type Money for amounts",
        "Prices: Never round",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "@AGENTS.md\n",
        "See [the guide](docs/guide.md) for details.\n",
        "## Contents\n\n- [Style](#style)\n- [Tests](#tests)\n",
        "## Documents\n\n- `docs/a.md`: how to build\n- [Tests](docs/tests.md) - how to test\n",
        "# CLAUDE.md\n\nThis file gives guidance to Claude Code in this repository.\n",
        "## References\n\n- Design: https://example.org/design\n",
    ],
)
def test_pointers_are_no_memories(text):
    """What only leads elsewhere says nothing by itself."""
    assert split_passages(text, "CLAUDE.md") == []


def test_a_rule_that_names_a_document_is_a_rule():
    """It says when to read the document, and so more than a link."""
    text = "Read [the guide](docs/guide.md) before you change a migration.\n"
    assert titles(text) == ["Read the guide before you change a migration"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Shop\n\n## Error handling\n\nErrors are values.\n", "Error handling"),
        ("# Shop\n\n## Overview\n\nErrors are values.\n", "Shop: Overview"),
        ("## 3. \U0001f680 **Releases**:\n\nThey are weekly.\n", "Releases"),
        ("Errors are values here. More follows.\n", "Errors are values here"),
    ],
)
def test_a_title_has_no_more_than_it_needs(text, title):
    """A heading that says enough stands alone, without numbers and emphasis."""
    assert titles(text) == [title]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Use a queue, e.g. RQ, for mail. It retries.", "Use a queue, e.g. RQ, for mail"),
        ("**Never** call `a.b()`. It blocks.", "Never call `a.b()`"),
        ("word " * 40, " ".join(["word"] * 19) + "\u2026"),
    ],
)
def test_a_sentence_ends_at_its_stop(text, sentence):
    """Abbreviations and dots in names do not end it; a long one is cut at a word."""
    assert sections.find_sentence(text) == sentence


def test_comments_between_rules_hide_none():
    """Marks of other tools between the items of a list leave it a list."""
    text = "## Types\n\n<!-- rule 1 -->\n- Use Money.\n<!-- rule 2 -->\n- Never use floats.\n"
    assert titles(text) == ["Types: Use Money", "Types: Never use floats"]
