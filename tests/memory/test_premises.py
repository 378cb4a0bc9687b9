"""Causes in words; `tests/search/test_unsettled.py` has the situations."""

from __future__ import annotations

import pytest

from memtool.memory.premises import (
    BROKEN,
    DEPRECATED,
    ENDED,
    FAULTS,
    FORGOTTEN,
    MISSING,
    REPLACED,
    Cause,
    describe_cause,
)


@pytest.mark.parametrize(
    ("name", "reason", "direct", "carried"),
    [
        ("memory:new", REPLACED, "via is now new", "via rests on what is now new"),
        ("without:p", REPLACED, "p is superseded in a circle", "p is superseded in a circle"),
        ("without:p", FORGOTTEN, "p was forgotten", "p was forgotten"),
        ("without:p", DEPRECATED, "p is deprecated", "p is deprecated"),
        ("without:p", MISSING, "p is not here", "p is not here"),
        ("without:p", ENDED, "p has expired", "p has expired"),
        ("without:p", BROKEN, "what p cites is gone", "what p cites is gone"),
    ],
)
def test_a_cause_is_a_clause(name: str, reason: str, direct: str, carried: str):
    assert describe_cause(Cause(name, reason, "via", is_direct=True)) == direct
    clause = describe_cause(Cause(name, reason, "via", is_direct=False))
    assert clause.removeprefix("via is unsettled: ") == carried


def test_every_fault_has_a_clause_about_the_memory():
    assert all(clause.format("p") != clause for clause in FAULTS.values())


def test_ids_are_formatted_by_the_caller():
    cause = Cause("memory:dec-2026-new-b7x2", REPLACED, "dec-2026-old-k3f9", is_direct=True)
    assert describe_cause(cause, lambda id_: f"dec-{id_[-4:]}") == "dec-k3f9 is now dec-b7x2"
