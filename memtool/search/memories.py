"""The memories of the current repository, as the first source of a search."""

from __future__ import annotations

from memtool.index import index
from memtool.memory.drift import format_renamed_mark, mark
from memtool.search import retrieve
from memtool.search.features import Facts
from memtool.search.retrieve import PARTIAL
from memtool.search.scope import (
    DIGEST,
    MEMORY,
    NONE,
    build_scope,
    choose_sort_key,
    collect_row_fields,
    is_digest,
    note_expired,
    note_truncated,
    note_withheld,
)
from memtool.search.snippet import extract_snippet
from memtool.search.sources import (
    NOTHING,
    SCORE_DIGITS,
    Meaning,
    Result,
    RoutedSource,
    Source,
    SourceAnswer,
)
from memtool.search.stages import overlay_tree, with_stages
from memtool.search.unsettled import Unsettled
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memtool.index.reader import Catalog
    from memtool.memory.trust import Origin
    from memtool.search.explanation import GateVerdict
    from memtool.search.retrieve import Hit, Order, Scope, SearchResult
    from memtool.search.sources import SearchRequest
    from memtool.store.tree import Record


class _Search(Value):
    """A completed search: tree, scope, order and result."""

    tree: Catalog
    scope: Scope
    order: Order
    result: SearchResult


def answer_request(request: SearchRequest) -> SourceAnswer:
    """Return the memories that answer a question, and note what was left out."""
    context = request.context
    search = _search(request)
    scope, result = search.scope, search.result
    unordered = result.hits[request.offset :]
    hits, is_digest_enough = _sort_digests_first(request, scope, unordered)
    results = _build_results(request, search, hits)
    context.notes.extend(result.notes)
    context.notes.extend(_note_meaning(request, result))
    held_back, why_not = _explain(request, search)
    note_truncated(context, len(results), result.total, "--limit 0 shows all", request.offset)
    if not result.total and not result.notes:
        context.notes.append(NOTHING)
    note_expired(context, result.expired)
    note_withheld(context, scope, request.query)
    return SourceAnswer(
        depth=_find_depth(hits, is_digest_enough=is_digest_enough),
        results=results,
        total=result.total,
        freshness=search.tree.freshness,
        expired=result.expired,
        is_degraded=result.is_degraded,
        semantic=result.semantic,
        meaning=_build_meaning(result) if request.explain else None,
        held_back=held_back,
        why_not=why_not,
        own_index=lambda: scope.facts().index,
        suffices=lambda: _has_sufficient_hit(request, scope, unordered),
    )


def _note_meaning(request: SearchRequest, result: SearchResult) -> Iterator[str]:
    """Yield what the user should know about the search by meaning."""
    if result.semantic == PARTIAL:
        command = "memtool maintain --only index --apply"
        yield f"the meanings of some memories are not known yet: {command}"
    if request.explain and result.coverage is not None:
        yield (
            f"the best match by words holds {result.coverage:.2f} of the question, so meaning adds "
            f"up to {result.weight:.2f}"
        )


def _build_meaning(result: SearchResult) -> Meaning | None:
    if result.coverage is None or result.weight is None:
        return None
    return Meaning(round(result.coverage, SCORE_DIGITS), round(result.weight, SCORE_DIGITS))


def _search(request: SearchRequest) -> _Search:
    """Search the memories; search again exactly if a result differs from its index entry."""
    search = _search_once(request, exact=request.exact)
    if request.exact or search.tree.verify(hit.record for hit in search.result.hits):
        return search
    # A file was rewritten in place, which only a check of every file is sure to detect.
    return _search_once(request, exact=True)


def _search_once(request: SearchRequest, *, exact: bool) -> _Search:
    context = request.context
    now = context.clock.parse_as_of(request.as_of)
    tree = index.open(context, request.at, request.as_of, exact=exact)
    if request.at is None and request.as_of is None:
        tree = overlay_tree(context, tree, now)
    scope = with_stages(request, build_scope(context, tree, now))
    order = _choose_order(scope, request.sort)
    result = retrieve.search_query(
        scope, request.query, request.max_results, order, explain=request.explain
    )
    return _Search(tree, scope, order, result)


def _choose_order(scope: Scope, sort: str) -> Order:
    if sort == "score":
        return retrieve.by_score
    key = choose_sort_key(scope, sort)
    return lambda hit: key(hit.record)


def _sort_digests_first(
    request: SearchRequest, scope: Scope, hits: Sequence[Hit]
) -> tuple[Sequence[Hit], bool]:
    """Return the hits, sufficient digests first, and whether there are any such digests."""
    if not (request.query.words and any(is_digest(hit.record.memory) for hit in hits)):
        return hits, False
    from memtool.search import levels  # few stores have digests

    ordered, level = levels.choose_level(scope, " ".join(request.query.words), hits)
    is_by_score = request.sort == "score" and not request.offset
    return ordered if is_by_score else hits, level == DIGEST


def _has_sufficient_hit(request: SearchRequest, scope: Scope, hits: Sequence[Hit]) -> bool:
    """Return whether one of the best hits is an answer by itself; without words, any hit is."""
    if not request.query.words:
        return True
    from memtool.search import levels  # only who may ask a deeper source wants to know

    return levels.choose_level(scope, " ".join(request.query.words), hits)[1] != NONE


def _find_depth(hits: Sequence[Hit], *, is_digest_enough: bool) -> str:
    """Return the level that answered."""
    if not hits:
        return NONE
    all_are_digests = all(is_digest(hit.record.memory) for hit in hits)
    return DIGEST if is_digest_enough or all_are_digests else MEMORY


def _build_results(
    request: SearchRequest, search: _Search, hits: Sequence[Hit]
) -> tuple[Result, ...]:
    context, scope = request.context, search.scope
    origins = context.origins(search.tree, [hit.record for hit in hits])
    facts = Facts(search.tree, scope.now, dict)
    unsettled = Unsettled(search.tree, scope.now, scope.drift)
    causes = unsettled.summarize(hit.record.id for hit in hits)
    clashes = _find_clashes([hit.record for hit in hits if facts.is_current(hit.record)])
    return tuple(
        _build_result(request, scope, facts, hit, origins, clashes).replace(
            unsettled=causes.get(hit.record.id, "")
        )
        for hit in hits
    )


def _build_result(
    request: SearchRequest,
    scope: Scope,
    facts: Facts,
    hit: Hit,
    origins: Mapping[str, Origin],
    clashes: Mapping[str, tuple[str, ...]],
) -> Result:
    record = hit.record
    contradicting = clashes.get(record.id, ())
    drift = None if scope.drift is None else scope.drift(record)
    return Result(
        **collect_row_fields(request.context, record, origins[record.path], scope.now),
        score=round(hit.score, SCORE_DIGITS),
        snippet=extract_snippet(record.memory.body, hit.terms, language=scope.language),
        factors={name: round(value, SCORE_DIGITS) for name, value in hit.factors.items()},
        through=hit.through,
        **{name: round(value, SCORE_DIGITS) for name, value in hit.details.items()},
        is_digest=is_digest(record.memory),
        drift=mark(drift),
        renamed=format_renamed_mark(drift.renames) if drift is not None else "",
        proposal="; ".join(facts.describe_proposals(record.id)),
        conflict=_mark_conflict(contradicting),
        rivals=tuple(
            id_
            for id_ in dict.fromkeys((*facts.rivals.get(record.id, ()), *contradicting))
            if id_ != record.id
        ),
        notice=scope.tree.find_notice(record),
    )


def _find_clashes(records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    """Return, by id, the results that contradict each other."""
    if not records[1:]:
        return {}
    from memtool.search import conflicts  # many answers hold one memory, or none

    return conflicts.mark_contradicting(records)


def _mark_conflict(ids: Sequence[str]) -> str:
    if not ids:
        return ""
    from memtool.search import conflicts

    return conflicts.mark(ids)


def _explain(
    request: SearchRequest, search: _Search
) -> tuple[tuple[GateVerdict, ...] | None, GateVerdict | None]:
    """Return what each gate held back, and the verdict on one memory, as far as requested."""
    if not (request.explain or request.why_not):
        return None, None
    from memtool.search import explanation  # few ask

    scope, query, limit = search.scope, request.query, request.max_results
    held_back = why_not = None
    if request.explain:
        held_back = explanation.explain_held_back(scope, query, search.result, limit, search.order)
        request.context.notes.extend(map(explanation.format_verdict, held_back))
    if request.why_not:
        record = search.tree.find(request.why_not)
        why_not = explanation.explain_missing(scope, query, record, limit, search.order)
    return held_back, why_not


MEMORIES = Source(
    "memories",
    is_asked=lambda _request: True,
    read=lambda request: RoutedSource(lambda _before: answer_request(request)),
)
