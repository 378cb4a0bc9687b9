"""Digests in a block: when a digest replaces the memories that it sums up.

A digest that scores nearly as well as the best memory, and answers by itself, comes first and
covers its members. A digest written by memtool yields to its members if it does not answer, or is
out of date; one that a person wrote is more than the sum of its sources.
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
    suffices = _build_sufficiency(hits, scope, prompt)
    return [
        hit.replace(role=_build_role(hit.record.memory, grounds, is_enough=suffices(hit)))
        if is_digest(hit.record.memory)
        else hit
        for hit in hits
    ]


def _build_sufficiency(
    hits: Sequence[Candidate], scope: Scope, prompt: str
) -> Callable[[Candidate], bool]:
    """Return a function that decides whether the shown part of a digest answers the prompt."""
    if not prompt.strip():
        return lambda _hit: True
    from memtool.search import levels  # few stores have digests

    sufficiency = levels.Sufficiency(scope, prompt, [hit.record for hit in hits])
    return lambda hit: sufficiency.is_sufficient_digest(hit.record, WHOLE_TOKENS * BYTES_PER_TOKEN)


def _build_role(digest: Memory, grounds: Eligibility, *, is_enough: bool) -> Role:
    is_ours = is_generated(digest)
    return Role(
        tier=SUMMARY,
        share=grounds.gates.digest_threshold,
        leads=is_enough,
        objection=_find_stale(digest, grounds) if is_ours else "",
        too_low="what it sums up answers better" if is_ours else "",
        weakness="no line of it answers by itself" if is_ours and not is_enough else "",
        covers=lambda memory: is_enough and _sums_up(digest, memory),
    )


def _find_stale(digest: Memory, grounds: Eligibility) -> str:
    """Return why a digest is out of date; empty if it is current."""
    for id_ in digest.items("derived_from"):
        record = grounds.tree.get(id_)
        if record is None or grounds.find_objection(record.memory):
            return f"out of date: {id_} no longer holds"
    return ""


def _sums_up(digest: Memory, memory: Memory) -> bool:
    """Return whether the shown part of a digest, of a long one the lead, has a memory."""
    if memory.id not in digest.items("derived_from"):
        return False
    return not is_generated(digest) or memory.title in digest.statement
