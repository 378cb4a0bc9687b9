"""Selection: which of the candidates are shown, without repeating each other.

Two memories say the same by the measure of the gate, `memory.likeness`: `30 seconds` and
`60 seconds` contradict each other.

Search has let only relevant memories pass, and has ordered them. Here the best are taken so that
none repeats another: near-duplicates are folded, no source speaks more than twice, and nothing is
shown that a better one covers. Contradictions are never folded: both sides are shown. What the
project and the user's own repository have is put into one order, in which the user's gives way.
"""

from __future__ import annotations

from memtool.inject.candidates import (
    GLOBAL,
    Candidate,
    CandidateVerdict,
    Eligibility,
    verdict,
)
from memtool.memory.visibility import distrust
from memtool.search.comparison import ComparedText, says_same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memtool.memory.memory import Memory
    from memtool.memory.trust import Origin

    Chosen = tuple[list[Candidate], list[CandidateVerdict]]
    """What is worth showing, in order, and why the rest is not."""
    Threshold = Callable[[str], float]
    """Gives the share of the best score that a memory of a category must reach."""

SOURCE_KINDS = frozenset({"commit", "file", "url", "session", "memory"})
"""Kinds that name one thing. A person or a tool says many."""


def sources(memory: Memory) -> tuple[str, ...]:
    """Return the things that a memory comes from, without places in them, sorted."""
    found = set()
    for source in memory.items("source"):
        kind, _colon, rest = source.partition(":")
        if kind in SOURCE_KINDS:
            name = rest if kind == "url" else rest.partition("#")[0].partition("@")[0]
            found.add(f"{kind}:{name}")
    return tuple(sorted(found))


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
    """Drop what is not worth showing, and put beside the rest what conflicts with it.

    Of what was found the best are looked at, as many as the gates say. Dropped is what scores
    below the threshold of its category, a share of the best score; what says the same as a better
    one; what a better one covers; and the third from one source. What was found only because a
    winner is related to it may score less. What leads by its role comes first.

    Only what may be shown counts in any of this, and nothing counts against what is more trusted:
    it sets no bar for it, takes none of its places, stands not for it, and comes before it only by
    being more relevant, not by what the file says of itself.

    `shown` are in the block already: neither they nor what says the same is shown again. `origins`
    is by path, and knows the candidates and what `grounds.beside` gives for them.
    """
    weighed = _in_their_place(candidates, grounds, origins)
    kept, dropped = _sift(weighed, grounds, origins, threshold, shown, grounds.gates.looked_at)
    kept = _leaders_first(kept)
    listed: dict[str, Candidate] = {}
    found = {candidate.record.id: candidate for candidate in kept}
    for candidate in kept:
        for one in _newest_first(candidate, found, grounds, origins):
            listed.setdefault(one.record.id, one)
        for record in grounds.beside(candidate.record):
            extra = Candidate(
                record, candidate.tier, beside=candidate.record.id, scope=grounds.scope
            )
            listed.setdefault(record.id, found.get(record.id, extra))
    if len(listed) == len(kept):
        return list(listed.values()), dropped  # each was compared with the others already
    both, repeated = _sift(
        list(listed.values()), grounds, origins, no_threshold, shown, len(listed)
    )
    return both, dropped + repeated


def _newest_first(
    candidate: Candidate,
    found: Mapping[str, Candidate],
    grounds: Eligibility,
    origins: Mapping[str, Origin],
) -> list[Candidate]:
    """Return a candidate with those that were found and contradict it, if all have its trust."""
    ids = grounds.contradicting.get(candidate.record.id, ())
    sides = [found[id_] for id_ in ids if id_ in found]
    ranks = {grounds.rank(one.record, origins[one.record.path].trust) for one in sides}
    return sides if len(ranks) == 1 else [candidate]


def _in_their_place(
    candidates: Sequence[Candidate], grounds: Eligibility, origins: Mapping[str, Origin]
) -> list[Candidate]:
    """Return what was found with no score above that of what is more trusted and more relevant.

    What a file says of itself (triggers, importance, dates, a pin) then outweighs no relevance of
    what git vouches for more. What came by score is in that order again.
    """
    ranks = [grounds.rank(one.record, origins[one.record.path].trust) for one in candidates]
    if any(one.score is None for one in candidates) or len(set(ranks)) < 2:
        return list(candidates)  # nobody asked for them, or all are trusted alike
    placed: list[tuple[float, int, str, Candidate]] = []
    for one, rank in zip(candidates, ranks, strict=True):
        above = [
            _score(other)
            for other, higher in zip(candidates, ranks, strict=True)
            if higher > rank and _relevance(other) >= _relevance(one)
        ]
        score = min([_score(one), *above])
        placed.append((-score, -rank, one.record.id, one.replace(score=score)))
    scores = list(map(_score, candidates))
    if scores == sorted(scores, reverse=True):
        placed.sort(key=lambda row: row[:3])
    return [row[3] for row in placed]


def _relevance(candidate: Candidate) -> float:
    """Return how well the words fit, which no file can say of itself."""
    return candidate.factors.get("relevance", _score(candidate))


def _score(candidate: Candidate) -> float:
    return candidate.score or 0.0


def _leaders_first(candidates: list[Candidate]) -> list[Candidate]:
    """Return candidates with those that lead in front, if they score nearly as well as the best."""
    best = max(map(_score, candidates), default=0.0)
    ahead = [
        one
        for one in candidates
        if one.role and one.role.leads and _score(one) >= one.role.share * best
    ]
    return [*ahead, *(one for one in candidates if one not in ahead)]


class _Kept:
    """What is shown so far, as that which comes next is compared with it."""

    def __init__(self, shown: Sequence[Candidate], grounds: Eligibility) -> None:
        self._grounds = grounds
        self._alike: dict[str, list[tuple[str, ComparedText]]] = {}
        """Ids and words by how they begin: two with the same words say the same."""
        self._kept: list[tuple[Candidate, ComparedText]] = []
        self._sources: dict[str, int] = {}
        for one in shown:
            self._keep(one, ComparedText(one.record.memory))

    def objection(self, candidate: Candidate) -> str:
        """Return why a candidate is not worth its place beside them; else take it, and say so."""
        memory = candidate.record.memory
        id_ = memory.id
        text = ComparedText(memory)
        for other, said in self._alike.get(text.beginning, ()):
            if said.words == text.words:
                return "shown already" if other == id_ else f"says the same as {other}"
        if candidate.score is not None:
            reason = self._repeated(candidate, text)
            if reason:
                return reason
            named = sources(memory)
            most = self._grounds.gates.per_source
            if named and all(self._sources.get(name, 0) >= most for name in named):
                return f"{most} from {named[0]} are shown already"
            for name in named:
                self._sources[name] = self._sources.get(name, 0) + 1
        self._keep(candidate, text)
        return ""

    def _repeated(self, candidate: Candidate, text: ComparedText) -> str:
        """Return which of them says nearly the same as a candidate, or covers it."""
        memory = candidate.record.memory
        rivals = self._grounds.conflicts(memory.id)
        for other, other_text in self._kept:
            if rivals and other.record.id in rivals:
                continue
            if says_same(text, other_text, self._grounds.gates.duplicate_threshold):
                return f"says nearly the same as {other.record.id}"
            is_covered = other.role is not None and other.role.covers(memory)
            if is_covered and _score(other) > _score(candidate):
                return f"summed up by {other.record.id}"
        return ""

    def _keep(self, candidate: Candidate, text: ComparedText) -> None:
        self._alike.setdefault(text.beginning, []).append((candidate.record.id, text))
        self._kept.append((candidate, text))


def _sift(
    candidates: Sequence[Candidate],
    grounds: Eligibility,
    origins: Mapping[str, Origin],
    threshold: Threshold,
    shown: Sequence[Candidate],
    most: int,
) -> tuple[list[Candidate], list[CandidateVerdict]]:
    """Return what is kept, in the order given, and the fate of the rest.

    The most trusted come first to their turn, so that nothing less trusted stands against them.
    """
    levels = [origins[candidate.record.path].trust for candidate in candidates]
    ranks = [
        grounds.rank(candidate.record, trust)
        for candidate, trust in zip(candidates, levels, strict=True)
    ]
    reasons = [
        grounds.objection(candidate.record.memory)
        or (candidate.role.objection if candidate.role else "")
        or distrust(trust, grounds.least_trust)
        for candidate, trust in zip(candidates, levels, strict=True)
    ]
    bests = _best_scores(candidates, ranks, reasons)
    so_far = _Kept(shown, grounds)
    place = 0
    for number in sorted(range(len(candidates)), key=lambda number: -ranks[number]):
        candidate = candidates[number]
        if not reasons[number] and candidate.score is not None and not candidate.related:
            place += 1
            best = bests[ranks[number]]
            reasons[number] = (
                _too_low(candidate, best, threshold(candidate.record.memory.category))
                or (f"not among the best {most}" if place > most else "")
                or _misfit(candidate, best)
            )
        reasons[number] = reasons[number] or so_far.objection(candidate)
    kept = [one for one, reason in zip(candidates, reasons, strict=True) if not reason]
    dropped = [
        verdict(one, reason, is_taken=False)
        for one, reason in zip(candidates, reasons, strict=True)
        if reason
    ]
    return kept, dropped


def _best_scores(
    candidates: Sequence[Candidate], ranks: Sequence[int], reasons: Sequence[str]
) -> dict[int, float]:
    """Return by rank the best score of what may be shown and is trusted as much, or more."""
    bests: dict[int, float] = {}
    for candidate, own_rank, reason in zip(candidates, ranks, reasons, strict=True):
        for rank in range(own_rank + 1) if not reason else ():
            bests[rank] = max(bests.get(rank, 0.0), _score(candidate))
    return bests


def _too_low(candidate: Candidate, best: float, share: float) -> str:
    """Return why a score is too low beside the best one; empty where it is not."""
    if _score(candidate) >= share * best:
        return ""
    return f"below the threshold {share * best:.3f}, {share:g} of the best score"


def _misfit(candidate: Candidate, best: float) -> str:
    """Return why a candidate of a special kind is not shown; empty where it may be."""
    role = candidate.role
    if role is None:
        return ""
    return role.too_low if role.too_low and _score(candidate) < role.share * best else role.weakness


def clashes(memories: Sequence[Memory]) -> list[tuple[int, int]]:
    """Return every two memories that may contradict each other, by place in the list, in order.

    Left out is what one of them names in `conflicts_accepted`.
    """
    if len(memories) < 2:
        return []
    from memtool.search import contradictions  # many answers hold one memory, or none

    return [
        (found.one, found.other)
        for found in contradictions.find(memories)
        if not _is_accepted(memories[found.one], memories[found.other])
    ]


def _is_accepted(one: Memory, other: Memory) -> bool:
    key = "conflicts_accepted"
    return one.id in other.items(key) or other.id in one.items(key)


def joined(
    own: Sequence[Candidate], others: Sequence[Candidate], threshold: Threshold = no_threshold
) -> Chosen:
    """Return both in one order, by weight and then the project's first.

    The order among those of one side stays, and what is next to another for conflicting with it
    stays with that one. What scores below a share of the best of both is dropped, as each side
    did by itself.
    """
    mine, theirs = _groups(own), _groups(others)
    groups: list[list[Candidate]] = []
    while mine and theirs:
        side = mine if _weight(mine[-1][0]) >= _weight(theirs[-1][0]) else theirs
        groups.append(side.pop())
    groups += reversed(mine or theirs)
    best = max((group[0].score or 0.0 for group in groups), default=0.0)
    kept: list[Candidate] = []
    dropped: list[CandidateVerdict] = []
    for group in groups:
        first = group[0]
        share = threshold(first.record.memory.category)
        if first.score is None or first.related or first.score >= share * best:
            kept += group
        else:
            dropped += [verdict(one, _too_low(first, best, share), is_taken=False) for one in group]
    return kept, dropped


def _weight(candidate: Candidate) -> float:
    """Return the score of what was found, and the importance of what is pinned."""
    return candidate.record.memory.importance if candidate.score is None else candidate.score


def _groups(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return each candidate with those that were put next to it, the last ones first."""
    groups: list[list[Candidate]] = []
    for candidate in candidates:
        if candidate.beside and groups:
            groups[-1].append(candidate)
        else:
            groups.append([candidate])
    return groups[::-1]


def yielding(own: Sequence[Candidate], others: Sequence[Candidate]) -> Chosen:
    """Return the candidates from elsewhere that nothing of one's own speaks for or against.

    `own` are those of the project, and of the user where `others` are of other repositories,
    whether there is room for them or not.
    """
    ours = [one.record.memory for one in own]
    theirs = [one.record.memory for one in others]
    reasons: dict[int, str] = {}
    for one, other in clashes([*ours, *theirs]) if ours and theirs else ():
        if one < len(ours) <= other:
            reasons.setdefault(other - len(ours), f"it may contradict {_named(own[one])}")
    said = [(_named(one), ComparedText(one.record.memory)) for one in own]
    for number, memory in enumerate(theirs if ours else ()):
        text = ComparedText(memory)
        same = next((name for name, other in said if text.has_words_of(other)), "") or next(
            (name for name, other in said if says_same(text, other)), ""
        )
        if same:
            reasons[number] = f"{same} says the same"
    kept = [one for number, one in enumerate(others) if number not in reasons]
    return kept, [verdict(others[at], reasons[at], is_taken=False) for at in sorted(reasons)]


def _named(one: Candidate) -> str:
    return f"the {'user' if one.scope == GLOBAL else 'project'}'s {one.record.id}"
