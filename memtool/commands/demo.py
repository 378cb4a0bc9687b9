"""`memtool demo`: the repository of a made-up team, to look around in."""

from __future__ import annotations

import os
import shlex

from memtool import demo as demo_repository
from memtool.demo import NEIGHBOUR, Demo
from memtool.store.context import Context


def demo(context: Context, directory: str, *, dry_run: bool = False) -> Demo:
    """Build the repository of a made-up team: the quickest way to look around.

    Four people sell ferry tickets there, with two agents. It has sixty memories of half a year: a
    chain of four decisions, a fork, contradictions that are open, settled and accepted, drift,
    candidates, pinned, deprecated, archived, expired and forgotten memories, a branch that is not
    merged, a remote that lacks the last commits, sessions with findings, and a usage log. Authors
    and dates are fixed: the commits have the same ids wherever it is built. Nothing leaves the
    directory, and removing that removes all of it. In it lies the repository of another team, too,
    for a fleet of two: what sets that in your own settings is printed, and not done.

    Example:
        memtool demo harbor

    Args:
        directory: where it goes; it must be absent or empty
        dry_run: say what would be built, write nothing
    """
    place = os.path.abspath(os.path.join(context.caller.cwd, directory))
    return demo_repository.build(context.caller.env, place, dry_run=dry_run)


def render(built: Demo) -> str:
    """Return what was built, and what to try next."""
    what = (
        f"{built.memories} memories in {built.commits} commits on {len(built.branches)} branches, "
        f"{built.sessions} sessions, {built.answers} answers in the usage log"
    )
    if built.dry_run:
        return f"would build {built.directory}: {what}"
    rows = [
        f"built {built.directory}: {what}",
        f"its story ends on {built.now[:10]}; MEMTOOL_NOW={built.now} shows it as of then",
        f"next: cd {shlex.quote(built.directory)}",
    ]
    tries = ("status", "search 'how long is a seat held'", "conflicts", "promote --list", "serve")
    neighbour = shlex.quote(os.path.join(built.directory, NEIGHBOUR))
    fleet = (f"--global config fleet.repositories {neighbour}", "fleet sync", "fleet similar")
    return "\n".join(
        [
            *rows,
            *(f"next: memtool {one}" for one in tries),
            "or ask another team, too:",
            *(f"next: memtool {one}" for one in fleet),
        ]
    )
