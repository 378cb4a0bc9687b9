from __future__ import annotations

import pytest

from memtool.sessions.promote import QUARANTINE_S, quarantine


@pytest.mark.parametrize(
    ("status", "age", "accesses", "state", "importance"),
    [
        ("candidate", QUARANTINE_S - 1, 9, "wait", 0.5),
        ("candidate", -QUARANTINE_S, 9, "wait", 0.5),
        ("candidate", QUARANTINE_S, 1, "confirm", 0.5),
        ("candidate", QUARANTINE_S, 0, "fade", 0.4),
        ("candidate", 100 * QUARANTINE_S, 0, "fade", 0.4),
        ("confirmed", QUARANTINE_S, 0, "none", 0.5),
        ("archived", QUARANTINE_S, 5, "none", 0.5),
    ],
)
def test_after_a_day_a_candidate_is_confirmed_or_fades(
    status: str, age: int, accesses: int, state: str, importance: float
):
    """Accessed means confirmed; not accessed, its importance is 0.8 of what it was, once."""
    verdict = quarantine(status, 0.5, 1_000_000, accesses, 1_000_000 + age)
    assert (verdict.state, verdict.importance) == (state, importance)
