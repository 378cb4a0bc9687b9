"""Points: how much evidence a finding has, and how much a preset asks for."""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.sessions.finding import Finding

INTENT = "user-intent"
PIN = "pin"
SESSIONS = "two-sessions"
RESOLVED = "resolved"
AGENTS = "two-agents"
IMPORTANT = "important"

LEAST_IMPORTANT = 0.7


class Signal(Value):
    """A reason to keep a finding."""

    name: str
    points: int
    doc: str


SIGNALS: tuple[Signal, ...] = (
    Signal(INTENT, 5, "a person stated it as a rule, decision or wish, asked to keep it, or "
           "promotes it by hand"),
    Signal(PIN, 5, "a person asked to pin it"),
    Signal(SESSIONS, 2, "two or more sessions say so, forks of one counting once"),
    Signal(RESOLVED, 2, "an error with what resolved it: the same command failed, then worked"),
    Signal(AGENTS, 1, "two or more agents say so"),
    Signal(IMPORTANT, 1, f"its importance is {LEAST_IMPORTANT:g} or more"),
)  # fmt: skip
BY_NAME: dict[str, Signal] = {signal.name: signal for signal in SIGNALS}


class Preset(Value):
    """What a finding needs to be promoted: points, importance, and characters of its statement."""

    name: str
    points: int
    importance: float
    characters: int


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("conservative", 4, 0.4, 50),
        Preset("balanced", 3, 0.25, 30),
        Preset("aggressive", 2, 0.15, 20),
    )
}


def signals_of(finding: Finding, sessions: int, agents: int) -> tuple[str, ...]:
    """Return all signals of a finding in the order of the table.

    `sessions` and `agents` count those that say the same, its own included.
    """
    derived = {SESSIONS: sessions > 1, AGENTS: agents > 1,
               IMPORTANT: finding.importance >= LEAST_IMPORTANT}  # fmt: skip
    return tuple(
        signal.name
        for signal in SIGNALS
        if derived.get(signal.name, signal.name in finding.signals)
    )


def total(signals: Iterable[str]) -> int:
    """Return the points of signals; unknown ones have none."""
    return sum(BY_NAME[name].points for name in set(signals) if name in BY_NAME)


def shortfall(finding: Finding, points: int, preset: Preset) -> str:
    """Return what a finding lacks for a preset, empty where it lacks nothing."""
    if points < preset.points:
        return f"{points} of {preset.points} points"
    if finding.importance < preset.importance:
        return f"importance {finding.importance:g}, {preset.importance:g} needed"
    if len(finding.content) < preset.characters:
        return f"{len(finding.content)} characters, {preset.characters} needed"
    return ""
