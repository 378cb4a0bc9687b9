"""Drift by words alone: where cited lines are today."""

from __future__ import annotations

import time

from memtool.memory import drift


def test_equal_lines_are_compared_in_linear_time() -> None:
    """A large file of equal lines costs no more than another one of its size."""
    old = ["x"] * 120_000
    new = ["y", *old]
    begin = time.process_time()
    assert drift.find_lines(old, new, (1, 60_000)) == (2, 60_001)
    assert drift.find_lines(old, old[:50_000], (1, 60_000)) is None
    assert time.process_time() - begin < 2


def test_a_name_within_a_long_word_is_looked_for_in_linear_time() -> None:
    """A name is found as a whole word, also behind a word that repeats it half a million times."""
    text = "a_b_" * 250_000
    begin = time.process_time()
    assert not drift.holds(text, "a_b_" * 30)
    assert drift.holds(f"{text} a_b_a_b_", "a_b_a_b_")
    assert time.process_time() - begin < 2


def test_empty_lines_between_cited_lines_change_nothing() -> None:
    """A formatter that adds or removes empty lines breaks no citation."""
    old = ["a", "b", "c", "d"]
    assert drift.find_lines(old, ["a", "", "b", "", "c", "d"], (2, 3)) == (3, 5)
    assert drift.find_lines(["a", "", "b", "c"], ["a", "b", "c"], (1, 3)) == (1, 2)
    assert drift.find_lines(old, ["a", "b", "x", "c"], (2, 3)) is None


def test_of_several_places_the_nearest_counts() -> None:
    """Repeated lines are matched to the nearest; unmoved ones stay."""
    old = ["a", "b", "c"]
    assert drift.find_lines(old, ["x", "a", "b", "a", "b"], (1, 2)) == (2, 3)
    assert drift.find_lines(old, ["a", "b", "a", "b"], (1, 2)) == (1, 2)
