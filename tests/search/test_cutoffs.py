"""Tests of cut-offs: less where answers are slow, and no time limit without a clock."""

from __future__ import annotations

from memtool.search.answer_gate import LIMIT_S, NARROW, USUAL, Deadline, plan


def test_slow_answers_narrow_the_next_ones() -> None:
    """Five samples above 300 ms, and 100 candidates are weighed, 5 may be shown."""
    assert plan(301.0, 5) == NARROW
    assert (NARROW.candidates, NARROW.shown) == (100, 5)
    for p95_ms, samples in ((300.0, 5), (9_999.0, 4), (0.0, 0)):
        assert plan(p95_ms, samples) == USUAL


def test_time_is_up_only_where_a_clock_says_so() -> None:
    """A replay has no clock, so that it never depends on the machine."""
    seconds = iter([10.0, 10.0 + LIMIT_S / 2, 10.0 + LIMIT_S])
    deadline = Deadline(lambda: next(seconds))
    assert [deadline.has_passed(), deadline.has_passed()] == [False, True]
    assert not Deadline(None).has_passed()
