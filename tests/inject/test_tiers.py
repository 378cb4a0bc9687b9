"""The tiers: what fits is taken in order, what does not is left out whole."""

from __future__ import annotations

from conftest import make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.inject.block import FORMATS, BlockFormat, passage, write_passage
from memtool.inject.candidates import RETRIEVAL, WHOLE_TOKENS, Candidate, fill, tokens
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
