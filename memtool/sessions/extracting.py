"""Extraction: from the messages of a session to its findings, by rules alone.

Precision beats recall: what a person typed and what tools printed is evidence, an assistant's
words need one of these behind them, and what was taken back later is no finding. Pure: no disk,
no clock; the same messages give the same findings.
"""

from __future__ import annotations

from memtool.memory import timestamps
from memtool.memory.memory import title_of
from memtool.sessions import finding as findings
from memtool.sessions import refuting
from memtool.sessions.claim import Claim, printable, tags_of
from memtool.sessions.finding import Finding
from memtool.sessions.rules import agreeing, failing, saying, showing, telling
from memtool.sessions.scene import Scene

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.sessions.message import Message

RULES: dict[str, Callable[[Scene], Iterable[Claim]]] = {
    "saying": saying.find,
    "agreeing": agreeing.find,
    "showing": showing.find,
    "failing": failing.find,
    "telling": telling.find,
}
"""Every rule, in the order in which their claims are kept where two say the same."""
MOST_MESSAGES = 10_000
"""Of a longer session the last ones are read."""
MOST_FINDINGS = 200
MOST_MOMENT = 250_000_000_000
"""No calendar of ours goes further."""


def extract(messages: Sequence[Message], session: str, agent: str = "") -> tuple[Finding, ...]:
    """Return the findings of a session in the order of their evidence.

    `agent` is who worked in it, unless a message says another.
    """
    taken = messages[-MOST_MESSAGES:]
    scene = Scene(taken)
    claims = [claim for rule in RULES.values() for claim in rule(scene)]
    agents = {message.number: message.agent for message in taken if message.agent}
    said = {m.number: timestamps.render(m.moment) for m in taken if 0 < m.moment < MOST_MOMENT}
    found: dict[str, Finding] = {}
    for claim in refuting.remaining(claims, scene):
        facts = {
            "agent": next((agents[n] for n in claim.messages if n in agents), agent),
            "said": next((said[n] for n in reversed(claim.messages) if n in said), ""),
        }
        made = _finding(claim, session, facts)
        known = found.get(made.id)
        found[made.id] = made if known is None else _joined(known, made)
    ordered = sorted(found.values(), key=lambda one: (one.messages, one.id))
    if len(ordered) > MOST_FINDINGS:
        best = sorted(ordered, key=lambda one: (-one.importance, one.messages, one.id))
        kept = {one.id for one in best[:MOST_FINDINGS]}
        ordered = [one for one in ordered if one.id in kept]
    return tuple(ordered)


def _finding(claim: Claim, session: str, facts: dict[str, str]) -> Finding:
    content = printable(claim.content)[: findings.MOST_CONTENT]
    own = ((name, _shown(text)) for name, text in claim.fields)
    return Finding(
        id=findings.make_id(session, content),
        session=session,
        content=content,
        title=title_of(content),
        category=claim.category,
        confidence=claim.confidence,
        importance=claim.importance,
        messages=claim.messages,
        files=claim.files,
        tags=tags_of(content),
        signals=claim.signals,
        fields=(*own, *((name, text) for name, text in facts.items() if text)),
    )


def _shown(text: str) -> str:
    """Return a text without characters that cannot be shown; lines stay lines."""
    return "\n".join(map(printable, text.split("\n"))) if "\n" in text else printable(text)


def _joined(known: Finding, again: Finding) -> Finding:
    """Return a finding that was made twice: the first one with the evidence of both."""
    return known.replace(
        messages=tuple(sorted({*known.messages, *again.messages})),
        importance=max(known.importance, again.importance),
        signals=tuple(dict.fromkeys((*known.signals, *again.signals))),
    )
