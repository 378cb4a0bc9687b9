"""Visibility: whether a memory may be shown, by state, successors, labels and trust; or why not.

Each reader has its own rule: a search (`hidden_reason`), an agent's context
(`find_objection`, `find_distrust`), the fleet (`explain_kept_back`), pages (`is_on_pages`). They
differ on purpose: a user may search for memories that no agent gets. A reason is one clause, empty
if the memory is shown. `lifecycle` handles time; the caller passes successors, since trust decides
which lineage counts.
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
"""The setting with the labels of private memories."""

SUPERSEDED = "superseded"
PRIVATE = "private"
STALE = "stale"
"""The state of a digest that quotes a forgotten, superseded or private memory. No filter asks
for it, since a digest is for reading current memories.
"""

HIDDEN = (SUPERSEDED, DELETED, ARCHIVED, EXPIRED, PENDING, PRIVATE)
"""States in which a memory is left out unless a filter that it satisfies asks for the state."""

DEPRECATED = "deprecated"
GONE = frozenset({ARCHIVED, DELETED})
"""Statuses that end a memory's life."""
OUT_OF_USE = GONE | {DEPRECATED}
"""Statuses of memories out of use: their claims may be written again."""


def is_alive(
    memory: Memory, now: int, categories: Mapping[str, Category] = DEFAULT_CATEGORIES
) -> bool:
    """Return whether a memory is neither forgotten nor archived, and within its time."""
    return lifecycle.find_state(memory, now, categories) == ALIVE


def find_private_label(memory: Memory, labels: Collection[str]) -> str:
    """Return the first label of a memory that is one of some, whatever its case; empty if none."""
    return next((label for label in memory.items("privacy") if label.lower() in labels), "")


def superseded_reason(newer: Sequence[str]) -> str:
    """Return what hides a memory that others take the place of; empty without any."""
    return f"superseded by {', '.join(newer)}" if newer else ""


def hiding_states(state: str, withheld: str, *, is_head: bool) -> frozenset[str]:
    """Return the states for which a search leaves a memory out.

    `state` is that of its life; `withheld` is `PRIVATE`, `STALE` or empty.
    """
    reasons = (state if state != ALIVE else "", "" if is_head else SUPERSEDED, withheld)
    return frozenset(filter(None, reasons))


def hidden_reason(
    memory: Memory, state: str, newer: Sequence[str], categories: Mapping[str, Category]
) -> str:
    """Return why a search leaves a memory out for its life or its heirs."""
    if newer or state == ALIVE:
        return superseded_reason(newer)
    if state == EXPIRED:
        end = lifecycle.find_expiry(memory, categories)
        return state if end is None else f"{state} on {timestamps.format_date(end)}"
    return f"{state}, valid from {memory.text('valid_from')}" if state == PENDING else state


def find_objection(
    memory: Memory,
    newer: Sequence[str],
    labels: Collection[str],
    now: int,
    categories: Mapping[str, Category],
) -> str:
    """Return why a memory is not current knowledge for an agent."""
    label = find_private_label(memory, labels) if labels else ""
    if label:
        return f"labelled {label} ({EXCLUDE})"
    if newer:
        return superseded_reason(newer)
    if memory.status == DEPRECATED:
        return memory.status
    if not memory.has_text:
        return "it has no text"
    state = lifecycle.find_state(memory, now, categories)
    return "" if state == ALIVE else state


def find_distrust(trust: str, least: str) -> str:
    """Return why a level of trust is not enough."""
    if TRUST_LEVELS.index(trust) >= TRUST_LEVELS.index(least):
        return ""
    return f"its trust is {trust}, less than {least}"


def explain_kept_back(memory: Memory, labels: Collection[str], *, is_head: bool = True) -> str:
    """Return why a memory of a repository is not sent to its fleet; empty if it is.

    `labels` are the private ones, in lower case. A digest is left out, since the memories that it
    quotes are sent themselves. Expiry is left to the reader, since it happens without a change.
    """
    if memory.status == "candidate":
        return "nobody confirmed it"
    if memory.status in GONE:
        return f"it is {memory.status}"
    if not is_head:
        return "it is superseded"
    if is_generated(memory):
        return "it is a digest of others"
    label = find_private_label(memory, labels)
    return f"it is labelled {label}" if label else ""


def is_on_pages(memory: Memory, labels: Collection[str]) -> bool:
    """Return whether a site may show a memory: also of the past, nothing forgotten or private."""
    return memory.status != DELETED and not find_private_label(memory, labels)
