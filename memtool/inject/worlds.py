"""Worlds: a project's memories and the user's global ones, chosen apart, in one block.

What holds in all projects gives way to what a project says itself: where both say the same, or
contradict each other, only the project speaks. Otherwise they stand in one order, the project
first where nothing else decides.
"""

from __future__ import annotations

from memtool.inject import contrary, likeness
from memtool.inject.likeness import Wording
from memtool.inject.tiers import Candidate, Verdict, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NOTE = (
    "\nThose of scope global hold in all projects of this user: `memtool --global VERB` reads and "
    "corrects them."
)
"""Stands below the preamble of a block in which there is one."""


def yielding(
    own: Sequence[Candidate], others: Sequence[Candidate]
) -> tuple[list[Candidate], list[Verdict]]:
    """Return the global candidates that nothing of the project speaks for or against.

    `own` are those of the project, whether there is room for them or not.
    """
    against = _objections(own, others)
    kept = [one for number, one in enumerate(others) if number not in against]
    dropped = [
        verdict(others[number], reason, is_taken=False)
        for number, reason in sorted(against.items())
    ]
    return kept, dropped


def _objections(own: Sequence[Candidate], others: Sequence[Candidate]) -> dict[int, str]:
    """Return why some global candidates are left out, by their place in the list."""
    if not own or not others:
        return {}
    ours = [one.record.memory for one in own]
    theirs = [one.record.memory for one in others]
    found: dict[int, str] = {}
    for one, other in contrary.clashes([*ours, *theirs]):
        if one < len(ours) <= other:
            found.setdefault(other - len(ours), f"the project's {ours[one].id} says otherwise")
    said = [(memory.id, Wording(memory)) for memory in ours]
    for number, memory in enumerate(theirs):
        wording = Wording(memory)
        same = next(
            (id_ for id_, own in said if own.begin == wording.begin and own.words == wording.words),
            "",
        ) or next((id_ for id_, own in said if likeness.says_same(wording, own)), "")
        if same:
            found[number] = f"the project's {same} says the same"
    return found


def joined(
    own: Sequence[Candidate], others: Sequence[Candidate], threshold: float
) -> tuple[list[Candidate], list[Verdict]]:
    """Return both in one order, by weight and then the project's first.

    The order among those of one side stays, and what stands beside another for contradicting it
    stays with that one. What scores below a share of the best of both is dropped, as each side
    did by itself.
    """
    mine, theirs = _groups(own), _groups(others)
    groups: list[list[Candidate]] = []
    while mine and theirs:
        side = mine if _weight(mine[-1][0]) >= _weight(theirs[-1][0]) else theirs
        groups.append(side.pop())
    groups += reversed(mine or theirs)
    least = threshold * max((group[0].score or 0.0 for group in groups), default=0.0)
    kept: list[Candidate] = []
    dropped: list[Verdict] = []
    for group in groups:
        first = group[0]
        if first.score is None or first.related or first.score >= least:
            kept += group
        else:
            reason = f"below the threshold {least:.3f}, {threshold:g} of the best score"
            dropped += [verdict(one, reason, is_taken=False) for one in group]
    return kept, dropped


def _weight(candidate: Candidate) -> float:
    """Return the score of what was found, and the importance of what is pinned."""
    return candidate.record.memory.importance if candidate.score is None else candidate.score


def _groups(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return each candidate with those that were put beside it, the last ones first."""
    groups: list[list[Candidate]] = []
    for candidate in candidates:
        if candidate.beside and groups:
            groups[-1].append(candidate)
        else:
            groups.append([candidate])
    return groups[::-1]
