"""Visibility: may a memory be shown, by its life, its heirs, its labels and its trust, or why not.

Each reader has a rule of its own here: a search (`why_hidden`), an agent's context (`objection`,
`distrust`), the fleet (`why_kept_back`), pages (`is_on_pages`).
They differ on purpose: a person may look for what no agent is told. A reason is one clause, empty
where the memory is shown. What time does to a memory is `lifecycle`'s; who took its place is the
caller's to say, since trust decides which lineage counts.
"""

from __future__ import annotations

from memtool.memory import lifecycle, timestamps
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.lifecycle import ALIVE, ARCHIVED, DELETED, EXPIRED, PENDING
from memtool.memory.memory import is_generated
from memtool.memory.trust import TRUST_LEVELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from memtool.memory.fields import Category
    from memtool.memory.memory import Memory

EXCLUDE = "inject.exclude_privacy"
"""The setting that names the labels of what is private."""

SUPERSEDED = "superseded"
PRIVATE = "private"
STALE = "stale"
"""The state of a digest that quotes what was forgotten, superseded or is private: no filter asks
for it, since a digest is for reading what holds."""

HIDDEN = (SUPERSEDED, DELETED, ARCHIVED, EXPIRED, PENDING, PRIVATE)
"""States in which a memory is left out unless a filter that it satisfies asks for the state."""

DEPRECATED = "deprecated"
GONE = frozenset({ARCHIVED, DELETED})
"""Statuses by which somebody ended a memory's life."""
OUT_OF_USE = GONE | {DEPRECATED}
"""Statuses of memories that are not in use: what they said may be said again."""


def is_alive(
    memory: Memory, now: int, categories: Mapping[str, Category] = DEFAULT_CATEGORIES
) -> bool:
    """Tell whether a memory is neither forgotten nor archived, and within its time."""
    return lifecycle.state(memory, now, categories) == ALIVE


def private_label(memory: Memory, labels: Collection[str]) -> str:
    """Return the first label of a memory that is one of some, whatever its case; empty if none."""
    return next((one for one in memory.items("privacy") if one.lower() in labels), "")


def superseded(newer: Sequence[str]) -> str:
    """Return what hides a memory that others take the place of; empty without any."""
    return f"superseded by {', '.join(newer)}" if newer else ""


def hiding(state: str, withheld: str, *, is_head: bool) -> frozenset[str]:
    """Return the states for which a search leaves a memory out.

    `state` is that of its life; `withheld` is `PRIVATE`, `STALE` or empty.
    """
    found = (state if state != ALIVE else "", "" if is_head else SUPERSEDED, withheld)
    return frozenset(filter(None, found))


def why_hidden(
    memory: Memory, state: str, newer: Sequence[str], categories: Mapping[str, Category]
) -> str:
    """Return why a search leaves a memory out for its life or its heirs."""
    if newer or state == ALIVE:
        return superseded(newer)
    if state == EXPIRED:
        end = lifecycle.expires_at(memory, categories)
        return state if end is None else f"{state} on {timestamps.date(end)}"
    return f"{state}, valid from {memory.text('valid_from')}" if state == PENDING else state


def objection(
    memory: Memory,
    newer: Sequence[str],
    labels: Collection[str],
    now: int,
    categories: Mapping[str, Category],
) -> str:
    """Return why a memory is not current knowledge for an agent."""
    label = private_label(memory, labels) if labels else ""
    if label:
        return f"labelled {label} ({EXCLUDE})"
    if newer:
        return superseded(newer)
    if memory.status == DEPRECATED:
        return memory.status
    if not memory.statement:
        return "it has no text"
    state = lifecycle.state(memory, now, categories)
    return "" if state == ALIVE else state


def distrust(trust: str, least: str) -> str:
    """Return why a level of trust is not enough."""
    if TRUST_LEVELS.index(trust) >= TRUST_LEVELS.index(least):
        return ""
    return f"its trust is {trust}, less than {least}"


def why_kept_back(memory: Memory, labels: Collection[str], *, is_head: bool = True) -> str:
    """Return why a memory of a repository is not for its fleet.

    `labels` are those of privacy that keep it back, in small letters. A digest quotes others, which
    are there themselves. What has expired is for who asks to leave out: that comes by itself.
    """
    if memory.status == "candidate":
        return "nobody confirmed it"
    if memory.status in GONE:
        return f"it is {memory.status}"
    if not is_head:
        return "it is superseded"
    if is_generated(memory):
        return "it is a digest of others"
    label = private_label(memory, labels)
    return f"it is labelled {label}" if label else ""


def is_on_pages(memory: Memory, labels: Collection[str]) -> bool:
    """Tell whether a site may show a memory: its history too, but nothing forgotten or private."""
    return memory.status != DELETED and not private_label(memory, labels)
