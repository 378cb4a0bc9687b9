"""What time does to a memory: expiry, due dates, decay and fading.

Alive means: not deleted, not archived, inside its validity window. Where the time of its category
is over, a memory expires only if it is about work that passes or nobody has confirmed it; what a
person vouched for stays alive and is due for review. Lineage (superseded or not) is a separate
question.

What time leaves of a memory is 1 when it was just confirmed, and falls towards 0. It says nothing
of whether the memory is alive, and is never written into a file. Each preset has its formula:

- `steady` and `exponential`: e^(-rate x days), the forgetting curve after Ebbinghaus (1885); each
  access adds a twentieth of it, up to 1. By the rates of the first half of a decision is left after
  eight months, by those of the second after three weeks.
- `half-life`: 1 / (1 + days / half-life), the hyperbola of Mazur (1987): it falls as fast at first,
  and keeps more of what is old.
- `weekly`: 0.95 a week, 0.9 of it for a candidate, times 0.5 + 0.05 for each access, up to 1.

Accesses are what one clone observed: where nobody counts them, no formula asks for them, so that
every clone gives the same.
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


def confirmed_at(memory: Memory) -> int:
    """Return the second of the last confirmation, or of the writing where there was none."""
    at = memory.table("checked").get("at")
    return max(memory.timestamp, timestamps.parse(at)) if at else memory.timestamp


PASSING = frozenset({"short_term", "ephemeral"})
"""Temporal classes of memories that expire, confirmed or not; those of others are due for review,
and those of eternal ones are neither."""

CLASS_DAYS = {"long_term": 180, "medium_term": 30, "short_term": 21, "ephemeral": 14}
"""The time of a memory that names another temporal class than that of its category."""


def temporal_class(memory: Memory, categories: Mapping[str, Category]) -> str:
    """Return the temporal class of a memory: its own, else its category's, else none."""
    row = categories.get(memory.category)
    return memory.text("temporal_class") or ("" if row is None else row.temporal_class)


def term_days(memory: Memory, categories: Mapping[str, Category]) -> int:
    """Return the days until a memory expires or is due for review, 0 where it has no end.

    They are its category's, or those of its own temporal class where that is another one.
    """
    own, row = memory.text("temporal_class"), categories.get(memory.category)
    if memory.status == "pinned" or own == "eternal":
        return 0
    if own and (row is None or own != row.temporal_class):
        return CLASS_DAYS[own]
    return 0 if row is None else row.ttl_days


def term_text(memory: Memory, categories: Mapping[str, Category]) -> str:
    """Return that time in words, with what gives it."""
    days, own = term_days(memory, categories), memory.text("temporal_class")
    row = categories.get(memory.category)
    is_own = bool(own) and (row is None or own != row.temporal_class)
    what = f"temporal class {own}" if is_own else f"category {memory.category}"
    return f"the {days} days of the {what}"


def is_passing(memory: Memory, categories: Mapping[str, Category] = DEFAULT_CATEGORIES) -> bool:
    """Tell whether a memory expires when its time is over, and is not merely due then.

    Such are candidates, for which nobody has vouched, and what is short-term or ephemeral by its
    own temporal class, else by its category's; states of the work are where they name no class.
    """
    is_state = memory.type == "state" and not memory.text("temporal_class")
    is_short = temporal_class(memory, categories) in PASSING
    return is_state or memory.status == "candidate" or is_short


def expires_at(
    memory: Memory, categories: Mapping[str, Category] = DEFAULT_CATEGORIES
) -> int | None:
    """Return the last second of a memory's life, None where it has no end.

    An explicit `valid_through` decides, else the time of the category, where that ends a life.
    """
    end = memory.text("valid_through")
    if end:
        return timestamps.end(end)
    return _category_end(memory, categories) if is_passing(memory, categories) else None


def due_at(memory: Memory, categories: Mapping[str, Category] = DEFAULT_CATEGORIES) -> int | None:
    """Return the last second before a memory is due for review, None where it never is.

    What says itself how long it is valid needs no review for its age.
    """
    if memory.text("valid_through") or is_passing(memory, categories):
        return None
    return _category_end(memory, categories)


def is_due(
    memory: Memory, now: int, categories: Mapping[str, Category] = DEFAULT_CATEGORIES
) -> bool:
    """Tell whether the time of a memory's category has run out since somebody confirmed it."""
    end = due_at(memory, categories)
    return end is not None and now > end


def _category_end(memory: Memory, categories: Mapping[str, Category]) -> int | None:
    """Return the last second of the time that the category gives, None where that has no end.

    It counts from the last confirmation; pinned and eternal memories have no end.
    """
    days = term_days(memory, categories)
    return confirmed_at(memory) + days * timestamps.DAY_S if days else None


def state(memory: Memory, now: int, categories: Mapping[str, Category] = DEFAULT_CATEGORIES) -> str:
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
    end = expires_at(memory, categories)
    return EXPIRED if end is not None and now > end else ALIVE


def retired(memory: Memory, at: int, by: str) -> Fields:
    """Return what a memory keeps when it is archived or deprecated, beside its new status.

    A candidate that would replace others keeps that nobody had confirmed it.
    """
    if memory.status != "candidate" or not memory.proposes:
        return {}
    return {"retired": {"at": timestamps.render(at), "by": by, "was": memory.status}}


PER_ACCESS = 0.05
WEEKLY = 0.95
UNSEEN = 0.5
"""What the weekly formula leaves of a memory that nobody has looked at."""
CANDIDATE = 0.9


class Fading(Value):
    """How memories fade here: by which preset, in which half-life, and whether accesses count."""

    preset: str = "steady"
    half_life_days: float = 30.0
    is_counting: bool = False


class Pace(Value):
    """How memories of one kind fade: at a rate a day, 0 for never, by the formula of a preset."""

    rate_per_day: float
    is_candidate: bool
    fading: Fading

    def kept(self, seconds: int, accesses: int | None = None) -> float:
        """Return what is left, 0 to 1, so many seconds after a memory was last confirmed."""
        if self.rate_per_day == 0:
            return 1.0
        days = max(0, seconds) / timestamps.DAY_S
        return PRESETS[self.fading.preset].formula(self, days, accesses)


def exponential(pace: Pace, days: float, accesses: int | None) -> float:
    """Return e^(-rate x days) x (1 + 0.05 x accesses), 1 at most."""
    return min(1.0, math.exp(-pace.rate_per_day * days) * (1 + PER_ACCESS * (accesses or 0)))


def half_life(pace: Pace, days: float, _accesses: int | None) -> float:
    """Return 1 / (1 + days / half-life)."""
    return 1 / (1 + days / pace.fading.half_life_days)


def weekly(pace: Pace, days: float, accesses: int | None) -> float:
    """Return 0.95^(days / 7), less for a candidate and for what is seldom looked at."""
    kept = math.pow(WEEKLY, days / 7)
    if pace.is_candidate:
        kept *= CANDIDATE
    return kept if accesses is None else kept * min(1.0, UNSEEN + PER_ACCESS * accesses)


def steady_rate(memory: Memory, categories: Mapping[str, Category]) -> float:
    """Return how fast a memory fades: its own rate, else its category's.

    What is eternal has no end, but of two that say something about the same the newer one is
    still likelier to be meant; a fade rate of 0 says that it is not.
    """
    own = memory.text("fade_rate")
    return float(own) if own else _row(memory, categories).decay_per_day


def forgetting_rate(memory: Memory, categories: Mapping[str, Category]) -> float:
    """Return how fast a memory is forgotten: its own rate, never if eternal, its category's.

    An episode that names no category fades as one.
    """
    own = memory.text("fade_rate")
    if own:
        return float(own)
    if temporal_class(memory, categories) == "eternal":
        return 0.0
    if memory.type == "episodic" and not memory.text("category"):
        return EPISODE_PER_DAY
    return _row(memory, categories).lambda_per_day


def _row(memory: Memory, categories: Mapping[str, Category]) -> Category:
    return categories.get(memory.category, UNKNOWN)


class DecayPreset(Value):
    """One row: a formula, the rates that it gets, and where its result counts.

    `counts` says that accesses count unless the settings say otherwise, `scales` that the ranking
    scales importance by what is left, and not freshness alone.
    """

    formula: Callable[[Pace, float, int | None], float]
    rate: Callable[[Memory, Mapping[str, Category]], float]
    counts: bool
    scales: bool
    doc: str


PRESETS: dict[str, DecayPreset] = {
    "steady": DecayPreset(
        exponential,
        steady_rate,
        counts=False,
        scales=False,
        doc="e^(-rate·days) · (1 + 0.05·accesses), 1 at most; the rate is that of the category",
    ),
    "exponential": DecayPreset(
        exponential,
        forgetting_rate,
        counts=True,
        scales=True,
        doc="e^(-λ·days) · (1 + 0.05·accesses), 1 at most; λ is that of the category, 0.1 for an "
        "episodic memory that names none, and 0 for what is eternal",
    ),
    "half-life": DecayPreset(
        half_life,
        steady_rate,
        counts=False,
        scales=True,
        doc="1 / (1 + days / `decay.half_life_days`)",
    ),
    "weekly": DecayPreset(
        weekly,
        steady_rate,
        counts=True,
        scales=True,
        doc="0.95^(days/7) · 0.9 for a candidate · min(1, 0.5 + 0.05·accesses)",
    ),
}
"""How memories fade, by the name in the settings; days are those since the last confirmation. The
first is the default."""
USUAL = Fading()


def pace(memory: Memory, categories: Mapping[str, Category], fading: Fading = USUAL) -> Pace:
    """Return how a memory fades; a pinned one does not."""
    is_pinned = memory.status == "pinned"
    rate = 0.0 if is_pinned else PRESETS[fading.preset].rate(memory, categories)
    return Pace(rate, memory.status == "candidate", fading)


def kept(
    memory: Memory,
    now: int,
    categories: Mapping[str, Category],
    fading: Fading = USUAL,
    accesses: int | None = None,
) -> float:
    """Return what time has left of a memory, 0 to 1, since it was last confirmed.

    A pinned memory and one with a fade rate of 0 never fade, nor does one from the future.
    """
    seconds = now - confirmed_at(memory)
    return pace(memory, categories, fading).kept(seconds, accesses)
