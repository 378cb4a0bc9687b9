"""The primer as a text: parts in order, within a budget, in a frame that nothing closes."""

from __future__ import annotations

import pytest
from conftest import make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.inject import budget as budgets
from memtool.inject.block import FORMATS, BlockFormat
from memtool.inject.candidates import Candidate
from memtool.inject.session_primer import GUIDE, compose
from memtool.inject.tiers import Tier
from memtool.store.tree import Record

FORM = FORMATS[-1]
RECORDS = [
    Record(make_memory(f"dec-{number}"), f".memory/decision/dec-{number}.md", "0" * 40)
    for number in range(6)
]
CANDIDATES = [Candidate(record, "pinned") for record in RECORDS]


def write(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # as the tiers call it
    return f"[{candidate.record.id}]\n| {'whole ' * 20 if is_whole else 'short'}\n"


def passages(candidates: list[Candidate], limit: int = 5, share: int = 1_000) -> Tier:
    def choose(earlier):
        ids = {hit.record.id for hit in earlier}
        return [candidate for candidate in candidates if candidate.record.id not in ids], []

    return Tier("passages", choose, limit, share, title="Passages")


def titled(*lines: str, title: str = "Title") -> Tier:
    return Tier("lines", title=title, lines=lines)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@given(st.lists(st.lists(st.text(max_size=60), max_size=8), max_size=4), st.integers(0, 600))
def test_a_primer_keeps_its_budget(form: BlockFormat, parts: list[list[str]], total: int) -> None:
    """Whatever the lines hold, every byte counts."""
    text, _draft = compose([titled(*lines) for lines in parts], write, form, total)
    assert budgets.estimate_tokens(text) <= total
    assert text == "" or text.count(GUIDE) == 1


@given(st.text(max_size=80), st.integers(0, 3))
def test_a_line_stays_one_line_of_content(line: str, number: int) -> None:
    """No text ends the block, begins a line of its own, or becomes a part."""
    form = FORMATS[number % len(FORMATS)]
    plain, _draft = compose([titled("x")], write, form, 1_000)
    text, _draft = compose([titled(line)], write, form, 1_000)
    assert text.count("\n") == plain.count("\n")
    content_line = text.splitlines()[plain.splitlines().index("| x")]
    assert content_line.startswith("|")


def test_what_one_part_showed_the_next_does_not() -> None:
    """A part is told what is taken, in order."""
    tiers = [passages(CANDIDATES[:2]), passages(CANDIDATES)]
    _text, draft = compose(tiers, write, FORM, 2_000)
    assert [entry.candidate.record.id for entry in draft.entries] == [
        record.id for record in RECORDS
    ]


def test_a_part_without_content_has_no_title() -> None:
    """Nothing to say is not said."""
    tiers = [titled(title="Empty"), passages([]), titled("x", title="Full")]
    text, _draft = compose(tiers, write, FORM, 2_000)
    assert "Empty" not in text
    assert "Passages" not in text
    assert "= Full\n" in text


def test_a_part_takes_its_most_and_its_share() -> None:
    """More is left out whole, and there is a verdict for each."""
    tiers = [passages(CANDIDATES, limit=2), passages([], 0, 0)]
    _text, draft = compose(tiers, write, FORM, 2_000)
    assert len(draft.entries) == 2
    assert sorted(verdict.is_taken for verdict in draft.verdicts) == [False] * 4 + [True] * 2
    _text, draft = compose([passages(CANDIDATES, share=0)], write, FORM, 2_000)
    assert draft.entries == []


def test_the_guide_alone_is_a_primer() -> None:
    """Where there are memories, but none to show, it says how to find and make some."""
    text, _draft = compose([], write, FORM, 2_000)
    assert GUIDE in text
    assert compose([], write, FORM, 50)[0] == ""
