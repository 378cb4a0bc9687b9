"""Drift by words alone: where cited lines are today."""

from __future__ import annotations

from effort import count_calls

from memtool.memory import drift


def test_equal_lines_are_compared_with_linear_work() -> None:
    """A large file of equal lines costs no more than another one of its size."""

    def compare(count: int) -> None:
        old = ["x"] * count
        assert drift.find_lines(old, ["y", *old], (1, count // 2)) == (2, count // 2 + 1)
        assert drift.find_lines(old, old[: count // 3], (1, count // 2)) is None

    assert count_calls(compare, 24_000) < 5 * count_calls(compare, 6_000)


def test_a_name_within_a_long_word_is_looked_for_with_linear_work() -> None:
    """A name is found as a whole word, also behind a word that repeats it many thousand times."""

    def look(count: int) -> None:
        text = "a_b_" * count
        assert not drift.holds(text, "a_b_" * 30)
        assert drift.holds(f"{text} a_b_a_b_", "a_b_a_b_")

    assert count_calls(look, 40_000) < 5 * count_calls(look, 10_000)


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
