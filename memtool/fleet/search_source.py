"""What other repositories say as a source of a search, behind what this one says, or alone."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.fleet import ask
from memtool.fleet.backend import CANDIDATES, FLEET, required
from memtool.index import index, scoring
from memtool.index.reader import EXACT, IndexReader
from memtool.memory import lifecycle
from memtool.search import expansion
from memtool.search.features import Facts
from memtool.search.scope import MEMORY, NONE, SORTS, aliases_file, aliases_path, tell_rest
from memtool.search.snippet import snippet
from memtool.search.sources import (
    ALL_OTHERS,
    NOTHING,
    SCORE_DIGITS,
    Asked,
    Result,
    SourceAnswer,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.fleet.ask import RoutedQuery
    from memtool.fleet.rank import FleetHit
    from memtool.search.sources import SearchRequest
    from memtool.store.context import Context


def read(request: SearchRequest) -> Asked:
    """Read a request as one to others. Raises MemtoolError where it cannot be one."""
    required(request.context)
    for flag, value in (
        ("at", request.at),
        ("as-of", request.as_of),
        ("why-not", request.why_not),
    ):
        if value:
            raise MemtoolError(
                f"--{flag} asks about this repository, and --fleet also asks others",
                hint=f"leave out --fleet or --{flag}",
                code="usage",
            )
    others = ask.route(request.query)
    if others.is_named or _is_without(request.context):
        return Asked(lambda _before: _alone(request, others), is_alone=True)
    return Asked(lambda before: _beside(request, others, before))


def _beside(
    request: SearchRequest, others: RoutedQuery, before: Sequence[SourceAnswer]
) -> SourceAnswer | None:
    """Return what other repositories say behind what this one says: on its first page alone."""
    if request.offset:
        return None
    own = next(one.own_index() for one in before if one.own_index is not None)
    results, total = _ask(request, others, own)
    if len(results) < total:
        request.context.notes.append(
            f"{len(results)} of {total} of other repositories shown; --limit N shows more, and "
            f"{ALL_OTHERS} asks them alone"
        )
    return _answered(results, total)


def _alone(request: SearchRequest, others: RoutedQuery) -> SourceAnswer:
    """Return what other repositories say alone."""
    context = request.context
    own, freshness = IndexReader(()), EXACT
    if not _is_without(context):
        tree = index.open(context)
        own = Facts(tree, context.clock.now, dict).index
        freshness = tree.freshness
    found, total = _ask(request, others, own)
    results = found[request.offset :]
    tell_rest(context, len(results), total, "--limit N shows more", request.offset)
    if not found:
        context.notes.append(NOTHING)
    return _answered(results, total, depth=MEMORY if found else NONE, freshness=freshness)


def _answered(
    results: tuple[Result, ...], total: int, *, depth: str = "", freshness: str = ""
) -> SourceAnswer:
    level = depth or (MEMORY if results else NONE)
    return SourceAnswer(level, results, total, others=total, freshness=freshness)


def _is_without(context: Context) -> bool:
    """Tell whether this worktree has no memories that could be asked as well."""
    if context.repository.is_bare:
        return False
    try:
        context.project.refuse_absent()
    except MemtoolError:
        return True
    return False


def _ask(
    request: SearchRequest, others: RoutedQuery, own: IndexReader
) -> tuple[tuple[Result, ...], int]:
    """Return what other repositories answer, as much as is looked for, and how many answer.

    An order other than by score is that of all that answer, so all of them are looked at.
    """
    context, sort, most = request.context, request.sort, request.most
    text = "\n".join(others.query.words)
    said = scoring.question(text)
    aliases = expansion.parse(aliases_file(context), aliases_path(context))
    answer = ask.ask(
        context,
        said.replace(weights=expansion.expand(said.weights, aliases)),
        own,
        most=max(most, CANDIDATES) if sort in SORTS else most,
        text=text,
        routed=others,
    )
    context.notes += [answer.note] if answer.note else []
    hits = answer.hits
    if sort in SORTS:
        hits = tuple(sorted(hits, key=lambda hit: SORTS[sort](hit.record)))
    return tuple(_result(context, hit) for hit in hits[:most]), answer.total


def _result(context: Context, hit: FleetHit) -> Result:
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
        score=round(hit.score, SCORE_DIGITS),
        snippet=snippet(memory.body, hit.terms),
        factors={name: round(value, SCORE_DIGITS) for name, value in hit.factors.items()},
        repository=hit.candidate.repository,
    )
