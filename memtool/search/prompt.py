"""Prose: a prompt and a tree to the memories that answer it, best first; there may be none.

Two phases. Relevance comes first, by words, and a gatekeeper lets nothing pass that does not
answer, however important it is; only then the factors of `ranking` order what is left.
"""

from __future__ import annotations

from memtool.index import scoring
from memtool.search import answer_gate, expansion, ranking, retrieve
from memtool.search.answer_gate import Deadline, Gatekeeper
from memtool.search.retrieve import Found, Hit, Match, Retriever, Scope, by_score

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memtool.index.scoring import Question
    from memtool.search.answer_gate import Missed
    from memtool.search.features import Facts


WINNERS = 5
"""How many of the best bring along what they are related to."""

RELATIONS = ("related_to", "resolves", "parent", "derived_from")


def search_prose(
    scope: Scope,
    text: str,
    files: tuple[str, ...],
    limit: int,
    *,
    is_gated: bool = True,
    explain: bool = False,
) -> Found:
    """Find what answers a prompt or any other text, in which nothing is an operator.

    `files` are the paths that are open: what governs one of them gains a little. Only living heads
    are found, and only those that hold enough of what the text is about; there may be none. Where
    the text asks for nothing, what governs the files is found. `is_gated=False` leaves the
    gatekeeper out, which shows how well the ranking is.
    """
    deadline = Deadline(scope.clock)
    facts = scope.facts()
    said = scoring.question(text)
    asked = said.replace(weights=expansion.expand(said.weights, scope.aliases))
    if not retrieve.telling(asked):
        return _governing(scope, facts, files, limit)
    reader = Retriever(facts)
    asked = retrieve.readable(asked, reader)
    notes = list(filter(None, [reader.note]))
    strictness = answer_gate.preset(scope.config).strictness
    keeper = Gatekeeper(said, asked, reader.count, reader.df, strictness)
    most = min(max(limit, scoring.CANDIDATES), answer_gate.MOST_CANDIDATES)
    ranked = scoring.led(asked, said, text)
    candidates = reader.best(ranked, most, facts.is_current)
    answers = candidates
    if is_gated:
        shares = _shares(candidates, keeper, reader, deadline)
        if len(shares) < len(candidates):
            notes.append(f"stopped after {answer_gate.LIMIT_S * 1000:.0f} ms, at {len(shares)} of "
                         f"{len(candidates)} candidates: these are the best so far")  # fmt: skip
        passing = answer_gate.which_pass(shares)
        answers = [match for match, passes in zip(candidates, passing, strict=False) if passes]
    at = retrieve.situation(scope, text, files, answers)
    best = candidates[0].raw if candidates else 0.0
    weighed = (retrieve.hit_of(match, best, facts, at) for match in answers)
    hits = sorted(weighed, key=by_score)
    total = len(answers)
    if hits and not deadline.has_passed():
        related = _related(hits[:WINNERS], candidates, reader, ranked, keeper,
                           lambda match: retrieve.hit_of(match, best, facts, at))  # fmt: skip
        total += len(related)
        hits += related
    hits = _reranked(scope, sorted(hits, key=by_score))
    missed: tuple[Missed, ...] = ()
    if explain:
        from memtool.search.answer_gate import missed_in_prose  # only who asks pays for it

        missed = missed_in_prose(reader, asked, keeper, candidates)
    return Found(tuple(hits[: max(0, limit)]), total, tuple(notes), missed)


def _shares(
    candidates: Sequence[Match], keeper: Gatekeeper, reader: Retriever, deadline: Deadline
) -> list[float]:
    """Return how much candidates hold of what an answer must hold, as far as the time allows."""
    shares: list[float] = []
    for match in candidates:
        if len(shares) >= answer_gate.LEADERS and deadline.has_passed():
            break
        shares.append(keeper.share(reader.text(match)))
    return shares


def _governing(scope: Scope, facts: Facts, files: tuple[str, ...], limit: int) -> Found:
    """Find what governs files, among the memories that name the most words of their paths."""
    asked = scoring.question("\n".join(files))
    if not retrieve.telling(asked):
        return Found((), 0)
    reader = Retriever(facts)
    known = reader.best(reader.narrowed(asked), answer_gate.MOST_CANDIDATES, facts.is_current)
    near = [match for match in known if ranking.is_near(match.record, files)]
    for match in near:
        match.raw = 1.0
        match.through = ""
    at = retrieve.situation(scope, "", files, near)
    hits = sorted((retrieve.hit_of(match, 1.0, facts, at) for match in near), key=by_score)
    return Found(tuple(hits[: max(0, limit)]), len(hits), tuple(filter(None, [reader.note])))


def _related(
    winners: Sequence[Hit],
    candidates: Sequence[Match],
    reader: Retriever,
    asked: Question,
    keeper: Gatekeeper,
    hit: Callable[[Match], Hit],
) -> list[Hit]:
    """Return what the best hits are related to, and what answers by itself, too."""
    facts = reader.facts
    owners: dict[str, str] = {}
    for winner in winners:
        for relation in RELATIONS:
            for id_ in winner.record.memory.items(relation):
                owners.setdefault(id_, winner.record.id)
    if not owners:
        return []
    for match in candidates:
        owners.pop(match.record.id, None)
    records = [facts.tree.by_id.get(id_) for id_ in sorted(owners)]
    paths = {record.path for record in records if record is not None and facts.is_current(record)}
    if not paths:
        return []
    found = reader.best(asked, len(paths), lambda record: record.path in paths)
    return [
        hit(match).replace(related=owners[match.record.id])
        for match in found
        if keeper.share(reader.text(match)) >= answer_gate.FOLLOWING
    ]


def _reranked(scope: Scope, hits: list[Hit]) -> list[Hit]:
    """Return the hits with those that may be shown in the order of the reranker."""
    rerank = scope.rerank or answer_gate.RERANKERS[scope.config.text("search.rerank")]
    most = answer_gate.MOST_SHOWN
    return [*rerank(hits[:most]), *hits[most:]]
