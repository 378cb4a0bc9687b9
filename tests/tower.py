"""A chain of four memories: a premise that was replaced, and what rests on it."""

from __future__ import annotations

from conftest import Sandbox

OLD = "sem-2026-02-01-towers-over-40-floors-k3f9"
NEW = "sem-2026-02-02-towers-over-50-floors-b7x2"
NORTH = "dec-2026-02-01-north-tower-2g54"
PLAN = "sem-2026-02-01-plan-of-the-north-tower-r8d3"


def write_tower(sandbox: Sandbox, *, is_replaced: bool = True) -> None:
    """Write and commit OLD, NORTH, which rests on it, and PLAN, which rests on that; then NEW."""
    sandbox.memory(
        OLD,
        "A tower over 40 floors needs a class F review before it is built.\n",
        title="Towers over 40 floors need a class F review",
    )
    sandbox.memory(
        NORTH,
        "The north tower has 44 floors, so it gets a class F review.\n",
        title="The north tower gets a class F review",
        source=("human:Ada", f"memory:{OLD}"),
    )
    sandbox.memory(
        PLAN,
        "The plan allows nine weeks for the review of the north tower.\n",
        title="The plan of the north tower allows nine weeks",
        derived_from=(NORTH,),
    )
    sandbox.commit()
    if is_replaced:
        replace_premise(sandbox)


def replace_premise(sandbox: Sandbox) -> None:
    """Write and commit NEW, which replaces OLD."""
    sandbox.memory(
        NEW,
        "A tower over 50 floors needs a class F review before it is built.\n",
        title="Towers over 50 floors need a class F review",
        supersedes=(OLD,),
    )
    sandbox.commit()
