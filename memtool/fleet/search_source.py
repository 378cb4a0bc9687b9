"""The fleet as a source of a search: after the results of this repository, or alone."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.fleet import ask
from memtool.fleet.backend import CANDIDATES, FLEET, require_settings
from memtool.index import index, scoring
from memtool.index.reader import EXACT, IndexReader
from memtool.memory import lifecycle
from memtool.search import expansion
from memtool.search.features import Facts
from memtool.search.scope import (
    MEMORY,
    NONE,
    SORTS,
    aliases_path,
    note_truncated,
    read_aliases_file,
)
from memtool.search.snippet import extract_snippet
from memtool.search.sources import (
    ALL_OTHERS,
    NOTHING,
    SCORE_DIGITS,
    Result,
    RoutedSource,
    SourceAnswer,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.fleet.ask import RoutedQuery
    from memtool.fleet.rank import FleetHit
    from memtool.search.sources import SearchRequest
    from memtool.store.context import Context


def read_request(request: SearchRequest) -> RoutedSource:
    """Prepare a request to the fleet. Raises MemtoolError if its options do not allow that."""
    require_settings(request.context)
    for flag, value in (
        ("at", request.at),
        ("as-of", request.as_of),
        ("why-not", request.why_not),
    ):
        if value:
            raise MemtoolError(
                f"--{flag} and --fleet exclude each other",
                hint="leave out one of them",
                code="usage",
            )
    routed = ask.route(request.query)
    if routed.is_named or _has_no_memories(request.context):
        return RoutedSource(lambda _before: _answer_alone(request, routed), is_alone=True)
    return RoutedSource(lambda before: _answer_after_local(request, routed, before))


def _answer_after_local(
    request: SearchRequest, routed: RoutedQuery, before: Sequence[SourceAnswer]
) -> SourceAnswer | None:
    """Return foreign results after local ones, on the first page only."""
    if request.offset:
        return None
    own = next(answer.own_index() for answer in before if answer.own_index is not None)
    results, total = _ask_fleet(request, routed, own)
    if len(results) < total:
        request.context.notes.append(
            f"{len(results)} of {total} of other repositories shown (--limit N: more); "
            f"only them: {ALL_OTHERS}"
        )
    return _build_answer(results, total)


def _answer_alone(request: SearchRequest, routed: RoutedQuery) -> SourceAnswer:
    """Return foreign results only."""
    context = request.context
    own, freshness = IndexReader(()), EXACT
    if not _has_no_memories(context):
        tree = index.open(context)
        own = Facts(tree, context.clock.now, dict).index
        freshness = tree.freshness
    all_results, total = _ask_fleet(request, routed, own)
    results = all_results[request.offset :]
    note_truncated(context, len(results), total, "--limit 0 shows all", request.offset)
    if not all_results:
        context.notes.append(NOTHING)
    return _build_answer(results, total, depth=MEMORY if all_results else NONE, freshness=freshness)


def _build_answer(
    results: tuple[Result, ...], total: int, *, depth: str = "", freshness: str = ""
) -> SourceAnswer:
    level = depth or (MEMORY if results else NONE)
    return SourceAnswer(level, results, total, elsewhere=total, freshness=freshness)


def _has_no_memories(context: Context) -> bool:
    """Return whether this worktree has no memories to search."""
    if context.repository.is_bare:
        return False
    try:
        context.project.refuse_absent()
    except MemtoolError:
        return True
    return False


def _ask_fleet(
    request: SearchRequest, routed: RoutedQuery, own: IndexReader
) -> tuple[tuple[Result, ...], int]:
    """Search other repositories; return the results, and how many there are in total."""
    # An order other than by score applies to all hits, so all of them are needed.
    context, sort, limit = request.context, request.sort, request.max_results
    text = "\n".join(routed.query.words)
    question = scoring.parse_question(text)
    aliases = expansion.parse(read_aliases_file(context), aliases_path(context))
    answer = ask.ask_fleet(
        context,
        question.replace(weights=expansion.expand(question.weights, aliases)),
        own,
        limit=max(limit, CANDIDATES) if sort in SORTS else limit,
        text=text,
        routed=routed,
    )
    context.notes += [answer.note] if answer.note else []
    hits = answer.hits
    if sort in SORTS:
        hits = tuple(sorted(hits, key=lambda hit: SORTS[sort](hit.record)))
    return tuple(_build_result(context, hit) for hit in hits[:limit]), answer.total


def _build_result(context: Context, hit: FleetHit) -> Result:
    memory = hit.record.memory
    return Result(
        id=memory.id,
        title=memory.title,
        type=memory.type,
        category=memory.category,
        status=memory.status,
        confidence=memory.confidence,
        path=hit.record.path,
        timestamp=memory.text("timestamp"),
        commit=hit.candidate.commit,
        trust=FLEET,
        due=lifecycle.is_due(memory, context.clock.now, context.settings.categories),
        unproven="",
        unsettled="",
        score=round(hit.score, SCORE_DIGITS),
        snippet=extract_snippet(memory.body, hit.terms),
        factors={name: round(value, SCORE_DIGITS) for name, value in hit.factors.items()},
        repository=hit.candidate.repository,
    )
