"""Agreement: which findings say the same, and how many sessions and agents stand behind each."""

from __future__ import annotations

from memtool.gate import near_duplicates
from memtool.memory.memory import Memory
from memtool.sessions import finding as findings
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memtool.sessions.finding import Finding

LIKENESS = 0.7
"""Two findings with this likeness say the same: words that people speak differ more than files."""
MOST_COMPARED = 12
"""Findings that one is compared with in full: those that share most words."""


class Support(Value):
    """How many sessions and agents say what a finding says, its own included."""

    sessions: int
    agents: int


def supports(all_: Sequence[Finding], roots: Mapping[str, str]) -> dict[str, Support]:
    """Return the support of each finding by its id.

    `roots` maps a session to the one that it was forked from in the end: a fork repeats what its
    parent heard, and is no second witness.
    """
    exact: dict[str, list[int]] = {}
    for at, one in enumerate(all_):
        exact.setdefault(findings.fingerprint(one.content), []).append(at)
    groups = list(exact.values())
    near = _near([all_[group[0]] for group in groups])
    found: dict[str, Support] = {}
    for number, group in enumerate(groups):
        same = [at for other in (number, *near[number]) for at in groups[other]]
        sessions = {roots.get(all_[at].session, all_[at].session) for at in same}
        agents = {name for at in same if (name := all_[at].field("agent"))}
        for at in group:
            found[all_[at].id] = Support(len(sessions), max(1, len(agents)))
    return found


def _near(heads: Sequence[Finding]) -> list[list[int]]:
    """Return for each finding the others that say nearly the same, by their places."""
    memories = [as_memory(one) for one in heads]
    near = near_duplicates.joined(
        [near_duplicates.words_in(one) for one in memories], MOST_COMPARED
    )
    pairs = {tuple(sorted((at, other))) for at, others in enumerate(near) for other in others}
    found: list[list[int]] = [[] for _one in heads]
    for one, other in sorted(pairs):
        if near_duplicates.likeness(memories[one], memories[other]) >= LIKENESS:
            found[one].append(other)
            found[other].append(one)
    return found


def as_memory(finding: Finding) -> Memory:
    """Return a finding as a memory that compares with others; it has no id and is not written."""
    return Memory(fields={"type": "semantic", "title": finding.content}, body="")
