"""Inputs of upkeep in tests: the worktree of a sandbox, and invented accesses."""

from __future__ import annotations

from collections.abc import Mapping

from conftest import NOW, Sandbox

from memtool.memory import timestamps
from memtool.store.config import DEFAULTS, Config, Setting
from memtool.store.history import UpholdingCommit
from memtool.store.ledger import UsageCount
from memtool.store.tree import Tree
from memtool.upkeep.inputs import PlanInputs, Uses

SECOND = timestamps.parse(NOW)
DAY_S = timestamps.DAY_S


def ago(days: float) -> str:
    """The moment so many days before now."""
    return timestamps.render(SECOND - round(days * DAY_S))


def uses(**seconds: list[int]) -> Uses:
    """Accesses of memories at seconds."""
    totals = {id_: UsageCount(id_, len(when), max(when)) for id_, when in seconds.items()}
    opened = {id_: len(when) for id_, when in seconds.items()}
    return Uses(totals, opened)


def upholding(**days: float) -> dict[str, UpholdingCommit]:
    """Commits of Bo that uphold memories, so many days ago."""
    return {
        id_: UpholdingCommit("0123456789abcdef", SECOND - round(ago * DAY_S), "Bo", (id_,))
        for id_, ago in days.items()
    }


def seen(days: float, times: int = 1) -> list[int]:
    """Seconds of as many accesses, days ago."""
    return [SECOND - round(days * DAY_S)] * times


class Anywhere(dict[str, int]):
    """Nine days ago, whatever the file."""

    def get(self, _path: str, _other: object = None) -> int:  # type: ignore[override]
        """Return that moment."""
        return SECOND - 9 * DAY_S


def inputs(
    counted: Uses | None = None,
    frozen: frozenset[str] = frozenset(),
    added: Mapping[str, int] | None = None,
    upheld: Mapping[str, UpholdingCommit] | None = None,
    **overrides: Setting,
) -> PlanInputs:
    """Inputs with settings, whose names have an underscore for the full stop.

    Every file was added nine days ago, unless `added` says when.
    """
    settings = {key.replace("_", ".", 1): value for key, value in overrides.items()}
    config: Config = DEFAULTS.replace(values=settings)
    since = Anywhere() if added is None else added
    return PlanInputs(
        SECOND, config, counted or Uses(), ".memory", frozen, added=since, upheld=upheld or {}
    )


def tree_of(sandbox: Sandbox) -> Tree:
    """The memories of the worktree."""
    return sandbox.context().tree()
