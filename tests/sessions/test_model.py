from __future__ import annotations

import pytest

from memtool.sessions.model import (
    IMPORTANT,
    INTENT,
    PIN,
    PRESETS,
    RESOLVED,
    SIGNALS,
    TWO_AGENTS,
    TWO_SESSIONS,
    Finding,
    collect_signals,
    count_points,
    find_shortfall,
)


def finding(content: str = "x" * 60, importance: float = 0.5, signals: tuple[str, ...] = ()):
    return Finding("f-a", "s", content, "t", "pattern", "high", importance, (1,), signals=signals)


def test_each_signal_has_its_points():
    """The table of the manual, row by row."""
    assert SIGNALS == {
        INTENT: 5,
        PIN: 5,
        TWO_SESSIONS: 2,
        TWO_AGENTS: 2,
        RESOLVED: 1,
        IMPORTANT: 1,
    }


def test_signals_are_what_the_rules_heard_and_what_is_counted():
    """Witnesses and importance are derived, whatever a finding says of itself."""
    candidate = finding(importance=0.7, signals=(RESOLVED, TWO_AGENTS))
    assert collect_signals(candidate, sessions=2, agents=1) == (TWO_SESSIONS, RESOLVED, IMPORTANT)
    assert collect_signals(finding(importance=0.69), 1, 2) == (TWO_AGENTS,)


def test_points_are_counted_once_a_signal():
    """A signal twice is one signal, an unknown one is none."""
    assert count_points([INTENT, INTENT, "unknown", RESOLVED]) == 6


@pytest.mark.parametrize(
    ("preset", "points", "importance", "characters"),
    [("conservative", 4, 0.4, 50), ("balanced", 3, 0.25, 30), ("aggressive", 2, 0.15, 20)],
)
def test_a_preset_asks_for_points_importance_and_length(
    preset: str, points: int, importance: float, characters: int
):
    """Just enough of all three suffices, a little less of any does not."""
    row = PRESETS[preset]
    enough = finding("x" * characters, importance)
    assert find_shortfall(enough, points, row) == ""
    assert (
        find_shortfall(enough, points - 1, row) == f"worth keeping? {points - 1} of {points} points"
    )
    assert "importance" in find_shortfall(enough.replace(importance=importance - 0.01), points, row)
    assert "characters" in find_shortfall(finding("x" * (characters - 1), importance), points, row)
