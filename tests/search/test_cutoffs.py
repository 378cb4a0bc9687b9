"""Tests of the time limit: none without a clock."""

from __future__ import annotations

from memtool.search.answer_gate import LIMIT_S, Deadline


def test_time_is_up_only_where_a_clock_says_so() -> None:
    """A replay has no clock, so that it never depends on the machine."""
    seconds = iter([10.0, 10.0 + LIMIT_S / 2, 10.0 + LIMIT_S])
    deadline = Deadline(lambda: next(seconds))
    assert [deadline.has_passed(), deadline.has_passed()] == [False, True]
    assert not Deadline(None).has_passed()
