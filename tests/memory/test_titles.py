"""Tests of titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory.memory import MOST_TITLE, title_of


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
    assert title_of(text) == title


@given(st.text(min_size=1))
def test_a_title_is_one_line_of_bounded_length(text: str) -> None:
    """It is empty only where the text says nothing."""
    title = title_of(text)
    assert len(title) <= MOST_TITLE
    assert "\n" not in title
    assert bool(title) == bool(text.split())
