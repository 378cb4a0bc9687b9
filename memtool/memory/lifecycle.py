"""The effects of time on a memory: expiry, due dates, decay and fading.

A memory is alive if it is not deleted, not archived, and inside its validity window. When the time
of its category is over, a memory expires only if it is about temporary work or was never confirmed;
a confirmed memory stays alive and is due for review. Being superseded is a separate question.

Retention is 1 just after confirmation and falls towards 0. It does not decide whether the memory is
alive, and is never written to a file. Each preset has its formula:

- `steady` and `exponential`: e^(-rate x days), the forgetting curve after Ebbinghaus (1885); each
  access adds a twentieth of it, up to 1. With the rates of `steady`, half of a decision remains
  after eight months; with those of `exponential`, after three weeks.
- `half-life`: 1 / (1 + days / half-life), the hyperbola of Mazur (1987): as fast at first, but it
  keeps more of old memories.
- `weekly`: 0.95 a week, 0.9 of it for a candidate, times 0.5 + 0.05 for each access, up to 1.

Accesses are counted per clone. If they are not counted, no formula uses them, so that every clone
computes the same.
"""

from __future__ import annotations

import math

from memtool.memory import timestamps
from memtool.memory.fields import DEFAULT_CATEGORIES, EPISODE_PER_DAY, UNKNOWN, Category
from memtool.memory.memory import Fields, Memory
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ALIVE = "alive"
DELETED = "deleted"
ARCHIVED = "archived"
PENDING = "pending"
EXPIRED = "expired"
EXPIRES_SOON_DAYS = 14
"""Days before its end in which a memory is said to expire soon."""


def find_confirmed_at(memory: Memory) -> int:
    """Return the second of the last confirmation, or of the writing if it was never confirmed."""
    at = memory.table("checked").get("at")
    return max(memory.timestamp, timestamps.parse(at)) if at else memory.timestamp


PASSING = frozenset({"short_term", "ephemeral"})
"""Temporal classes of memories that expire, confirmed or not; those of others are due for review,
and those of eternal ones are neither."""

CLASS_DAYS = {"long_term": 180, "medium_term": 30, "short_term": 21, "ephemeral": 14}
"""The time of a memory that names another temporal class than that of its category."""


def find_temporal_class(memory: Memory, categories: Mapping[str, Category]) -> str:
    """Return the temporal class of a memory: its own, else its category's, else none."""
    row = categories.get(memory.category)
    return memory.text("temporal_class") or ("" if row is None else row.temporal_class)


def find_term_days(memory: Memory, categories: Mapping[str, Category]) -> int:
    """Return the days until a memory expires or is due for review; 0 for no limit.

    They come from its own temporal class if it has one, else from its category.
    """
    own, row = memory.text("temporal_class"), categories.get(memory.category)
    if memory.status == "pinned" or own == "eternal":
        return 0
    if own and (row is None or own != row.temporal_class):
        return CLASS_DAYS[own]
    return 0 if row is None else row.ttl_days


def describe_term(memory: Memory, categories: Mapping[str, Category]) -> str:
    """Return that time in words, with what gives it."""
    days, own = find_term_days(memory, categories), memory.text("temporal_class")
    row = categories.get(memory.category)
    is_own = bool(own) and (row is None or own != row.temporal_class)
    what = f"temporal class {own}" if is_own else f"category {memory.category}"
    return f"the {days} days of the {what}"


def is_passing(memory: Memory, categories: Mapping[str, Category] = DEFAULT_CATEGORIES) -> bool:
    """Return whether a memory expires at the end of its time, instead of becoming due.

    These are candidates, and memories whose temporal class is short-term or ephemeral: their own
    class, else that of their category. A state of the work without a class expires, too.
    """
    is_state = memory.type == "state" and not memory.text("temporal_class")
    is_short = find_temporal_class(memory, categories) in PASSING
    return is_state or memory.status == "candidate" or is_short


def find_expiry(
    memory: Memory, categories: Mapping[str, Category] = DEFAULT_CATEGORIES
) -> int | None:
    """Return the last second of a memory's life; None if it has no end.

    An explicit `valid_through` decides, else the time of the category if that ends a life.
    """
    end = memory.text("valid_through")
    if end:
        return timestamps.end(end)
    return _find_category_end(memory, categories) if is_passing(memory, categories) else None


def find_due(memory: Memory, categories: Mapping[str, Category] = DEFAULT_CATEGORIES) -> int | None:
    """Return the last second before a memory is due for review; None if it never is.

    A memory with its own `valid_through` needs no review because of its age.
    """
    if memory.text("valid_through") or is_passing(memory, categories):
        return None
    return _find_category_end(memory, categories)


def is_due(
    memory: Memory, now: int, categories: Mapping[str, Category] = DEFAULT_CATEGORIES
) -> bool:
    """Return whether the time of a memory's category has run out since it was last confirmed."""
    end = find_due(memory, categories)
    return end is not None and now > end


def _find_category_end(memory: Memory, categories: Mapping[str, Category]) -> int | None:
    """Return the last second of the category's time; None if it has no end.

    It counts from the last confirmation. Pinned and eternal memories have no end.
    """
    days = find_term_days(memory, categories)
    return find_confirmed_at(memory) + days * timestamps.DAY_S if days else None


def find_state(
    memory: Memory, now: int, categories: Mapping[str, Category] = DEFAULT_CATEGORIES
) -> str:
    """Return `alive`, `deleted`, `archived`, `pending` (not yet valid) or `expired` at a moment.

    A memory deleted after the moment was still there; one archived has no date, so it counts.
    """
    if memory.status == "deleted":
        at = memory.table("deleted").get("at")
        if at is None or timestamps.parse(at) <= now:
            return DELETED
    if memory.status == "archived":
        return ARCHIVED
    begin = memory.text("valid_from")
    if begin and now < timestamps.start(begin):
        return PENDING
    end = find_expiry(memory, categories)
    return EXPIRED if end is not None and now > end else ALIVE


def retire_fields(memory: Memory, at: int, by: str) -> Fields:
    """Return the fields that an archived or deprecated memory keeps, next to its new status.

    A candidate that would replace others keeps the note that it was never confirmed.
    """
    if memory.status != "candidate" or not memory.proposes:
        return {}
    return {"retired": {"at": timestamps.render(at), "by": by, "was": memory.status}}


PER_ACCESS = 0.05
WEEKLY = 0.95
UNSEEN = 0.5
"""The result of the weekly formula for a memory without accesses."""
CANDIDATE = 0.9


HALF_LIFE_DAYS = 30
STEADY = "steady"
"""The default preset."""


class Pace(Value):
    """How memories of one kind fade: at a rate a day, 0 for never, by the formula of a preset."""

    rate_per_day: float
    is_candidate: bool
    preset: str

    def retention(self, seconds: int, accesses: int | None = None) -> float:
        """Return the retention, 0 to 1, some seconds after the last confirmation."""
        if self.rate_per_day == 0:
            return 1.0
        days = max(0, seconds) / timestamps.DAY_S
        return PRESETS[self.preset].formula(self, days, accesses)


def fade_exponentially(pace: Pace, days: float, accesses: int | None) -> float:
    """Return e^(-rate x days) x (1 + 0.05 x accesses), 1 at most."""
    return min(1.0, math.exp(-pace.rate_per_day * days) * (1 + PER_ACCESS * (accesses or 0)))


def fade_by_half_life(_pace: Pace, days: float, _accesses: int | None) -> float:
    """Return 1 / (1 + days / half-life)."""
    return 1 / (1 + days / HALF_LIFE_DAYS)


def fade_weekly(pace: Pace, days: float, accesses: int | None) -> float:
    """Return 0.95^(days / 7), reduced for a candidate and for rare accesses."""
    remaining = math.pow(WEEKLY, days / 7)
    if pace.is_candidate:
        remaining *= CANDIDATE
    return remaining if accesses is None else remaining * min(1.0, UNSEEN + PER_ACCESS * accesses)


def find_steady_rate(memory: Memory, categories: Mapping[str, Category]) -> float:
    """Return how fast a memory fades: its own rate, else its category's.

    An eternal memory has no end, but it fades: of two about the same thing, the newer one is more
    likely meant. A fade rate of 0 turns this off.
    """
    own = memory.text("fade_rate")
    return float(own) if own else _find_category(memory, categories).decay_per_day


def find_forgetting_rate(memory: Memory, categories: Mapping[str, Category]) -> float:
    """Return how fast a memory is forgotten: its own rate, never if eternal, its category's.

    An episode that names no category fades as one.
    """
    own = memory.text("fade_rate")
    if own:
        return float(own)
    if find_temporal_class(memory, categories) == "eternal":
        return 0.0
    if memory.type == "episodic" and not memory.text("category"):
        return EPISODE_PER_DAY
    return _find_category(memory, categories).lambda_per_day


def _find_category(memory: Memory, categories: Mapping[str, Category]) -> Category:
    return categories.get(memory.category, UNKNOWN)


class DecayPreset(Value):
    """One preset: a formula, its rates, and what its result affects.

    `counts`: accesses count. `scales`: the result scales
    importance in the ranking, not freshness alone.
    """

    formula: Callable[[Pace, float, int | None], float]
    rate: Callable[[Memory, Mapping[str, Category]], float]
    counts: bool
    scales: bool
    doc: str


PRESETS: dict[str, DecayPreset] = {
    STEADY: DecayPreset(
        fade_exponentially,
        find_steady_rate,
        counts=False,
        scales=False,
        doc="e^(-rate·days) · (1 + 0.05·accesses), 1 at most; the rate is that of the category",
    ),
    "exponential": DecayPreset(
        fade_exponentially,
        find_forgetting_rate,
        counts=True,
        scales=True,
        doc="e^(-λ·days) · (1 + 0.05·accesses), 1 at most; λ is that of the category, 0.1 for an "
        "episodic memory that names none, and 0 for what is eternal",
    ),
    "half-life": DecayPreset(
        fade_by_half_life,
        find_steady_rate,
        counts=False,
        scales=True,
        doc="1 / (1 + days / 30)",
    ),
    "weekly": DecayPreset(
        fade_weekly,
        find_steady_rate,
        counts=True,
        scales=True,
        doc="0.95^(days/7) · 0.9 for a candidate · min(1, 0.5 + 0.05·accesses)",
    ),
}
"""How memories fade, by the name in the settings; days are those since the last confirmation. The
first is the default."""


def find_pace(memory: Memory, categories: Mapping[str, Category], preset: str = STEADY) -> Pace:
    """Return how a memory fades; a pinned one does not."""
    is_pinned = memory.status == "pinned"
    rate = 0.0 if is_pinned else PRESETS[preset].rate(memory, categories)
    return Pace(rate, memory.status == "candidate", preset)


def compute_retention(
    memory: Memory,
    now: int,
    categories: Mapping[str, Category],
    preset: str = STEADY,
    accesses: int | None = None,
) -> float:
    """Return what time has left of a memory, 0 to 1, since it was last confirmed.

    A pinned memory and one with a fade rate of 0 never fade, nor does one from the future.
    """
    seconds = now - find_confirmed_at(memory)
    return find_pace(memory, categories, preset).retention(seconds, accesses)
