"""Selection: which candidates are shown, without repeating each other.

Two memories say the same by the measure of the gate, `memory.likeness`: `30 seconds` and
`60 seconds` contradict each other.

The search has passed and ordered relevant memories. Here the best are taken so that none repeats
another: near-duplicates are folded, no source is shown more than twice, and a memory is left out if
a better one covers it. Contradictions are never folded: both sides are shown. Candidates of the
project and of the user are merged into one order, in which the user's yield.
"""

from __future__ import annotations

from memtool.inject.candidates import (
    GLOBAL,
    Candidate,
    CandidateVerdict,
    Eligibility,
    build_verdict,
)
from memtool.memory.visibility import find_distrust
from memtool.search.answer_gate import find_best_score
from memtool.search.comparison import ComparedText, says_same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memtool.memory.memory import Memory
    from memtool.memory.trust import Origin

    Chosen = tuple[list[Candidate], list[CandidateVerdict]]
    """The chosen candidates, in order, and the reasons against the others."""
    Threshold = Callable[[str], float]
    """Gives the share of the best score that a memory of a category must reach."""

SOURCE_KINDS = frozenset({"commit", "file", "url", "session", "memory"})
"""Kinds that name one thing. A person or a tool says many."""


def find_sources(memory: Memory) -> tuple[str, ...]:
    """Return the things that a memory comes from, without places in them, sorted."""
    sources = set()
    for source in memory.items("source"):
        kind, _colon, tail = source.partition(":")
        if kind in SOURCE_KINDS:
            name = tail if kind == "url" else tail.partition("#")[0].partition("@")[0]
            sources.add(f"{kind}:{name}")
    return tuple(sorted(sources))


def no_threshold(category: str) -> float:
    """Let every score pass."""
    del category
    return 0.0


def choose(
    candidates: Sequence[Candidate],
    grounds: Eligibility,
    origins: Mapping[str, Origin],
    threshold: Threshold = no_threshold,
    shown: Sequence[Candidate] = (),
) -> tuple[list[Candidate], list[CandidateVerdict]]:
    """Drop candidates that are not worth a place, and put conflicting ones next to each other.

    Only the best hits are examined, as many as the gates say. Dropped are hits below the threshold
    of their category (a share of the best score), near-duplicates of a better one, memories that a
    better one covers, and the third of a source. A hit that is only related to a winner may score
    less. Candidates that the prompt names come first, whatever their score, and then those with a
    leading role.

    Only presentable candidates count. Nothing counts against a more trusted candidate: a less
    trusted one sets no threshold for it, takes no place from it, does not replace it as a
    duplicate, and comes before it only by higher relevance, not by what its file says of itself.

    `shown` are already in the block: neither they nor their duplicates are shown again. `origins`
    is by path, for the candidates and for what `grounds.find_companions` returns for them.
    """
    weighed = _demote_below_conflicts(candidates, grounds, origins)
    sifted, dropped = _sift(
        weighed, grounds, origins, threshold, shown, grounds.gates.candidate_pool
    )
    sifted = _order_leaders_first(sifted)
    listed: dict[str, Candidate] = {}
    by_id = {candidate.record.id: candidate for candidate in sifted}
    for candidate in sifted:
        for picked in _with_conflicts_newest_first(candidate, by_id, grounds, origins):
            listed.setdefault(picked.record.id, picked)
        for record in grounds.find_companions(candidate.record):
            extra = Candidate(
                record, candidate.tier, conflicts_with=candidate.record.id, scope=grounds.scope
            )
            listed.setdefault(record.id, by_id.get(record.id, extra))
    in_order = _order_guests_last(list(listed.values()), grounds)
    if len(listed) == len(sifted):
        return in_order, dropped  # each was compared with the others already
    both, repeated = _sift(in_order, grounds, origins, no_threshold, shown, len(listed))
    return both, dropped + repeated


def _order_guests_last(candidates: list[Candidate], grounds: Eligibility) -> list[Candidate]:
    """Order guests after all others, so that they take no places, unless a search has found hits.

    Hits stay in the order of their scores.
    """
    if any(candidate.score is not None for candidate in candidates):
        return candidates
    return sorted(candidates, key=lambda candidate: grounds.is_guest(candidate.record))


def _with_conflicts_newest_first(
    candidate: Candidate,
    by_id: Mapping[str, Candidate],
    grounds: Eligibility,
    origins: Mapping[str, Origin],
) -> list[Candidate]:
    """Return a candidate with those that were found and contradict it, if all have its trust."""
    ids = grounds.contradicting.get(candidate.record.id, ())
    sides = [by_id[id_] for id_ in ids if id_ in by_id]
    ranks = {
        grounds.rank(candidate.record, origins[candidate.record.path].trust) for candidate in sides
    }
    return sides if len(ranks) == 1 else [candidate]


def _demote_below_conflicts(
    candidates: Sequence[Candidate], grounds: Eligibility, origins: Mapping[str, Origin]
) -> list[Candidate]:
    """Lower scores that are above those of more trusted and more relevant candidates.

    Triggers, importance, dates or a pin in a file then never outweigh the relevance of a memory
    with more trust. The hits are put in order again.
    """
    ranks = [
        grounds.rank(candidate.record, origins[candidate.record.path].trust)
        for candidate in candidates
    ]
    if any(candidate.score is None for candidate in candidates) or len(set(ranks)) < 2:
        return list(candidates)  # there are no hits, or all have the same trust
    placed: list[tuple[float, int, str, Candidate]] = []
    for candidate, rank in zip(candidates, ranks, strict=True):
        above = [
            _score(other)
            for other, higher in zip(candidates, ranks, strict=True)
            if higher > rank and _relevance(other) >= _relevance(candidate)
        ]
        score = min([_score(candidate), *above])
        placed.append((-score, -rank, candidate.record.id, candidate.replace(score=score)))
    scores = list(map(_score, candidates))
    if scores == sorted(scores, reverse=True):
        placed.sort(key=lambda row: row[:3])
    return [row[3] for row in placed]


def _relevance(candidate: Candidate) -> float:
    """Return how well the words fit, which no file can say of itself."""
    return candidate.factors.get("relevance", _score(candidate))


def _score(candidate: Candidate) -> float:
    return candidate.score or 0.0


def _order_leaders_first(candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates, first those named, then those that lead and score nearly the best."""
    best = max(map(_score, candidates), default=0.0)
    named = [candidate for candidate in candidates if candidate.is_named]
    leading = [
        candidate
        for candidate in candidates
        if candidate.role
        and candidate.role.leads
        and _score(candidate) >= candidate.role.share * best
    ]
    ahead = [*named, *(candidate for candidate in leading if candidate not in named)]
    return [*ahead, *(candidate for candidate in candidates if candidate not in ahead)]


class _ShownSoFar:
    """The candidates shown so far, to compare the next one with."""

    def __init__(self, shown: Sequence[Candidate], grounds: Eligibility) -> None:
        self._grounds = grounds
        self._alike: dict[str, list[tuple[str, ComparedText]]] = {}
        """Ids and words by how they begin: two with the same words say the same."""
        self._shown: list[tuple[Candidate, ComparedText]] = []
        self._sources: dict[str, int] = {}
        for candidate in shown:
            self._keep(candidate, ComparedText(candidate.record.memory))

    def find_objection(self, candidate: Candidate) -> str:
        """Return why a candidate is not worth a place; else take it, and return an empty text."""
        memory = candidate.record.memory
        id_ = memory.id
        text = ComparedText(memory)
        for other, other_text in self._alike.get(text.beginning, ()):
            if other_text.words == text.words:
                return "shown already" if other == id_ else f"says the same as {other}"
        if candidate.score is not None:
            reason = self._find_repeated(candidate, text)
            if reason:
                return reason
            named = find_sources(memory)
            max_per_source = self._grounds.gates.per_source
            is_full = all(self._sources.get(name, 0) >= max_per_source for name in named)
            if named and is_full and not candidate.is_named:
                return f"{max_per_source} from {named[0]} are shown already"
            for name in named:
                self._sources[name] = self._sources.get(name, 0) + 1
        self._keep(candidate, text)
        return ""

    def _find_repeated(self, candidate: Candidate, text: ComparedText) -> str:
        """Return which of them says nearly the same as a candidate, or covers it."""
        memory = candidate.record.memory
        rivals = self._grounds.find_conflicts(memory.id)
        for other, other_text in self._shown:
            if rivals and other.record.id in rivals:
                continue
            if self._grounds.is_paired(candidate.record, other.record):
                continue
            if says_same(text, other_text, self._grounds.gates.duplicate_threshold):
                return f"says nearly the same as {other.record.id}"
            is_covered = other.role is not None and other.role.covers(memory)
            if is_covered and _score(other) > _score(candidate):
                return f"summed up by {other.record.id}"
        return ""

    def _keep(self, candidate: Candidate, text: ComparedText) -> None:
        self._alike.setdefault(text.beginning, []).append((candidate.record.id, text))
        self._shown.append((candidate, text))


def _sift(
    candidates: Sequence[Candidate],
    grounds: Eligibility,
    origins: Mapping[str, Origin],
    threshold: Threshold,
    shown: Sequence[Candidate],
    max_candidates: int,
) -> tuple[list[Candidate], list[CandidateVerdict]]:
    """Return the kept candidates in their given order, and the reasons against the others.

    The most trusted are examined first, so that nothing less trusted counts against them; guests
    are examined last.
    """
    levels = [origins[candidate.record.path].trust for candidate in candidates]
    ranks = [
        grounds.rank(candidate.record, trust)
        for candidate, trust in zip(candidates, levels, strict=True)
    ]
    shown_ids = {candidate.record.id for candidate in shown}
    reasons = [
        ("shown already" if candidate.record.id in shown_ids else "")
        or grounds.find_objection(candidate.record.memory)
        or (candidate.role.objection if candidate.role else "")
        or find_distrust(trust, grounds.least_trust)
        for candidate, trust in zip(candidates, levels, strict=True)
    ]
    guests = [grounds.is_guest(candidate.record) for candidate in candidates]
    rivals = [
        (candidate, rank, is_guest)
        for candidate, rank, is_guest, reason in zip(
            candidates, ranks, guests, reasons, strict=True
        )
        if not reason
    ]
    so_far = _ShownSoFar(shown, grounds)
    place = 0
    for number in sorted(range(len(candidates)), key=lambda n: (guests[n], -ranks[n])):
        candidate = candidates[number]
        has_gates = candidate.score is not None and not (candidate.related or candidate.is_named)
        if not reasons[number] and has_gates:
            place += 1
            best = _find_best_score(candidate, ranks[number], rivals, with_guests=guests[number])
            reasons[number] = (
                _explain_too_low(candidate, best, threshold(candidate.record.memory.category))
                or (f"not among the best {max_candidates}" if place > max_candidates else "")
                or _explain_misfit(candidate, best)
            )
        reasons[number] = reasons[number] or so_far.find_objection(candidate)
    sifted = [
        candidate for candidate, reason in zip(candidates, reasons, strict=True) if not reason
    ]
    dropped = [
        build_verdict(candidate, reason, is_taken=False)
        for candidate, reason in zip(candidates, reasons, strict=True)
        if reason
    ]
    return sifted, dropped


def _find_best_score(
    candidate: Candidate,
    rank: int,
    rivals: Iterable[tuple[Candidate, int, bool]],
    *,
    with_guests: bool,
) -> float:
    """Return the best score with which a candidate is compared.

    That is the best among those of its trust rank or higher that answer the same part of the
    prompt. `rivals` are the candidates, their ranks, and whether they are guests.
    """
    scores = (
        (rival.topic, _score(rival))
        for rival, rival_rank, is_guest in rivals
        if rival_rank >= rank and (with_guests or not is_guest)
    )
    return find_best_score(candidate.topic, scores)


def _explain_too_low(candidate: Candidate, best: float, share: float) -> str:
    """Return why a score is too low compared with the best; empty if it is not."""
    if _score(candidate) >= share * best:
        return ""
    return f"below the threshold {share * best:.3f}, {share:g} of the best score"


def _explain_misfit(candidate: Candidate, best: float) -> str:
    """Return why a candidate with a special role is not shown; empty if it may be."""
    role = candidate.role
    if role is None:
        return ""
    return role.too_low if role.too_low and _score(candidate) < role.share * best else role.weakness


def find_clashes(memories: Sequence[Memory]) -> list[tuple[int, int]]:
    """Return every two memories that may contradict each other, by place in the list, in order.

    Left out is what one of them names in `conflicts_accepted`.
    """
    if len(memories) < 2:
        return []
    from memtool.search import contradictions  # many answers hold one memory, or none

    return [
        (contradiction.first, contradiction.other)
        for contradiction in contradictions.find(memories)
        if not _is_accepted(memories[contradiction.first], memories[contradiction.other])
    ]


def _is_accepted(memory: Memory, other: Memory) -> bool:
    key = "conflicts_accepted"
    return memory.id in other.items(key) or other.id in memory.items(key)


def merge_by_weight(
    own: Sequence[Candidate],
    other_candidates: Sequence[Candidate],
    threshold: Threshold = no_threshold,
) -> Chosen:
    """Merge both into one order, by weight, and the project's first.

    Each side keeps its own order, and a candidate placed next to another for a conflict stays with
    it. Scores below a share of the best of both are dropped, as each side did by itself.
    """
    mine, theirs = _group(own), _group(other_candidates)
    groups: list[list[Candidate]] = []
    while mine and theirs:
        side = mine if _weigh(mine[-1][0]) >= _weigh(theirs[-1][0]) else theirs
        groups.append(side.pop())
    groups += reversed(mine or theirs)
    chosen: list[Candidate] = []
    dropped: list[CandidateVerdict] = []
    scores = [(group[0].topic, _score(group[0])) for group in groups]
    for group in groups:
        first = group[0]
        reason = ""
        if not (first.score is None or first.related or first.is_named):
            best = find_best_score(first.topic, scores)
            reason = _explain_too_low(first, best, threshold(first.record.memory.category))
        if reason:
            dropped += [build_verdict(candidate, reason, is_taken=False) for candidate in group]
        else:
            chosen += group
    return chosen, dropped


def _weigh(candidate: Candidate) -> float:
    """Return the score of a hit, and the importance of a pin."""
    return candidate.record.memory.importance if candidate.score is None else candidate.score


def _group(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return each candidate with those that were put next to it, the last ones first."""
    groups: list[list[Candidate]] = []
    for candidate in candidates:
        if candidate.conflicts_with and groups:
            groups[-1].append(candidate)
        else:
            groups.append([candidate])
    return groups[::-1]


def yield_to(own: Sequence[Candidate], other_candidates: Sequence[Candidate]) -> Chosen:
    """Return the candidates from elsewhere that nothing of one's own speaks for or against.

    `own` are those of the project, and of the user if `other_candidates` are of the fleet,
    whether there is room for them or not.
    """
    ours = [candidate.record.memory for candidate in own]
    theirs = [candidate.record.memory for candidate in other_candidates]
    reasons: dict[int, str] = {}
    for index, other in find_clashes([*ours, *theirs]) if ours and theirs else ():
        if index < len(ours) <= other:
            reasons.setdefault(other - len(ours), f"it may contradict {_candidate_id(own[index])}")
    said_before = [
        (_candidate_id(candidate), ComparedText(candidate.record.memory)) for candidate in own
    ]
    for number, memory in enumerate(theirs if ours else ()):
        text = ComparedText(memory)
        same = next(
            (name for name, other in said_before if text.has_same_words(other)), ""
        ) or next((name for name, other in said_before if says_same(text, other)), "")
        if same:
            reasons[number] = f"{same} says the same"
    kept_candidates = [
        candidate for number, candidate in enumerate(other_candidates) if number not in reasons
    ]
    return kept_candidates, [
        build_verdict(other_candidates[at], reasons[at], is_taken=False) for at in sorted(reasons)
    ]


def _candidate_id(candidate: Candidate) -> str:
    return f"the {'user' if candidate.scope == GLOBAL else 'project'}'s {candidate.record.id}"
