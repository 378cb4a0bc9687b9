"""The Memory value: defaults, statement, title, and the sections and links of its body."""

from __future__ import annotations

from itertools import pairwise

import pytest
from conftest import make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory.memory import (
    MAX_TITLE,
    Link,
    Section,
    find_links,
    first_sentence,
    split_sections,
)


def test_what_is_absent_has_its_default() -> None:
    """A memory with only the required keys is confirmed, of its type's category, half important."""
    memory = make_memory("dec-a")
    assert (memory.status, memory.category, memory.importance) == ("confirmed", "decision", 0.5)
    assert memory.supersedes == ()


def test_a_copy_leaves_the_original_as_it_was() -> None:
    """Fields are set and dropped in the copy alone."""
    memory = make_memory("dec-a", tags=("x",))
    copy = memory.with_fields(status="pinned", tags=None)
    assert (copy.status, copy.items("tags")) == ("pinned", ())
    assert (memory.status, memory.items("tags")) == ("confirmed", ("x",))


@pytest.mark.parametrize(
    ("body", "statement"),
    [
        ("One\ntwo.\n\nThree.\n", "One two."),
        ("\n\nLate.\n", "Late."),
        ("Before.\n## Head\nBelow.\n", "Before."),
        ("## Context\n\nWhy.\n\n## Decision\n\nWhat.\n", "What."),
        ("## Context\n\nWhy.\n", "Why."),
        ("# Title\n\nFirst.\n", "First."),
        (
            "Introduction\n============\n\nSome text.\n\nAbstract\n--------\nIn short.\n",
            "In short.",
        ),
        ("## Options considered\n\n## Chosen\n", ""),
        ("## Context\n\nWhy.\n\n## Decision\n\n### Rule 1\n\nWhat.\n", "What."),
        ("<!-- lint: off -->\n\n## Decision\n\n<!-- short -->\nWhat.\n", "What."),
        ("We use:\n\n- a\n  b\n\n* c\n\nAnd d.\n", "We use: - a b * c"),
        ("We use:\n\n```\nx\n```\n\n- y\n", "We use: ``` x ```"),
        (
            "**All of these:**\n\n1. " + "a" * 400 + "\n2. " + "b" * 400,
            "**All of these:** 1. " + "a" * 400 + " …",
        ),
        ("We use:\n\n" + "long " * 200, "We use: " + "long " * 69 + "…"),
        ("**Errors are raised.**\n\n- On write.\n\nMore.\n", "**Errors are raised.** - On write."),
        ("We use:\n\n## More\n\nOne store.\n", "One store."),
        ("We use:\n\n## More\n", "We use:"),
        ("![build](a.svg)\n\nWe use Redis.\n", "We use Redis."),
        ("[![build](a.svg)](b)\n![x](y)\n\nWe use Redis.\n", "We use Redis."),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nWe use Redis.\n", "We use Redis."),
        ("![build](a.svg) of Redis\n\nMore.\n", "![build](a.svg) of Redis"),
        ("![build](a.svg)\n", ""),
        ("The limits are:\n\n| a |\n|---|\n| 1 |\n", "The limits are: | a | |---| | 1 |"),
        ("", ""),
    ],
)
def test_the_statement_is_what_the_memory_claims_in_short(body: str, statement: str) -> None:
    """Headings are never the statement; the opening wins, then what was decided, then the first.

    What only announces a list comes with as many of its items as fit. An image is no claim, nor is
    a table if there is another paragraph.
    """
    assert make_memory("dec-a", body).statement == statement


BODY = """Opening.

More.

## Options considered

- one [[dec-a]]

```
## not a heading [[dec-b]]
```

> ## quoted

Setext
------
text
### Deep ###
"""


def test_sections_are_split_at_headings() -> None:
    """Headings of both styles begin a section; those in code and quotes do not."""
    sections = [(s.title, s.level, s.first_line, s.last_line) for s in split_sections(BODY)]
    assert sections == [
        ("", 0, 1, 4),
        ("Options considered", 2, 5, 14),
        ("Setext", 2, 15, 17),
        ("Deep", 3, 18, 18),
    ]
    assert split_sections(BODY)[2].text == "text"


def test_a_body_without_headings_is_one_section() -> None:
    """The text before the first heading has no title; an empty body has no section."""
    assert split_sections("a\nb\n") == (Section("", 0, 1, 2, "a\nb"),)
    assert split_sections("") == split_sections("\n \n") == ()


def test_lines_are_those_of_markdown() -> None:
    """A form feed or a line separator does not shift the sections below it."""
    sections = split_sections("a\x0cb\x85c\u2028d\r\n## H\rtext\n")
    assert [(s.title, s.first_line, s.last_line, s.text) for s in sections] == [
        ("", 1, 1, "a\x0cb\x85c\u2028d"),
        ("H", 2, 3, "text"),
    ]


def test_links_are_found_with_their_line() -> None:
    """Both kinds of link are found in reading order, with their line, but not in code."""
    body = (
        "a [[dec-a]] [x](u)\nb [[ dec-b ]] `[[no]]`\n\n    [[code]]\n\n- <https://e.org> [[open\n"
    )
    assert find_links(body) == (
        Link("memory", "dec-a", 1),
        Link("url", "u", 1),
        Link("memory", "dec-b", 2),
        Link("url", "https://e.org", 6),
    )


@given(
    st.text(alphabet=st.sampled_from(list("#-=[]()`>*_\\ \n\r\t\x0b\x0c\x1c\x85\u2028ab1.|<!&")))
)
def test_no_body_is_too_strange(body: str) -> None:
    """Any text has sections and links; sections are in order and do not overlap."""
    sections = split_sections(body)
    assert all(s.first_line <= s.last_line for s in sections)
    assert all(a.last_line < b.first_line for a, b in pairwise(sections))
    find_links(body)


@pytest.mark.slow
def test_deep_nesting_ends() -> None:
    """Thousands of nested quotes, lists and brackets are read without recursion errors."""
    for piece in (">", "- ", "[", "![", "*", "[a](", "<b>", "`"):
        split_sections(piece * 5_000)
        find_links(piece * 5_000)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("It is so.", "It is so"),
        ("Really? Yes.", "Really"),
        ("Use Python 3.11 here", "Use Python 3.11 here"),
        ("Use it, e.g. for logs. Then stop.", "Use it, e.g. for logs"),
        ("Never! It deletes all.", "Never"),
        ("a\n b\tc", "a b c"),
        ("...", "..."),
        ("word " * 40, ("word " * 19).rstrip() + " …"),
        ("x" * 200, "x" * 98 + " …"),
    ],
)
def test_a_title_is_the_first_sentence_cut_between_words(text: str, title: str) -> None:
    """Abbreviations and numbers end no sentence."""
    assert first_sentence(text) == title


@given(st.text(min_size=1))
def test_a_title_is_one_line_of_bounded_length(text: str) -> None:
    """It is empty only if the text is."""
    title = first_sentence(text)
    assert len(title) <= MAX_TITLE
    assert "\n" not in title
    assert bool(title) == bool(text.split())
