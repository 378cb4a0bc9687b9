"""Time limits: when they are over, by the clock that is given."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from memtool.store.deadline import Deadline


def clock(*seconds: float) -> Callable[[], float]:
    return iter(seconds).__next__


def test_a_limit_is_over_when_the_clock_says_so() -> None:
    """It counts from when it was set; a share of it is over before all of it."""
    deadline = Deadline(4.0, clock(10.0, 11.0, 12.0, 13.9, 14.0))
    assert [deadline.has_passed(), deadline.has_passed(share=0.5)] == [False, True]
    assert [deadline.has_passed(), deadline.has_passed()] == [False, True]


def test_what_is_left_is_never_less_than_nothing() -> None:
    """The remaining time is never negative."""
    deadline = Deadline(4.0, clock(10.0, 11.0, 13.0, 20.0, 20.0))
    assert [deadline.remaining_s(), deadline.timeout_s(), deadline.remaining_s()] == [3.0, 1.0, 0.0]
    with pytest.raises(TimeoutError):
        deadline.timeout_s()


def test_no_limit_is_never_over() -> None:
    """Who sets none waits for ever."""
    deadline = Deadline(None)
    assert not deadline.has_passed()
    assert deadline.timeout_s() == math.inf
