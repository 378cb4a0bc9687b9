"""The memories of the repository at hand, as the first source of a search."""

from __future__ import annotations

from memtool.index import index
from memtool.memory.drift import mark
from memtool.search import retrieve
from memtool.search.features import Facts
from memtool.search.scope import (
    DIGEST,
    MEMORY,
    NONE,
    is_digest,
    row_fields,
    scope_of,
    sort_key,
    tell_expired,
    tell_rest,
    tell_withheld,
)
from memtool.search.snippet import snippet
from memtool.search.sources import NOTHING, SCORE_DIGITS, Asked, Result, Source, SourceAnswer
from memtool.search.stages import staged
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memtool.index.reader import Catalog
    from memtool.memory.trust import Origin
    from memtool.search.explanation import GateVerdict
    from memtool.search.retrieve import Found, Hit, Order, Scope
    from memtool.search.sources import SearchRequest
    from memtool.store.tree import Record


class _Search(Value):
    """A search that was made: where, in which order, and what it found."""

    tree: Catalog
    scope: Scope
    order: Order
    found: Found


def answer(request: SearchRequest) -> SourceAnswer:
    """Return the memories that answer a question, and note what was left out of them."""
    context = request.context
    made = _search(request)
    scope, found = made.scope, made.found
    unordered = found.hits[request.offset :]
    hits, is_digest_enough = _digests_first(request, scope, unordered)
    results = _results(request, made, hits)
    context.notes.extend(found.notes)
    held_back, why_not = _explained(request, made)
    tell_rest(context, len(results), found.total, "--limit N shows more", request.offset)
    if not found.total and not found.notes:
        context.notes.append(NOTHING)
    tell_expired(context, found.expired)
    tell_withheld(context, scope, request.query)
    return SourceAnswer(
        depth=_depth(hits, is_digest_enough=is_digest_enough),
        results=results,
        total=found.total,
        freshness=made.tree.freshness,
        expired=found.expired,
        is_degraded=found.is_degraded,
        held_back=held_back,
        why_not=why_not,
        own_index=lambda: scope.facts().index,
        suffices=lambda: _suffices(request, scope, unordered),
    )


def _search(request: SearchRequest) -> _Search:
    """Search the memories; where one of the results is not what was indexed, search them anew."""
    made = _search_once(request, exact=request.exact)
    if request.exact or made.tree.verify(hit.record for hit in made.found.hits):
        return made
    # A file was rewritten in place, which only a check of every file is sure to see.
    return _search_once(request, exact=True)


def _search_once(request: SearchRequest, *, exact: bool) -> _Search:
    context = request.context
    now = context.clock.moment_of(request.as_of)
    tree = index.open(context, request.at, request.as_of, exact=exact)
    scope = staged(request, scope_of(context, tree, now))
    order = _order(scope, request.sort)
    found = retrieve.search_query(
        scope, request.query, request.most, order, explain=request.explain
    )
    return _Search(tree, scope, order, found)


def _order(scope: Scope, sort: str) -> Order:
    if sort == "score":
        return retrieve.by_score
    key = sort_key(scope, sort)
    return lambda hit: key(hit.record)


def _digests_first(
    request: SearchRequest, scope: Scope, hits: Sequence[Hit]
) -> tuple[Sequence[Hit], bool]:
    """Return hits with the digests first that suffice, and whether there are such."""
    if not (request.query.words and any(is_digest(hit.record.memory) for hit in hits)):
        return hits, False
    from memtool.search import levels  # few stores have digests

    ordered, level = levels.climb(scope, " ".join(request.query.words), hits)
    is_by_score = request.sort == "score" and not request.offset
    return ordered if is_by_score else hits, level == DIGEST


def _suffices(request: SearchRequest, scope: Scope, hits: Sequence[Hit]) -> bool:
    """Tell whether one of the best hits is an answer by itself; where nothing is asked, any is."""
    if not request.query.words:
        return True
    from memtool.search import levels  # only who may ask a deeper source wants to know

    return levels.climb(scope, " ".join(request.query.words), hits)[1] != NONE


def _depth(hits: Sequence[Hit], *, is_digest_enough: bool) -> str:
    """Return the level that answered, by the first one that suffices."""
    if not hits:
        return NONE
    all_are_digests = all(is_digest(hit.record.memory) for hit in hits)
    return DIGEST if is_digest_enough or all_are_digests else MEMORY


def _results(request: SearchRequest, made: _Search, hits: Sequence[Hit]) -> tuple[Result, ...]:
    context, scope = request.context, made.scope
    origins = context.origins(made.tree, [hit.record for hit in hits])
    facts = Facts(made.tree, scope.now, dict)
    conflicts = _conflicts([hit.record for hit in hits if facts.is_current(hit.record)])
    return tuple(_result(request, scope, facts, hit, origins, conflicts) for hit in hits)


def _result(
    request: SearchRequest,
    scope: Scope,
    facts: Facts,
    hit: Hit,
    origins: Mapping[str, Origin],
    conflicts: Mapping[str, str],
) -> Result:
    record = hit.record
    return Result(
        **row_fields(request.context, record, origins[record.path], scope.now),
        score=round(hit.score, SCORE_DIGITS),
        snippet=snippet(record.memory.body, hit.terms, language=scope.language),
        factors={name: round(value, SCORE_DIGITS) for name, value in hit.factors.items()},
        through=hit.through,
        **{name: round(value, SCORE_DIGITS) for name, value in hit.details.items()},
        is_digest=is_digest(record.memory),
        drift=mark(None if scope.drift is None else scope.drift(record)),
        proposal="; ".join(facts.told_proposals(record.id)),
        conflict=conflicts.get(record.id, ""),
    )


def _conflicts(records: Sequence[Record]) -> dict[str, str]:
    """Return by id the warning on each memory that contradicts another one of an answer."""
    if not records[1:]:
        return {}
    from memtool.search import conflicts  # many answers hold one memory, or none

    return {id_: conflicts.mark(ids) for id_, ids in conflicts.marked(records).items()}


def _explained(
    request: SearchRequest, made: _Search
) -> tuple[tuple[GateVerdict, ...] | None, GateVerdict | None]:
    """Return what each gate held back, and what became of one memory, as far as that is asked."""
    if not (request.explain or request.why_not):
        return None, None
    from memtool.search import explanation  # few ask

    scope, query, most = made.scope, request.query, request.most
    held_back = why_not = None
    if request.explain:
        held_back = explanation.held_back(scope, query, made.found, most, made.order)
        request.context.notes.extend(map(explanation.note, held_back))
    if request.why_not:
        record = made.tree.find(request.why_not)
        why_not = explanation.why_not(scope, query, record, most, made.order)
    return held_back, why_not


MEMORIES = Source(
    "memories",
    is_asked=lambda _request: True,
    read=lambda request: Asked(lambda _before: answer(request)),
)
