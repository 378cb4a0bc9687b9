"""`memtool search`: the memories that answer a question, best first."""

from __future__ import annotations

from memtool.commands import _features
from memtool.commands._layout import Layout, shorten_commit, shorten_foreign
from memtool.commands._render import format_kind, list_states
from memtool.errors import MemtoolError
from memtool.search import sources
from memtool.search.memories import MEMORIES
from memtool.search.named_ids import NAMED, NAMED_REASON
from memtool.search.query import parse_leniently, with_depth
from memtool.search.scope import ACCESSED
from memtool.search.sources import SearchAnswer, SearchRequest
from memtool.search.stages import BY_WORDS
from memtool.search.unsettled import mark
from memtool.store.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    from memtool.search.query import Query
    from memtool.search.sources import Passage, Result

__all__ = ["render", "search"]


def search(
    context: Context,
    *query: str,
    limit: int | None = None,
    offset: int = 0,
    sort: Literal["score", "newest", "oldest", "importance", "accessed", "title", "id"] = "score",
    depth: int | None = None,
    format: Literal["text", "jsonl"] = "text",
    explain: bool = False,
    at: str | None = None,
    as_of: str | None = None,
    exact: bool = False,
    deep: bool = False,
    words: bool = False,
    fleet: bool = False,
    why_not: str = "",
) -> SearchAnswer:
    """Find the memories that answer a question, best first.

        words                          any may match; rare words count more
        ADR-013, dec-2g54              a memory that is named comes first
        "a phrase", -without, OR ( )   required, excluded, alternatives
        type: tag: file: since:30d     filters (memtool help filters)
        is:superseded is:expired       also what is left out by default
        @NAME                          a saved query; memtool list @ lists them

    Example:
        memtool search where do we keep sessions type:decision
        memtool search 'file:src/api/** since:30d'

    Args:
        query: the question, with filters if you like
        limit: the number of results, 0 for all; default: search.limit
        offset: skip this many
        sort: score, newest, oldest, importance, accessed, title or id
        depth: how far supersedes:, related: and parent: go; 0: all
        format: text, or jsonl for one JSON object per line
        explain: show the factors of each score, and what was held back
        at: a revision instead of the worktree
        as_of: a past time: a date, RFC 3339, or an age such as 30d
        exact: check every file for changes, even in very large stores
        deep: also search the private sessions of this clone
        words: search by words only, not by meaning
        fleet: also search other repositories (memtool fleet)
        why_not: explain why this memory was held back
    """
    parsed, slips = _parse_question(context, query, depth)
    switches = {"deep": deep, BY_WORDS: words, "fleet": fleet}
    request = SearchRequest(
        context,
        parsed,
        _resolve_limit(context, limit),
        offset=offset,
        sort=sort,
        at=at,
        as_of=as_of,
        exact=exact,
        explain=explain,
        why_not=why_not,
        options=frozenset(name for name, is_given in switches.items() if is_given),
        slips=slips,
    )
    if sort == ACCESSED:
        from memtool.commands import _filters  # rarely needed

        _filters.fold_usage_log(context)
    return sources.ask_sources(request, [MEMORIES, *_features.build_sources()]).replace(
        format=format
    )


def render(searched: SearchAnswer, layout: Layout) -> str | Iterator[str]:
    """Return a block per result: title and citation, the matching passage, what is unusual.

    With --why-not only the reason is returned.
    """
    if searched.why_not is not None:
        return f"{layout.name(searched.why_not.id)}: {searched.why_not.reason}"
    if searched.format == "jsonl":
        from memtool.commands._render import iter_jsonl  # rarely needed

        return iter_jsonl(searched.results)
    blocks = []
    for rank, result in enumerate(searched.results, searched.offset + 1):
        margin = " " * len(f"{rank}. ")
        rows = layout.title_line(f"{rank}. {result.title}", _format_citation(result, layout))
        rows += layout.wrap(result.snippet, margin)
        rows.append(margin + " · ".join(_describe_result(result, layout)))
        for text in _list_warnings(result):
            rows += layout.wrap(f"! {layout.shorten(text)}", margin)
        if searched.explain:
            rows += layout.wrap("; ".join(_explain_score(result, layout)), margin)
        blocks.append("\n".join(rows))
    if searched.sessions:
        blocks.append(_format_passages(searched.sessions, layout))
    return "\n\n".join(blocks)


def _explain_score(result: Result, layout: Layout) -> Iterator[str]:
    factors = " x ".join(f"{name} {value:.3g}" for name, value in result.factors.items())
    yield f"score {result.score:.4f} = {factors}"
    if NAMED in result.factors:
        yield NAMED_REASON
    if result.through:
        yield f"found by the words of {layout.short(result.through)}, which it replaces"
    if result.cosine is not None:
        yield f"similarity of meaning {result.cosine:.2f}"


def _list_warnings(result: Result) -> Iterator[str]:
    warnings = result.notice, result.proposal, mark(result.unsettled), result.drift, result.renamed
    yield from filter(None, warnings)


def _format_citation(result: Result, layout: Layout) -> str:
    """Return the citation of a result, with the repository of a foreign one."""
    if not result.repository:
        return f"[{layout.cite(result.id, result.commit)}]"
    at = shorten_commit(result.commit) or "shallow"
    return f"[{result.repository} {shorten_foreign(result.id)}@{at}]"


def _parse_question(
    context: Context, words: tuple[str, ...], depth: int | None
) -> tuple[Query, tuple[str, ...]]:
    """Return the parsed query, and notes on invalid operators that are read as text."""
    text = " ".join(words).strip()
    if text.startswith("@"):
        from memtool.search import saved  # rarely needed

        text = saved.expand_words(context, words)
    if not text:
        raise MemtoolError(
            "cannot search: the query is missing",
            hint="all memories: memtool list",
            code="bad-query",
        )
    parsed, slips = parse_leniently(text)
    return with_depth(parsed, depth), slips


def _resolve_limit(context: Context, limit: int | None) -> int:
    if limit is None:
        return context.settings.count("search.limit")
    from memtool.commands import _filters  # rarely needed

    return _filters.resolve_limit(context, limit)


def _describe_result(result: Result, layout: Layout) -> Iterator[str]:
    """Yield kind and age of a result, then what is unusual about it."""
    yield "digest" if result.is_digest else format_kind(result.category)
    yield layout.when(result.timestamp)
    if result.rivals:
        yield f"conflicts with {', '.join(map(layout.short, result.rivals))}"
    if result.repository:
        yield f"{result.trust} there"
    else:
        yield from list_states(layout, result)


def _format_passages(passages: Sequence[Passage], layout: Layout) -> str:
    """Return a heading, and a few lines for each passage."""
    rows = ["From private sessions of this clone, not reviewed:"]
    for passage in passages:
        rows.append(f"- {passage.source}  {passage.kind}, {layout.when(passage.moment)}")
        rows += layout.wrap(passage.snippet, "  ")
    return "\n".join(rows)
