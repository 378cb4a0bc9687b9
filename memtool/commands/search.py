"""`memtool search`: the memories that answer a question, best first."""

from __future__ import annotations

import time

from memtool.errors import MemtoolError
from memtool.index import index
from memtool.index.reader import EXACT, Catalog, IndexReader
from memtool.memory import lifecycle
from memtool.memory.drift import mark
from memtool.search import expansion, retrieve
from memtool.search.features import Facts
from memtool.search.query import parse_any, with_depth
from memtool.search.scope import (
    ACCESSED,
    DIGEST,
    MEMORY,
    NONE,
    SESSION,
    SORTS,
    MemoryRow,
    aliases_file,
    aliases_path,
    day,
    hurried,
    is_digest,
    row_of,
    scope_of,
    shown_to,
    sort_key,
    tell_expired,
    tell_rest,
    tell_withheld,
    told_trust,
)
from memtool.search.snippet import snippet
from memtool.store.context import Context
from memtool.store.provenance import SHORT
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal

    from memtool.fleet.ask import Addressed
    from memtool.fleet.rank import FleetHit
    from memtool.search.explanation import GateVerdict
    from memtool.search.query import Query
    from memtool.search.retrieve import Found, Hit, Order, Scope
    from memtool.sessions.evidence import SessionHit
    from memtool.store.snapshot import Record

__all__ = ["render", "search"]

CONSENT = "search.sessions"
"""The setting of the user alone by which private sessions are asked without --deep."""
NOTHING = "no memory matches"
ALL_OTHERS = "repo:*"
"""The filter that asks all other repositories, and this one not."""
FLEET = "fleet"
"""The word of trust of what other repositories say."""
DIGITS = 6
"""Digits of a score behind the point."""


class Result(MemoryRow):
    """A memory that was found. `score` is the product of `factors`.

    `cosine` tells how near its meaning is to the question, None where only words were searched.
    """

    score: float
    snippet: str
    factors: dict[str, float]
    through: str = ""
    cosine: float | None = None
    is_digest: bool = False
    drift: str = ""
    """What is no longer there of the files that it names, and since when; empty where all is."""
    proposal: str = ""
    """Which unconfirmed memory proposes to replace which, where it is one of them."""
    conflict: str = ""
    """Which results contradict each other, where it is one of them."""
    repository: str = ""
    """The other repository that says it, as `org/name`; empty for a memory of this one."""

    def plain(self) -> dict[str, Any]:
        """Return the fields in the order of the JSON."""
        fields = super().plain()
        del fields["through"], fields["is_digest"]
        if self.cosine is None:
            del fields["cosine"]
        for name in ("drift", "proposal", "conflict", "repository"):
            if not fields[name]:
                del fields[name]
        order = ("id", "title", "type", "category", "status", "confidence", "score")
        return {key: fields.pop(key) for key in order} | fields


class Searched(Value):
    """Results in order; `total` counts all that match, before the limit.

    `others` of them are of other repositories, of which at most sixty count: those whose words
    answer best. `is_elsewhere` tells that only these were asked.

    `freshness` is `exact` where every file was checked for a change, else `dir-exact`. `depth` is
    the level that answered: `digest` where one suffices, which then comes first, or all results are
    digests; `session` where private sessions say something to it; `none` where nothing was found;
    else `memory`. `sessions` is None unless they were asked.

    `expired` counts what matches but for its age; `degraded` tells that less was looked at, since
    this machine is slow (search.degrade). `held_back` is what each gate held back, where that is
    explained, and `why_not` what became of the one memory that was asked about.
    """

    query: str
    total: int
    elapsed_ms: float
    freshness: str
    depth: str
    results: tuple[Result, ...]
    explain: bool = False
    sessions: tuple[SessionHit, ...] | None = None
    expired: int = 0
    degraded: bool = False
    held_back: tuple[GateVerdict, ...] | None = None
    why_not: GateVerdict | None = None
    offset: int = 0
    format: str = "text"
    others: int = 0
    is_elsewhere: bool = False

    def plain(self) -> dict[str, Any]:
        """Return the fields of the JSON; the options of the text form are none."""
        fields = super().plain()
        for name in ("explain", "offset", "format", "is_elsewhere"):
            del fields[name]
        for name in ("held_back", "why_not"):
            if getattr(self, name) is None:
                del fields[name]
        if self.sessions is None:
            del fields["sessions"]
        for name in ("degraded", "others"):
            if not fields[name]:
                del fields[name]
        return fields


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
    began = time.perf_counter()
    asked, slips = _asked(context, query, depth)
    if fleet:
        others = _addressed(context, asked, at, as_of, why_not)
        if others.is_named or _is_without(context):
            context.notes.extend(slips)
            ready = _elsewhere(context, others, offset, _most(context, limit), sort)
            return ready.replace(explain=explain, format=format)
    most = offset + _most(context, limit)
    context.notes.extend(slips)
    now = context.moment_of(as_of)
    tree = index.open(context, at, as_of, exact=exact)
    scope = _scope(context, tree, now, asked, is_semantic=semantic)
    order = _order(context, scope, sort)
    found = retrieve.search_query(scope, asked, most, order, explain=explain)
    if not exact and not tree.verify(hit.record for hit in found.hits):
        # A file was rewritten in place, which only a check of every file is sure to see.
        tree = index.open(context, at, as_of, exact=True)
        scope = _scope(context, tree, now, asked, is_semantic=semantic)
        found = retrieve.search_query(scope, asked, most, order, explain=explain)
    is_now = (at, as_of, offset) == (None, None, 0)
    has_consent = is_now and bool(context.own_settings.setting(CONSENT))
    hits, level = found.hits[offset:], MEMORY
    if asked.words and (has_consent or any(map(_is_digest, hits))):
        from memtool.search import levels  # few stores have digests

        ordered, level = levels.climb(scope, " ".join(asked.words), hits)
        hits = ordered if sort == "score" and not offset else hits
    origins = context.origins(tree, [hit.record for hit in hits])
    facts = Facts(tree, now, context.settings.categories, dict)
    conflicts = _conflicts([hit.record for hit in hits if facts.is_current(hit.record)])
    results = tuple(
        _result(hit, row_of(context, hit.record, origins, now), scope, facts).replace(
            conflict=conflicts.get(hit.record.id, "")
        )
        for hit in hits
    )
    context.notes.extend(found.notes)
    gates, verdict = _explained(
        context, scope, asked, found, most, order, why_not, is_asked=explain
    )
    tell_rest(context, len(results), found.total, "--limit N shows more", offset)
    if not found.total and not found.notes:
        context.notes.append(NOTHING)
    tell_expired(context, found.expired)
    tell_withheld(context, scope, asked)
    sessions: tuple[SessionHit, ...] | None = None
    if deep or (has_consent and level == NONE):
        from memtool.sessions import evidence  # few questions go that deep

        sessions = evidence.search(context, asked.words, most)
    if sessions is not None and not deep:
        context.notes.append(f"no memory answers: private sessions were asked ({CONSENT})")
    level = _depth(hits, sessions, level)
    elapsed_ms = round((time.perf_counter() - began) * 1000, 1)
    answer = Searched(
        asked.text, found.total, elapsed_ms, tree.freshness, level, results, explain, sessions,
        found.expired, found.is_degraded, gates, verdict, offset, format,
    )  # fmt: skip
    return _beside(context, answer, others, scope, most, sort) if fleet and not offset else answer


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
        from memtool.sessions import evidence

        blocks.append(evidence.search_text(searched.sessions))
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


def _scope(context: Context, tree: Catalog, now: int, asked: Query, *, is_semantic: bool) -> Scope:
    """Return what is searched: by words, and by meaning where that is asked for.

    A process that answers many questions does so unasked, if its user has set a model.
    """
    scope = shown_to(context, hurried(context, scope_of(context, tree, now)))
    text = "\n".join(asked.words)
    if not text or not (is_semantic or context.is_resident):
        return scope
    from memtool.search.semantic import cosines, cosines_if_set  # most questions go by words alone

    if not is_semantic:
        return scope.replace(cosines=cosines_if_set(context, tree, text))
    import sys

    from memtool.store.progress import Progress

    with Progress(sys.stderr) as progress:  # the first search makes the vectors of all memories
        progress.begin("reading what the memories mean")
        return scope.replace(cosines=cosines(context, tree, text))


def _addressed(
    context: Context, asked: Query, at: str | None, as_of: str | None, why_not: str
) -> Addressed:
    """Return a question to others. Raises MemtoolError where it cannot be one."""
    from memtool.fleet import ask, backend  # most questions are to this repository alone

    backend.required(context)
    for flag, value in (("at", at), ("as-of", as_of), ("why-not", why_not)):
        if value:
            raise MemtoolError(
                f"--{flag} asks about this repository, and --fleet also asks others",
                hint=f"leave out --fleet or --{flag}",
                code="usage",
            )
    return ask.addressed(asked)


def _explained(
    context: Context,
    scope: Scope,
    asked: Query,
    found: Found,
    most: int,
    order: Order,
    why_not: str,
    *,
    is_asked: bool,
) -> tuple[tuple[GateVerdict, ...] | None, GateVerdict | None]:
    """Return what each gate held back, and what became of one memory, as far as that is asked."""
    if not (is_asked or why_not):
        return None, None
    from memtool.search import explanation  # few ask

    gates = None
    if is_asked:
        gates = explanation.held_back(scope, asked, found, most, order)
        context.notes.extend(map(explanation.note, gates))
    if not why_not:
        return gates, None
    return gates, explanation.why_not(scope, asked, scope.tree.find(why_not), most, order)


def _beside(
    context: Context, answer: Searched, others: Addressed, scope: Scope, most: int, sort: str
) -> Searched:
    """Return an answer with what other repositories say behind it."""
    began = time.perf_counter()
    found, total = _from_others(context, others, scope.facts().index, most, sort)
    if found and NOTHING in context.notes:
        context.notes.remove(NOTHING)
    if len(found) < total:
        context.notes.append(
            f"{len(found)} of {total} of other repositories shown; --limit N shows more, and "
            f"{ALL_OTHERS} asks them alone"
        )
    return answer.replace(
        total=answer.total + total,
        others=total,
        elapsed_ms=round(answer.elapsed_ms + (time.perf_counter() - began) * 1000, 1),
        results=answer.results + found,
        depth=MEMORY if found and answer.depth == NONE else answer.depth,
    )


def _elsewhere(context: Context, others: Addressed, offset: int, most: int, sort: str) -> Searched:
    """Return what other repositories say alone."""
    began = time.perf_counter()
    own, freshness = IndexReader(()), EXACT
    if not _is_without(context):
        tree = index.open(context)
        facts = Facts(tree, context.now, context.settings.categories, dict)
        own, freshness = facts.index, tree.freshness
    found, total = _from_others(context, others, own, offset + most, sort)
    tell_rest(context, len(found[offset:]), total, "--limit N shows more", offset)
    if not found:
        context.notes.append(NOTHING)
    return Searched(
        others.query.text,
        total,
        round((time.perf_counter() - began) * 1000, 1),
        freshness,
        MEMORY if found else NONE,
        found[offset:],
        offset=offset,
        others=total,
        is_elsewhere=True,
    )


def _is_without(context: Context) -> bool:
    """Tell whether this worktree has no memories that could be asked as well."""
    if context.repository.is_bare:
        return False
    try:
        context.refuse_absent()
    except MemtoolError:
        return True
    return False


def _from_others(
    context: Context, others: Addressed, own: IndexReader, most: int, sort: str
) -> tuple[tuple[Result, ...], int]:
    """Return what other repositories answer, at most so many, and how many answer.

    An order other than by score is that of all that answer, so all of them are looked at.
    """
    from memtool.fleet import ask, backend

    text = "\n".join(others.query.words)
    known = expansion.parse(aliases_file(context), aliases_path(context))
    looked_at = max(most, backend.CANDIDATES) if sort in SORTS else most
    answer = ask.ask(
        context, retrieve.question(text, known), own, most=looked_at, which=others.which,
        query=others.query, text=text,
    )  # fmt: skip
    context.notes += [answer.note] if answer.note else []
    hits = answer.hits
    if sort in SORTS:
        hits = tuple(sorted(hits, key=lambda hit: SORTS[sort](hit.record)))
    return tuple(_foreign(context, hit) for hit in hits[:most]), answer.total


def _foreign(context: Context, hit: FleetHit) -> Result:
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
        commit=hit.commit,
        trust=FLEET,
        due=lifecycle.is_due(memory, context.now, context.settings.categories),
        unproven="",
        score=round(hit.score, DIGITS),
        snippet=snippet(memory.body, hit.terms),
        factors={name: round(value, DIGITS) for name, value in hit.factors.items()},
        repository=hit.repository,
    )


def _is_digest(hit: Hit) -> bool:
    return is_digest(hit.record.memory)


def _depth(hits: Sequence[Hit], sessions: Sequence[SessionHit] | None, level: str) -> str:
    """Return the level that answered, by the first one that suffices."""
    if sessions:
        return SESSION
    if not hits:
        return NONE
    return DIGEST if level == DIGEST or all(map(_is_digest, hits)) else MEMORY


def _standing(result: Result) -> tuple[str, ...]:
    kind = f"{result.type}/{result.category}"
    level = ("digest",) if result.is_digest else ()
    due = ("due for review",) if result.due else ()
    return (kind, *level, result.status, *due, f"{result.confidence} confidence",
            told_trust(result.trust, result.unproven))  # fmt: skip


def _order(context: Context, scope: Scope, sort: str) -> Order:
    if sort == "score":
        return retrieve.by_score
    if sort == ACCESSED:
        from memtool.commands import _filters  # few questions are answered in that order

        _filters.take_over(context)
    key = sort_key(scope, sort)
    return lambda hit: key(hit.record)


def _conflicts(records: Sequence[Record]) -> dict[str, str]:
    """Return by id the warning on each memory that contradicts another one of an answer."""
    if not records[1:]:
        return {}
    from memtool.search import conflicts  # many answers hold one memory, or none

    return {id_: conflicts.mark(ids) for id_, ids in conflicts.marked(records).items()}


def _result(hit: Hit, row: MemoryRow, scope: Scope, facts: Facts) -> Result:
    return Result(
        **{name: getattr(row, name) for name in MemoryRow.field_names},
        score=round(hit.score, DIGITS),
        snippet=snippet(hit.record.memory.body, hit.terms, language=scope.language),
        factors={name: round(value, DIGITS) for name, value in hit.factors.items()},
        through=hit.through,
        cosine=None if hit.cosine is None else round(hit.cosine, DIGITS),
        is_digest=_is_digest(hit),
        drift=mark(None if scope.drift is None else scope.drift(hit.record)),
        proposal="; ".join(facts.told_proposals(row.id)),
    )
