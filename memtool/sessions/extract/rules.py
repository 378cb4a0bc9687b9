"""The rules that recognise a statement: their names and order, and the tables of their phrases."""

from __future__ import annotations

from functools import cache

from memtool.authoring.introductions import read_introductions
from memtool.authoring.phrases import PhraseRow, read_phrases

STATEMENTS = "statements"
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
    """Return a table of phrases: rules in the order in which they are tried, with introductions."""
    order = {rule: number for number, rule in enumerate((*IMPORTANCE, TELL_AGENT))}
    rows = read_phrases(f"sessions/{name}")
    if name == STATEMENTS:
        rows += tuple(row for row in read_introductions() if row.name in order)
    return tuple(sorted(rows, key=lambda row: order.get(row.name, 0)))


def may_be_wish(text: str) -> bool:
    """Return whether a normalised text has a phrase that asks an agent to keep something.

    Cheap: whether a sentence really does is for `statements.is_wish`.
    """
    return any(
        phrase.parts[0] in text
        for row in read_rules(STATEMENTS)
        if row.name in SUGGESTING
        for phrase in row.phrases
    )
