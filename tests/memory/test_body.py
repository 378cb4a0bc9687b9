"""The body as markdown: sections and links of the text, not of code."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory.memory import Link, Section, links, sections

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
    found = [(s.title, s.level, s.first_line, s.last_line) for s in sections(BODY)]
    assert found == [
        ("", 0, 1, 4),
        ("Options considered", 2, 5, 14),
        ("Setext", 2, 15, 17),
        ("Deep", 3, 18, 18),
    ]
    assert sections(BODY)[2].text == "text"


def test_a_body_without_headings_is_one_section() -> None:
    """The text before the first heading has no title; an empty body has no section."""
    assert sections("a\nb\n") == (Section("", 0, 1, 2, "a\nb"),)
    assert sections("") == sections("\n \n") == ()


def test_lines_are_those_of_markdown() -> None:
    """A form feed or a line separator does not shift the sections below it."""
    found = sections("a\x0cb\x85c\u2028d\r\n## H\rtext\n")
    assert [(s.title, s.first_line, s.last_line, s.text) for s in found] == [
        ("", 1, 1, "a\x0cb\x85c\u2028d"),
        ("H", 2, 3, "text"),
    ]


def test_links_are_found_with_their_line() -> None:
    """Both kinds of link are found in reading order, at the line they stand on, not in code."""
    body = (
        "a [[dec-a]] [x](u)\nb [[ dec-b ]] `[[no]]`\n\n    [[code]]\n\n- <https://e.org> [[open\n"
    )
    assert links(body) == (
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
    found = sections(body)
    assert all(s.first_line <= s.last_line for s in found)
    assert all(a.last_line < b.first_line for a, b in pairwise(found))
    links(body)


@pytest.mark.slow
def test_deep_nesting_ends() -> None:
    """Thousands of nested quotes, lists and brackets are read without recursion errors."""
    for piece in (">", "- ", "[", "![", "*", "[a](", "<b>", "`"):
        sections(piece * 5_000)
        links(piece * 5_000)
