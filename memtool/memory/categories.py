"""The category table: how much a kind of knowledge weighs, how long it lasts, how it fades."""

from __future__ import annotations

from memtool.value import Value


class Category(Value):
    """One row.

    `weight` is a rank factor around 1, `ttl_days` 0 means for ever, `decay_per_day` is the rate of
    exponential fading per day.
    """

    name: str
    weight: float
    ttl_days: int
    decay_per_day: float
    temporal_class: str
    doc: str


CATEGORIES: tuple[Category, ...] = (
    Category("decision", 1.2, 90, 0.003, "long_term", "a choice between alternatives"),
    Category("architecture", 1.2, 180, 0.002, "long_term", "how the parts fit together"),
    Category("pattern", 1.1, 180, 0.003, "long_term", "how things are done here"),
    Category("warning", 1.15, 30, 0.01, "medium_term", "a trap, and how to avoid it"),
    Category("discovery", 1.0, 21, 0.02, "medium_term", "something found out"),
    Category("error", 1.1, 90, 0.01, "medium_term", "a failure and what fixed it"),
    Category("preference", 1.1, 365, 0.001, "long_term", "how the user wants it"),
    Category("file_change", 0.8, 21, 0.05, "short_term", "what was changed, and why"),
    Category("task_progress", 0.8, 14, 0.1, "ephemeral", "where the work stands"),
)

DEFAULT_BY_TYPE = {
    "decision": "decision",
    "semantic": "pattern",
    "episodic": "error",
    "state": "task_progress",
}
"""The category of a memory that names none."""

DEFAULT_CATEGORIES: dict[str, Category] = {row.name: row for row in CATEGORIES}
