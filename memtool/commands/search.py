"""`memtool search`: the memories that answer a question, best first."""

from __future__ import annotations

from memtool.commands import _features
from memtool.errors import MemtoolError
from memtool.search import sources
from memtool.search.memories import MEMORIES
from memtool.search.query import parse_any, with_depth
from memtool.search.scope import ACCESSED, day, told_trust
from memtool.search.sources import Searched, SearchRequest
from memtool.store.context import Context
from memtool.store.provenance import SHORT

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
    semantic: bool = False,
    fleet: bool = False,
    why_not: str = "",
) -> Searched:
    """Search the memories for what answers a question, best first.

    Words are ranked: one at least has to occur, and what holds more of them comes first. "A phrase"
    must occur as it is, -word must not, OR and parentheses give alternatives. Filters are type:
    category: tag: file: status: confidence:>=medium importance:>0.5 since:30d until:2026-01-01
    source: author: error:"KeyError: X" task: session: iteration: environment: privacy: id:
    supersedes: related: parent: is:head|superseded|pinned|candidate|expired and others; a type
    may be several (type:decision,state). Superseded, deleted, archived and expired memories are
    left out unless they are asked for, such as with is:superseded.

    What looks like an operator and cannot be one is read as text, with a note. A shell needs quotes
    around > and <. The relations supersedes:, related: and parent: take a
    memory by its id or words of it, and go --depth steps from it.

    A query that begins with @NAME is the one saved under that name in queries.toml of the memory
    directory; what follows is added, after values for its parameters (@recent tag=auth).

    There are three levels: digests, which come first where a line of one answers; memories; and
    with --deep, or where no memory answers and your own search.sessions is on, the private sessions
    of this clone: findings and messages that hold half of the words.

    With --semantic, what means nearly the same is found and ranked, too, though it shares no word
    with the question. That needs the extra `semantic`, and search.semantic in your own settings.

    With --fleet, what other repositories say follows, marked with repository and commit; nobody
    here vouches for it. With repo:acme/* or team:core only these are asked. Whom it may ask is in
    your own settings.

    Example:
        memtool search where do we keep sessions type:decision
        memtool search --fleet how do others retry payments repo:acme/*

    Args:
        query: the question, with filters if wanted
        limit: most results, 0 for all, by default the setting search.limit
        offset: pass over so many of them first
        sort: the order, before the limit cuts; accessed is what was shown most often first
        depth: how many steps supersedes:, related: and parent: go, 0 for all, by default one
        format: jsonl writes one JSON object a line
        explain: show the factors of each score, and what each gate held back
        at: the memories of this revision instead of the worktree
        as_of: the memories as they stood at this moment: a date, an RFC 3339 moment, or an age
            such as 30d
        exact: check every file for a change, also where there are very many
        deep: also ask the private sessions of this clone, last
        semantic: also find what means nearly the same, by the model of search.semantic
        fleet: also ask the repositories of your fleet, last
        why_not: say which gate held this memory (an id) back, instead of printing results
    """
    asked, slips = _asked(context, query, depth)
    given = {"deep": deep, "semantic": semantic, "fleet": fleet}
    request = SearchRequest(
        context,
        asked,
        _most(context, limit),
        offset=offset,
        sort=sort,
        at=at,
        as_of=as_of,
        exact=exact,
        explain=explain,
        why_not=why_not,
        options=frozenset(name for name, is_given in given.items() if is_given),
        slips=slips,
    )
    if sort == ACCESSED:
        from memtool.commands import _filters  # few questions are answered in that order

        _filters.take_over(context)
    return sources.ask(request, [MEMORIES, *_features.added_sources()]).replace(format=format)


def render(searched: Searched) -> str | Iterator[str]:
    """Return a block per result: citation, title, what it is, and the passage that matches.

    Where one memory was asked about, what became of it is all that is returned.
    """
    if searched.why_not is not None:
        return f"{searched.why_not.id}: {searched.why_not.reason}"
    if searched.format == "jsonl":
        from memtool.commands._render import jsonl  # few answers are read by programs

        return jsonl(searched.results)
    blocks = []
    for rank, result in enumerate(searched.results, searched.offset + 1):
        margin = " " * len(f"{rank}. ")
        rows = [
            f"{rank}. {result.title}",
            f"{margin}{_cited(result)}",
            f"{margin}{', '.join(_standing(result))}",
        ]
        rows += [f"{margin}{text}" for text in _warnings(result)]
        if result.snippet:
            rows.append(f"{margin}{result.snippet}")
        if searched.explain:
            shown = " x ".join(f"{name} {value:.3g}" for name, value in result.factors.items())
            rows.append(f"{margin}score {result.score:.4f} = {shown}")
            if result.through:
                rows.append(f"{margin}found by the words of {result.through}, which it replaces")
            if result.cosine is not None:
                rows.append(f"{margin}its meaning is at {result.cosine:.2f} to the question's")
        blocks.append("\n".join(rows))
    if searched.sessions:
        blocks.append(_unreviewed(searched.sessions))
    return "\n\n".join(blocks)


def _warnings(result: Result) -> Iterator[str]:
    yield from filter(None, (result.proposal, result.conflict, result.drift))


def _cited(result: Result) -> str:
    """Return the line that says where a result is from, and of which day."""
    unknown = "local" if result.trust == "local" else "shallow"
    commit = (result.commit or "")[:SHORT] or unknown
    when = day(result.timestamp)
    if result.repository:
        return f"{result.id}  {when}  {result.trust} {result.repository}@{commit}"
    return f"{result.id}@{commit}  {when}"


def _asked(
    context: Context, words: tuple[str, ...], depth: int | None
) -> tuple[Query, tuple[str, ...]]:
    """Return the question, and notes on what was meant as an operator and cannot be one."""
    text = " ".join(words).strip()
    if text.startswith("@"):
        from memtool.search import saved  # few questions have a name

        text = saved.text_of(context, words)
    if not text:
        raise MemtoolError(
            "a search needs a question", hint="memtool list shows all memories", code="bad-query"
        )
    asked, slips = parse_any(text)
    return with_depth(asked, depth), slips


def _most(context: Context, limit: int | None) -> int:
    if limit is None:
        return context.settings.count("search.limit")
    from memtool.commands import _filters  # few questions say how many answers they want

    return _filters.limit_of(context, limit)


def _standing(result: Result) -> tuple[str, ...]:
    kind = f"{result.type}/{result.category}"
    level = ("digest",) if result.is_digest else ()
    due = ("due for review",) if result.due else ()
    return (
        kind,
        *level,
        result.status,
        *due,
        f"{result.confidence} confidence",
        told_trust(result.trust, result.unproven),
    )


def _unreviewed(passages: Sequence[Passage]) -> str:
    """Return a heading, and two lines for each."""
    rows = ["From private sessions of this clone, which nobody has vouched for:"]
    for one in passages:
        rows.append(f"- {one.source}  {one.moment[:10]}  {one.kind}")
        rows.append(f"  {one.snippet}")
    return "\n".join(rows)
