"""The Memory value: its defaults, and what it claims in short."""

from __future__ import annotations

import pytest
from conftest import make_memory


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
        ("", ""),
    ],
)
def test_the_statement_is_what_the_memory_claims_in_short(body: str, statement: str) -> None:
    """Headings are never the statement; the opening wins, then what was decided, then the first."""
    assert make_memory("dec-a", body).statement == statement
