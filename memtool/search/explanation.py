"""Explanation: what each gate of a search held back, and why one memory was not found.

A question passes these gates in order: the state of a memory, the filters, the words, the limit.
Agents have one more gate: an answer must contain enough of the question. This code runs on request
only, and never changes an answer.
"""

from __future__ import annotations

from memtool.index.scoring import content_terms
from memtool.search import answer_gate, filters, retrieve
from memtool.search.features import explain_hidden
from memtool.search.named_ids import NAMED, NAMED_REASON
from memtool.search.query import Filter, Group, Not, Phrase, Query, Word
from memtool.search.retrieve import MAX_MISSED, Retriever
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.search.features import Facts
    from memtool.search.query import Expression
    from memtool.search.retrieve import Hit, Order, Scope, SearchResult
    from memtool.store.tree import Record

STATE, FILTER, WORDS, LIMIT, ANSWER, NONE = "state", "filter", "words", "limit", "answer", "none"
"""The gates in order. `answer` applies to agents only; `none` means that the memory is shown."""


class GateVerdict(Value):
    """The gate that held a memory back, and the reason in one clause."""

    id: str
    gate: str
    reason: str


def explain_held_back(
    scope: Scope, query: Query, result: SearchResult, limit: int, order: Order
) -> tuple[GateVerdict, ...]:
    """Return what each gate held back of the matches by words, by gate and then best first.

    At most `MAX_MISSED` are listed for each gate. `result` is the answer within the limit, with
    what it missed.

    Raises:
        MemtoolError: a filter has a bad value.
    """
    facts = scope.facts()
    rows = [GateVerdict(miss.record.id, STATE, miss.reason) for miss in result.missed]
    _literal, question = retrieve.parse_questions(scope, "\n".join(query.words))
    if content_terms(question) and not query.is_plain:
        reader = Retriever(facts)
        admits = filters.build_matcher(query, facts, words_match=True)
        kept_out = reader.find_best(
            reader.with_near_words(question),
            MAX_MISSED,
            lambda record: facts.is_current(record) and not admits(record),
        )
        rows += [
            GateVerdict(candidate.record.id, FILTER, _find_refusal(query, facts, candidate.record))
            for candidate in kept_out
        ]
    beyond = retrieve.search_query(scope, query, limit + MAX_MISSED, order).hits[limit:]
    rows += [
        GateVerdict(hit.record.id, LIMIT, _format_beyond(place, hit, limit))
        for place, hit in enumerate(beyond, limit + 1)
    ]
    objections = _find_objections(scope, query, facts, result.hits)
    rows += [GateVerdict(id_, ANSWER, reason) for id_, reason in objections.items() if reason]
    return tuple(rows)


def explain_missing(
    scope: Scope, query: Query, record: Record, limit: int, order: Order
) -> GateVerdict:
    """Return the first gate that holds a memory back from the answer to a query.

    Raises:
        MemtoolError: a filter has a bad value.
    """
    facts = scope.facts()
    by_words = query.is_by_words
    if not filters.build_matcher(query, facts, words_match=by_words)(record):
        if filters.build_matcher(query, facts, words_match=by_words, is_hidden=True)(record):
            return GateVerdict(record.id, STATE, explain_hidden(record, facts))
        return GateVerdict(record.id, FILTER, _find_refusal(query, facts, record))
    result = retrieve.search_query(scope, query, max(limit, scope.tree.count), order)
    place = next((at for at, hit in enumerate(result.hits, 1) if hit.record.id == record.id), 0)
    if not place:
        words = ", ".join(dict.fromkeys(query.words))
        far = ", and its meaning is far from them" if scope.matchers else ""
        return GateVerdict(record.id, WORDS, f"it holds none of the words {words}{far}")
    hit = result.hits[place - 1]
    if place > limit:
        return GateVerdict(record.id, LIMIT, _format_beyond(place, hit, limit))
    # The gate examines the best hits, and others only if one of these is an answer.
    leading = result.hits[: max(place, answer_gate.LEADING_HITS)]
    objection = _find_objections(scope, query, facts, leading).get(record.id, "")
    shown = f"it is number {place} of {result.total}, with score {hit.score:.4f}"
    if NAMED in hit.factors:
        shown += f"; {NAMED_REASON}"
    if objection:
        return GateVerdict(record.id, ANSWER, f"{shown}; agents are not given it: {objection}")
    return GateVerdict(record.id, NONE, shown)


def format_verdict(verdict: GateVerdict) -> str:
    """Format a verdict as one line."""
    what = "not given to agents" if verdict.gate == ANSWER else "not shown"
    return f"{what}: {verdict.id}: {verdict.reason}"


def _format_beyond(place: int, hit: Hit, limit: int) -> str:
    return f"it is number {place}, with score {hit.score:.4f}; the limit is {limit}"


def _find_refusal(query: Query, facts: Facts, record: Record) -> str:
    """Return the part of a query that does not admit a memory."""
    items: tuple[Expression, ...] = query.root.items if isinstance(query.root, Group) else ()
    for item in items:
        if isinstance(item, Word):
            continue  # one of them is enough
        part = Query(query.text, Group((item,)))
        if not filters.build_matcher(part, facts)(record):
            return f"{_format_item(item, query.text)} does not admit it"
    return "no alternative of the query admits it"


def _format_item(item: Expression, text: str) -> str:
    """Return a part of a query as it was written, or else its kind."""
    if isinstance(item, Filter):
        return text[item.at : item.end]
    if isinstance(item, Phrase):
        return f'the phrase "{item.text}"'
    if isinstance(item, Not):
        return f"-{_format_item(item.inner, text)}"
    return item.text if isinstance(item, Word) else "a part in parentheses"


def _find_objections(
    scope: Scope, query: Query, facts: Facts, hits: Sequence[Hit]
) -> dict[str, str]:
    """Return by id why a hit is not an answer for an agent; empty if it is."""
    literal_question, question = retrieve.parse_questions(scope, "\n".join(query.words))
    if not hits or not content_terms(question):
        return {}
    reader = Retriever(facts)
    question = reader.with_near_words(question)
    keeper = answer_gate.Gatekeeper(
        literal_question,
        question,
        reader.index.count,
        reader.index.df,
        *answer_gate.read_limits(scope.config),
    )
    texts = [facts.text(scope.tree.get(hit.through) or hit.record) for hit in hits]
    categories = [hit.record.memory.category for hit in hits]
    shares = [keeper.measure_text(*pair) for pair in zip(texts, categories, strict=True)]
    passing = answer_gate.select_passing(shares)
    return {
        hit.record.id: "" if passes or NAMED in hit.factors else answer_gate.format_objection(share)
        for hit, share, passes in zip(hits, shares, passing, strict=True)
    }
