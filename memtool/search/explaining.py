"""Explaining: why memories that hold the words of a question were not found."""

from __future__ import annotations

from memtool.memory import lifecycle, timestamps
from memtool.search import gatekeeper
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.search.facts import Facts
    from memtool.search.gatekeeper import Gatekeeper
    from memtool.search.relevance import Match, Reader
    from memtool.search.scoring import Question

MOST = 15
"""Memories that are named for one kind of reason."""


class Missed(Value):
    """A memory that was not found, and why, in one clause."""

    record: Record
    reason: str


def missed_in_query(
    reader: Reader, asked: Question, is_hidden: Callable[[Record], bool]
) -> tuple[Missed, ...]:
    """Return what satisfies a query but is left out for the state that it is in, best first."""
    found = reader.best(asked, MOST, is_hidden)
    return tuple(_hidden(found, reader.facts))


def missed_in_prose(
    reader: Reader,
    asked: Question,
    keeper: Gatekeeper,
    candidates: Sequence[Match],
) -> tuple[Missed, ...]:
    """Return what would have answered but is hidden, then what holds too little, best first."""
    facts = reader.facts
    hidden = reader.best(asked, MOST, lambda record: not facts.is_current(record))
    answering = [
        match for match in hidden if keeper.share(facts.text(match.record)) >= gatekeeper.FOLLOWING
    ]
    found = _hidden(answering, facts)
    texts = list(map(reader.text, candidates))
    shares = [keeper.share(text) for text in texts]
    passing = gatekeeper.passing(shares)
    objections = [
        Missed(match.record, keeper.objection(share, text))
        for match, share, text, passes in zip(candidates, shares, texts, passing, strict=True)
        if not passes
    ]
    return (*found, *objections[:MOST])


def why_hidden(record: Record, facts: Facts) -> str:
    """Return why a search leaves a memory out; empty where it does not."""
    newer = facts.lineage.superseded_by.get(record.id)
    if newer:
        return f"superseded by {', '.join(newer)}"
    state = facts.state(record)
    if state == lifecycle.EXPIRED:
        end = lifecycle.expires_at(record.memory, facts.categories)
        return state if end is None else f"{state} on {timestamps.date(end)}"
    if state == lifecycle.PENDING:
        return f"{state}, valid from {record.memory.text('valid_from')}"
    return "" if state == lifecycle.ALIVE else state


def _hidden(matches: Iterable[Match], facts: Facts) -> list[Missed]:
    return [Missed(match.record, why_hidden(match.record, facts)) for match in matches]
