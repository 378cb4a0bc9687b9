"""Extraction: from the messages of a session to its findings, by rules alone.

Precision beats recall: what a person typed and what tools printed is evidence, an assistant's
proposal needs a yes behind it, and what was taken back later is no finding. Pure: no disk, no
clock; the same messages give the same findings.
"""

from __future__ import annotations

from memtool.sessions.extract import error_fix, proposals, retractions, user_rules
from memtool.sessions.extract.scene import Scene

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.sessions.model import Finding, Message

RULES: dict[str, Callable[[Scene], Iterable[Finding]]] = {
    "user_rules": user_rules.find,
    "proposals": proposals.find,
    "error_fix": error_fix.find,
}
"""Every rule, in the order in which their findings are kept where two say the same."""
MOST_MESSAGES = 10_000
"""Of a longer session the last ones are read."""
MOST_FINDINGS = 200


def extract(messages: Sequence[Message], session: str, agent: str = "") -> tuple[Finding, ...]:
    """Return the findings of a session in the order of their evidence.

    `agent` is who worked in it, unless a message says another.
    """
    scene = Scene(messages[-MOST_MESSAGES:], session, agent)
    found: dict[str, Finding] = {}
    for made in retractions.remaining(
        [one for rule in RULES.values() for one in rule(scene)], scene
    ):
        known = found.get(made.id)
        found[made.id] = made if known is None else _joined(known, made)
    ordered = sorted(found.values(), key=lambda one: (one.messages, one.id))
    if len(ordered) > MOST_FINDINGS:
        best = sorted(ordered, key=lambda one: (-one.importance, one.messages, one.id))
        kept = {one.id for one in best[:MOST_FINDINGS]}
        ordered = [one for one in ordered if one.id in kept]
    return tuple(ordered)


def _joined(known: Finding, again: Finding) -> Finding:
    """Return a finding that was made twice: the first one with the evidence of both."""
    return known.replace(
        messages=tuple(sorted({*known.messages, *again.messages})),
        importance=max(known.importance, again.importance),
        signals=tuple(dict.fromkeys((*known.signals, *again.signals))),
    )
