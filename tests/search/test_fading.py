"""Fading in the ranking: the settings choose the formula, and whether accesses slow it."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.store import ledger, usage_log
from memtool.store.usage_log import Note, ShownItem


@pytest.fixture
def store(sandbox: Sandbox) -> Sandbox:
    """A memory of sixty days that was looked at ten times."""
    sandbox.memory("dec-a", "Sessions live in Postgres.\n", timestamp="2025-12-31T12:00:00Z")
    directory = str(sandbox.path / ".git" / "memtool")
    for moment in range(10):
        usage_log.append_note(directory, Note(moment, "search", 1.0, items=(ShownItem("dec-a"),)))
    ledger.fold(directory)
    return sandbox


def recency(store: Sandbox, settings: str) -> float:
    """The factor of recency with these settings."""
    store.write(".memory/config.toml", f"[decay]\n{settings}\n")
    (hit,) = store.json("search", "sessions", "--explain", MEMTOOL_NO_LEDGER="1")["results"]
    return float(hit["factors"]["recency"])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", 1 + 0.4 * 0.835270),
        ('formula = "half-life"', 1 + 0.4 * 0.6),
        ('formula = "half-life"\nhalf_life_days = 60', 1 + 0.4 * 0.5),
        ('formula = "weekly"', 1 + 0.4 * 0.644240),
        ("accesses = true", 1.4),
        ('formula = "weekly"\naccesses = true', 1 + 0.4 * 0.644240),
    ],
)
def test_the_settings_decide(store: Sandbox, settings: str, expected: float):
    """Each formula gives what it should after sixty days; ten accesses count only if asked for."""
    assert recency(store, settings) == pytest.approx(expected, abs=1e-4)


def test_pinned_memories_stay_fresh(store: Sandbox):
    """Whatever the formula."""
    store.run("pin", "dec-a")
    assert recency(store, 'formula = "weekly"\naccesses = true') == 1.4
