"""Digests in a block: where one that was found stands for what it sums up.

A digest that scores nearly as well as the best, and suffices, comes first and covers what it sums
up. One that memtool wrote gives way to that if it does not, or tells what no longer holds; one that
a person wrote says more than its sources.
"""

from __future__ import annotations

from memtool.inject.budget import BYTES_PER_TOKEN
from memtool.inject.candidates import SUMMARY, Role
from memtool.inject.tiers import WHOLE_TOKENS
from memtool.memory.memory import is_generated
from memtool.search.scope import is_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memtool.inject.candidates import Candidate, Eligibility
    from memtool.memory.memory import Memory
    from memtool.search.retrieve import Scope


def with_roles(
    hits: Sequence[Candidate], grounds: Eligibility, scope: Scope, prompt: str
) -> list[Candidate]:
    """Return the hits of a search, each digest with its role."""
    if not any(is_digest(hit.record.memory) for hit in hits):
        return list(hits)
    suffices = _sufficiency(hits, scope, prompt)
    return [
        hit.replace(role=_role(hit.record.memory, grounds, is_enough=suffices(hit)))
        if is_digest(hit.record.memory)
        else hit
        for hit in hits
    ]


def _sufficiency(
    hits: Sequence[Candidate], scope: Scope, prompt: str
) -> Callable[[Candidate], bool]:
    """Return what tells whether that which is shown of a digest answers the prompt by itself."""
    if not prompt.strip():
        return lambda _hit: True
    from memtool.search import levels  # few stores have digests

    sufficiency = levels.Sufficiency(scope, prompt, [hit.record for hit in hits])
    return lambda hit: sufficiency.digest(hit.record, WHOLE_TOKENS * BYTES_PER_TOKEN)


def _role(digest: Memory, grounds: Eligibility, *, is_enough: bool) -> Role:
    is_ours = is_generated(digest)
    return Role(
        tier=SUMMARY,
        share=grounds.gates.digest_threshold,
        leads=is_enough,
        objection=_staleness(digest, grounds) if is_ours else "",
        too_low="what it sums up answers better" if is_ours else "",
        weakness="no line of it answers by itself" if is_ours and not is_enough else "",
        covers=lambda memory: is_enough and _sums_up(digest, memory),
    )


def _staleness(digest: Memory, grounds: Eligibility) -> str:
    """Return what a digest tells and no longer holds; empty where all does."""
    for id_ in digest.items("derived_from"):
        record = grounds.tree.get(id_)
        if record is None or grounds.objection(record.memory):
            return f"out of date: {id_} no longer holds"
    return ""


def _sums_up(digest: Memory, memory: Memory) -> bool:
    """Tell whether what is shown of a digest holds a memory: of a long one that is the lead."""
    if memory.id not in digest.items("derived_from"):
        return False
    return not is_generated(digest) or memory.title in digest.statement
