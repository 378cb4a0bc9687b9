"""Prose: answers a prompt or any other text, in which nothing is an operator.

It takes the best hits by words, keeps those that contain enough of the text (`answer_gate`), orders
them by all factors, and adds memories related to the best. If memories differ in trust, less
trusted ones do not displace more trusted ones.
"""

from __future__ import annotations

from memtool.index import scoring
from memtool.index.scoring import content_terms
from memtool.memory.trust import TRUST_LEVELS
from memtool.search import answer_gate, ranking, retrieve
from memtool.search.answer_gate import (
    FOLLOWER_SHARE,
    LEADING_HITS,
    Gatekeeper,
    format_objection,
    select_passing,
)
from memtool.search.effort import FULL, LIMIT_S
from memtool.search.features import explain_hidden
from memtool.search.named_ids import find_mentions, find_named
from memtool.search.reranking import rerank
from memtool.search.retrieve import MAX_MISSED, MissedMemory, Retriever, SearchResult, by_score

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memtool.index.scoring import Question
    from memtool.search.features import Facts
    from memtool.search.retrieve import Hit, Scope
    from memtool.store.tree import Record

MAX_MEMORIES_WEIGHED_APART = 300
"""Store size up to which trusted memories are also weighed by their own word statistics."""
# In a larger store a few files hardly change how rare a word is, and reading all memories would
# take too long for an answer.

MAX_FURTHER = 15
"""Candidates that are weighed although they are not answers."""

HITS_WITH_RELATED = 5
"""Number of best hits whose related memories are added."""

RELATIONS = ("related_to", "resolves", "parent", "derived_from")


def search_prose(
    scope: Scope,
    text: str,
    files: tuple[str, ...],
    limit: int,
    *,
    is_gated: bool = True,
    explain: bool = False,
) -> SearchResult:
    """Find answers to a prompt or any other text, in which nothing is an operator.

    `files` are the open paths: memories that govern one of them gain a little. Only living heads
    with enough of the text are found, perhaps none, and those that the text names, which come
    first. If the text has no informative word, memories that govern the files are found.
    `is_gated=False` disables the gate, to measure the ranking.
    """
    result = _search_by_words(scope, text, files, limit, is_gated=is_gated, explain=explain)
    mentions = find_mentions(text)
    if not mentions:
        return result
    facts = scope.facts()
    named = find_named(mentions, facts, _build_test(scope, facts))
    if not named:
        return result
    context = retrieve.build_context(scope, text, files, result.hits)
    hits = retrieve.put_named_first(result.hits, named, facts, context)
    paths = {record.path for record in named}
    return result.replace(
        hits=tuple(hits),
        total=result.total + len(hits) - len(result.hits),
        missed=tuple(miss for miss in result.missed if miss.record.path not in paths),
    )


def _build_test(scope: Scope, facts: Facts) -> Callable[[Record], bool]:
    refuses = scope.refuses
    if refuses is None:
        return facts.is_current
    return lambda record: facts.is_current(record) and not refuses(record)


def _search_by_words(
    scope: Scope,
    text: str,
    files: tuple[str, ...],
    limit: int,
    *,
    is_gated: bool,
    explain: bool,
) -> SearchResult:
    literal_question, question = retrieve.parse_questions(scope, text)
    if not content_terms(question):
        return _find_governing(scope, files, limit)
    search = _ProseSearch(scope, text, literal_question, question)
    candidates = search.find_candidates(limit)
    answers = search.select_answers(candidates) if is_gated else candidates
    hits = search.sort(answers, candidates, files)
    total = len(hits)
    if hits and not search.is_stopped():
        related = search.find_related(hits[:HITS_WITH_RELATED], candidates)
        total += len(related)
        hits += related
    hits = rerank(scope, sorted(hits, key=by_score))
    return SearchResult(
        _take_first(scope, hits, limit),
        total,
        tuple(search.notes),
        search.find_missed(candidates) if explain else (),
        search.count_expired(),
        is_degraded=search.is_cut or scope.effort.is_narrow,
        further=search.find_further(candidates, answers),
    ).with_meaning(scope, search.reader)


class _ProseSearch:
    """The state of one search for a text.

    `literal_question` has the words of the text, `question` adds aliases and near words, and
    `ranking_question` has the weights for the order. `is_cut` means that time ran out.
    """

    def __init__(
        self, scope: Scope, text: str, literal_question: Question, question: Question
    ) -> None:
        self.scope = scope
        self.deadline = scope.effort.deadline()
        self.text = text
        self.literal_question = literal_question
        self.facts = scope.facts()
        self.reader = Retriever(self.facts, scope.matchers, literal_question)
        self.question = self.reader.with_near_words(question)
        self.ranking_question = scoring.downweight_tail(
            self.question, literal_question, text, scope.language
        )
        self.strictness = answer_gate.read_limits(scope.config)
        index = self.reader.index
        self.gatekeeper = Gatekeeper(
            literal_question, self.question, index.count, index.df, *self.strictness
        )
        self.notes = [*filter(None, [index.note]), *scope.effort.notes]
        self.is_cut = False
        self._highest = 0
        """The highest trust level of a candidate."""

    def find_candidates(self, limit: int) -> list[Hit]:
        """Return the best hits by words that may be shown, best first."""
        max_candidates = min(max(limit, scoring.MAX_RERANKED), self.scope.effort.candidates)
        hits = _find_candidates(self.scope, self.reader, self.ranking_question, max_candidates)
        self._discount(hits)
        return retrieve.sort_by_relevance(hits)

    def select_answers(self, candidates: Sequence[Hit]) -> list[Hit]:
        """Return the candidates that answer the text, as far as time allows.

        They contain enough of it, or a matcher finds them near enough.
        """
        shares: list[float] = []
        for hit in candidates:
            if len(shares) >= LEADING_HITS and self.deadline.has_passed():
                self._note_cut(
                    f"at {len(shares)} of {len(candidates)} candidates: these are the best so far"
                )
                break
            shares.append(self._measure_share(hit))
        passing = self._select_passing(candidates, shares)
        passing += [False] * (len(candidates) - len(passing))
        return [
            hit
            for hit, passes in zip(candidates, passing, strict=True)
            if passes or self._is_near(hit)
        ]

    def sort(
        self, answers: Sequence[Hit], candidates: Sequence[Hit], files: tuple[str, ...]
    ) -> list[Hit]:
        """Return answers ordered by all factors; relevance is relative to the best candidate."""
        self._context = retrieve.build_context(self.scope, self.text, files, answers)
        self._best = 0.0
        if candidates:
            quality = self.reader.measure_quality(
                self.literal_question, self.question, candidates[0]
            )
            self._best = candidates[0].raw / quality
        for hit in answers:
            hit.topic = self.gatekeeper.find_topic(self.reader.matched_text(hit))
        return sorted(self._weigh(answers), key=by_score)

    def find_further(self, candidates: Sequence[Hit], answers: Sequence[Hit]) -> tuple[Hit, ...]:
        """Return the best candidates that are not answers, by score, unless time is over."""
        if self.is_cut:
            return ()
        numbers = {hit.number for hit in answers}
        others = [hit for hit in candidates if hit.number not in numbers][:MAX_FURTHER]
        for hit in others:
            hit.topic = self.gatekeeper.find_topic(self.reader.matched_text(hit))
        return tuple(sorted(self._weigh(others), key=by_score))

    def is_stopped(self) -> bool:
        """Return whether there is no time for more than the best."""
        is_late = self.deadline.has_passed()
        if is_late and not self.is_cut:
            self._note_cut("before what the best are related to")
        return is_late or self.scope.effort.is_narrow

    def find_related(self, winners: Sequence[Hit], candidates: Sequence[Hit]) -> list[Hit]:
        """Return memories that the best hits are related to, if they are answers by themselves."""
        owners = _find_related(winners)
        for hit in candidates:
            owners.pop(hit.record.id, None)
        records = filter(None, map(self.facts.tree.get, sorted(owners)))
        paths = {record.path for record in records if self.facts.is_current(record)}
        if not paths:
            return []
        best = self.reader.find_best(
            self.ranking_question,
            len(paths),
            lambda record: record.path in paths,
            self.scope.refuses,
        )
        self._discount(best)
        answering = [
            hit for hit in best if self._measure_share(hit) >= FOLLOWER_SHARE or self._is_near(hit)
        ]
        for hit in answering:
            hit.related = owners[hit.record.id]
        return self._weigh(answering)

    def find_missed(self, candidates: Sequence[Hit]) -> tuple[MissedMemory, ...]:
        """Return hidden memories that would have answered, then those with too little, best first.

        Hidden includes memories that may not be shown for another reason.
        """
        facts, refuses = self.facts, self.scope.refuses

        def why(record: Record) -> str:
            return explain_hidden(record, facts) or (refuses(record) if refuses is not None else "")

        best = self.reader.find_best(self.question, MAX_MISSED, lambda record: bool(why(record)))
        away = [
            MissedMemory(hit.record, why(hit.record))
            for hit in best
            if self.gatekeeper.measure(hit, facts.text(hit.record)) >= FOLLOWER_SHARE
        ]
        shares = list(map(self._measure_share, candidates))
        objections = [
            MissedMemory(hit.record, format_objection(share))
            for hit, share, passes in zip(candidates, shares, select_passing(shares), strict=True)
            if not (passes or self._is_near(hit))
        ]
        return (*away, *objections[:MAX_MISSED])

    def count_expired(self) -> int:
        """Return how many memories would answer but are left out for their age alone.

        In a large store only some are examined.
        """
        numbers = self.facts.find_expired()
        if not numbers or self.deadline.has_passed():
            return 0
        index = self.reader.index
        numbers &= index.find_containing(content_terms(self.question))
        looked_at = sorted(numbers, key=index.path)[: FULL.candidates]
        return sum(self.gatekeeper.measure_text(index.text(number)) >= 1.0 for number in looked_at)

    def _measure_share(self, hit: Hit) -> float:
        return self.gatekeeper.measure(hit, self.reader.matched_text(hit))

    def _is_near(self, hit: Hit) -> bool:
        return any(matcher.is_answer(hit.number) for matcher in self.scope.matchers)

    def _discount(self, hits: Sequence[Hit]) -> None:
        """Ignore what less trusted memories claim about themselves, if there are more trusted ones.

        Tags, aliases and trigger phrases do not appear in a block, and could make any text the best
        hit.
        """
        scope = self.scope
        if scope.refuses is None or scope.trust is None:
            return
        best = TRUST_LEVELS.index(scope.best_trust)
        scope.trust.prefetch([hit.record for hit in hits])
        levels = [min(best, TRUST_LEVELS.index(scope.trust(hit.record))) for hit in hits]
        self._highest = max([self._highest, *levels])
        for hit, level in zip(hits, levels, strict=True):
            if level < self._highest:
                self.reader.discount(hit, self.ranking_question)

    def _select_passing(self, candidates: Sequence[Hit], shares: Sequence[float]) -> list[bool]:
        """Tell which candidates pass: among all, or the trusted ones among themselves.

        In a small tree the trusted ones are weighed as if there were no others. Otherwise a few
        added files could make the question's words common, and no answer would contain enough.
        """
        scope, reader = self.scope, self.reader
        passing = select_passing(shares)
        if scope.refuses is None or scope.trust is None or all(passing):
            return passing
        own = [n for n in range(len(shares)) if _is_best_trusted(scope, candidates[n].record)]
        weighed = [shares[number] for number in own]
        if own and reader.index.count <= MAX_MEMORIES_WEIGHED_APART:
            records = self.facts.find_current()
            scope.trust.prefetch(records)
            records = [record for record in records if _is_best_trusted(scope, record)]
            if len(records) < reader.index.count:
                keeper = self._build_gatekeeper(list(map(self.facts.text, records)))
                some = [candidates[number] for number in own]
                weighed = [keeper.measure(hit, reader.matched_text(hit)) for hit in some]
        for number, passes in zip(own, select_passing(weighed), strict=True):
            passing[number] = passing[number] or passes
        return passing

    def _build_gatekeeper(self, texts: Sequence[bytes]) -> Gatekeeper:
        """Build a gatekeeper with the statistics of these texts only."""
        return Gatekeeper(
            self.literal_question,
            self.question,
            len(texts),
            lambda term: _count_texts_with(texts, term),
            *self.strictness,
        )

    def _weigh(self, hits: Sequence[Hit]) -> list[Hit]:
        return retrieve.weigh(hits, self._best, self.facts, self._context)

    def _note_cut(self, where: str) -> None:
        self.is_cut = True
        self.notes.append(f"stopped after {LIMIT_S * 1000:.0f} ms, {where}")


def _find_related(winners: Sequence[Hit]) -> dict[str, str]:
    """Map each related memory to the best hit that names it in a relation, by id."""
    owners: dict[str, str] = {}
    for winner in winners:
        for relation in RELATIONS:
            for id_ in winner.record.memory.items(relation):
                owners.setdefault(id_, winner.record.id)
    return owners


def _is_best_trusted(scope: Scope, record: Record) -> bool:
    """Return whether a memory has the highest trust in this repository."""
    assert scope.trust is not None
    return TRUST_LEVELS.index(scope.trust(record)) >= TRUST_LEVELS.index(scope.best_trust)


def _find_candidates(scope: Scope, reader: Retriever, question: Question, limit: int) -> list[Hit]:
    """Return the best hits that may be shown, best first.

    If less trusted ones fill all places, the best trusted ones are added: however many files are
    put into a worktree, they displace nothing that git vouches for.
    """
    facts, refuses = reader.facts, scope.refuses
    hits = reader.find_best(question, limit, facts.is_current, refuses)
    if refuses is None or scope.trust is None or len(hits) < limit:
        return hits
    scope.trust.prefetch([hit.record for hit in hits])
    if all(_is_best_trusted(scope, hit.record) for hit in hits):
        return hits

    def is_less(record: Record) -> str:
        return refuses(record) or ("" if _is_best_trusted(scope, record) else "less trusted")

    trusted = reader.find_best(question, limit, facts.is_current, is_less)
    paths = {hit.record.path for hit in (*hits, *trusted)}
    if len(paths) == len(hits):
        return hits
    # Scores are comparable only within one search.
    return reader.find_best(question, len(paths), lambda record: record.path in paths)


def _count_texts_with(texts: Sequence[bytes], term: str) -> int:
    wanted = f" {term} ".encode()
    return sum(wanted in text for text in texts)


def _take_first(scope: Scope, hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
    """Return the first hits; if an agent may see them, also the first trusted ones."""
    first, remaining = hits[: max(0, limit)], hits[max(0, limit) :]
    if not remaining or scope.refuses is None or scope.trust is None:
        return tuple(first)
    best_trusted = sum(_is_best_trusted(scope, hit.record) for hit in first)
    trusted = [hit for hit in remaining if _is_best_trusted(scope, hit.record)]
    return (*first, *trusted[: max(0, limit - best_trusted)])


def _find_governing(scope: Scope, files: tuple[str, ...], limit: int) -> SearchResult:
    """Find memories that govern files, among those with the most words of their paths."""
    moves = retrieve.find_moves(scope)
    question = scoring.parse_question(
        "\n".join((*files, *moves.find_old_paths(files))), scope.language
    )
    if not content_terms(question):
        return SearchResult((), 0)
    facts = scope.facts()
    reader = Retriever(facts)
    governing = _find_candidates(scope, reader, reader.narrow(question), FULL.candidates)
    near = [hit for hit in governing if ranking.is_near(hit.record, files, moves)]
    for hit in near:
        hit.raw = 1.0
        hit.through = ""
    at = retrieve.build_context(scope, "", files, near)
    hits = sorted(retrieve.weigh(near, 1.0, facts, at), key=by_score)
    notes = tuple(filter(None, [reader.index.note]))
    return SearchResult(_take_first(scope, hits, limit), len(hits), notes)
