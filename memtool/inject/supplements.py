"""Supplements: memories that are shown below those that they belong to, or stand in for them.

A memory and its supplement are one unit of the budget. The supplement takes no place from another
memory: it is added once all of its tier are in. If a memory is withheld, its supplement takes its
place, with a line that says so.
"""

from __future__ import annotations

from memtool.inject.candidates import PINNED, Candidate, build_verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.inject.candidates import Eligibility
    from memtool.inject.select import Chosen
    from memtool.inject.session_seen import SeenMemories
    from memtool.store.tree import Record

MAX_WITHHELD = 2
"""Memories that one supplement stands in for; a notice counts the others."""


def add_supplements(
    chosen: Sequence[Candidate],
    grounds: Eligibility,
    seen: SeenMemories,
    shown: Sequence[Candidate],
) -> Chosen:
    """Return candidates with their supplements, and verdicts on those that are withheld.

    `shown` are in the block already. A supplement is left out if it may not be shown, or if the
    block or the session has it; then a cap refuses a withheld candidate.
    """
    shown_ids = {candidate.record.id for candidate in shown}
    replaced_ids = {record.id for candidate in shown for record in candidate.withheld}
    own_ids = {candidate.record.id for candidate in chosen}
    supplied: list[Candidate] = []
    withheld: dict[str, list[Candidate]] = {}
    for candidate in chosen:
        if candidate.record.id in replaced_ids:
            continue
        other = _find_other(candidate.record, grounds, seen)
        if other is None or other.id in shown_ids:
            supplied.append(candidate)
            continue
        if not is_withheld(candidate, grounds):
            below = candidate.record.id
            supplement = Candidate(other, candidate.tier, scope=candidate.scope, below=below)
            supplied.append(candidate.replace(supplement=supplement))
            continue
        group = withheld.setdefault(other.id, [])
        if len(group) == MAX_WITHHELD:
            supplied.append(candidate)
            continue
        if not group and other.id not in own_ids:
            supplied.append(candidate.replace(record=other, conflicts_with="", against=()))
        group.append(candidate)
    if not withheld:
        return supplied, []
    supplied = [
        _stand_in(candidate, withheld.get(candidate.record.id, ()), grounds)
        for candidate in supplied
    ]
    return supplied, [
        build_verdict(candidate, f"withheld: {id_} stands in", is_taken=False)
        for id_, group in withheld.items()
        for candidate in group
    ]


def is_withheld(candidate: Candidate, grounds: Eligibility) -> bool:
    """Return whether a candidate is not shown because of a signal; a pinned one always is."""
    return candidate.tier != PINNED and bool(grounds.find_withholding(candidate.record))


def _find_other(record: Record, grounds: Eligibility, seen: SeenMemories) -> Record | None:
    """Return the supplement of a memory if it may be shown and is news to the session."""
    supplement = grounds.find_supplement(record)
    if supplement is None:
        return None
    other = supplement.record
    is_hidden = grounds.find_refusal(other) or grounds.find_withholding(other)
    return None if is_hidden or seen.has_seen(other) else other


def _stand_in(candidate: Candidate, group: Sequence[Candidate], grounds: Eligibility) -> Candidate:
    """Return a candidate with the lines of those that it stands in for."""
    records = tuple(other.record for other in group)
    marks = tuple(map(grounds.find_withholding, records))
    return candidate.replace(withheld=records, marks=marks) if records else candidate
