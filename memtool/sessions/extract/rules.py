"""The rules that recognise a statement: their names and order, and the tables of their phrases."""

from __future__ import annotations

from functools import cache

from memtool.sessions.extract.phrases import PhraseRow, read_phrases

REMEMBER, PINNED, TELL_AGENT = "remember", "pin", "tell-agent"
IMPORTANCE = {
    PINNED: 0.8,
    REMEMBER: 0.8,
    "lasting": 0.7,
    "told": 0.7,
    "prefer": 0.7,
    "must-only": 0.65,
    "this-is-a": 0.6,
}
"""The rules whose statements are findings, in the order in which they are tried, with their
importance: the best are shown first."""
SUGGESTING = (PINNED, REMEMBER, "lasting", "told", TELL_AGENT)
"""Rules that make it likely that the person wants a memory: an agent is told so."""


@cache
def read_rules(name: str) -> tuple[PhraseRow, ...]:
    """Return a table of phrases; the rows of rules in the order in which they are tried."""
    order = {rule: number for number, rule in enumerate((*IMPORTANCE, TELL_AGENT))}
    rows = read_phrases(f"sessions/{name}")
    return tuple(sorted(rows, key=lambda row: order.get(row.name, 0)))


def may_be_wish(text: str) -> bool:
    """Return whether a normalised text has a phrase that asks an agent to keep something.

    Cheap: whether a sentence really does is for `statements.is_wish`.
    """
    return any(
        phrase.parts[0] in text
        for row in read_rules("statements")
        if row.name in SUGGESTING
        for phrase in row.phrases
    )
