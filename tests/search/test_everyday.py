"""Tests of everyday words."""

from __future__ import annotations

import pytest

from memtool.index.analyzer import is_stop, terms
from memtool.search import answer_gate


def test_the_list_holds_stems_that_are_no_stop_words() -> None:
    """Each is what a text is asked for, once; stop words weigh little already."""
    stems = answer_gate._STEMS.split()
    assert stems == sorted(set(stems))
    assert [stem for stem in stems if is_stop(stem)] == []
    assert [stem for stem in stems if not stem.isalpha()] == []


@pytest.mark.parametrize("word", ["please", "tests", "changing", "README 42"])
def test_small_talk_and_numbers_tell_little(word: str) -> None:
    """They are rare in a small store, and still mean nothing by themselves."""
    assert answer_gate.everyday_worth(terms(word)[-1]) == answer_gate.WORTH


@pytest.mark.parametrize("word", ["redis", "frontmatter", "kubernetes", "utf8", "poem"])
def test_what_something_is_about_tells_all(word: str) -> None:
    """A word that names a thing counts in full."""
    assert answer_gate.everyday_worth(terms(word)[0]) == 1
