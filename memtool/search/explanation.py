"""Explanation: what each gate of a search held back, and why one memory was not found.

A question passes gates in this order: the state of a memory, the filters, the words, the limit.
What search shows an agent need not be given: for that an answer must hold enough of the question.
Nothing here runs unless somebody asks for it, and nothing of it changes an answer.
"""

from __future__ import annotations

from memtool.index.scoring import telling
from memtool.search import answer_gate, filters, retrieve
from memtool.search.features import why_hidden
from memtool.search.query import Filter, Group, Not, Phrase, Query, Word
from memtool.search.retrieve import MOST_MISSED, Retriever
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.search.features import Facts
    from memtool.search.query import Expression
    from memtool.search.retrieve import Found, Hit, Order, Scope
    from memtool.store.tree import Record

STATE, FILTER, WORDS, LIMIT, ANSWER, NONE = "state", "filter", "words", "limit", "answer", "none"
"""The gates in order. `answer` holds back from agents alone, `none` means that it is shown."""


class GateVerdict(Value):
    """The gate that held a memory back, and why, in one clause."""

    id: str
    gate: str
    reason: str


def held_back(
    scope: Scope, query: Query, found: Found, limit: int, order: Order
) -> tuple[GateVerdict, ...]:
    """Return what each gate held back of what the words find, by gate and then best first.

    Of one gate at most `MOST_MISSED` are named. `found` is the answer within the limit, with what
    it missed.

    Raises:
        MemtoolError: a filter cannot take its value.
    """
    facts = scope.facts()
    rows = [GateVerdict(one.record.id, STATE, one.reason) for one in found.missed]
    _said, asked = retrieve.questions(scope, "\n".join(query.words))
    if telling(asked) and not query.is_plain:
        reader = Retriever(facts)
        admits = filters.matcher(query, facts, words_match=True)
        kept_out = reader.best(
            reader.readable(asked),
            MOST_MISSED,
            lambda record: facts.is_current(record) and not admits(record),
        )
        rows += [
            GateVerdict(one.record.id, FILTER, _refusal(query, facts, one.record))
            for one in kept_out
        ]
    beyond = retrieve.search_query(scope, query, limit + MOST_MISSED, order).hits[limit:]
    rows += [
        GateVerdict(hit.record.id, LIMIT, _beyond(place, hit, limit))
        for place, hit in enumerate(beyond, limit + 1)
    ]
    objections = _objections(scope, query, facts, found.hits)
    rows += [GateVerdict(id_, ANSWER, reason) for id_, reason in objections.items() if reason]
    return tuple(rows)


def why_not(scope: Scope, query: Query, record: Record, limit: int, order: Order) -> GateVerdict:
    """Return the first gate that holds a memory back from the answer to a query.

    Raises:
        MemtoolError: a filter cannot take its value.
    """
    facts = scope.facts()
    by_words = query.is_by_words
    if not filters.matcher(query, facts, words_match=by_words)(record):
        if filters.matcher(query, facts, words_match=by_words, is_hidden=True)(record):
            return GateVerdict(record.id, STATE, why_hidden(record, facts))
        return GateVerdict(record.id, FILTER, _refusal(query, facts, record))
    found = retrieve.search_query(scope, query, max(limit, scope.tree.count), order)
    place = next((at for at, hit in enumerate(found.hits, 1) if hit.record.id == record.id), 0)
    if not place:
        words = ", ".join(dict.fromkeys(query.words))
        return GateVerdict(record.id, WORDS, f"it holds none of the words {words}")
    hit = found.hits[place - 1]
    if place > limit:
        return GateVerdict(record.id, LIMIT, _beyond(place, hit, limit))
    # The gate looks at the best, and at others where one of these answers.
    leading = found.hits[: max(place, answer_gate.LEADERS)]
    objection = _objections(scope, query, facts, leading).get(record.id, "")
    shown = f"it is number {place} of {found.total}, with score {hit.score:.4f}"
    if objection:
        return GateVerdict(record.id, ANSWER, f"{shown}; agents are not given it: {objection}")
    return GateVerdict(record.id, NONE, shown)


def note(verdict: GateVerdict) -> str:
    """Return a verdict in one line."""
    what = "not given to agents" if verdict.gate == ANSWER else "not shown"
    return f"{what}: {verdict.id}: {verdict.reason}"


def _beyond(place: int, hit: Hit, limit: int) -> str:
    return f"it is number {place}, with score {hit.score:.4f}; the limit is {limit}"


def _refusal(query: Query, facts: Facts, record: Record) -> str:
    """Return which part of a query does not admit a memory."""
    items: tuple[Expression, ...] = query.root.items if isinstance(query.root, Group) else ()
    for item in items:
        if isinstance(item, Word):
            continue  # one of them is enough
        one = Query(query.text, Group((item,)))
        if not filters.matcher(one, facts)(record):
            return f"{_written(item, query.text)} does not admit it"
    return "no alternative of the query admits it"


def _written(item: Expression, text: str) -> str:
    """Return a part of a query as somebody wrote it, or what kind of part it is."""
    if isinstance(item, Filter):
        return text[item.at : item.end]
    if isinstance(item, Phrase):
        return f'the phrase "{item.text}"'
    if isinstance(item, Not):
        return f"-{_written(item.inner, text)}"
    return item.text if isinstance(item, Word) else "a part in parentheses"


def _objections(scope: Scope, query: Query, facts: Facts, hits: Sequence[Hit]) -> dict[str, str]:
    """Return by id why hits would be no answer to an agent; empty where one would."""
    said, asked = retrieve.questions(scope, "\n".join(query.words))
    if not hits or not telling(asked):
        return {}
    reader = Retriever(facts)
    asked = reader.readable(asked)
    keeper = answer_gate.Gatekeeper(
        said, asked, reader.index.count, reader.index.df, *answer_gate.limits(scope.config)
    )
    texts = [facts.text(scope.tree.get(hit.through) or hit.record) for hit in hits]
    categories = [hit.record.memory.category for hit in hits]
    shares = [keeper.share(*pair) for pair in zip(texts, categories, strict=True)]
    passing = answer_gate.which_pass(shares)
    return {
        hit.record.id: "" if passes else answer_gate.objection(share)
        for hit, share, passes in zip(hits, shares, passing, strict=True)
    }
