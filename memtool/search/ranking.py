"""Ranking: the factors by which the relevance of a hit is multiplied, one table.

Relevance comes from words (0 to 1, 1 for the best match). Each factor is near 1 and bounded, so
that it orders what is about equally relevant, and cannot lift what is not. Recency and status are
those that measurably help in tracked work; how much files, confidence and importance should weigh
has not been measured, so they weigh little.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from memtool.memory import lifecycle, moments
from memtool.memory.fields import STATUSES
from memtool.search import globs
from memtool.search.facts import Facts, governed
from memtool.store.tree import Record
from memtool.value import Value

RECENCY = 0.25
"""What a memory of this second gains; it fades with the decay rate of the memory's category."""
AFFINITY = 0.1
CONFIDENCE = {"low": 0.93, "medium": 1.0, "high": 1.05}
STATUS = {
    "pinned": 1.1,
    "confirmed": 1.0,
    "candidate": 0.85,
    "deprecated": 0.6,
    "archived": 0.7,
    "deleted": 0.5,
}
CURRENT = {True: 1.0, False: 0.7}
DEFAULT_DECAY_PER_DAY = 0.003

assert set(STATUS) == set(STATUSES)


class Factor(Value):
    """One row: `weigh` gets the record, its facts and the open files; two bounds hold it."""

    name: str
    least: float
    most: float
    doc: str
    weigh: Callable[[Record, Facts, tuple[str, ...]], float]


def decay_per_day(record: Record, facts: Facts) -> float:
    """Return how fast a memory fades: its own rate, else its category's; 0 if it is eternal."""
    own = record.memory.text("fade_rate")
    if own:
        return float(own)
    if record.memory.text("temporal_class") == "eternal":
        return 0.0
    row = facts.categories.get(record.memory.category)
    return DEFAULT_DECAY_PER_DAY if row is None else row.decay_per_day


def _recency(record: Record, facts: Facts, _files: tuple[str, ...]) -> float:
    age_days = max(0, facts.now - lifecycle.confirmed_at(record.memory)) / moments.DAY_S
    return 1 + RECENCY * math.exp(-decay_per_day(record, facts) * age_days)


def _category(record: Record, facts: Facts, _files: tuple[str, ...]) -> float:
    row = facts.categories.get(record.memory.category)
    return 1 + ((row.weight if row else 1.0) - 1) / 2


def is_near(record: Record, files: tuple[str, ...]) -> bool:
    """Tell whether a memory governs one of the files, or names it as a source."""
    named = governed(record) if files else []
    return any(globs.governs(entry, path) for entry in named for path in files)


def _files(record: Record, _facts: Facts, files: tuple[str, ...]) -> float:
    return 1 + AFFINITY if is_near(record, files) else 1.0


FACTORS: tuple[Factor, ...] = (
    Factor("recency", 1.0, 1 + RECENCY, "1.25 when confirmed just now, fading to 1",
           _recency),
    Factor("status", 0.5, 1.1, "pinned before confirmed before candidate before deprecated",
           lambda record, _facts, _files: STATUS[record.memory.status]),
    Factor("current", 0.7, 1.0, "0.7 for a memory that is superseded, where it is asked for",
           lambda record, facts, _files: CURRENT[facts.lineage.is_head(record.id)]),
    Factor("category", 0.75, 1.25, "half way from 1 to the weight of the category", _category),
    Factor("confidence", 0.93, 1.05, "low, medium or high",
           lambda record, _facts, _files: CONFIDENCE[record.memory.confidence]),
    Factor("importance", 0.9, 1.1, "0.9 for importance 0, 1 where nobody said, 1.1 for 1",
           lambda record, _facts, _files: 0.9 + 0.2 * record.memory.importance),
    Factor("files", 1.0, 1 + AFFINITY, "1.1 where it governs a file that is open", _files),
)  # fmt: skip

MOST = math.prod(factor.most for factor in FACTORS)
LEAST = math.prod(factor.least for factor in FACTORS)


def weigh(record: Record, facts: Facts, files: tuple[str, ...] = ()) -> dict[str, float]:
    """Return every factor of a record by name, in the order of the table."""
    return {
        factor.name: min(factor.most, max(factor.least, factor.weigh(record, facts, files)))
        for factor in FACTORS
    }
