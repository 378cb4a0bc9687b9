"""Tiers: each takes what fits, and any module may bring one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conftest import Sandbox, make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.inject.answer import build_block
from memtool.inject.block import FORMATS, BlockFormat, build_passage, write_passage
from memtool.inject.budget import estimate_tokens, plan
from memtool.inject.candidates import RETRIEVAL, Candidate
from memtool.inject.gather import GatherRequest
from memtool.inject.tiers import WHOLE_TOKENS, Tier, fill
from memtool.store.tree import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.inject.answer import TierInputs


def candidates(sizes: list[tuple[int, int]]) -> tuple[list[Candidate], dict[str, tuple[int, int]]]:
    """Make candidates that cost (whole, short) bytes."""
    made = [
        Candidate(Record(make_memory(f"dec-{number:03}"), f"p{number}", ""), RETRIEVAL, 1.0)
        for number in range(len(sizes))
    ]
    return made, {candidate.record.id: size for candidate, size in zip(made, sizes, strict=True)}


def sized(cost: dict[str, tuple[int, int]]) -> Callable[[Candidate, bool], str]:
    """Return what writes candidates at their cost."""
    return lambda candidate, is_whole: "x" * cost[candidate.record.id][not is_whole]


@given(
    st.lists(st.tuples(st.integers(1, 2_000), st.integers(1, 2_000)), max_size=8),
    st.integers(0, 9),
    st.integers(-5, 1_000),
    st.integers(-400, 5_000),
)
def test_limits_hold(sizes: list[tuple[int, int]], limit: int, share: int, room: int) -> None:
    """Number, tokens and bytes stay within bounds, and each candidate gets one verdict."""
    made, cost = candidates(sizes)
    chosen, verdicts = fill(made, sized(cost), max_memories=limit, max_tokens=share, room=room)
    assert len(chosen) <= limit
    assert sum(entry.tokens for entry in chosen) <= max(0, share)
    assert sum(len(entry.text) for entry in chosen) <= max(0, room)
    assert sorted(verdict.id for verdict in verdicts) == [candidate.record.id for candidate in made]
    assert [verdict.id for verdict in verdicts if verdict.is_taken] == [
        entry.candidate.record.id for entry in chosen
    ]


def test_all_enter_before_any_grows() -> None:
    """First paragraphs come first, then small memories are shown whole while there is room."""
    made, cost = candidates([(800, 100), (800, 100), (8_000, 100)])
    chosen, _verdicts = fill(made, sized(cost), max_memories=5, max_tokens=280, room=10_000)
    assert [len(entry.text) for entry in chosen] == [800, 100, 100]


def test_big_memory_stays_short() -> None:
    """A memory above the bound is not shown whole, however much room there is."""
    made, cost = candidates([(WHOLE_TOKENS * 4, 8), (WHOLE_TOKENS * 4 + 1, 8)])
    chosen, _verdicts = fill(made, sized(cost), max_memories=5, max_tokens=9_999, room=99_999)
    assert [estimate_tokens(entry.text) for entry in chosen] == [WHOLE_TOKENS, 2]


@given(
    st.text("ab&<\u200b \n\r#-", max_size=80).map(lambda text: text * 30),
    st.integers(0, 2_000),
    st.sampled_from(FORMATS),
)
def test_what_is_not_even_written_would_not_have_been_shown(
    body: str, share: int, form: BlockFormat
) -> None:
    """A long memory is shown in brief; that it is not written as a whole changes nothing."""
    candidate = Candidate(Record(make_memory("dec-a", body), "p", ""), RETRIEVAL, 1.0)
    calls = []

    def write(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # as `fill` calls it
        calls.append(is_whole)
        shown = build_passage(candidate.record.memory, "dec-a", is_whole=is_whole)
        return write_passage(shown, form)

    chosen, _verdicts = fill([candidate], write, max_memories=1, max_tokens=share, room=99_999)
    brief, whole = write(candidate, False), write(candidate, True)
    fits = [text for text in (whole, brief) if estimate_tokens(text) <= share]
    small = [text for text in fits if estimate_tokens(text) <= WHOLE_TOKENS or text == brief]
    expected = small[:1] if len(brief) <= len(whole) else fits[:1]
    assert [shown.text for shown in chosen] == expected


def test_a_long_memory_is_not_written_as_a_whole() -> None:
    """Nobody would see it."""
    body = f"Short.\n\n{'word ' * WHOLE_TOKENS}\n"
    candidate = Candidate(Record(make_memory("dec-a", body), "p", ""), RETRIEVAL, 1.0)
    calls: list[bool] = []

    def write(_candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # as `fill` calls it
        calls.append(is_whole)
        return "x"

    fill([candidate], write, max_memories=5, max_tokens=900, room=9_000)
    assert calls == [False]


def test_a_memory_of_headings_alone_is_not_shown(sandbox: Sandbox) -> None:
    """It was committed before the gate refused such files, and tells an agent nothing."""
    sandbox.memory("dec-a", "## Chosen\n\n## Rationale\n", title="Sessions in the Redis cluster")
    sandbox.commit()
    answer = sandbox.json("inject", "--prompt", "why sessions in the Redis cluster?", "--explain")
    assert answer["text"] == ""
    assert "it has no text" in str(answer)


def test_a_tier_is_one_row(sandbox: Sandbox) -> None:
    """A feature names only the source of its candidates and their limits."""
    for name in ("a", "b", "c"):
        sandbox.memory(f"dec-{name}", f"About subject {name}.\n", title=f"Subject {name}")
    sandbox.commit()
    context = sandbox.context()

    def newest(inputs: TierInputs) -> Tier:
        own = inputs.repositories[0]
        records = sorted(own.grounds.tree.records, key=lambda record: record.id)
        own.origins.update(own.view.witness.origins(records))
        return Tier(
            "newest",
            lambda shown: own.choose(
                [Candidate(record, "newest") for record in records], shown=shown
            ),
            max_memories=2,
            max_tokens=200,
        )

    shares = plan(context.project.strict_settings, None, None)
    block = build_block(GatherRequest(context, "hello"), FORMATS[0], shares, [newest])
    assert [(item.id, item.tier) for item in block.items] == [
        ("dec-a", "newest"),
        ("dec-b", "newest"),
    ]
    assert [verdict.reason for verdict in block.verdicts if not verdict.is_taken] == [
        "the tier holds 2"
    ]
    assert (block.depth, block.plain()["budget"]["newest"]) == ("none", 200)
