"""`memtool search`: what memories say about a question.

The last level, below digests and memories: findings first, then messages. It is evidence that
nobody has vouched for, of this clone alone, so it is asked only on demand and shown apart.
"""

from __future__ import annotations

import time

from memtool.commands import _filters, listing
from memtool.commands import sessions as telling
from memtool.commands.listing import MemoryRow
from memtool.errors import MemtoolError
from memtool.search import finding
from memtool.search import query as language
from memtool.search.snippet import snippet
from memtool.search.terms import is_stop, terms
from memtool.sessions import learning
from memtool.store.context import Context
from memtool.store.provenance import SHORT
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any, Literal

    from memtool.search.finding import Hit, Order
    from memtool.sessions.head import Head
    from memtool.sessions.store import Sessions

__all__ = ["render", "search"]

DIGITS = 6
"""Digits of a score behind the point."""


class Result(MemoryRow):
    """A memory that was found. `score` is the product of `factors`."""

    score: float
    snippet: str
    factors: dict[str, float]
    through: str = ""

    def plain(self) -> dict[str, Any]:
        """Return the fields in the order of the JSON."""
        fields = super().plain()
        del fields["through"]
        order = ("id", "title", "type", "category", "status", "confidence", "score")
        return {key: fields.pop(key) for key in order} | fields


class Searched(Value):
    """Results in order; `total` counts all that match, before the limit.

    `freshness` is `exact` where every file was checked for a change, else `dir-exact`. `depth` is
    the level that the answer comes from: `digest` where all results sum up others, else `memory`,
    and `session` where private sessions say something to it; `sessions` is None unless they were
    asked.
    """

    query: str
    total: int
    elapsed_ms: float
    freshness: str
    depth: str
    results: tuple[Result, ...]
    explain: bool = False
    sessions: tuple[Heard, ...] | None = None

    def plain(self) -> dict[str, Any]:
        """Return the fields of the JSON; whether factors are explained is for the text form."""
        fields = super().plain()
        del fields["explain"]
        if self.sessions is None:
            del fields["sessions"]
        return fields


def search(
    context: Context,
    *query: str,
    limit: int | None = None,
    sort: Literal["score", "newest", "oldest", "importance", "title", "id"] = "score",
    explain: bool = False,
    at: str | None = None,
    as_of: str | None = None,
    exact: bool = False,
    deep: bool = False,
) -> Searched:
    """Search the memories for what answers a question, best first.

    Words are ranked: one at least has to occur, and what holds more of them comes first. "A phrase"
    must occur as it is, -word must not, OR and parentheses give alternatives. Filters are type:
    category: tag: file: status: confidence:>=medium importance:>0.5 since:30d until:2026-01-01
    source: author: error:"KeyError: X" task: id: is:head|superseded|pinned|candidate|expired and
    others. Superseded, deleted, archived and expired memories are left out unless they are asked
    for, such as with is:superseded.

    A query that begins with @NAME is the one saved under that name in queries.toml of the memory
    directory, as NAME = "QUERY" or as a table with query and doc; what follows it is added.

    There are three levels: digests, the memories that they sum up, and with --deep the private
    sessions of this clone: findings and messages that hold half of the words of the question.

    Example:
        memtool search where do we keep sessions type:decision

    Args:
        query: the question, with filters if wanted
        limit: most results, by default the setting search.limit
        sort: the order; all that match is sorted before the limit cuts
        explain: show the factors of each score, and what is not shown for the state that it is in
        at: the memories of this revision instead of the worktree
        as_of: the memories as they stood at this moment: a date, an RFC 3339 moment, or an age
            such as 30d
        exact: check every file for a change, also where there are very many
        deep: also ask the private sessions of this clone, last
    """
    began = time.perf_counter()
    text = _filters.text(context, query)
    if not text:
        raise MemtoolError(
            "a search needs a question", hint="memtool list shows all memories", code="bad-query"
        )
    most = listing.limit_of(context, limit)
    asked = language.parse(text)
    tree = context.catalog(at, as_of, exact=exact)
    scope = listing.scope(context, tree, context.moment_of(as_of))
    found = finding.search_query(scope, asked, most, _order(sort), explain=explain)
    if not exact and not tree.verify(hit.record for hit in found.hits):
        # A file was rewritten in place, which only a check of every file is sure to see.
        tree = context.catalog(at, as_of, exact=True)
        scope = listing.scope(context, tree, context.moment_of(as_of))
        found = finding.search_query(scope, asked, most, _order(sort), explain=explain)
    origins = context.origins(tree, [hit.record for hit in found.hits])
    results = tuple(_result(hit, listing.row(hit.record, origins)) for hit in found.hits)
    context.notes.extend(found.notes)
    context.notes.extend(f"not shown: {one.record.id}: {one.reason}" for one in found.missed)
    listing.tell_rest(context, len(results), found.total, "--limit N shows more")
    if not found.total and not found.notes:
        context.notes.append("no memory matches")
    sessions: tuple[Heard, ...] | None = None
    if deep:
        sessions = heard(context, asked.words, most)
    depth = _depth(found.hits, sessions)
    elapsed_ms = round((time.perf_counter() - began) * 1000, 1)
    return Searched(
        text, found.total, elapsed_ms, tree.freshness, depth, results, explain, sessions
    )


def render(searched: Searched) -> str:
    """Return a block per result: citation, title, what it is, and the passage that matches."""
    blocks = []
    for rank, result in enumerate(searched.results, 1):
        margin = " " * len(f"{rank}. ")
        commit = (result.commit or "")[:SHORT] or "local"
        rows = [
            f"{rank}. {result.title}",
            f"{margin}{result.id}@{commit}  {listing.day(result.timestamp)}",
            f"{margin}{', '.join(_standing(result))}",
        ]
        if result.snippet:
            rows.append(f"{margin}{result.snippet}")
        if searched.explain:
            shown = " x ".join(f"{name} {value:.3g}" for name, value in result.factors.items())
            rows.append(f"{margin}score {result.score:.4f} = {shown}")
            if result.through:
                rows.append(f"{margin}found by the words of {result.through}, which it replaces")
        blocks.append("\n".join(rows))
    if searched.sessions:
        blocks.append(text(searched.sessions))
    return "\n\n".join(blocks)


def _depth(hits: Sequence[Hit], sessions: Sequence[Heard] | None) -> str:
    """Return the deepest level that an answer comes from."""
    if sessions:
        return "session"
    sums_up = [bool(hit.record.memory.items("derived_from")) for hit in hits]
    return "digest" if sums_up and all(sums_up) else "memory"


def _standing(result: Result) -> tuple[str, ...]:
    kind = f"{result.type}/{result.category}"
    return (kind, result.status, f"{result.confidence} confidence", result.trust)


def _order(sort: str) -> Order:
    if sort == "score":
        return finding.by_score
    key = listing.SORTS[sort]
    return lambda hit: key(hit.record)


def _result(hit: Hit, row: MemoryRow) -> Result:
    return Result(
        **{name: getattr(row, name) for name in MemoryRow.field_names},
        score=round(hit.score, DIGITS),
        snippet=snippet(hit.record.memory.body, hit.terms),
        factors={name: round(value, DIGITS) for name, value in hit.factors.items()},
        through=hit.through,
    )


LEAST = 0.5
"""Share of what is asked that a finding or message must hold."""
MOST_SESSIONS = 200
MOST_BYTES = 64 << 20
"""Of sessions that are looked through, the newest first."""
ROLES = ("user", "assistant", "tool")
FINDING = "finding"


class Heard(Value):
    """A finding or message that holds what was asked. `kind` is `finding` or who spoke.

    `source` cites it as a memory would: `session:ID#N`. `score` is the share of the words of the
    question that it holds.
    """

    source: str
    kind: str
    moment: str
    score: float
    snippet: str


def heard(context: Context, words: Sequence[str], limit: int) -> tuple[Heard, ...]:
    """Return what sessions say to the words of a question, the best first; there may be nothing.

    What cannot be read is passed over with a note, and so is what exceeds the bounds.
    """
    wanted = frozenset(term for word in words for term in terms(word) if not is_stop(term))
    if not wanted:
        return ()
    sessions = telling.opened(context)
    found: dict[tuple[str, str], tuple[float, int, str]] = {}
    for head in _newest(context, sessions):
        try:
            for kind, number, moment, said in _texts(sessions, head):
                if (kind, said) in found:  # a fork holds what its parent held
                    continue
                share = _share(wanted, said)
                if share >= LEAST:
                    at = moment or head.started
                    found[kind, said] = share, at, f"session:{head.id}#{number}"
        except MemtoolError as error:
            context.notes.append(f"{head.id} is passed over: {error.message}")

    def rank(key: tuple[str, str]) -> tuple[float | str, ...]:
        share, at, source = found[key]
        return (-share, key[0] != FINDING, -at, source)

    best = []
    for kind, said in sorted(found, key=rank)[:limit]:
        share, at, source = found[kind, said]
        passage = snippet(said, wanted)
        best.append(Heard(source, kind, telling.moment(at), round(share, 6), passage))
    return tuple(best)


def text(found: Sequence[Heard]) -> str:
    """Return a heading, and two lines for each."""
    if not found:
        return ""
    rows = ["From private sessions of this clone, which nobody has vouched for:"]
    for one in found:
        rows.append(f"- {one.source}  {one.moment[:10]}  {one.kind}")
        rows.append(f"  {one.snippet}")
    return "\n".join(rows)


def _newest(context: Context, sessions: Sessions) -> list[Head]:
    """Return the sessions to look through, the newest first, as far as the bounds allow."""
    heads, wrong = sessions.heads()
    context.notes.extend(f"passed over: {one}" for one in wrong)
    heads.sort(key=lambda head: (-head.started, head.id))
    chosen: list[Head] = []
    room = MOST_BYTES
    for head in heads[:MOST_SESSIONS]:
        room -= sessions.size(head.id)
        if room < 0 and chosen:
            break
        chosen.append(head)
    if len(chosen) < len(heads):
        context.notes.append(
            f"the {len(chosen)} newest of {len(heads)} sessions were looked through"
        )
    return chosen


def _texts(sessions: Sessions, head: Head) -> Iterator[tuple[str, int, int, str]]:
    """Yield kind, number, second and text of findings and messages."""
    for one in learning.known(sessions, head.id).findings:
        if one.session == head.id:
            yield FINDING, one.messages[0] if one.messages else 0, 0, one.content
    messages, _torn = sessions.messages(head.id)
    for message in messages:
        if message.role in ROLES and message.text.strip():
            yield message.role, message.number, message.moment, message.text


def _share(wanted: Collection[str], text: str) -> float:
    """Return the share of terms that a text holds; 0 where a look at its letters tells enough."""
    plain = text.lower()
    likely = sum(term[: max(3, len(term) - 2)] in plain for term in wanted)
    if likely < LEAST * len(wanted):
        return 0.0
    held = set(terms(text))
    return sum(term in held for term in wanted) / len(wanted)
