"""Lifecycle: alive, or why not, at a moment; how memories fade by each preset."""

from __future__ import annotations

import math

import pytest
from conftest import make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory import lifecycle, timestamps
from memtool.memory.fields import CATEGORIES, DEFAULT_CATEGORIES, Category
from memtool.memory.lifecycle import PRESETS, Pace
from memtool.memory.memory import FieldValue
from memtool.store.config import BY_KEY, parse

WRITTEN = timestamps.parse("2026-02-22T19:33:00Z")
DAY_S = 86_400


@pytest.mark.parametrize("row", CATEGORIES, ids=lambda row: row.name)
def test_the_time_of_a_category_ends_what_passes_and_asks_for_review_of_the_rest(
    row: Category,
) -> None:
    """Transient work expires in the second after; confirmed memories are due then."""
    memory = make_memory("dec-a", category=row.name)
    last = WRITTEN + row.ttl_days * DAY_S
    is_passing = row.name in ("task_progress", "file_change")
    assert lifecycle.find_expiry(memory) == (last if is_passing else None)
    assert lifecycle.find_due(memory) == (None if is_passing else last)
    assert lifecycle.find_state(memory, last) == "alive"
    assert lifecycle.find_state(memory, last + 1) == ("expired" if is_passing else "alive")
    assert [lifecycle.is_due(memory, last + n) for n in (0, 1)] == [False, not is_passing]


@pytest.mark.parametrize("fields", [{"status": "candidate"}, {"type": "state"}])
def test_candidates_and_states_of_the_work_expire(fields: dict[str, FieldValue]) -> None:
    """Nobody has vouched for them, or they were never meant to last, whatever their category."""
    memory = make_memory("dec-a", category="decision", **fields)
    last = WRITTEN + 90 * DAY_S
    assert lifecycle.find_state(memory, last + 1) == "expired"
    assert not lifecycle.is_due(memory, last + 1)


@pytest.mark.parametrize(
    "fields", [{"status": "pinned"}, {"temporal_class": "eternal"}, {"valid_through": "2099-12-31"}]
)
def test_some_are_never_due(fields: dict[str, FieldValue]) -> None:
    """Pinned and eternal memories have no time, and some say themselves how long they hold."""
    assert lifecycle.find_due(make_memory("dec-a", category="decision", **fields)) is None


@pytest.mark.parametrize(
    ("changes", "when", "expected"),
    [
        ({}, "2026-02-22", "alive"),
        ({"status": "candidate"}, "2026-02-22", "alive"),
        ({"status": "deprecated"}, "2026-02-22", "alive"),
        ({"status": "archived"}, "2020-01-01", "archived"),
        ({"status": "pinned"}, "2099-01-01", "alive"),
        ({"temporal_class": "eternal"}, "2099-01-01", "alive"),
        ({"temporal_class": "ephemeral"}, "2026-03-01", "alive"),
        ({"temporal_class": "ephemeral"}, "2099-01-01", "expired"),
        ({"temporal_class": "short_term"}, "2026-03-10", "alive"),
        ({"temporal_class": "short_term"}, "2026-03-20", "expired"),
        ({"temporal_class": "medium_term"}, "2099-01-01", "alive"),
        ({"temporal_class": "long_term", "type": "state"}, "2099-01-01", "alive"),
        ({"status": "pinned", "valid_through": "2026-12-31"}, "2027-01-01", "expired"),
        ({"valid_through": "2099-12-31"}, "2099-12-31T23:59:59Z", "alive"),
        ({"valid_through": "2099-12-31"}, "2100-01-01", "expired"),
        ({"valid_through": "2099-12-31T12:00:00Z"}, "2099-12-31T12:00:01Z", "expired"),
        ({"valid_from": "2026-03-01"}, "2026-02-28T23:59:59Z", "pending"),
        ({"valid_from": "2026-03-01"}, "2026-03-01", "alive"),
        ({"valid_from": "2026-03-01T00:00:00-01:00"}, "2026-03-01T00:59:59Z", "pending"),
        ({"checked": {"at": "2026-05-01T00:00:00Z"}}, "2026-07-31T00:00:00Z", "alive"),
        ({"type": "state", "checked": {"at": "2026-05-01T00:00:00Z"}}, "2026-07-29", "alive"),
        ({"type": "state", "checked": {"at": "2026-05-01T00:00:00Z"}}, "2026-07-31", "expired"),
        ({"type": "state", "checked": {"at": "2020-05-01T00:00:00Z"}}, "2026-05-01", "alive"),
        ({"status": "deleted"}, "2020-01-01", "deleted"),
        ({"status": "deleted", "deleted": {"at": "2026-03-01T00:00:00Z"}}, "2026-03-01", "deleted"),
        ({"status": "deleted", "deleted": {"at": "2026-03-02T00:00:00Z"}}, "2026-03-01", "alive"),
        ({"status": "deleted", "deleted": {"at": "2099-03-02T00:00:00Z"}}, "2098-01-01", "alive"),
        ({"deleted": {"at": "2020-01-01T00:00:00Z"}}, "2026-02-22", "alive"),
    ],
)
def test_states(changes: dict[str, FieldValue], when: str, expected: str) -> None:
    """Deleted and archived come first, then the window, then the time to live."""
    memory = make_memory("dec-a", category="decision", **changes)
    assert lifecycle.find_state(memory, timestamps.start(when)) == expected


def test_categories_of_the_settings_decide() -> None:
    """A time to live of 0 is for ever; a category that is not in the table has none."""
    memory = make_memory("dec-a", category="error")
    for_ever = DEFAULT_CATEGORIES | {"error": Category("error", 1.0, 0, 0.0, 0.0, "long_term", "")}
    assert lifecycle.find_due(memory, for_ever) is None
    assert lifecycle.find_due(memory, {}) is None
    assert lifecycle.find_state(memory, 1 << 50, for_ever) == "alive"
    short = DEFAULT_CATEGORIES | {"error": Category("error", 1.0, 9, 0.0, 0.0, "short_term", "")}
    assert lifecycle.find_state(memory, WRITTEN + 10 * DAY_S, short) == "expired"


def test_confirming_renews_from_the_moment_of_the_check() -> None:
    """The time to live counts from the later of writing and last confirmation."""
    memory = make_memory("dec-a", checked={"at": "2026-05-01T00:00:00Z"})
    assert lifecycle.find_confirmed_at(memory) == timestamps.parse("2026-05-01T00:00:00Z")
    assert lifecycle.find_confirmed_at(make_memory("dec-a")) == WRITTEN


DAYS = st.floats(0, 40_000)
ACCESSES = st.none() | st.integers(0, 10_000)
STATUS = st.sampled_from(("candidate", "confirmed"))


def compute_freshness(
    days: float, preset: str = "steady", accesses: int | None = None, **fields: FieldValue
):
    """Return the freshness of a decision after some days."""
    memory = make_memory("dec-a", **fields)
    now = WRITTEN + round(days * DAY_S)
    return lifecycle.compute_retention(memory, now, DEFAULT_CATEGORIES, preset, accesses)


def test_the_settings_name_the_presets():
    """Each may be chosen, and the first is the one that was always there."""
    assert BY_KEY["decay.preset"].choices == tuple(PRESETS)
    assert BY_KEY["decay.preset"].default == lifecycle.STEADY == next(iter(PRESETS))


@pytest.mark.parametrize(
    ("preset", "days", "accesses", "expected"),
    [
        ("steady", 100, None, math.exp(-0.3)),
        ("steady", 100, 0, math.exp(-0.3)),
        ("steady", 100, 4, math.exp(-0.3) * 1.2),
        ("steady", 100, 1000, 1.0),
        ("exponential", 10, None, math.exp(-0.3)),
        ("exponential", 10, 4, math.exp(-0.3) * 1.2),
        ("exponential", 10, 1000, 1.0),
        ("half-life", 30, None, 0.5),
        ("half-life", 90, 7, 0.25),
        ("weekly", 7, None, 0.95),
        ("weekly", 70, 0, 0.95**10 * 0.5),
        ("weekly", 70, 4, 0.95**10 * 0.7),
        ("weekly", 70, 99, 0.95**10),
    ],
)
def test_each_formula_is_what_it_says(
    preset: str, days: float, accesses: int | None, expected: float
):
    """The figures are those of the formulas as they are written down."""
    assert compute_freshness(days, preset, accesses) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("fields", "rate"),
    [
        ({"category": "task_progress"}, 0.1),
        ({"category": "file_change"}, 0.1),
        ({"type": "episodic"}, 0.1),
        ({"type": "episodic", "category": "error"}, 0.05),
        ({"category": "discovery"}, 0.05),
        ({"category": "warning"}, 0.05),
        ({"category": "decision"}, 0.03),
        ({"category": "architecture"}, 0.03),
        ({"type": "semantic"}, 0.03),
        ({"category": "unheard-of"}, 0.03),
        ({"category": "preference"}, 0.01),
        ({"category": "error", "status": "pinned"}, 0),
        ({"category": "error", "temporal_class": "eternal"}, 0),
        ({"temporal_class": "eternal", "fade_rate": "0.2"}, 0.2),
    ],
)
def test_the_exponential_preset_knows_what_is_soon_forgotten(
    fields: dict[str, FieldValue], rate: float
):
    """Work and episodes fade first, preferences last, pinned or eternal memories never."""
    assert compute_freshness(7, "exponential", **fields) == pytest.approx(math.exp(-rate * 7))


def test_only_the_exponential_preset_spares_what_is_eternal():
    """By the others it yields to what is newer."""
    spared = [
        preset for preset in PRESETS if compute_freshness(99, preset, temporal_class="eternal") == 1
    ]
    assert spared == ["exponential"]


def test_a_rate_of_the_settings_is_that_of_every_preset():
    """Who says how fast a category fades knows nothing of two columns."""
    categories = parse(
        b"[categories.decision]\ndecay_per_day = 0.5\n[categories.new]\n", "c"
    ).categories
    memories = [make_memory("dec-a", category=name) for name in ("decision", "new")]
    for preset, usual in (("steady", 0.003), ("exponential", 0.03)):
        paces = [lifecycle.find_pace(memory, categories, preset) for memory in memories]
        assert [pace.rate_per_day for pace in paces] == [0.5, usual]


def test_a_candidate_keeps_less_by_the_weekly_formula():
    """0.9 of it, whatever its age."""
    assert compute_freshness(7, "weekly", status="candidate") == pytest.approx(0.95 * 0.9)
    assert compute_freshness(7, "half-life", status="candidate") == compute_freshness(
        7, "half-life"
    )


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("fields", [{"status": "pinned"}, {"fade_rate": "0"}])
def test_what_is_pinned_never_fades(preset: str, fields: dict[str, FieldValue]):
    """Nor does what says so itself."""
    assert compute_freshness(10_000, preset, 0, **fields) == 1.0


def test_the_rate_of_the_memory_goes_before_that_of_the_category():
    """Both are per day; a category without a row has one as well."""
    assert compute_freshness(10, fade_rate="0.1") == pytest.approx(math.exp(-1))
    assert compute_freshness(10, category="task_progress") == pytest.approx(math.exp(-1))
    assert compute_freshness(100, category="unheard-of") == pytest.approx(math.exp(-0.3))


def test_age_counts_from_the_last_confirmation():
    """Who vouches for a memory makes it fresh."""
    checked = {"at": "2026-03-24T19:33:00Z", "by": "Ada"}
    memory = make_memory("dec-a", checked=checked)
    assert lifecycle.compute_retention(memory, WRITTEN + 30 * DAY_S, DEFAULT_CATEGORIES) == 1.0


@pytest.mark.parametrize("preset", PRESETS)
@given(days=DAYS, extra_days=DAYS, accesses=ACCESSES, rate=st.floats(1e-6, 10), status=STATUS)
def test_nothing_gets_fresher_with_age(
    preset: str, days: float, extra_days: float, accesses: int | None, rate: float, status: str
):
    """Each formula stays between 0 and 1, falls with age and rises with accesses."""
    formula = PRESETS[preset].formula
    pace = Pace(rate, status == "candidate", preset)
    here = formula(pace, days, accesses)
    assert 0 <= formula(pace, days + extra_days, accesses) <= here <= 1
    assert formula(pace, days, (accesses or 0) + 1) >= (here if accesses is not None else 0)


@pytest.mark.parametrize("preset", PRESETS)
@given(days=st.floats(-10_000, 0))
def test_clocks_that_run_ahead_do_no_harm(preset: str, days: float):
    """A memory from the future is as fresh as a new one."""
    assert compute_freshness(days, preset) == 1.0
