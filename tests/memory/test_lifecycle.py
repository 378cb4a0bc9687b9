"""Lifecycle: alive, or why not, at a moment."""

from __future__ import annotations

import pytest
from conftest import make_memory

from memtool.memory import lifecycle, timestamps
from memtool.memory.fields import CATEGORIES, DEFAULT_CATEGORIES, Category
from memtool.memory.memory import FieldValue

WRITTEN = timestamps.parse("2026-02-22T19:33:00Z")
DAY_S = 86_400


@pytest.mark.parametrize("row", CATEGORIES, ids=lambda row: row.name)
def test_a_memory_lives_as_long_as_its_category(row: Category) -> None:
    """It is alive in its last second and expired in the next."""
    memory = make_memory("dec-a", category=row.name)
    last = WRITTEN + row.ttl_days * DAY_S
    assert lifecycle.expires_at(memory) == last
    assert lifecycle.state(memory, last) == "alive"
    assert lifecycle.state(memory, last + 1) == "expired"


@pytest.mark.parametrize(
    ("changes", "when", "expected"),
    [
        ({}, "2026-02-22", "alive"),
        ({"status": "candidate"}, "2026-02-22", "alive"),
        ({"status": "deprecated"}, "2026-02-22", "alive"),
        ({"status": "archived"}, "2020-01-01", "archived"),
        ({"status": "pinned"}, "2099-01-01", "alive"),
        ({"temporal_class": "eternal"}, "2099-01-01", "alive"),
        ({"temporal_class": "ephemeral"}, "2099-01-01", "expired"),
        ({"status": "pinned", "valid_through": "2026-12-31"}, "2027-01-01", "expired"),
        ({"valid_through": "2099-12-31"}, "2099-12-31T23:59:59Z", "alive"),
        ({"valid_through": "2099-12-31"}, "2100-01-01", "expired"),
        ({"valid_through": "2099-12-31T12:00:00Z"}, "2099-12-31T12:00:01Z", "expired"),
        ({"valid_from": "2026-03-01"}, "2026-02-28T23:59:59Z", "pending"),
        ({"valid_from": "2026-03-01"}, "2026-03-01", "alive"),
        ({"valid_from": "2026-03-01T00:00:00-01:00"}, "2026-03-01T00:59:59Z", "pending"),
        ({"checked": {"at": "2026-05-01T00:00:00Z"}}, "2026-07-29T00:00:00Z", "alive"),
        ({"checked": {"at": "2026-05-01T00:00:00Z"}}, "2026-07-31T00:00:00Z", "expired"),
        ({"checked": {"at": "2020-05-01T00:00:00Z"}}, "2026-05-01T00:00:00Z", "alive"),
        ({"status": "deleted"}, "2020-01-01", "deleted"),
        ({"status": "deleted", "deleted": {"at": "2026-03-01T00:00:00Z"}}, "2026-03-01", "deleted"),
        ({"status": "deleted", "deleted": {"at": "2026-03-02T00:00:00Z"}}, "2026-03-01", "alive"),
        ({"status": "deleted", "deleted": {"at": "2099-03-02T00:00:00Z"}}, "2098-01-01", "expired"),
        ({"deleted": {"at": "2020-01-01T00:00:00Z"}}, "2026-02-22", "alive"),
    ],
)
def test_states(changes: dict[str, FieldValue], when: str, expected: str) -> None:
    """Deleted and archived come first, then the window, then the time to live."""
    memory = make_memory("dec-a", category="decision", **changes)
    assert lifecycle.state(memory, timestamps.start(when)) == expected


def test_categories_of_the_settings_decide() -> None:
    """A time to live of 0 is for ever; a category that is not in the table has none."""
    memory = make_memory("dec-a", category="error")
    for_ever = DEFAULT_CATEGORIES | {"error": Category("error", 1.0, 0, 0.0, "long_term", "")}
    assert lifecycle.expires_at(memory, for_ever) is None
    assert lifecycle.expires_at(memory, {}) is None
    assert lifecycle.state(memory, 1 << 50, for_ever) == "alive"


def test_confirming_renews_from_the_moment_of_the_check() -> None:
    """The time to live counts from the later of writing and last confirmation."""
    memory = make_memory("dec-a", checked={"at": "2026-05-01T00:00:00Z"})
    assert lifecycle.confirmed_at(memory) == timestamps.parse("2026-05-01T00:00:00Z")
    assert lifecycle.confirmed_at(make_memory("dec-a")) == WRITTEN
