"""The budget: shared by the table, within the total."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.inject.budget import BYTES_PER_TOKEN, allowed_counts, estimate_tokens, plan
from memtool.store.config import DEFAULTS, Config


@pytest.mark.parametrize(
    ("remaining", "row"),
    [
        (1_000_000, (5_000, 400, 2_300, 1_500, 600)),
        (100_000, (5_000, 400, 2_300, 1_500, 600)),
        (75_000, (4_500, 360, 2_070, 1_348, 600)),
        (50_000, (4_000, 320, 1_840, 1_196, 600)),
        (20_000, (1_600, 200, 700, 500, 200)),
        (14_000, (1_120, 200, 600, 400, 200)),
        (8_000, (640, 200, 500, 300, 200)),
        (4_000, (320, 100, 250, 150, 100)),
        (0, (0, 0, 0, 0, 0)),
    ],
)
def test_table_is_interpolated(remaining: int, row: tuple[int, ...]) -> None:
    """Rows hold as they are, between them linearly, below the first in proportion."""
    assert allowed_counts(remaining) == row


def test_shares_are_cut_from_the_last() -> None:
    """Where the shares exceed the total, summary goes first, then retrieval, then the bridge."""
    planned = plan(DEFAULTS, None, 8_000)
    assert (planned.pinned, planned.bridge, planned.retrieval, planned.summary) == (200, 440, 0, 0)


def test_a_share_that_stays_empty_goes_to_retrieval() -> None:
    """Pinned, bridge and summary hand on what they did not use, up to the setting."""
    assert plan(DEFAULTS, 300, None).retrieval == 0
    assert plan(DEFAULTS, 300, None).for_retrieval(0).retrieval == 300
    assert plan(DEFAULTS, 300, None).for_retrieval(120).retrieval == 180
    planned = plan(DEFAULTS, None, 20_000).for_retrieval(60, 40)
    assert (planned.pinned, planned.bridge, planned.retrieval, planned.summary) == (
        60,
        0,
        1_500,
        40,
    )
    capped = plan(Config({"inject.retrieval_tokens": 70}, {}), None, 20_000)
    assert capped.for_retrieval(0).retrieval == 70


def test_in_a_primer_it_goes_to_the_bridge() -> None:
    """Nothing was asked, so that nothing is retrieved."""
    planned = plan(DEFAULTS, None, 20_000).for_bridge(100, 50)
    assert (planned.pinned, planned.bridge, planned.retrieval, planned.summary) == (
        100,
        1_450,
        0,
        50,
    )


def test_budget_wins_over_remaining_and_settings() -> None:
    """--budget is the total, then --remaining decides, then the setting."""
    assert plan(DEFAULTS, 700, 100_000).total == 700
    assert plan(DEFAULTS, None, 50_000).total == 4_000
    assert plan(DEFAULTS, None, None).total == 2_000


def test_settings_cap_the_shares() -> None:
    """A share of the table is never more than the setting allows."""
    config = Config({"inject.pinned_tokens": 50, "inject.retrieval_tokens": 70}, {})
    planned = plan(config, None, 100_000)
    assert (planned.pinned, planned.retrieval) == (50, 70)


@pytest.mark.parametrize("numbers", [(-1, None), (None, -1)])
def test_negative_numbers_are_refused(numbers: tuple[int | None, int | None]) -> None:
    """A negative number of tokens is a mistake of the caller."""
    with pytest.raises(MemtoolError, match="must be 0 or more"):
        plan(DEFAULTS, *numbers)


@given(
    st.one_of(st.none(), st.integers(0, 10_000)),
    st.one_of(st.none(), st.integers(0, 300_000)),
    st.floats(0, 1),
)
def test_shares_never_exceed_the_total(
    budget: int | None, remaining: int | None, used: float
) -> None:
    """Whatever was given, and whatever the pinned tier used, the shares fit into the total."""
    planned = plan(DEFAULTS, budget, remaining)
    tokens_used = int(planned.pinned * used)
    for variant in (
        planned,
        planned.for_retrieval(tokens_used),
        planned.for_bridge(tokens_used, 0),
    ):
        shares = (variant.pinned, variant.bridge, variant.retrieval, variant.summary)
        assert min(shares) >= 0
        assert sum(shares) <= variant.total


def test_tokens_are_a_quarter_of_the_bytes() -> None:
    """The estimate counts bytes of UTF-8, rounded up."""
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "ää")] == [0, 1, 1, 2, 1]
    assert BYTES_PER_TOKEN == 4
