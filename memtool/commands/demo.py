"""`memtool demo`: the repository of a made-up team, to look around in."""

from __future__ import annotations

import os
import shlex

from memtool import demo as demo_repository
from memtool.commands._layout import Layout
from memtool.demo import NEIGHBOUR, Demo
from memtool.store.context import Context


def demo(context: Context, directory: str, *, dry_run: bool = False) -> Demo:
    """Build a sample repository to try things in, of a team that sells ferry tickets.

    It has sixty memories of half a year: decisions that replaced others, conflicts, drift,
    candidates, sessions, and a branch that is not merged. It is the same wherever it is built, and
    only writes to the directory. A second repository inside it is there to try memtool fleet.

    Example:
        memtool demo harbor

    Args:
        directory: where to build it; must be absent or empty
        dry_run: describe what would be built, write nothing
    """
    path = os.path.abspath(os.path.join(context.caller.cwd, directory))
    return demo_repository.build(context.caller.env, path, dry_run=dry_run)


def render(built: Demo, _layout: Layout) -> str:
    """Return the counts of the repository, and commands to try."""
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
    commands = (
        "status",
        "search 'how long is a seat held'",
        "conflicts",
        "promote --list",
        "serve",
    )
    other_team = shlex.quote(os.path.join(built.directory, NEIGHBOUR))
    fleet = (f"--global config fleet.repositories {other_team}", "fleet sync", "fleet similar")
    return "\n".join(
        [
            *rows,
            *(f"next: memtool {command}" for command in commands),
            "or ask another team, too:",
            *(f"next: memtool {command}" for command in fleet),
        ]
    )
