"""Prose: what answers a prompt or any other text, in which nothing is an operator.

Of the best by words those are taken that hold enough of the text (`answer_gate`), in the order of
all factors, and what the best of them are related to. Where memories differ in trust, what is less
trusted takes no place of what is more.
"""

from __future__ import annotations

from memtool.index import scoring
from memtool.index.scoring import telling
from memtool.memory.trust import TRUST_LEVELS
from memtool.search import answer_gate, ranking, retrieve
from memtool.search.answer_gate import FOLLOWING, LEADERS, Gatekeeper, objection, which_pass
from memtool.search.effort import FULL, LIMIT_S
from memtool.search.features import why_hidden
from memtool.search.reranking import reranked
from memtool.search.retrieve import MOST_MISSED, Found, Missed, Retriever, by_score

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.index.scoring import Question
    from memtool.search.retrieve import Hit, Scope
    from memtool.store.tree import Record

MOST_ALONE = 300
"""Up to so many memories the trusted ones are weighed by the words of their own kind. In more, some
files change little of how rare a word is, and looking at all would cost the time of an answer."""

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
    said, asked = retrieve.questions(scope, text)
    if not telling(asked):
        return _governing(scope, files, limit)
    search = _ProseSearch(scope, text, said, asked)
    candidates = search.candidates(limit)
    answers = search.answering(candidates) if is_gated else candidates
    hits = search.ordered(answers, candidates, files)
    total = len(hits)
    if hits and not search.is_stopped():
        related = search.related(hits[:WINNERS], candidates)
        total += len(related)
        hits += related
    hits = reranked(scope, sorted(hits, key=by_score))
    return Found(
        _first(scope, hits, limit),
        total,
        tuple(search.notes),
        search.missed(candidates) if explain else (),
        search.count_expired(),
        is_degraded=search.is_cut or scope.effort.is_narrow,
    )


class _ProseSearch:
    """One text being answered.

    `said` are the words of the text, `asked` with what aliases and near words add, and `ranked` as
    they count for the order. `is_cut` tells that the time was over before all was looked at.
    """

    def __init__(self, scope: Scope, text: str, said: Question, asked: Question) -> None:
        self.scope = scope
        self.deadline = scope.effort.deadline()
        self.text = text
        self.said = said
        self.facts = scope.facts()
        self.reader = Retriever(self.facts)
        self.asked = self.reader.readable(asked)
        self.ranked = scoring.led(self.asked, said, text, scope.language)
        self.strictness = answer_gate.limits(scope.config)
        index = self.reader.index
        self.keeper = Gatekeeper(said, self.asked, index.count, index.df, *self.strictness)
        self.notes = [*filter(None, [index.note]), *scope.effort.notes]
        self.is_cut = False
        self._highest = 0
        """The highest level of trust of a candidate."""

    def candidates(self, limit: int) -> list[Hit]:
        """Return the best that may be shown by their words, the best first."""
        most = min(max(limit, scoring.CANDIDATES), self.scope.effort.candidates)
        found = _candidates(self.scope, self.reader, self.ranked, most)
        self._discount(found)
        return retrieve.by_relevance(found)

    def answering(self, candidates: Sequence[Hit]) -> list[Hit]:
        """Return the candidates that hold enough of the text, as far as the time allows."""
        shares: list[float] = []
        for hit in candidates:
            if len(shares) >= LEADERS and self.deadline.has_passed():
                self._cut(
                    f"at {len(shares)} of {len(candidates)} candidates: these are the best so far"
                )
                break
            shares.append(self._share(hit))
        passing = self._passing(candidates, shares)
        return [hit for hit, passes in zip(candidates, passing, strict=False) if passes]

    def ordered(
        self, answers: Sequence[Hit], candidates: Sequence[Hit], files: tuple[str, ...]
    ) -> list[Hit]:
        """Return answers in the order of all factors, relevance beside the best candidate."""
        self._situation = retrieve.situation(self.scope, self.text, files, answers)
        self._best = 0.0
        if candidates:
            quality = self.reader.held(self.said, self.asked, candidates[0])
            self._best = candidates[0].raw / quality
        return sorted(self._weighed(answers), key=by_score)

    def is_stopped(self) -> bool:
        """Tell whether there is no time for more than the best."""
        is_late = self.deadline.has_passed()
        if is_late and not self.is_cut:
            self._cut("before what the best are related to")
        return is_late or self.scope.effort.is_narrow

    def related(self, winners: Sequence[Hit], candidates: Sequence[Hit]) -> list[Hit]:
        """Return what the best hits are related to, and what answers by itself, too."""
        owners = _related_to(winners)
        for hit in candidates:
            owners.pop(hit.record.id, None)
        records = filter(None, map(self.facts.tree.get, sorted(owners)))
        paths = {record.path for record in records if self.facts.is_current(record)}
        if not paths:
            return []
        found = self.reader.best(
            self.ranked, len(paths), lambda record: record.path in paths, self.scope.refuses
        )
        self._discount(found)
        answering = [hit for hit in found if self._share(hit) >= FOLLOWING]
        for hit in answering:
            hit.related = owners[hit.record.id]
        return self._weighed(answering)

    def missed(self, candidates: Sequence[Hit]) -> tuple[Missed, ...]:
        """Return what would have answered but is hidden, then what holds too little, best first.

        What may not be shown for a reason of its own is hidden, too.
        """
        facts, refuses = self.facts, self.scope.refuses

        def why(record: Record) -> str:
            return why_hidden(record, facts) or (refuses(record) if refuses is not None else "")

        best = self.reader.best(self.asked, MOST_MISSED, lambda record: bool(why(record)))
        away = [
            Missed(hit.record, why(hit.record))
            for hit in best
            if self.keeper.share_of(hit, facts.text(hit.record)) >= FOLLOWING
        ]
        shares = list(map(self._share, candidates))
        objections = [
            Missed(hit.record, objection(share))
            for hit, share, passes in zip(candidates, shares, which_pass(shares), strict=True)
            if not passes
        ]
        return (*away, *objections[:MOST_MISSED])

    def count_expired(self) -> int:
        """Return how many memories answer by themselves, and are left out for their age alone.

        Of very many only some are looked at.
        """
        numbers = self.facts.expired()
        if not numbers or self.deadline.has_passed():
            return 0
        index = self.reader.index
        numbers &= index.holding_any(telling(self.asked))
        looked_at = sorted(numbers, key=index.path)[: FULL.candidates]
        return sum(self.keeper.share(index.text(number)) >= 1.0 for number in looked_at)

    def _share(self, hit: Hit) -> float:
        return self.keeper.share_of(hit, self.reader.text(hit))

    def _discount(self, hits: Sequence[Hit]) -> None:
        """Let what the less trusted say of themselves count for nothing beside the more trusted.

        Tags, aliases and trigger phrases stand in no block, and make of any text the best hit.
        """
        scope = self.scope
        if scope.refuses is None or scope.trust is None:
            return
        best = TRUST_LEVELS.index(scope.best_trust)
        levels = [min(best, TRUST_LEVELS.index(scope.trust(hit.record))) for hit in hits]
        self._highest = max([self._highest, *levels])
        for hit, level in zip(hits, levels, strict=True):
            if level < self._highest:
                self.reader.discount(hit, self.ranked)

    def _passing(self, candidates: Sequence[Hit], shares: Sequence[float]) -> list[bool]:
        """Tell which candidates pass: among all, or the trusted ones among themselves.

        In a small tree the trusted are weighed as if there were nothing else: a few files more
        would make the words of the question common there, and no answer to it would hold enough.
        """
        scope, reader = self.scope, self.reader
        passing = which_pass(shares)
        if scope.refuses is None or scope.trust is None or all(passing):
            return passing
        own = [n for n in range(len(shares)) if _is_best_trusted(scope, candidates[n].record)]
        weighed = [shares[number] for number in own]
        if own and reader.index.count <= MOST_ALONE:
            records = [one for one in self.facts.current_records() if _is_best_trusted(scope, one)]
            if len(records) < reader.index.count:
                keeper = self._keeper_of(list(map(self.facts.text, records)))
                some = [candidates[number] for number in own]
                weighed = [keeper.share_of(hit, reader.text(hit)) for hit in some]
        for number, passes in zip(own, which_pass(weighed), strict=True):
            passing[number] = passing[number] or passes
        return passing

    def _keeper_of(self, texts: Sequence[bytes]) -> Gatekeeper:
        """Return the keeper of a tree of some texts."""
        return Gatekeeper(
            self.said,
            self.asked,
            len(texts),
            lambda term: _count_holding(texts, term),
            *self.strictness,
        )

    def _weighed(self, hits: Sequence[Hit]) -> list[Hit]:
        return retrieve.weighed(hits, self._best, self.facts, self._situation)

    def _cut(self, where: str) -> None:
        self.is_cut = True
        self.notes.append(f"stopped after {LIMIT_S * 1000:.0f} ms, {where}")


def _related_to(winners: Sequence[Hit]) -> dict[str, str]:
    """Return the id of the best winner that names each memory in a relation, by its id."""
    owners: dict[str, str] = {}
    for winner in winners:
        for relation in RELATIONS:
            for id_ in winner.record.memory.items(relation):
                owners.setdefault(id_, winner.record.id)
    return owners


def _is_best_trusted(scope: Scope, record: Record) -> bool:
    """Tell whether a memory has as much trust as there is in this repository."""
    assert scope.trust is not None
    return TRUST_LEVELS.index(scope.trust(record)) >= TRUST_LEVELS.index(scope.best_trust)


def _candidates(scope: Scope, reader: Retriever, asked: Question, most: int) -> list[Hit]:
    """Return the best hits that may be shown, the best first.

    Where less trusted ones fill all places, the best of the trusted are weighed beside them:
    however many files somebody puts into a worktree, they take no place of what git vouches for.
    """
    facts, refuses = reader.facts, scope.refuses
    found = reader.best(asked, most, facts.is_current, refuses)
    if refuses is None or scope.trust is None or len(found) < most:
        return found
    if all(_is_best_trusted(scope, hit.record) for hit in found):
        return found

    def is_less(record: Record) -> str:
        return refuses(record) or ("" if _is_best_trusted(scope, record) else "less trusted")

    trusted = reader.best(asked, most, facts.is_current, is_less)
    paths = {hit.record.path for hit in (*found, *trusted)}
    if len(paths) == len(found):
        return found
    # Scores are comparable only within one look.
    return reader.best(asked, len(paths), lambda record: record.path in paths)


def _count_holding(texts: Sequence[bytes], term: str) -> int:
    wanted = f" {term} ".encode()
    return sum(wanted in text for text in texts)


def _first(scope: Scope, hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
    """Return the first hits; where they may be shown to an agent, also the first trusted ones."""
    first, rest = hits[: max(0, limit)], hits[max(0, limit) :]
    if not rest or scope.refuses is None or scope.trust is None:
        return tuple(first)
    held = sum(_is_best_trusted(scope, hit.record) for hit in first)
    trusted = [hit for hit in rest if _is_best_trusted(scope, hit.record)]
    return (*first, *trusted[: max(0, limit - held)])


def _governing(scope: Scope, files: tuple[str, ...], limit: int) -> Found:
    """Find what governs files, among the memories that name the most words of their paths."""
    asked = scoring.question("\n".join(files), scope.language)
    if not telling(asked):
        return Found((), 0)
    facts = scope.facts()
    reader = Retriever(facts)
    known = _candidates(scope, reader, reader.narrowed(asked), FULL.candidates)
    near = [hit for hit in known if ranking.is_near(hit.record, files)]
    for hit in near:
        hit.raw = 1.0
        hit.through = ""
    at = retrieve.situation(scope, "", files, near)
    hits = sorted(retrieve.weighed(near, 1.0, facts, at), key=by_score)
    notes = tuple(filter(None, [reader.index.note]))
    return Found(_first(scope, hits, limit), len(hits), notes)
