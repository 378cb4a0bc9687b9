"""Selection: what of the memories that were found is worth its place in the block.

Search has let only relevant memories pass, and has ordered them. Here the best are taken so that
none repeats another: near-duplicates are folded, no source speaks more than twice, and a digest
stands for what it sums up. Contradictions are never folded: both sides are shown.
"""

from __future__ import annotations

from memtool.inject import likeness
from memtool.inject.likeness import Wording
from memtool.inject.standing import RANK
from memtool.inject.tiers import Candidate, Grounds, Verdict, verdict
from memtool.search.answer_gate import MOST_SHOWN
from memtool.search.ranking import TRUST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memtool.memory.memory import Memory
    from memtool.store.provenance import Origin

DIGEST = 0.8
"""Share of the best score from which a digest comes before what is not one."""


def choose(
    candidates: Sequence[Candidate],
    grounds: Grounds,
    origins: Mapping[str, Origin],
    threshold: float = 0.0,
    shown: Sequence[Candidate] = (),
    most: int = MOST_SHOWN,
) -> tuple[list[Candidate], list[Verdict]]:
    """Drop what is not worth showing, and put beside the rest what contradicts it.

    Of what was found the best `most` are looked at. Dropped is what scores below `threshold`, a
    share of the best score; what says the same as a better one; what a better digest sums up; and
    the third from one source. What was found only because a winner is related to it may score
    less. A digest that scores nearly as well as the best comes first; one that memtool wrote, and
    that scores less, gives way to what it sums up.

    `shown` are in the block already: neither they nor what says the same is shown again. `origins`
    is by path, and knows the candidates and what `grounds.beside` gives for them.
    """
    weighed = _trusted(candidates, origins)
    kept, dropped = _sift(weighed, grounds, origins, threshold, shown, most)
    kept = _digests_first(kept)
    listed: dict[str, Candidate] = {}
    found = {candidate.record.id: candidate for candidate in kept}
    for candidate in kept:
        listed.setdefault(candidate.record.id, candidate)
        for record in grounds.beside(candidate.record):
            extra = Candidate(
                record, candidate.tier, beside=candidate.record.id, scope=grounds.scope
            )
            listed.setdefault(record.id, found.get(record.id, extra))
    if len(listed) == len(kept):
        return list(listed.values()), dropped  # each was compared with the others already
    both, repeated = _sift(list(listed.values()), grounds, origins, 0.0, shown, len(listed))
    return both, dropped + repeated


def _trusted(candidates: Sequence[Candidate], origins: Mapping[str, Origin]) -> list[Candidate]:
    """Weigh the trust of what was found; what came by score is then in that order again."""
    if any(one.score is None for one in candidates):
        return list(candidates)  # nobody asked for them
    weighed = []
    for one in candidates:
        factor = TRUST[origins[one.record.path].trust]
        factors = {**one.factors, "trust": factor}
        weighed.append(one.replace(score=_score(one) * factor, factors=factors))
    scores = list(map(_score, candidates))
    if scores == sorted(scores, reverse=True):
        weighed.sort(key=lambda one: (-_score(one), one.record.id))
    return weighed


def _score(candidate: Candidate) -> float:
    return candidate.score or 0.0


def _digests_first(candidates: list[Candidate]) -> list[Candidate]:
    least = DIGEST * max(map(_score, candidates), default=0.0)
    ahead = [one for one in candidates if is_digest(one) and _score(one) >= least]
    return [*ahead, *(one for one in candidates if one not in ahead)]


def is_digest(candidate: Candidate) -> bool:
    """Tell whether a memory that was found sums up others."""
    return candidate.score is not None and bool(candidate.record.memory.items("derived_from"))


def _is_generated(candidate: Candidate) -> bool:
    """Tell whether memtool wrote a digest; one that a person wrote says more than its sources."""
    if not is_digest(candidate):
        return False
    from memtool.memory import digest  # few stores hold one

    return digest.is_generated(candidate.record.memory)


def _staleness(candidate: Candidate, grounds: Grounds) -> str:
    """Return what a digest that memtool wrote tells and no longer holds; empty where all does."""
    for id_ in candidate.record.memory.items("derived_from") if _is_generated(candidate) else ():
        record = grounds.tree.by_id.get(id_)
        if record is None or grounds.objection(record.memory):
            return f"out of date: {id_} no longer holds"
    return ""


def _sums_up(digest: Candidate, memory: Memory) -> bool:
    """Tell whether what is shown of a digest holds a memory: of a long one that is the lead."""
    if not is_digest(digest) or memory.id not in digest.record.memory.items("derived_from"):
        return False
    return not _is_generated(digest) or memory.title in digest.record.memory.statement


class _Kept:
    """What is shown so far, as that which comes next is compared with it."""

    def __init__(self, shown: Sequence[Candidate], grounds: Grounds) -> None:
        self._grounds = grounds
        self._alike: dict[str, list[tuple[str, Wording]]] = {}
        """Ids and words by how they begin: two with the same words say the same."""
        self._kept: list[tuple[Candidate, Wording, bool]] = []
        """Each with its words, and whether it sums up others."""
        self._sources: dict[str, int] = {}
        for one in shown:
            self._keep(one, Wording(one.record.memory))

    def objection(self, candidate: Candidate) -> str:
        """Return why a candidate is not worth its place beside them; else take it, and say so."""
        memory = candidate.record.memory
        id_ = memory.id
        wording = Wording(memory)
        for other, said in self._alike.get(wording.begin, ()):
            if said.words == wording.words:
                return "shown already" if other == id_ else f"says the same as {other}"
        if candidate.score is not None:
            reason = self._repeated(candidate, wording)
            if reason:
                return reason
            named = likeness.sources(memory)
            if named and all(self._sources.get(name, 0) >= likeness.PER_SOURCE for name in named):
                return f"{likeness.PER_SOURCE} from {named[0]} are shown already"
            for name in named:
                self._sources[name] = self._sources.get(name, 0) + 1
        self._keep(candidate, wording)
        return ""

    def _repeated(self, candidate: Candidate, wording: Wording) -> str:
        """Return which of them says nearly the same as a candidate, or sums it up."""
        memory = candidate.record.memory
        rivals = self._grounds.standing.conflicts(memory.id)
        for other, other_wording, is_sum in self._kept:
            if rivals and other.record.id in rivals:
                continue
            if likeness.says_same(wording, other_wording):
                return f"says nearly the same as {other.record.id}"
            if is_sum and _sums_up(other, memory) and _score(other) > _score(candidate):
                return f"summed up by {other.record.id}"
        return ""

    def _keep(self, candidate: Candidate, wording: Wording) -> None:
        self._alike.setdefault(wording.begin, []).append((candidate.record.id, wording))
        self._kept.append((candidate, wording, is_digest(candidate)))


def _sift(
    candidates: Sequence[Candidate],
    grounds: Grounds,
    origins: Mapping[str, Origin],
    threshold: float,
    shown: Sequence[Candidate],
    most: int,
) -> tuple[list[Candidate], list[Verdict]]:
    best = max(map(_score, candidates), default=0.0)
    least = threshold * best
    kept: list[Candidate] = []
    dropped: list[Verdict] = []
    so_far = _Kept(shown, grounds)
    place = 0
    for candidate in candidates:
        trust = origins[candidate.record.path].trust
        reason = grounds.objection(candidate.record.memory) or _staleness(candidate, grounds)
        if not reason and RANK[trust] < RANK[grounds.least_trust]:
            reason = f"its trust is {trust}, less than {grounds.least_trust}"
        if not reason and candidate.score is not None and not candidate.related:
            place += 1
            if candidate.score < least:
                reason = f"below the threshold {least:.3f}, {threshold:g} of the best score"
            elif place > most:
                reason = f"not among the best {most}"
            elif _is_generated(candidate) and candidate.score < DIGEST * best:
                reason = "what it sums up answers better"
        reason = reason or so_far.objection(candidate)
        if reason:
            dropped.append(verdict(candidate, reason, is_taken=False))
        else:
            kept.append(candidate)
    return kept, dropped
