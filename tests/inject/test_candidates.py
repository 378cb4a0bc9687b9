"""Candidates: the tiers take what fits, and the budget is shared by the table."""

from __future__ import annotations

import pytest
from conftest import Sandbox, make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.inject import candidates as budgets
from memtool.inject.block import FORMATS, BlockFormat, passage, write_passage
from memtool.inject.candidates import (
    RETRIEVAL,
    WHOLE_TOKENS,
    Candidate,
    allowed,
    fill,
    plan,
    tokens,
)
from memtool.store.config import DEFAULTS, Config
from memtool.store.snapshot import Record


def candidates(sizes: list[tuple[int, int]]) -> tuple[list[Candidate], dict[str, tuple[int, int]]]:
    """Make candidates that cost (whole, short) bytes."""
    made = [
        Candidate(Record(make_memory(f"dec-{number:03}"), f"p{number}", ""), RETRIEVAL, 1.0)
        for number in range(len(sizes))
    ]
    return made, {one.record.id: size for one, size in zip(made, sizes, strict=True)}


@given(
    st.lists(st.tuples(st.integers(1, 2_000), st.integers(1, 2_000)), max_size=8),
    st.integers(0, 9),
    st.integers(-5, 1_000),
    st.integers(-400, 5_000),
)
def test_limits_hold(sizes: list[tuple[int, int]], most: int, share: int, room: int) -> None:
    """Number, tokens and bytes stay within bounds, and each candidate gets one verdict."""
    made, cost = candidates(sizes)
    taken, verdicts = fill(
        made, lambda one, is_whole: "x" * cost[one.record.id][not is_whole], most, share, room
    )
    assert len(taken) <= most
    assert sum(one.tokens for one in taken) <= max(0, share)
    assert sum(len(one.text) for one in taken) <= max(0, room)
    assert sorted(verdict.id for verdict in verdicts) == [one.record.id for one in made]
    assert [verdict.id for verdict in verdicts if verdict.is_taken] == [
        one.candidate.record.id for one in taken
    ]


def test_all_enter_before_any_grows() -> None:
    """First paragraphs come first, then small memories are shown whole while there is room."""
    made, cost = candidates([(800, 100), (800, 100), (8_000, 100)])
    taken, _verdicts = fill(
        made, lambda one, is_whole: "x" * cost[one.record.id][not is_whole], 5, 280, 10_000
    )
    assert [len(one.text) for one in taken] == [800, 100, 100]


def test_big_memory_stays_short() -> None:
    """What is larger than the bound is not shown whole, however much room there is."""
    made, cost = candidates([(WHOLE_TOKENS * 4, 8), (WHOLE_TOKENS * 4 + 1, 8)])
    taken, _verdicts = fill(
        made, lambda one, is_whole: "x" * cost[one.record.id][not is_whole], 5, 9_999, 99_999
    )
    assert [tokens(one.text) for one in taken] == [WHOLE_TOKENS, 2]


@given(
    st.text("ab&<\u200b \n\r#-", max_size=80).map(lambda text: text * 30),
    st.integers(0, 2_000),
    st.sampled_from(FORMATS),
)
def test_what_is_not_even_written_would_not_have_been_shown(
    body: str, share: int, form: BlockFormat
) -> None:
    """A long memory is shown in brief; that it is not written as a whole changes nothing."""
    one = Candidate(Record(make_memory("dec-a", body), "p", ""), RETRIEVAL, 1.0)
    asked = []

    def write(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # as `fill` calls it
        asked.append(is_whole)
        shown = passage(candidate.record.memory, "dec-a@local", "local", is_whole=is_whole)
        return write_passage(shown, form)

    taken, _verdicts = fill([one], write, 1, share, 99_999)
    brief, whole = write(one, False), write(one, True)
    fits = [text for text in (whole, brief) if tokens(text) <= share]
    small = [text for text in fits if tokens(text) <= WHOLE_TOKENS or text == brief]
    expected = small[:1] if len(brief) <= len(whole) else fits[:1]
    assert [shown.text for shown in taken] == expected


def test_a_long_memory_is_not_written_as_a_whole() -> None:
    """Nobody would see it."""
    body = f"Short.\n\n{'word ' * WHOLE_TOKENS}\n"
    one = Candidate(Record(make_memory("dec-a", body), "p", ""), RETRIEVAL, 1.0)
    asked: list[bool] = []

    def write(_candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # as `fill` calls it
        asked.append(is_whole)
        return "x"

    fill([one], write, 5, 900, 9_000)
    assert asked == [False]


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
    """Rows hold as they stand, between them the line does, below the first the proportion."""
    assert allowed(remaining) == row


def test_shares_are_cut_from_the_last() -> None:
    """Where the shares exceed the total, summary goes first, then retrieval, then the bridge."""
    found = plan(DEFAULTS, None, 8_000)
    assert (found.pinned, found.bridge, found.retrieval, found.summary) == (200, 440, 0, 0)


def test_a_share_that_stays_empty_goes_to_retrieval() -> None:
    """Pinned, bridge and summary hand on what they did not use, up to the setting."""
    assert plan(DEFAULTS, 300, None).retrieval == 0
    assert plan(DEFAULTS, 300, None).to_retrieval(0).retrieval == 300
    assert plan(DEFAULTS, 300, None).to_retrieval(120).retrieval == 180
    found = plan(DEFAULTS, None, 20_000).to_retrieval(60, 40)
    assert (found.pinned, found.bridge, found.retrieval, found.summary) == (60, 0, 1_500, 40)
    capped = plan(Config({"inject.retrieval_tokens": 70}, {}), None, 20_000)
    assert capped.to_retrieval(0).retrieval == 70


def test_in_a_primer_it_goes_to_the_bridge() -> None:
    """Nothing was asked, so that nothing is retrieved."""
    found = plan(DEFAULTS, None, 20_000).to_bridge(100, 50)
    assert (found.pinned, found.bridge, found.retrieval, found.summary) == (100, 1_450, 0, 50)


def test_budget_wins_over_remaining_and_settings() -> None:
    """--budget is the total, then --remaining decides, then the setting."""
    assert plan(DEFAULTS, 700, 100_000).total == 700
    assert plan(DEFAULTS, None, 50_000).total == 4_000
    assert plan(DEFAULTS, None, None).total == 2_000


def test_settings_cap_the_shares() -> None:
    """A share of the table is never more than the setting allows."""
    config = Config({"inject.pinned_tokens": 50, "inject.retrieval_tokens": 70}, {})
    found = plan(config, None, 100_000)
    assert (found.pinned, found.retrieval) == (50, 70)


@pytest.mark.parametrize("numbers", [(-1, None), (None, -1)])
def test_negative_numbers_are_refused(numbers: tuple[int | None, int | None]) -> None:
    """A negative number of tokens is a mistake of the caller."""
    with pytest.raises(MemtoolError, match="negative"):
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
    found = plan(DEFAULTS, budget, remaining)
    tokens_used = int(found.pinned * used)
    for one in (found, found.to_retrieval(tokens_used), found.to_bridge(tokens_used, 0)):
        shares = (one.pinned, one.bridge, one.retrieval, one.summary)
        assert min(shares) >= 0
        assert sum(shares) <= one.total


def test_tokens_are_a_quarter_of_the_bytes() -> None:
    """The estimate counts bytes of UTF-8, rounded up."""
    assert [tokens(text) for text in ("", "a", "abcd", "abcde", "ää")] == [0, 1, 1, 2, 1]
    assert budgets.BYTES_PER_TOKEN == 4


def test_a_memory_of_headings_alone_is_not_shown(sandbox: Sandbox) -> None:
    """It was committed before the gate refused such files, and tells an agent nothing."""
    sandbox.memory("dec-a", "## Chosen\n\n## Rationale\n", title="Sessions in the Redis cluster")
    sandbox.commit()
    answer = sandbox.json("inject", "--prompt", "why sessions in the Redis cluster?", "--explain")
    assert answer["text"] == ""
    assert "it has no text" in str(answer)
